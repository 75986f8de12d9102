/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The module of one communicator: hands each call to Rust, and on CR_PASS to the component that would have
 * served it without us.
 *
 * The functions of a module differ in their arguments only, and those are made of a few groups. So there is
 * one table that says which groups an operation has, and one function in three modes that is made from each
 * of its rows.
 */
#include "compat.h"

/* Operation, its kind, and its arguments before the communicator. Open MPI must have a blocking form of each
 * of these below us. */
#define CR_OPERATIONS(OPERATION)                                                                               \
    OPERATION(allgather, CR_ALLGATHER, SEND, RECV, NONE)                                                       \
    OPERATION(allgatherv, CR_ALLGATHERV, SEND, RECV_V, NONE)                                                   \
    OPERATION(allreduce, CR_ALLREDUCE, REDUCE, NONE, NONE)                                                     \
    OPERATION(alltoall, CR_ALLTOALL, SEND, RECV, NONE)                                                         \
    OPERATION(alltoallv, CR_ALLTOALLV, SEND_V, RECV_V, NONE)                                                   \
    OPERATION(alltoallw, CR_ALLTOALLW, SEND_W, RECV_W, NONE)                                                   \
    OPERATION(barrier, CR_BARRIER, NONE, NONE, NONE)                                                           \
    OPERATION(bcast, CR_BCAST, BUFFER, NONE, ROOT)                                                             \
    OPERATION(exscan, CR_EXSCAN, REDUCE, NONE, NONE)                                                           \
    OPERATION(gather, CR_GATHER, SEND, RECV, ROOT)                                                             \
    OPERATION(gatherv, CR_GATHERV, SEND, RECV_V, ROOT)                                                         \
    OPERATION(neighbor_allgather, CR_NEIGHBOR_ALLGATHER, SEND, RECV, NONE)                                     \
    OPERATION(neighbor_allgatherv, CR_NEIGHBOR_ALLGATHERV, SEND, RECV_V, NONE)                                 \
    OPERATION(neighbor_alltoall, CR_NEIGHBOR_ALLTOALL, SEND, RECV, NONE)                                       \
    OPERATION(neighbor_alltoallv, CR_NEIGHBOR_ALLTOALLV, SEND_V, RECV_V, NONE)                                 \
    OPERATION(neighbor_alltoallw, CR_NEIGHBOR_ALLTOALLW, SEND_WIDE, RECV_WIDE, NONE)                           \
    OPERATION(reduce, CR_REDUCE, REDUCE, NONE, ROOT)                                                           \
    OPERATION(reduce_scatter, CR_REDUCE_SCATTER, REDUCE_V, NONE, NONE)                                         \
    OPERATION(reduce_scatter_block, CR_REDUCE_SCATTER_BLOCK, REDUCE, NONE, NONE)                               \
    OPERATION(scan, CR_SCAN, REDUCE, NONE, NONE)                                                               \
    OPERATION(scatter, CR_SCATTER, SEND, RECV, ROOT)                                                           \
    OPERATION(scatterv, CR_SCATTERV, SEND_V, RECV, ROOT)

/* ---------------------------------------------------------------- groups of arguments */

/* Of each group: the parameters, the same as arguments, the fields of a cr_call that they fill in, and, of
 * buffers, which are surely the host's, which are a device's, and what takes the place of those. */

#define CR_NONE_PARAMETERS
#define CR_NONE_ARGUMENTS
#define CR_NONE_ON_HOST
#define CR_NONE_DEVICE 0
#define CR_NONE_STAND_IN
#define CR_NONE_FIELDS

#define CR_ROOT_PARAMETERS int root,
#define CR_ROOT_ARGUMENTS root,
#define CR_ROOT_ON_HOST
#define CR_ROOT_DEVICE 0
#define CR_ROOT_STAND_IN
#define CR_ROOT_FIELDS call.root = root;

#define CR_BUFFER_PARAMETERS void *buf, cr_len count, struct ompi_datatype_t *dtype,
#define CR_BUFFER_ARGUMENTS buf, count, dtype,
#define CR_BUFFER_ON_HOST on_host(buf)&&
#define CR_BUFFER_DEVICE (cr_is_on_device(buf) ? CR_RECV_ON_DEVICE : 0)
#define CR_BUFFER_STAND_IN
#define CR_BUFFER_FIELDS call.recv = (struct cr_side) {CR_BUF(buf), .count = (size_t) count, .dtype = dtype};

#define CR_SEND_PARAMETERS const void *sbuf, cr_len scount, struct ompi_datatype_t *sdtype,
#define CR_SEND_ARGUMENTS sbuf, scount, sdtype,
#define CR_SEND_ON_HOST on_host(sbuf)&&
#define CR_SEND_DEVICE (cr_is_on_device(sbuf) ? CR_SEND_ON_DEVICE : 0)
#define CR_SEND_STAND_IN
#define CR_SEND_FIELDS call.send = (struct cr_side) {CR_BUF(sbuf), .count = (size_t) scount, .dtype = sdtype};

#define CR_RECV_PARAMETERS void *rbuf, cr_len rcount, struct ompi_datatype_t *rdtype,
#define CR_RECV_ARGUMENTS rbuf, rcount, rdtype,
#define CR_RECV_ON_HOST on_host(rbuf)&&
#define CR_RECV_DEVICE (cr_is_on_device(rbuf) ? CR_RECV_ON_DEVICE : 0)
#define CR_RECV_STAND_IN
#define CR_RECV_FIELDS call.recv = (struct cr_side) {CR_BUF(rbuf), .count = (size_t) rcount, .dtype = rdtype};

#define CR_SEND_V_PARAMETERS                                                                                   \
    const void *sbuf, cr_counts scounts, cr_displs sdispls, struct ompi_datatype_t *sdtype,
#define CR_SEND_V_ARGUMENTS sbuf, scounts, sdispls, sdtype,
#define CR_SEND_V_ON_HOST on_host(sbuf)&&
#define CR_SEND_V_DEVICE (cr_is_on_device(sbuf) ? CR_SEND_ON_DEVICE : 0)
#define CR_SEND_V_STAND_IN
#define CR_SEND_V_FIELDS                                                                                       \
    call.send = (struct cr_side) {CR_BUF(sbuf), CR_ARRAYS(scounts, sdispls), .dtype = sdtype};

#define CR_RECV_V_PARAMETERS                                                                                   \
    void *rbuf, cr_counts rcounts, cr_displs rdispls, struct ompi_datatype_t *rdtype,
#define CR_RECV_V_ARGUMENTS rbuf, rcounts, rdispls, rdtype,
#define CR_RECV_V_ON_HOST on_host(rbuf)&&
#define CR_RECV_V_DEVICE (cr_is_on_device(rbuf) ? CR_RECV_ON_DEVICE : 0)
#define CR_RECV_V_STAND_IN
#define CR_RECV_V_FIELDS                                                                                       \
    call.recv = (struct cr_side) {CR_BUF(rbuf), CR_ARRAYS(rcounts, rdispls), .dtype = rdtype};

#define CR_SEND_W_PARAMETERS                                                                                   \
    const void *sbuf, cr_counts scounts, cr_displs sdispls, struct ompi_datatype_t *const *sdtypes,
#define CR_SEND_W_ARGUMENTS sbuf, scounts, sdispls, sdtypes,
#define CR_SEND_W_ON_HOST on_host(sbuf)&&
#define CR_SEND_W_DEVICE (cr_is_on_device(sbuf) ? CR_SEND_ON_DEVICE : 0)
#define CR_SEND_W_STAND_IN
#define CR_SEND_W_FIELDS                                                                                       \
    call.send = (struct cr_side) {CR_BUF(sbuf), CR_ARRAYS(scounts, sdispls), .dtypes = sdtypes};

#define CR_RECV_W_PARAMETERS                                                                                   \
    void *rbuf, cr_counts rcounts, cr_displs rdispls, struct ompi_datatype_t *const *rdtypes,
#define CR_RECV_W_ARGUMENTS rbuf, rcounts, rdispls, rdtypes,
#define CR_RECV_W_ON_HOST on_host(rbuf)&&
#define CR_RECV_W_DEVICE (cr_is_on_device(rbuf) ? CR_RECV_ON_DEVICE : 0)
#define CR_RECV_W_STAND_IN
#define CR_RECV_W_FIELDS                                                                                       \
    call.recv = (struct cr_side) {CR_BUF(rbuf), CR_ARRAYS(rcounts, rdispls), .dtypes = rdtypes};

#define CR_SEND_WIDE_PARAMETERS                                                                                \
    const void *sbuf, cr_counts scounts, cr_wides sdispls, struct ompi_datatype_t *const *sdtypes,
#define CR_SEND_WIDE_ARGUMENTS sbuf, scounts, sdispls, sdtypes,
#define CR_SEND_WIDE_ON_HOST on_host(sbuf)&&
#define CR_SEND_WIDE_DEVICE (cr_is_on_device(sbuf) ? CR_SEND_ON_DEVICE : 0)
#define CR_SEND_WIDE_STAND_IN
#define CR_SEND_WIDE_FIELDS                                                                                    \
    call.send = (struct cr_side) {CR_BUF(sbuf), CR_WIDE_ARRAYS(scounts, sdispls), .dtypes = sdtypes};

#define CR_RECV_WIDE_PARAMETERS                                                                                \
    void *rbuf, cr_counts rcounts, cr_wides rdispls, struct ompi_datatype_t *const *rdtypes,
#define CR_RECV_WIDE_ARGUMENTS rbuf, rcounts, rdispls, rdtypes,
#define CR_RECV_WIDE_ON_HOST on_host(rbuf)&&
#define CR_RECV_WIDE_DEVICE (cr_is_on_device(rbuf) ? CR_RECV_ON_DEVICE : 0)
#define CR_RECV_WIDE_STAND_IN
#define CR_RECV_WIDE_FIELDS                                                                                    \
    call.recv = (struct cr_side) {CR_BUF(rbuf), CR_WIDE_ARRAYS(rcounts, rdispls), .dtypes = rdtypes};

#define CR_REDUCE_PARAMETERS                                                                                   \
    const void *sbuf, void *rbuf, cr_len count, struct ompi_datatype_t *dtype, struct ompi_op_t *op,
#define CR_REDUCE_ARGUMENTS sbuf, rbuf, count, dtype, op,
#define CR_REDUCE_ON_HOST on_host(rbuf)&&on_host(sbuf)&&
#define CR_REDUCE_DEVICE CR_SEND_DEVICE | CR_RECV_DEVICE
#define CR_REDUCE_STAND_IN CR_STAND_IN(sbuf, in.send) CR_STAND_IN(rbuf, in.recv)
#define CR_REDUCE_FIELDS                                                                                       \
    call.send = (struct cr_side) {CR_BUF(sbuf), .count = (size_t) count, .dtype = dtype};                      \
    call.recv = (struct cr_side) {CR_BUF(rbuf), .count = (size_t) count, .dtype = dtype};                      \
    call.op = op;

#define CR_REDUCE_V_PARAMETERS                                                                                 \
    const void *sbuf, void *rbuf, cr_counts counts, struct ompi_datatype_t *dtype, struct ompi_op_t *op,
#define CR_REDUCE_V_ARGUMENTS sbuf, rbuf, counts, dtype, op,
#define CR_REDUCE_V_ON_HOST on_host(rbuf)&&on_host(sbuf)&&
#define CR_REDUCE_V_DEVICE CR_SEND_DEVICE | CR_RECV_DEVICE
#define CR_REDUCE_V_STAND_IN CR_STAND_IN(sbuf, in.send) CR_STAND_IN(rbuf, in.recv)
#define CR_REDUCE_V_FIELDS                                                                                     \
    call.send = (struct cr_side) {CR_BUF(sbuf), CR_COUNTS(counts), .dtype = dtype};                             \
    call.recv = (struct cr_side) {CR_BUF(rbuf), CR_COUNTS(counts), .dtype = dtype};                             \
    call.op = op;

/* The memory that stands in for a buffer, if some does. */
#define CR_STAND_IN(buffer, memory) buffer = NULL == (memory) ? buffer : (memory);

#define CR_BUF(pointer)                                                                                        \
    .buf = MPI_IN_PLACE == (pointer) ? NULL : (void *) (pointer), .in_place = MPI_IN_PLACE == (pointer)

/* ---------------------------------------------------------------- functions of the module */

/* Every function that the module offers, and whether enable insists on one below. */
#define CR_THREE_SLOTS(name, kind, a, b, c) SLOT(name, 1) SLOT(i##name, 0) SLOT(name##_init, 0)

struct cr_module_t {
    mca_coll_base_module_t super;
    void *state; /* Rust's half */
    /* What the components below offered for each slot; the modules are retained. */
#define SLOT(name, needed)                                                                                     \
    __typeof__(((mca_coll_base_module_t *) NULL)->coll_##name) name;                                           \
    mca_coll_base_module_t *name##_module;
    CR_OPERATIONS(CR_THREE_SLOTS)
#undef SLOT
};
typedef struct cr_module_t cr_module_t;

OBJ_CLASS_DECLARATION(cr_module_t);

/* Part by part: GCC clears the whole with "rep stos", which costs a short call 10 ns. */
#define CR_EMPTY(KIND)                                                                                         \
    call.kind = KIND;                                                                                          \
    call.root = 0;                                                                                             \
    call.send = (struct cr_side) {0};                                                                          \
    call.recv = (struct cr_side) {0};                                                                          \
    call.op = NULL;

/* Asks Rust at this door, and returns its answer, unless it passes: then the component below gets the
 * arguments as they came. */
#define CR_FORWARD(door, name, KIND, a, b, c, MORE, ...)                                                       \
    cr_module_t *self = (cr_module_t *) module;                                                                \
    struct cr_call call;                                                                                       \
    CR_EMPTY(KIND) CR_##a##_FIELDS CR_##b##_FIELDS CR_##c##_FIELDS                                             \
    const int rc = door(self->state, &call CR_MORE_##MORE);                                                   \
    if (CR_PASS != rc) {                                                                                       \
        return rc;                                                                                             \
    }                                                                                                          \
    if (NULL == self->name) {                                                                                  \
        return MPI_ERR_UNSUPPORTED_OPERATION;                                                                  \
    }                                                                                                          \
    return self->name(CR_##a##_ARGUMENTS CR_##b##_ARGUMENTS CR_##c##_ARGUMENTS __VA_ARGS__, self->name##_module)

#define CR_MORE_NOTHING
#define CR_MORE_REQUEST , request
#define CR_OUT_NOTHING NULL
#define CR_OUT_REQUEST request

/* The same of buffers in a device's memory. Where Rust has put other memory in their place, it learns of the
 * answer of the component below. */
#define CR_FORWARD_DEVICE(door, name, KIND, a, b, c, MORE, ...)                                                \
    cr_module_t *self = (cr_module_t *) module;                                                                \
    struct cr_call call;                                                                                       \
    struct cr_stand_in in = {NULL, NULL, NULL};                                                                \
    CR_EMPTY(KIND) CR_##a##_FIELDS CR_##b##_FIELDS CR_##c##_FIELDS                                             \
    int rc = door(self->state, &call, device CR_MORE_##MORE, &in);                                             \
    if (CR_PASS != rc) {                                                                                       \
        return rc;                                                                                             \
    }                                                                                                          \
    CR_##a##_STAND_IN CR_##b##_STAND_IN                                                                        \
    rc = NULL == self->name ? MPI_ERR_UNSUPPORTED_OPERATION                                                    \
                            : self->name(CR_##a##_ARGUMENTS CR_##b##_ARGUMENTS CR_##c##_ARGUMENTS __VA_ARGS__, \
                                         self->name##_module);                                                 \
    return NULL == in.half ? rc : cr_device_passed(in.half, rc, CR_OUT_##MORE)

/* Of each function another one, for modules where an accelerator is active: it finds out which buffers are a
 * device's. Where none is active, nobody asks. */
#define CR_FUNCTION(hot, name, kind, a, b, c, door, device_door, MORE, PARAMETERS, ...)                        \
    static inline __attribute__((always_inline)) int name##_on_host(                                           \
        CR_##a##_PARAMETERS CR_##b##_PARAMETERS CR_##c##_PARAMETERS PARAMETERS)                                \
    {                                                                                                          \
        CR_FORWARD(door, name, kind, a, b, c, MORE, __VA_ARGS__);                                              \
    }                                                                                                          \
    static hot int name(CR_##a##_PARAMETERS CR_##b##_PARAMETERS CR_##c##_PARAMETERS PARAMETERS)                \
    {                                                                                                          \
        return name##_on_host(CR_##a##_ARGUMENTS CR_##b##_ARGUMENTS CR_##c##_ARGUMENTS __VA_ARGS__, module);   \
    }                                                                                                          \
    static __attribute__((noinline, cold)) int name##_asked(                                                   \
        CR_##a##_PARAMETERS CR_##b##_PARAMETERS CR_##c##_PARAMETERS PARAMETERS)                                \
    {                                                                                                          \
        const int device = CR_##a##_DEVICE | CR_##b##_DEVICE | CR_##c##_DEVICE;                                \
        if (0 == device) {                                                                                     \
            return name(CR_##a##_ARGUMENTS CR_##b##_ARGUMENTS CR_##c##_ARGUMENTS __VA_ARGS__, module);         \
        }                                                                                                      \
        CR_FORWARD_DEVICE(device_door, name, kind, a, b, c, MORE, __VA_ARGS__);                                \
    }                                                                                                          \
    static hot int name##_asking(CR_##a##_PARAMETERS CR_##b##_PARAMETERS CR_##c##_PARAMETERS PARAMETERS)       \
    {                                                                                                          \
        if (CR_##a##_ON_HOST CR_##b##_ON_HOST CR_##c##_ON_HOST 1) {                                            \
            return name##_on_host(CR_##a##_ARGUMENTS CR_##b##_ARGUMENTS CR_##c##_ARGUMENTS __VA_ARGS__,        \
                                  module);                                                                     \
        }                                                                                                      \
        return name##_asked(CR_##a##_ARGUMENTS CR_##b##_ARGUMENTS CR_##c##_ARGUMENTS __VA_ARGS__, module);     \
    }

/* Whether an address is surely not a device's, or says that there is no buffer. Above the first thread's
 * stack the system has no memory of the process'; what looks like it, for a device's sake, is negative. */
static inline __attribute__((always_inline)) int on_host(const void *buffer)
{
    return is_data(buffer) || (intptr_t) buffer >= cr_host_memory.stack || MPI_IN_PLACE == buffer;
}

#define CR_COMMA ,
#define CR_THREE_FUNCTIONS(name, kind, a, b, c)                                                                \
    CR_FUNCTION(CR_HOT, name, kind, a, b, c, cr_block_##name, cr_device_blocking, NOTHING,                     \
                struct ompi_communicator_t *comm CR_COMMA mca_coll_base_module_t *module, comm)                \
    CR_FUNCTION(, i##name, kind, a, b, c, cr_call_nonblocking, cr_device_nonblocking, REQUEST,                 \
                struct ompi_communicator_t *comm CR_COMMA ompi_request_t **request                             \
                    CR_COMMA mca_coll_base_module_t *module,                                                   \
                comm, request)                                                                                 \
    CR_FUNCTION(, name##_init, kind, a, b, c, cr_call_persistent, cr_device_persistent, REQUEST,               \
                struct ompi_communicator_t *comm CR_COMMA struct ompi_info_t *info                             \
                    CR_COMMA ompi_request_t **request CR_COMMA mca_coll_base_module_t *module,                 \
                comm, info, request)

CR_OPERATIONS(CR_THREE_FUNCTIONS)

/* ---------------------------------------------------------------- life */

/* Called in the order of priority, lowest first: what the communicator holds now is what is below us. A
 * failure drops the module, and its destructor releases what was saved. So nothing is installed before all is
 * there. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    cr_module_t *self = (cr_module_t *) module;
#define SLOT(name, needed)                                                                                     \
    if (NULL != comm->c_coll->coll_##name && NULL != comm->c_coll->coll_##name##_module) {                     \
        self->name = comm->c_coll->coll_##name;                                                                \
        self->name##_module = comm->c_coll->coll_##name##_module;                                              \
        OBJ_RETAIN(self->name##_module);                                                                       \
    } else if (needed) {                                                                                       \
        return OMPI_ERR_NOT_FOUND;                                                                             \
    }
    CR_OPERATIONS(CR_THREE_SLOTS)
#undef SLOT
#define SLOT(name, needed) CR_INSTALL(comm, module, name);
    CR_OPERATIONS(CR_THREE_SLOTS)
#undef SLOT
    return OMPI_SUCCESS;
}

/* Modules are disabled in the reverse order. May be called several times. What was saved is released by the
 * destructor. */
static int disable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    cr_module_t *self = (cr_module_t *) module;
    (void) self;
    (void) comm;
#define SLOT(name, needed) CR_RESTORE(comm, module, name, self->name, self->name##_module);
    CR_OPERATIONS(CR_THREE_SLOTS)
#undef SLOT
    return OMPI_SUCCESS;
}

static void construct(cr_module_t *self)
{
    const int asks = cr_accelerates();
    self->state = NULL;
#define SLOT(slot, needed)                                                                                     \
    self->slot = NULL;                                                                                         \
    self->slot##_module = NULL;                                                                                \
    self->super.coll_##slot = asks ? slot##_asking : slot;
    CR_OPERATIONS(CR_THREE_SLOTS)
#undef SLOT
    self->super.coll_module_enable = enable;
    self->super.coll_module_disable = disable;
}

static void destruct(cr_module_t *self)
{
#define SLOT(name, needed)                                                                                     \
    if (NULL != self->name##_module) {                                                                         \
        OBJ_RELEASE(self->name##_module);                                                                      \
        self->name##_module = NULL;                                                                            \
    }
    CR_OPERATIONS(CR_THREE_SLOTS)
#undef SLOT
    cr_comm_free(self->state);
    self->state = NULL;
}

OBJ_CLASS_INSTANCE(cr_module_t, mca_coll_base_module_t, construct, destruct);

mca_coll_base_module_t *cr_module_new(void *state)
{
    cr_module_t *self = OBJ_NEW(cr_module_t);
    if (NULL == self) {
        return NULL;
    }
    self->state = state;
    return &self->super;
}
