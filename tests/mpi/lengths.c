/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that give different lengths for the same data: an error of the program, of which nothing is defined
 * but that nobody writes beyond a buffer. Around every receive buffer lie bytes that are looked at
 * afterwards; behind every send buffer lie some pages more than it has, as in any heap, and then one that
 * cannot be accessed.
 *
 * A call that does not return is left to a thread of its own; then all ranks make one on the same
 * communicator that must fail, which ends it.
 *
 *   --quick      fewer lengths
 *   --only NAME  one operation
 */
#include "harness.h"
#include <sys/mman.h>

enum { MARGIN = 1 << 18, GUARD = 0xa5, PAGE = 4096, SLACK = 19 * PAGE, PATIENCE_MS = 150, LEAK_MS = 3000 };

enum operation {
    BCAST, REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV,
    ALLTOALL, ALLTOALLV, ALLTOALLW, NEIGHBOR_ALLGATHER, NEIGHBOR_ALLGATHERV, NEIGHBOR_ALLTOALL, NEIGHBOR_ALLTOALLV, NEIGHBOR_ALLTOALLW, OPERATIONS
};
static const char *const NAME[OPERATIONS] = {
    "bcast", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan", "gather", "gatherv", "scatter", "scatterv",
    "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", "neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall",
    "neighbor_alltoallv", "neighbor_alltoallw"};

enum { MOST = 8 };

struct call {
    enum operation operation;
    int nonblocking, size, root, count, code;
    MPI_Comm comm;
    int counts[MOST], displs[MOST];
    MPI_Aint wide[MOST];
    MPI_Datatype types[MOST];
    char *send, *receive; /* the latter with its margins */
    char *pages;
    size_t give, room; /* bytes of each */
    volatile int done;
};

/* All that the caller says is of its own length. */
static int perform(struct call *c)
{
    int *in = (int *)c->send, *out = (int *)(c->receive + MARGIN), n = c->count;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS, mode = c->nonblocking ? NONBLOCKING : BLOCKING;
#define CALL(Name, name, ...)                                         \
    code = IN_TWO(mode, Name, name, c->comm, &request, __VA_ARGS__);  \
    break
#define IN_TWO(mode, Name, name, comm, request, ...) \
    ((mode) == BLOCKING ? MPI_##Name(__VA_ARGS__, comm) : MPI_I##name(__VA_ARGS__, comm, request))
    switch (c->operation) {
    case BCAST: CALL(Bcast, bcast, out, n, MPI_INT, c->root);
    case REDUCE: CALL(Reduce, reduce, in, out, n, MPI_INT, MPI_SUM, c->root);
    case ALLREDUCE: CALL(Allreduce, allreduce, in, out, n, MPI_INT, MPI_SUM);
    case REDUCE_SCATTER: CALL(Reduce_scatter, reduce_scatter, in, out, c->counts, MPI_INT, MPI_SUM);
    case REDUCE_SCATTER_BLOCK: CALL(Reduce_scatter_block, reduce_scatter_block, in, out, n, MPI_INT, MPI_SUM);
    case SCAN: CALL(Scan, scan, in, out, n, MPI_INT, MPI_SUM);
    case EXSCAN: CALL(Exscan, exscan, in, out, n, MPI_INT, MPI_SUM);
    case GATHER: CALL(Gather, gather, in, n, MPI_INT, out, n, MPI_INT, c->root);
    case GATHERV: CALL(Gatherv, gatherv, in, n, MPI_INT, out, c->counts, c->displs, MPI_INT, c->root);
    case SCATTER: CALL(Scatter, scatter, in, n, MPI_INT, out, n, MPI_INT, c->root);
    case SCATTERV: CALL(Scatterv, scatterv, in, c->counts, c->displs, MPI_INT, out, n, MPI_INT, c->root);
    case ALLGATHER: CALL(Allgather, allgather, in, n, MPI_INT, out, n, MPI_INT);
    case ALLGATHERV: CALL(Allgatherv, allgatherv, in, n, MPI_INT, out, c->counts, c->displs, MPI_INT);
    case ALLTOALL: CALL(Alltoall, alltoall, in, n, MPI_INT, out, n, MPI_INT);
    case ALLTOALLV: CALL(Alltoallv, alltoallv, in, c->counts, c->displs, MPI_INT, out, c->counts, c->displs, MPI_INT);
    case ALLTOALLW: {
        int bytes[MOST];
        for (int i = 0; i < c->size; i++)
            bytes[i] = c->displs[i] * (int)sizeof(int);
        code = IN_TWO(mode, Alltoallw, alltoallw, c->comm, &request, in, c->counts, bytes, c->types, out, c->counts, bytes, c->types);
        if (request != MPI_REQUEST_NULL && code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        return code;
    }
    case NEIGHBOR_ALLGATHER: CALL(Neighbor_allgather, neighbor_allgather, in, n, MPI_INT, out, n, MPI_INT);
    case NEIGHBOR_ALLGATHERV: CALL(Neighbor_allgatherv, neighbor_allgatherv, in, n, MPI_INT, out, c->counts, c->displs, MPI_INT);
    case NEIGHBOR_ALLTOALL: CALL(Neighbor_alltoall, neighbor_alltoall, in, n, MPI_INT, out, n, MPI_INT);
    case NEIGHBOR_ALLTOALLV: CALL(Neighbor_alltoallv, neighbor_alltoallv, in, c->counts, c->displs, MPI_INT, out, c->counts, c->displs, MPI_INT);
    case NEIGHBOR_ALLTOALLW: CALL(Neighbor_alltoallw, neighbor_alltoallw, in, c->counts, c->wide, c->types, out, c->counts, c->wide, c->types);
    case OPERATIONS: break;
    }
    if (request != MPI_REQUEST_NULL && code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    return code;
}

static void *in_thread(void *argument)
{
    struct call *c = argument;
    c->code = perform(c);
    c->done = 1;
    return NULL;
}

static void margins(const struct call *c)
{
    long before = 0, behind = 0;
    for (size_t i = 0; i < MARGIN; i++) {
        before += (unsigned char)c->receive[i] != GUARD;
        behind += (unsigned char)c->receive[MARGIN + c->room + i] != GUARD;
    }
    check(before == 0 && behind == 0, "%ld bytes before the receive buffer and %ld behind it were written", before, behind);
}

static int wait_for(struct call *c, int ms)
{
    for (int i = 0; i < ms && !c->done; i++)
        usleep(1000);
    return c->done;
}

/* Whether a rank has a block for each other one on that side. */
static int sends_blocks(enum operation operation)
{
    return operation == REDUCE_SCATTER || operation == REDUCE_SCATTER_BLOCK || operation == SCATTER || operation == SCATTERV
        || (operation >= ALLTOALL && operation <= ALLTOALLW) || operation >= NEIGHBOR_ALLTOALL;
}

static int receives_blocks(enum operation operation)
{
    return operation == GATHER || operation == GATHERV || operation >= ALLGATHER;
}

/* One operation, in which one rank has another length than the others. */
static void one(enum operation operation, int count, int other, int odd, int nonblocking)
{
    struct call *c = calloc(1, sizeof *c);
    int size = test_size, around = operation >= NEIGHBOR_ALLGATHER;
    *c = (struct call){.operation = operation, .nonblocking = nonblocking, .size = size, .root = (odd + 1) % size,
                       .count = test_rank == odd ? other : count};
    doing("%s %s of %d ints, at rank %d of %d", nonblocking ? "nonblocking" : "blocking", NAME[operation], count, odd, other);
    if (around) {
        int periodic = 1;
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &c->comm);
    } else {
        MPI_Comm_dup(MPI_COMM_WORLD, &c->comm);
    }
    MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
    int blocks = around ? 2 : size;
    for (int i = 0; i < blocks; i++) {
        c->counts[i] = c->count;
        c->displs[i] = i * c->count;
        c->wide[i] = (MPI_Aint)sizeof(int) * i * c->count;
        c->types[i] = MPI_INT;
    }
    c->give = sizeof(int) * (size_t)c->count * (sends_blocks(operation) ? (size_t)blocks : 1);
    c->room = sizeof(int) * (size_t)c->count * (receives_blocks(operation) ? (size_t)blocks : 1);
    size_t pages = (c->give + PAGE - 1) / PAGE * PAGE + SLACK;
    c->pages = mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->pages == MAP_FAILED || mprotect(c->pages + pages, PAGE, PROT_NONE))
        MPI_Abort(MPI_COMM_WORLD, 6);
    c->send = c->pages + pages - SLACK - c->give;
    c->receive = malloc(2 * MARGIN + c->room);
    memset(c->send, 1, c->give);
    memset(c->receive, GUARD, 2 * MARGIN + c->room);
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, c);
    wait_for(c, PATIENCE_MS);
    /* Whoever is left waiting learns that another rank has failed. */
    int hangs = !c->done, any = 0;
    MPI_Allreduce(&hangs, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        int mine[4] = {0}, all[2 * MOST] = {0}, ones[MOST], places[MOST];
        MPI_Request request = MPI_REQUEST_NULL;
        for (int i = 0; i < size; i++)
            ones[i] = 1, places[i] = i;
        int code = MPI_Iallgatherv(mine, 4, MPI_INT, all, ones, places, MPI_INT, c->comm, &request);
        for (int i = 0, flag = 0; i < LEAK_MS && code == MPI_SUCCESS && !flag; i++, usleep(1000))
            code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        wait_for(c, LEAK_MS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    margins(c);
    if (!c->done) {
        fail("it does not end though another rank has failed");
        return; /* with its memory */
    }
    pthread_join(thread, NULL);
    munmap(c->pages, pages + PAGE);
    free(c->receive);
    /* Nothing of it is under way any more; its shared memory is needed. */
    MPI_Comm_free(&c->comm);
    free(c);
}

int main(int argc, char **argv)
{
    static const int COUNTS[] = {6, 300, 20000, 100000};
    test_init(&argc, &argv, "lengths", MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const char *only = option_text(argc, argv, "--only", "all");
    int quick = has_option(argc, argv, "--quick");
    for (int operation = 0; operation < OPERATIONS; operation++) {
        if (!in_list(only, NAME[operation]))
            continue;
        for (int i = 0; i < ARRAY_LEN(COUNTS); i++) {
            for (int way = 0; way < 4; way++) {
                if (quick && way % 2 != i % 2 && i < 3)
                    continue;
                int odd = way % 2 ? test_size - 1 : 0, other = way < 2 ? COUNTS[i] / 5 * 6 : COUNTS[i] / 3 * 2;
                one(operation, COUNTS[i], other, odd, (i + way) % 3 == 2);
            }
        }
    }
    return test_end();
}
