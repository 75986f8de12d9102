/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers in a device's memory, where sizes.c (--device) does not come: Barrier beside them, the operations
 * along edges, and reductions of elements with gaps and by an operation of the user's, in the three modes,
 * short and long; and reductions of several segments, in place and not. Of ranks that differ: see --device.
 * The accelerator is the stand-in of tests/accelerator, which must be active: any access of the CPU's to its
 * memory is a crash, and no other process can read it.
 *
 *   --device WHOSE   none (default), odd, even, all
 *   --sides SIDES    of those, the send buffer, the receive buffer, or both (default)
 *   --long 1         only what is of several segments
 *   --pipelined LIST of several segments, in these operations the first segment of the result leaves before
 *                    the last of the operand comes (allreduce,reduce,scan,reduce_scatter_block)
 */
#include "../mpi/harness.h"
#include "standin.h"

enum { MOST = 40000, LONG = 150000, RESTARTS = 2, GAP = 0x77, SEGMENT = 512 << 10 };
enum { SEND, RECV };

struct pair {
    double value;
    int at, gap;
};

static MPI_Comm ring;
static MPI_Op later_spaced, later; /* keeps the right operand's second number, and adds up the first ones: does not commute */
static MPI_Datatype numbers, spaced; /* two ints, without gaps and with */
static const char *pipelined;
static int on_device[2], left, right;
static char *memory[2]; /* where the CPU finds them */

static void *given(int side)
{
    return memory[side] - (on_device[side] ? STANDIN_HOST - STANDIN_DEVICE : 0);
}

static void keep_later(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[2 * i] += ((int *)in)[2 * i];
}

static void keep_later_spaced(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) {
        ((int *)inout)[4 * i] += ((int *)in)[4 * i];
    }
}

static int number(int from, int block, int i, int salt)
{
    return (int)mix4((uint64_t)from, (uint64_t)block, (uint64_t)i, (uint64_t)salt);
}

/* Runs a call in a mode: `prepare` before each start, `judge` after it. */
#define RUN(mode, Name, name, comm, prepare, judge, ...)                                                           \
    do {                                                                                                           \
        MPI_Request request_ = MPI_REQUEST_NULL, *request = &request_;                                             \
        for (int salt = 0; salt < ((mode) == PERSISTENT ? RESTARTS : 1); salt++) {                                 \
            doing("%s " #Name ", %d elements", MODE_NAME[mode], n);                                                \
            prepare;                                                                                               \
            if (salt == 0)                                                                                         \
                must(IN_MODE(mode, Name, name, comm, request, __VA_ARGS__));                                       \
            if ((mode) == PERSISTENT)                                                                              \
                must(MPI_Start(request));                                                                          \
            if ((mode) != BLOCKING)                                                                                \
                must(MPI_Wait(request, MPI_STATUS_IGNORE));                                                        \
            check(judge, "wrong result");                                                                          \
        }                                                                                                          \
        if ((mode) == PERSISTENT)                                                                                  \
            must(MPI_Request_free(request));                                                                       \
    } while (0)

/* ---------------------------------------------------------------- along edges */

static void put_blocks(int n, int blocks, int salt)
{
    int *to = (int *)memory[SEND];
    for (int b = 0; b < blocks; b++)
        for (int i = 0; i < n; i++)
            to[b * n + i] = number(test_rank, b, i, salt);
    memset(memory[RECV], 0, 2 * sizeof(int) * (size_t)n);
}

/* From the left neighbour its last block, from the right one its first: of one block, the same. */
static int good_blocks(int n, int blocks, int salt)
{
    const int *from = (const int *)memory[RECV];
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += from[i] != number(left, blocks - 1, i, salt) || from[n + i] != number(right, 0, i, salt);
    return !wrong;
}

static void along_edges(int mode, int n)
{
    int counts[2] = {n, n}, displs[2] = {0, n};
    MPI_Aint bytes[2] = {0, (MPI_Aint)sizeof(int) * n};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    void *s = given(SEND), *r = given(RECV);
    RUN(mode, Neighbor_allgather, neighbor_allgather, ring, put_blocks(n, 1, salt), good_blocks(n, 1, salt), s, n, MPI_INT, r, n, MPI_INT);
    RUN(mode, Neighbor_allgatherv, neighbor_allgatherv, ring, put_blocks(n, 1, salt), good_blocks(n, 1, salt), s, n, MPI_INT, r, counts,
        displs, MPI_INT);
    RUN(mode, Neighbor_alltoall, neighbor_alltoall, ring, put_blocks(n, 2, salt), good_blocks(n, 2, salt), s, n, MPI_INT, r, n, MPI_INT);
    RUN(mode, Neighbor_alltoallv, neighbor_alltoallv, ring, put_blocks(n, 2, salt), good_blocks(n, 2, salt), s, counts, displs, MPI_INT, r,
        counts, displs, MPI_INT);
    RUN(mode, Neighbor_alltoallw, neighbor_alltoallw, ring, put_blocks(n, 2, salt), good_blocks(n, 2, salt), s, counts, bytes, types, r,
        counts, bytes, types);
}

/* ---------------------------------------------------------------- reductions */

static void put_pairs(int n, int salt)
{
    struct pair *s = (struct pair *)memory[SEND], *r = (struct pair *)memory[RECV];
    for (int i = 0; i < n; i++) {
        s[i] = (struct pair){number(test_rank, 0, i, salt), test_rank, GAP};
        r[i] = (struct pair){0, -1, GAP + 1};
    }
}

static int good_pairs(int n, int salt, int end)
{
    const struct pair *r = (const struct pair *)memory[RECV];
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        int best = 0;
        for (int rank = 1; rank < end; rank++)
            best = number(rank, 0, i, salt) > number(best, 0, i, salt) ? rank : best;
        wrong += r[i].value != number(best, 0, i, salt) || r[i].at != best || r[i].gap != GAP + 1;
    }
    return !wrong;
}

static void put_numbers(int n, int salt)
{
    int *s = (int *)memory[SEND];
    for (int i = 0; i < n; i++)
        s[2 * i] = test_rank + i + salt, s[2 * i + 1] = test_rank;
    memset(memory[RECV], 0, 2 * sizeof(int) * (size_t)n);
}

static int good_numbers(int n, int first, int salt, int end)
{
    const int *r = (const int *)memory[RECV];
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += r[2 * i] != end * (end - 1) / 2 + end * (first + i + salt) || r[2 * i + 1] != end - 1;
    return !wrong;
}

static void reductions(int mode, int n)
{
    int me = test_rank, root = test_size - 1, part = n / test_size;
    void *s = given(SEND), *r = given(RECV);
    MPI_Comm all = MPI_COMM_WORLD;
    RUN(mode, Allreduce, allreduce, all, put_pairs(n, salt), good_pairs(n, salt, test_size), s, r, n, MPI_DOUBLE_INT, MPI_MAXLOC);
    RUN(mode, Reduce, reduce, all, put_pairs(n, salt), me != root || good_pairs(n, salt, test_size), s, r, n, MPI_DOUBLE_INT, MPI_MAXLOC, root);
    RUN(mode, Scan, scan, all, put_pairs(n, salt), good_pairs(n, salt, me + 1), s, r, n, MPI_DOUBLE_INT, MPI_MAXLOC);
    RUN(mode, Allreduce, allreduce, all, put_numbers(n, salt), good_numbers(n, 0, salt, test_size), s, r, n, numbers, later);
    RUN(mode, Reduce, reduce, all, put_numbers(n, salt), me != root || good_numbers(n, 0, salt, test_size), s, r, n, numbers, later, root);
    RUN(mode, Exscan, exscan, all, put_numbers(n, salt), me == 0 || good_numbers(n, 0, salt, me), s, r, n, numbers, later);
    if (part > 0)
        RUN(mode, Reduce_scatter_block, reduce_scatter_block, all, put_numbers(n, salt), good_numbers(part, me * part, salt, test_size), s, r,
            part, numbers, later);
}

/* ---------------------------------------------------------------- several segments */

/* Elements are a long, or two ints, without gaps or with. */
enum { LONGS, NUMBERS, SPACED, KINDS };
static const struct {
    int size, second; /* in ints */
} KIND[KINDS] = {{2, 0}, {2, 1}, {4, 2}};

static int value_of(const int *at, int kind)
{
    return kind == LONGS ? (int)*(const long *)at : at[0];
}

static void put_elements(int kind, int in_place, int n, int salt)
{
    for (int side = SEND; side <= RECV; side++) {
        int *to = (int *)memory[side];
        if (side == RECV && !in_place) {
            memset(to, GAP + 1, sizeof(int) * (size_t)(n * KIND[kind].size));
            continue;
        }
        for (int i = 0; i < n; i++, to += KIND[kind].size) {
            if (kind == LONGS) {
                *(long *)to = test_rank + i + salt;
                continue;
            }
            memset(to, GAP, sizeof(int) * (size_t)KIND[kind].size);
            to[0] = test_rank + i + salt, to[KIND[kind].second] = test_rank;
        }
    }
}

/* The combination of the ranks before `end`, n elements from `first` on; of none, what was there before. */
static int good_elements(int kind, int in_place, int n, int first, int salt, int end)
{
    const int *r = (const int *)memory[RECV], gap = (in_place ? GAP : GAP + 1) * 0x01010101;
    int wrong = 0;
    if (end == 0)
        return !in_place || (value_of(r, kind) == test_rank + salt && value_of(r + (n - 1) * KIND[kind].size, kind) == test_rank + n - 1 + salt);
    for (int i = 0; i < n; i++, r += KIND[kind].size) {
        wrong += value_of(r, kind) != end * (end - 1) / 2 + end * (first + i + salt);
        wrong += kind != LONGS && r[KIND[kind].second] != end - 1;
        wrong += kind == SPACED && (r[1] != gap || r[3] != gap);
    }
    return !wrong;
}

static void forget_counts(void)
{
    if (on_device[SEND] || on_device[RECV])
        *STANDIN = (struct standin_counts){.locked = STANDIN->locked};
}

/* Whether the accelerator has copied `operand` and `result` elements of 8 bytes in segments, all of them, and
 * as the test was told. */
static int good_copies(const char *name, size_t operand, size_t result, int in_place)
{
    int source = in_place ? on_device[RECV] : on_device[SEND];
    if (source && (STANDIN->bytes_into != 8 * operand || STANDIN->into < 8 * operand / SEGMENT))
        return 0;
    if (on_device[RECV] && (STANDIN->bytes_out != 8 * result || STANDIN->out < 8 * result / SEGMENT))
        return 0;
    if ((source || on_device[RECV]) && (STANDIN->under_way != 0 || STANDIN->at_once != 0))
        return 0;
    return !source || !on_device[RECV] || result == 0 || !in_list(pipelined, name) || STANDIN->first_out < STANDIN->last_into;
}

static void in_segments(int mode, int kind, int in_place)
{
    const int n = kind == SPACED ? LONG : kind == NUMBERS ? 2 * LONG + 3 : 6 * LONG + 3, me = test_rank, root = test_size - 1, part = n / test_size, rest = n - test_size * part;
    const size_t all = (size_t)n, mine = (size_t)(part + (me == 0 ? rest : 0)), length = (size_t)(n - rest);
    MPI_Datatype type = kind == LONGS ? MPI_LONG : kind == NUMBERS ? numbers : spaced;
    MPI_Op op = kind == LONGS ? MPI_SUM : kind == NUMBERS ? later : later_spaced;
    void *r = given(RECV), *s = in_place ? MPI_IN_PLACE : given(SEND), *to_root = in_place && me == root ? MPI_IN_PLACE : given(SEND);
    MPI_Comm world = MPI_COMM_WORLD;
    int counts[64];
    for (int rank = 0; rank < test_size; rank++)
        counts[rank] = part + (rank == 0 ? rest : 0);
#define PUT (put_elements(kind, in_place, n, salt), forget_counts())
#define COPIES(name, operand, result) (kind != LONGS || good_copies(name, operand, result, in_place))
#define GOOD(n, first, end) good_elements(kind, in_place, n, first, salt, end)
    RUN(mode, Allreduce, allreduce, world, PUT, GOOD(n, 0, test_size) && COPIES("allreduce", all, all), s, r, n, type, op);
    RUN(mode, Reduce, reduce, world, PUT, me != root || (GOOD(n, 0, test_size) && COPIES("reduce", all, all)), to_root, r, n, type, op, root);
    RUN(mode, Scan, scan, world, PUT, GOOD(n, 0, me + 1) && COPIES("scan", all, all), s, r, n, type, op);
    RUN(mode, Exscan, exscan, world, PUT, GOOD(n, 0, me) && (me == 0 || me == root || COPIES("exscan", all, all)), s, r, n, type, op);
    RUN(mode, Reduce_scatter_block, reduce_scatter_block, world, PUT,
        GOOD(part, me * part, test_size) && COPIES("reduce_scatter_block", length, (size_t)part), s, r, part, type, op);
    RUN(mode, Reduce_scatter, reduce_scatter, world, PUT,
        GOOD((int)mine, me * part + (me > 0 ? rest : 0), test_size) && COPIES("reduce_scatter", all, mine), s, r, counts, type, op);
}

int main(int argc, char **argv)
{
    int one = 1, n = 0;
    test_init(&argc, &argv, "device", MPI_THREAD_SINGLE);
    const char *whose = option_text(argc, argv, "--device", "none"), *sides = option_text(argc, argv, "--sides", "both");
    int mine = !strcmp(whose, "all") || (!strcmp(whose, "odd") && test_rank % 2) || (!strcmp(whose, "even") && test_rank % 2 == 0);
    for (int side = SEND; side <= RECV; side++) {
        on_device[side] = mine && strcmp(sides, side == SEND ? "recv" : "send");
        memory[side] = on_device[side] ? (char *)STANDIN_HOST + (side == SEND ? 0 : STANDIN_BYTES / 4) : malloc(4 * LONG * sizeof(struct pair));
    }
    pipelined = option_text(argc, argv, "--pipelined", "");
    must(MPI_Op_create(keep_later, 0, &later));
    must(MPI_Op_create(keep_later_spaced, 0, &later_spaced));
    MPI_Datatype apart;
    must(MPI_Type_vector(2, 1, 2, MPI_INT, &apart));
    must(MPI_Type_create_resized(apart, 0, 4 * sizeof(int), &spaced));
    must(MPI_Type_commit(&spaced));
    must(MPI_Type_free(&apart));
    must(MPI_Type_contiguous(2, MPI_INT, &numbers));
    must(MPI_Type_commit(&numbers));
    must(MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &one, 0, &ring));
    must(MPI_Cart_shift(ring, 0, 1, &left, &right));
    for (int mode = BLOCKING; mode <= PERSISTENT; mode++) {
        static const int SIZES[] = {1, 2, 7, 300, 5000, MOST / 2, LONG};
        for (int kind = 0; kind < KINDS; kind++)
            for (int in_place = 0; in_place <= 1; in_place++)
                in_segments(mode, kind, in_place);
        if (option_number(argc, argv, "--long", 0))
            continue;
        MPI_Request request_ = MPI_REQUEST_NULL, *request = &request_;
        must(mode == BLOCKING ? MPI_Barrier(ring) : mode == NONBLOCKING ? MPI_Ibarrier(ring, request) : MPI_Barrier_init(ring, MPI_INFO_NULL, request));
        if (mode == PERSISTENT)
            must(MPI_Start(request));
        if (mode != BLOCKING)
            must(MPI_Wait(request, MPI_STATUS_IGNORE));
        if (mode == PERSISTENT)
            must(MPI_Request_free(request));
        for (int i = 0; i < ARRAY_LEN(SIZES); i++) {
            n = SIZES[i];
            if (n < LONG)
                along_edges(mode, n);
            reductions(mode, n);
        }
    }
    must(MPI_Comm_free(&ring));
    must(MPI_Op_free(&later));
    must(MPI_Op_free(&later_spaced));
    must(MPI_Type_free(&numbers));
    must(MPI_Type_free(&spaced));
    return test_end();
}
