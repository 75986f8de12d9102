/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The border to Rust: every function of the module, in every mode, must hand over each argument in its field,
 * and give Rust's answer back. (That the component below gets the right arguments is seen in tests/mpi, by
 * what it does.)
 *
 * Stands in place of Rust, with the shim's module.c in it; runs without mpiexec.
 */
#include "../../ompi-glue/module.c"

#include <stdio.h>

/* ---------------------------------------------------------------- arguments, all different */

enum { SCOUNT = 11, RCOUNT = 12, ROOT = 13, ANSWER = 4711 };
static char sbuf[1], rbuf[1], comm_[1], info_[1], op_[1], sdt_[1], rdt_[1], state[1];
static int scounts[2], sdispls[2], rcounts[2], rdispls[2];
static MPI_Aint swide[2], rwide[2];
static ompi_request_t *request;
static struct ompi_datatype_t *sdts[2], *rdts[2];
#define SDT ((struct ompi_datatype_t *) sdt_)
#define RDT ((struct ompi_datatype_t *) rdt_)
#define OP ((struct ompi_op_t *) op_)
#define COMM ((struct ompi_communicator_t *) comm_)
#define INFO ((struct ompi_info_t *) info_)

enum mode { BLOCKING, NONBLOCKING, PERSISTENT };
static const char *const MODE_NAME[] = {"blocking", "nonblocking", "persistent"};
static long passed = 0, failed = 0;
static const char *name;
static int mode;

static void check(int good, const char *what)
{
    if (good) {
        passed++;
        return;
    }
    failed++;
    printf("border: FAILED: %s %s: %s\n", MODE_NAME[mode], name, what);
}

/* ---------------------------------------------------------------- in place of Rust */

static struct cr_call seen;
static int seen_mode, answer;
static ompi_request_t **seen_request;
static const void *seen_state;
static int seen_device;

static int record(const void *from, const struct cr_call *call, int device, int called_mode, ompi_request_t **where)
{
    seen_device = device;
    seen = *call;
    seen_mode = called_mode;
    seen_request = where;
    seen_state = from;
    return answer;
}

/* Of every second call that passes, other memory takes the place of its buffers. */
static int stands_in;
static char half[1];
static int heard_code;
static ompi_request_t **heard_request;

static void stand_in(struct cr_stand_in *in)
{
    check(NULL == in->send && NULL == in->recv && NULL == in->half, "what stands in is not empty");
    stands_in = !stands_in;
    if (stands_in) {
        in->half = half;
    }
}

int cr_device_passed(void *whose, int code, ompi_request_t **where)
{
    check(whose == half && stands_in && CR_PASS == answer, "who is told of the answer from below");
    heard_code = code;
    heard_request = where;
    return ANSWER;
}

#define DOOR(name, KIND)                                                                                       \
    int cr_block_##name(void *module_state, const struct cr_call *call)                                        \
    {                                                                                                          \
        check(KIND == call->kind, "the door");                                                                 \
        return record(module_state, call, 0, BLOCKING, NULL);                                                     \
    }
CR_DOORS(DOOR)
#undef DOOR

int cr_call_nonblocking(void *module_state, const struct cr_call *call, struct ompi_request_t **where)
{
    return record(module_state, call, 0, NONBLOCKING, where);
}

int cr_call_persistent(void *module_state, const struct cr_call *call, struct ompi_request_t **where)
{
    return record(module_state, call, 0, PERSISTENT, where);
}

int cr_device_blocking(void *module_state, const struct cr_call *call, int device,
                       struct cr_stand_in *in)
{
    stand_in(in);
    return record(module_state, call, device, BLOCKING, NULL);
}

int cr_device_nonblocking(void *module_state, const struct cr_call *call, int device, ompi_request_t **where,
                          struct cr_stand_in *in)
{
    stand_in(in);
    return record(module_state, call, device, NONBLOCKING, where);
}

int cr_device_persistent(void *module_state, const struct cr_call *call, int device, ompi_request_t **where,
                         struct cr_stand_in *in)
{
    stand_in(in);
    return record(module_state, call, device, PERSISTENT, where);
}

static int freed = 0;

void cr_comm_free(void *module_state)
{
    freed += module_state == state;
}

/* ---------------------------------------------------------------- in place of accelerator.c */

/* No address is surely the host's: each is asked about. */
struct cr_host_memory cr_host_memory = {.stack = INTPTR_MAX};

/* Whether an accelerator is active, and which of the two buffers lie in its memory. */
static int accelerates, on_device;

int cr_accelerates(void)
{
    return accelerates;
}

int cr_is_on_device(const void *at)
{
    check(accelerates, "an address is asked about where no accelerator is active");
    return (at == sbuf && (on_device & CR_SEND_ON_DEVICE)) || (at == rbuf && (on_device & CR_RECV_ON_DEVICE));
}

/* ---------------------------------------------------------------- what must arrive */

static void same_side(const char *which, const struct cr_side *got, const struct cr_side *expected)
{
    char text[64];
#define FIELD(field)                                                                                           \
    (void) snprintf(text, sizeof text, "%s.%s", which, #field);                                                \
    check(got->field == expected->field, text);
    FIELD(buf) FIELD(in_place) FIELD(count) FIELD(dtype) FIELD(counts) FIELD(displs) FIELD(wide) FIELD(dtypes)
#undef FIELD
}

/* In the order of enum cr_kind. */
static const char *const NAMES[] = {"allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier", "bcast",
                                    "exscan", "gather", "gatherv", "neighbor_allgather", "neighbor_allgatherv",
                                    "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw", "reduce", "reduce_scatter",
                                    "reduce_scatter_block", "scan", "scatter", "scatterv"};
_Static_assert(sizeof NAMES / sizeof *NAMES == CR_KINDS, "every kind has a name");

/* Which buffer is given as MPI_IN_PLACE. */
enum in_place { NEITHER, OF_SEND, OF_RECV };

/* What the operation's row of arguments means, written down once more. */
static struct cr_call expected_call(int kind, enum in_place in_place)
{
    struct cr_call call = {.kind = kind};
    const struct cr_side s = {.buf = sbuf, .count = SCOUNT, .dtype = SDT}, r = {.buf = rbuf, .count = RCOUNT, .dtype = RDT};
    const struct cr_side sv = {.buf = sbuf, .counts = scounts, .displs = sdispls, .dtype = SDT};
    const struct cr_side rv = {.buf = rbuf, .counts = rcounts, .displs = rdispls, .dtype = RDT};
    const struct cr_side sw = {.buf = sbuf, .counts = scounts, .displs = sdispls, .dtypes = sdts};
    const struct cr_side rw = {.buf = rbuf, .counts = rcounts, .displs = rdispls, .dtypes = rdts};
    const struct cr_side nw = {.buf = sbuf, .counts = scounts, .wide = swide, .dtypes = sdts};
    const struct cr_side mw = {.buf = rbuf, .counts = rcounts, .wide = rwide, .dtypes = rdts};
    switch (kind) {
    case CR_NEIGHBOR_ALLGATHER: case CR_NEIGHBOR_ALLTOALL:
    case CR_ALLGATHER: case CR_ALLTOALL: case CR_GATHER: case CR_SCATTER: call.send = s; call.recv = r; break;
    case CR_ALLGATHERV: case CR_GATHERV: case CR_NEIGHBOR_ALLGATHERV: call.send = s; call.recv = rv; break;
    case CR_ALLTOALLV: case CR_NEIGHBOR_ALLTOALLV: call.send = sv; call.recv = rv; break;
    case CR_NEIGHBOR_ALLTOALLW: call.send = nw; call.recv = mw; break;
    case CR_ALLTOALLW: call.send = sw; call.recv = rw; break;
    case CR_SCATTERV: call.send = sv; call.recv = r; break;
    case CR_BCAST: call.recv = r; break;
    case CR_BARRIER: break;
    case CR_REDUCE_SCATTER:
        call.send = (struct cr_side){.buf = sbuf, .counts = rcounts, .dtype = RDT};
        call.recv = (struct cr_side){.buf = rbuf, .counts = rcounts, .dtype = RDT};
        call.op = OP;
        break;
    default:
        call.send = (struct cr_side){.buf = sbuf, .count = RCOUNT, .dtype = RDT};
        call.recv = (struct cr_side){.buf = rbuf, .count = RCOUNT, .dtype = RDT};
        call.op = OP;
    }
    if (kind == CR_BCAST || kind == CR_GATHER || kind == CR_GATHERV || kind == CR_REDUCE || kind == CR_SCATTER || kind == CR_SCATTERV)
        call.root = ROOT;
    struct cr_side *replaced = in_place == OF_SEND ? &call.send : in_place == OF_RECV ? &call.recv : NULL;
    if (replaced && replaced->buf) {
        replaced->buf = NULL;
        replaced->in_place = 1;
    }
    return call;
}

/* The arguments of each operation. */
static const void *given_sbuf;
static void *given_rbuf;
#define MOVE_ARGUMENTS given_sbuf, SCOUNT, SDT, given_rbuf, RCOUNT, RDT,
#define REDUCE_ARGUMENTS given_sbuf, given_rbuf, RCOUNT, RDT, OP,
#define allgather_ARGUMENTS MOVE_ARGUMENTS
#define allgatherv_ARGUMENTS given_sbuf, SCOUNT, SDT, given_rbuf, rcounts, rdispls, RDT,
#define allreduce_ARGUMENTS REDUCE_ARGUMENTS
#define alltoall_ARGUMENTS MOVE_ARGUMENTS
#define alltoallv_ARGUMENTS given_sbuf, scounts, sdispls, SDT, given_rbuf, rcounts, rdispls, RDT,
#define alltoallw_ARGUMENTS given_sbuf, scounts, sdispls, sdts, given_rbuf, rcounts, rdispls, rdts,
#define barrier_ARGUMENTS
#define bcast_ARGUMENTS given_rbuf, RCOUNT, RDT, ROOT,
#define exscan_ARGUMENTS REDUCE_ARGUMENTS
#define gather_ARGUMENTS MOVE_ARGUMENTS ROOT,
#define gatherv_ARGUMENTS given_sbuf, SCOUNT, SDT, given_rbuf, rcounts, rdispls, RDT, ROOT,
#define neighbor_allgather_ARGUMENTS MOVE_ARGUMENTS
#define neighbor_allgatherv_ARGUMENTS given_sbuf, SCOUNT, SDT, given_rbuf, rcounts, rdispls, RDT,
#define neighbor_alltoall_ARGUMENTS MOVE_ARGUMENTS
#define neighbor_alltoallv_ARGUMENTS given_sbuf, scounts, sdispls, SDT, given_rbuf, rcounts, rdispls, RDT,
#define neighbor_alltoallw_ARGUMENTS given_sbuf, scounts, swide, sdts, given_rbuf, rcounts, rwide, rdts,
#define reduce_ARGUMENTS REDUCE_ARGUMENTS ROOT,
#define reduce_scatter_ARGUMENTS given_sbuf, given_rbuf, rcounts, RDT, OP,
#define reduce_scatter_block_ARGUMENTS REDUCE_ARGUMENTS
#define scan_ARGUMENTS REDUCE_ARGUMENTS
#define scatter_ARGUMENTS MOVE_ARGUMENTS ROOT,
#define scatterv_ARGUMENTS given_sbuf, scounts, sdispls, SDT, given_rbuf, RCOUNT, RDT, ROOT,

/* ---------------------------------------------------------------- the check */

static void verify(enum in_place in_place, int rc)
{
    int kind = 0;
    while (kind < CR_KINDS && strcmp(NAMES[kind], name)) {
        kind++;
    }
    const struct cr_call expected = expected_call(kind, in_place);
    /* Nothing is below: a call that Rust passes cannot be served. Rust hears of it where memory stands in. */
    const int told = seen_device != 0 && stands_in && CR_PASS == answer;
    check(rc == (CR_PASS == answer && !told ? MPI_ERR_UNSUPPORTED_OPERATION : ANSWER), "the answer");
    if (told) {
        check(heard_code == MPI_ERR_UNSUPPORTED_OPERATION, "the answer from below");
        check(heard_request == (mode == BLOCKING ? NULL : &request), "the request from below");
    }
    heard_code = 0;
    check(seen_mode == mode, "the mode");
    check(seen_request == (mode == BLOCKING ? NULL : &request), "the request");
    check(seen_state == state, "Rust's half");
    check(seen.kind == expected.kind, "the kind");
    check(seen.root == expected.root, "the root");
    check(seen.op == expected.op, "the operation");
    const int device = (NULL != expected.send.buf ? CR_SEND_ON_DEVICE : 0) | (NULL != expected.recv.buf ? CR_RECV_ON_DEVICE : 0);
    check(seen_device == (device & on_device), "which buffers are a device's");
    same_side("send", &seen.send, &expected.send);
    same_side("recv", &seen.recv, &expected.recv);
    memset(&seen, 0x77, sizeof seen);
}

#define VERIFY_THREE(operation, kind, a, b, c)                                                                 \
    name = #operation;                                                                                         \
    mode = BLOCKING;                                                                                           \
    verify(in_place, module->coll_##operation(operation##_ARGUMENTS COMM, module));                      \
    mode = NONBLOCKING;                                                                                        \
    verify(in_place, module->coll_i##operation(operation##_ARGUMENTS COMM, &request, module));           \
    mode = PERSISTENT;                                                                                         \
    verify(in_place, module->coll_##operation##_init(operation##_ARGUMENTS COMM, INFO, &request, module));

/* Every operation in every mode, through a module of its own. */
static void verify_all(void)
{
    mca_coll_base_module_t *module = cr_module_new(state);
    for (int round = 0; round < 6; round++) {
        const enum in_place in_place = (enum in_place) (round % 3);
        answer = round < 3 ? ANSWER : CR_PASS;
        given_sbuf = in_place == OF_SEND ? MPI_IN_PLACE : sbuf;
        given_rbuf = in_place == OF_RECV ? MPI_IN_PLACE : rbuf;
        CR_OPERATIONS(VERIFY_THREE)
    }
    name = "module";
    freed = 0;
    OBJ_RELEASE(module);
    check(freed == 1, "Rust's half was not freed once");
}

int main(void)
{
    verify_all();
    accelerates = 1;
    for (on_device = 0; on_device <= (CR_SEND_ON_DEVICE | CR_RECV_ON_DEVICE); on_device++) {
        verify_all();
    }
    printf("border: %ld passed, %ld failed\n", passed, failed);
    return failed != 0;
}
