/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the operations with a block for each rank, and the prefix reductions, send within the nodes and
 * between them, in all modes, with results checked, by the component's counters.
 *
 *     within shared      within the nodes nothing; between them as many messages as there would be without
 *     shared memory within messages    within the nodes some: there is no shared memory
 *     within any         nobody knows
 *     within kill        as the last; then one rank dies in the middle of it, and with it the job
 */
#include "nodes.h"
#include <signal.h>

enum which { W_GATHER, W_GATHERV, W_SCATTER, W_SCATTERV, W_ALLGATHER, W_ALLTOALL, W_ALLTOALLV, W_REDUCE_SCATTER_BLOCK, W_SCAN, W_EXSCAN, WHICH };
static const char *const name_of[WHICH] = {"gather", "gatherv", "scatter", "scatterv", "allgather", "alltoall", "alltoallv",
                                           "reduce_scatter_block", "scan", "exscan"};
static const char *const level_of[] = {"l2", "l3", "numa", "socket", "node", "switch1", "switch2", "switch3", "switch4", "cluster"};
enum { LEVELS = sizeof level_of / sizeof *level_of, NODE = 4, MODES = 3, STARTS = 3 };

static int passed, failed;
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle[WHICH][LEVELS];
static int32_t *in, *out;
static int *counts, *starts;

static void check(int good, const char *what, const char *of, int count)
{
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    passed += good;
    failed += !good;
    if (!good && me == 0)
        printf("FAIL: %s: %s, %d elements\n", of, what, count);
}

static void counters_open(void)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int w = 0; w < WHICH; w++)
        for (int l = 0; l < LEVELS; l++) {
            char name[128];
            int index, count;
            snprintf(name, sizeof name, "coll_rust_%s_%s_messages", name_of[w], level_of[l]);
            if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
                MPI_T_pvar_handle_alloc(session, index, NULL, &handle[w][l], &count) != MPI_SUCCESS || count != 1)
                die("the component is not there: it has no counters");
        }
}

/* Messages of all ranks for an operation, at levels `from` to `to`, since the last call with the same levels.
 * */
static long long sent(int w, int from, int to)
{
    static long long before[WHICH][LEVELS];
    long long sum = 0;
    for (int l = from; l <= to; l++) {
        unsigned long long value = 0;
        if (MPI_T_pvar_read(session, handle[w][l], &value) != MPI_SUCCESS)
            die("cannot read a counter of the component");
        sum += (long long)value - before[w][l];
        before[w][l] = (long long)value;
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void fill(int salt, int n)
{
    for (int i = 0; i < np * n; i++) {
        in[i] = element(me, salt, (size_t)i);
        out[i] = -1;
    }
}

/* The number of wrong elements on this rank. */
static int wrong(int w, int root, int salt, int n)
{
    int bad = 0, blocks = w == W_SCATTER || w == W_SCATTERV || w >= W_REDUCE_SCATTER_BLOCK ? 1 : np;
    if ((w == W_GATHER || w == W_GATHERV) && me != root)
        return 0;
    if (w == W_EXSCAN && me == 0)
        return 0;
    for (int j = 0; j < blocks; j++)
        for (int i = 0; i < n; i++) {
            int32_t want = 0;
            int last = w == W_SCAN ? me : w == W_EXSCAN ? me - 1 : np - 1;
            if (w == W_REDUCE_SCATTER_BLOCK || w == W_SCAN || w == W_EXSCAN)
                for (int rank = 0; rank <= last; rank++)
                    want += element(rank, salt, (size_t)(w == W_REDUCE_SCATTER_BLOCK ? me * n + i : i));
            else if (w == W_SCATTER || w == W_SCATTERV)
                want = element(root, salt, (size_t)(me * n + i));
            else
                want = element(j, salt, (size_t)(w == W_ALLTOALL || w == W_ALLTOALLV ? me * n + i : i));
            bad += out[j * n + i] != want;
        }
    return bad;
}

/* In mode 0 done at once, else begun (1) or made (2). */
#define CALL(lower, ...)                                            \
    switch (mode) {                                                 \
    case 0: MPI_##lower(__VA_ARGS__); break;                        \
    case 1: MPI_I##lower##_(__VA_ARGS__); break;                    \
    default: MPI_##lower##_init(__VA_ARGS__, MPI_INFO_NULL, r);    \
    }
#define MPI_IGather_(...) MPI_Igather(__VA_ARGS__, r)
#define MPI_IGatherv_(...) MPI_Igatherv(__VA_ARGS__, r)
#define MPI_IScatter_(...) MPI_Iscatter(__VA_ARGS__, r)
#define MPI_IScatterv_(...) MPI_Iscatterv(__VA_ARGS__, r)
#define MPI_IAllgather_(...) MPI_Iallgather(__VA_ARGS__, r)
#define MPI_IAlltoall_(...) MPI_Ialltoall(__VA_ARGS__, r)
#define MPI_IAlltoallv_(...) MPI_Ialltoallv(__VA_ARGS__, r)
#define MPI_IReduce_scatter_block_(...) MPI_Ireduce_scatter_block(__VA_ARGS__, r)
#define MPI_IScan_(...) MPI_Iscan(__VA_ARGS__, r)
#define MPI_IExscan_(...) MPI_Iexscan(__VA_ARGS__, r)

static void start(int w, int mode, int root, int n, MPI_Comm comm, MPI_Request *r)
{
    MPI_Datatype t = MPI_INT32_T;
    switch (w) {
    case W_GATHER: CALL(Gather, in, n, t, out, n, t, root, comm); break;
    case W_GATHERV: CALL(Gatherv, in, n, t, out, counts, starts, t, root, comm); break;
    case W_SCATTER: CALL(Scatter, in, n, t, out, n, t, root, comm); break;
    case W_SCATTERV: CALL(Scatterv, in, counts, starts, t, out, n, t, root, comm); break;
    case W_ALLGATHER: CALL(Allgather, in, n, t, out, n, t, comm); break;
    case W_ALLTOALL: CALL(Alltoall, in, n, t, out, n, t, comm); break;
    case W_ALLTOALLV: CALL(Alltoallv, in, counts, starts, t, out, counts, starts, t, comm); break;
    case W_REDUCE_SCATTER_BLOCK: CALL(Reduce_scatter_block, in, out, n, t, MPI_SUM, comm); break;
    case W_SCAN: CALL(Scan, in, out, n, t, MPI_SUM, comm); break;
    default: CALL(Exscan, in, out, n, t, MPI_SUM, comm);
    }
}

static void one(int w, int mode, int n, MPI_Comm comm)
{
    int bad = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int root = 0; root < (w <= W_SCATTERV ? np : 1); root += 3) {
        if (mode == 2)
            start(w, mode, root, n, comm, &request);
        for (int salt = 0; salt < (mode == 2 ? STARTS : 1); salt++) {
            fill(salt, n);
            if (mode == 2)
                MPI_Start(&request);
            else
                start(w, mode, root, n, comm, &request);
            if (mode > 0)
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            bad += wrong(w, root, salt, n);
        }
        if (mode == 2)
            MPI_Request_free(&request);
    }
    check(bad == 0, mode == 0 ? "blocking" : mode == 1 ? "nonblocking" : "persistent", name_of[w], n);
}

/* Messages of a call without trees: from each rank to each of another node, or to the root and from it. */
static void exact(MPI_Comm comm)
{
    MPI_Comm node;
    int here, squares, of_root;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    of_root = here;
    MPI_Bcast(&of_root, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&here, &squares, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    static const int of[] = {W_GATHERV, W_SCATTERV, W_ALLTOALLV};
    for (int i = 0; i < 3; i++) {
        sent(of[i], 0, LEVELS - 1);
        fill(0, counts[0]);
        start(of[i], 0, 0, counts[0], comm, NULL);
        long long want = i < 2 ? np - of_root : np * np - squares, found = sent(of[i], 0, LEVELS - 1);
        if (me == 0)
            printf("messages of %s: %lld\n", name_of[of[i]], found);
        check(found == want, "messages between the nodes", name_of[of[i]], counts[0]);
    }
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1, 3, 300, 20000};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    if (argc < 2)
        die("usage: within shared|messages|any|kill");
    MPI_Comm comm = comm_of("rust");
    counters_open();
    in = calloc((size_t)np * 20000, sizeof *in);
    out = calloc((size_t)np * 20000, sizeof *out);
    counts = calloc((size_t)np, sizeof *counts);
    starts = calloc((size_t)np, sizeof *starts);
    if (!in || !out || !counts || !starts)
        die("no memory");
    for (int w = 0; w < WHICH; w++)
        sent(w, 0, LEVELS - 1);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int rank = 0; rank < np; rank++) {
            counts[rank] = sizes[s];
            starts[rank] = rank * sizes[s];
        }
        for (int w = 0; w < WHICH; w++)
            for (int mode = 0; mode < MODES; mode++)
                one(w, mode, sizes[s], comm);
    }
    for (int i = 0; !strcmp(argv[1], "kill"); i++) {
        if (i == 20 && me == np - 2)
            raise(SIGKILL);
        start(i % WHICH, 0, i % np, 20000, comm, NULL);
    }
    long long all = 0;
    for (int w = 0; w < WHICH; w++) {
        long long within = sent(w, 0, NODE);
        all += within;
        if (!strcmp(argv[1], "shared"))
            check(within == 0, "messages within the nodes that should go through shared memory", name_of[w], 0);
    }
    if (!strcmp(argv[1], "messages"))
        check(all > 0, "no message within a node, but no shared memory either", "all", 0);
    if (!strcmp(argv[1], "shared"))
        exact(comm);
    MPI_Comm_free(&comm);
    if (me == 0)
        printf("within: %d passed, %d failed\n", passed, failed);
    MPI_Finalize();
    return me == 0 && failed;
}
