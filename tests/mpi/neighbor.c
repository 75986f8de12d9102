/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The five neighbourhood operations x modes x topologies x datatypes x sizes: Cartesian grids, periodic or
 * not, with dimensions of one and two; graphs and distributed graphs with several edges between the same two
 * ranks, edges to oneself, ranks without any.
 *
 * The block along each edge is known, so each case is judged against an image of the whole buffer, guard
 * bytes and gaps included, and repeated on a communicator that excludes the component. What is sent in one
 * direction of a grid must be received from the other one.
 *
 *   --quick            a sample (default)
 *   --tiny             a smaller one
 *   --clusters         for ranks that do not reach each other by point-to-point: without the second call, and
 *                      without what docs/guide/clusters.md says of Open MPI
 *   --full             every datatype at every size
 *   --seed N           another sample, other graphs and other data
 *   --ops LIST         names in small letters
 *   --below            the component passes all on: leave out what Open MPI itself gets wrong (see
 *   stock_fails) --stock            the component is not there: the same
 */
#include "around.h"
#include "blocks.h"

#if OMPI_MAJOR_VERSION < 5
#define MPI_Neighbor_allgather_init MPIX_Neighbor_allgather_init
#define MPI_Neighbor_allgatherv_init MPIX_Neighbor_allgatherv_init
#define MPI_Neighbor_alltoall_init MPIX_Neighbor_alltoall_init
#define MPI_Neighbor_alltoallv_init MPIX_Neighbor_alltoallv_init
#define MPI_Neighbor_alltoallw_init MPIX_Neighbor_alltoallw_init
#endif

enum operation { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, OPERATIONS };
enum { RESTARTS = 3, OVERLAPPING = 12 };

static const struct row {
    const char *name;
    enum shape send, recv;
} TABLE[OPERATIONS] = {
    [ALLGATHER] = {"neighbor_allgather", ONE, EQUAL},
    [ALLGATHERV] = {"neighbor_allgatherv", ONE, VECTOR},
    [ALLTOALL] = {"neighbor_alltoall", EQUAL, EQUAL},
    [ALLTOALLV] = {"neighbor_alltoallv", VECTOR, VECTOR},
    [ALLTOALLW] = {"neighbor_alltoallw", TYPED, TYPED},
};

struct kase {
    enum operation operation;
    enum mode mode;
    int periods, variant; /* variant: which datatypes */
    const struct around *around;
};

static struct side send, recv;
static uint64_t data;
static int stock = 0;

/* ---------------------------------------------------------------- what goes where */

static int differs(const struct kase *k)
{
    return TABLE[k->operation].send != ONE;
}

/* Numbers in the block that a rank sends from a slot. */
static int numbers(const struct kase *k, int from, int slot)
{
    int turn = k->periods + k->variant + from + (differs(k) ? slot : 0);
    return PERIOD * k->periods * (k->operation == ALLGATHER || k->operation == ALLTOALL ? 1 : turn % 4);
}

static uint32_t number(const struct kase *k, int from, int slot, int j)
{
    return (uint32_t)mix4(data, (uint64_t)from, differs(k) ? (uint64_t)slot : 0, (uint64_t)j);
}

static void describe(const struct kase *k)
{
    const struct around *a = k->around;
    int out[MOST_DEGREE], in[MOST_DEGREE], me = a->rank;
    for (int s = 0; s < MOST_DEGREE; s++)
        out[s] = numbers(k, me, s);
    for (int s = 0, slot; s < a->in_degree; s++) {
        int from = origin(a, s, &slot);
        in[s] = from == MPI_PROC_NULL ? numbers(k, me, s) : numbers(k, from, slot);
    }
    int mine = k->variant ? k->variant + me : 0, theirs = k->variant ? k->variant + 2 * me + 1 : 0;
    side_make(&send, TABLE[k->operation].send, differs(k) ? a->out_degree : 1, out, mine, me % 2);
    side_make(&recv, TABLE[k->operation].recv, a->in_degree, in, theirs, (me + 1) % 2);
}

static void prepare(const struct kase *k)
{
    const struct around *a = k->around;
    memset(send.bytes, 0xa5 - a->rank, side_size(&send));
    memset(recv.bytes, 0x5a + a->rank, side_size(&recv));
    for (int b = 0; b < send.blocks; b++)
        for (int j = 0; j < send.numbers[b]; j++)
            side_put(&send, send.bytes, b, j, number(k, a->rank, b, j));
    memcpy(send.expected, send.bytes, side_size(&send));
    memcpy(recv.expected, recv.bytes, side_size(&recv));
    for (int b = 0, slot; b < recv.blocks; b++) {
        int from = origin(a, b, &slot);
        for (int j = 0; j < recv.numbers[b] && from != MPI_PROC_NULL; j++)
            side_put(&recv, recv.expected, b, j, number(k, from, slot, j));
    }
}

static int judge(char *text, size_t room)
{
    return side_differs(&recv, "receive buffer", text, room) || side_differs(&send, "send buffer", text, room);
}

/* ---------------------------------------------------------------- calls */

#define THREE(name, ...)                                                                                  \
    (k->mode == BLOCKING      ? MPI_Neighbor_##name(__VA_ARGS__, comm)                                    \
     : k->mode == NONBLOCKING ? MPI_Ineighbor_##name(__VA_ARGS__, comm, request)                          \
                              : MPI_Neighbor_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, request))

static int call(const struct kase *k, MPI_Comm comm, MPI_Request *request)
{
    const void *s = side_origin(&send);
    void *r = side_origin(&recv);
    /* A rank without neighbours gives the same amount as the others, if there is one amount. */
    int all = numbers(k, 0, 0), sn = send.blocks ? send.counts[0] : all, rn = recv.blocks ? recv.counts[0] : all;
    MPI_Datatype st = send.blocks ? send.handle[0] : MPI_UINT32_T, rt = recv.blocks ? recv.handle[0] : MPI_UINT32_T;
    const int *sc = send.counts, *sd = send.displs, *rc = recv.counts, *rd = recv.displs; /* 4.1 wants arrays without neighbours too */
    switch (k->operation) {
    case ALLGATHER: return THREE(allgather, s, sn, st, r, rn, rt);
    case ALLGATHERV: return THREE(allgatherv, s, sn, st, r, rc, rd, rt);
    case ALLTOALL: return THREE(alltoall, s, sn, st, r, rn, rt);
    case ALLTOALLV: return THREE(alltoallv, s, sc, sd, st, r, rc, rd, rt);
    default: return THREE(alltoallw, s, sc, (const MPI_Aint *)send.start, send.handle, r, rc, (const MPI_Aint *)recv.start, recv.handle);
    }
}

/* The whole case on a communicator; 1 and a text where it went wrong. */
static int perform(const struct kase *k, MPI_Comm comm, char *text, size_t room)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int wrong = 0;
    describe(k);
    for (int s = 0; s < (k->mode == PERSISTENT ? RESTARTS : 1); s++) {
        data = mix4(seed, (uint64_t)k->operation, (uint64_t)(k->periods * 8 + k->variant), (uint64_t)s);
        prepare(k);
        if (s == 0)
            must(call(k, comm, &request));
        if (k->mode == PERSISTENT)
            must(MPI_Start(&request));
        if (k->mode != BLOCKING)
            must(MPI_Wait(&request, MPI_STATUS_IGNORE));
        wrong = wrong || judge(text, room);
    }
    if (k->mode == PERSISTENT)
        must(MPI_Request_free(&request));
    return wrong;
}

/* Of Open MPI's own components, the nonblocking and persistent forms (coll/libnbc) mix up the two directions
 * of a periodic dimension of one or two ranks. */
static int stock_fails(const struct kase *k)
{
    return k->mode != BLOCKING && differs(k) && k->around->short_period;
}

static void run_case(struct kase k)
{
    char text[512], other[512];
    const struct around *a = k.around;
    doing("%s %s np=%d %s periods=%d variant=%d", MODE_NAME[k.mode], TABLE[k.operation].name, a->size, a->name, k.periods, k.variant);
    if (stock && stock_fails(&k))
        return;
    int wrong = perform(&k, a->comm, text, sizeof text);
    int with_reference = a->reference != MPI_COMM_NULL && !stock_fails(&k);
    int reference_wrong = with_reference && perform(&k, a->reference, other, sizeof other);
    check(!wrong, "%s (without the component: %s)", text, !with_reference ? "not run" : reference_wrong ? "wrong too" : "right");
    if (!wrong && reference_wrong)
        fail("only WITHOUT the component: %s", other);
}

/* Several nonblocking operations at once, waited for in another order. */
static void overlap(const struct around *a)
{
    static int out[OVERLAPPING][MOST_DEGREE], in[OVERLAPPING][MOST_DEGREE];
    MPI_Request requests[OVERLAPPING];
    int good = 1;
    doing("overlapping operations, %s", a->name);
    if (stock && a->short_period)
        return;
    for (int i = 0; i < OVERLAPPING; i++) {
        for (int s = 0; s < MOST_DEGREE; s++) {
            out[i][s] = (i * MOST_MEMBERS + a->rank) * MOST_DEGREE + (i % 2 ? s : 0);
            in[i][s] = -1;
        }
        if (i % 2)
            must(MPI_Ineighbor_alltoall(out[i], 1, MPI_INT, in[i], 1, MPI_INT, a->comm, &requests[i]));
        else
            must(MPI_Ineighbor_allgather(out[i], 1, MPI_INT, in[i], 1, MPI_INT, a->comm, &requests[i]));
    }
    for (int i = OVERLAPPING - 1; i >= 0; i--)
        must(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    for (int i = 0; i < OVERLAPPING; i++)
        for (int s = 0, slot; s < MOST_DEGREE; s++) {
            int from = s < a->in_degree ? origin(a, s, &slot) : MPI_PROC_NULL;
            good = good && in[i][s] == (from == MPI_PROC_NULL ? -1 : (i * MOST_MEMBERS + from) * MOST_DEGREE + (i % 2 ? slot : 0));
        }
    check(good, "wrong numbers");
}

/* Rank 0 waits for nobody. */
static void run_ahead(void)
{
    enum { ROUNDS = 400, BLOCK = 500 };
    static int out[BLOCK], in[BLOCK];
    MPI_Comm comm = chain();
    int good = 1;
    doing("running ahead");
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < BLOCK; j++)
            out[j] = i * test_size + test_rank + j;
        if (i % 100 == 0 && test_rank == test_size - 1)
            usleep(10000);
        must(MPI_Neighbor_alltoall(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, comm));
        for (int j = 0; j < BLOCK && test_rank > 0; j++)
            good = good && in[j] == i * test_size + test_rank - 1 + j;
    }
    check(good, "wrong numbers");
    MPI_Comm_free(&comm);
}

/* Two graphs side by side, of the even and of the odd ranks, each of which has edges with all others. Only
 * the even ones have data in half of the operations: those at the odd ones may return at once, and must not
 * matter to the other half. */
static void side_by_side(void)
{
    enum { ROUNDS = 20 };
    int peers[MOST_MEMBERS], out[MOST_MEMBERS], in[MOST_MEMBERS], counts[MOST_MEMBERS], displs[MOST_MEMBERS], count = 0, good = 1;
    MPI_Comm comm;
    doing("two graphs side by side");
    for (int rank = test_rank % 2; rank < test_size; rank += 2)
        if (rank != test_rank)
            peers[count++] = rank;
    must(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, count, peers, MPI_UNWEIGHTED, count, peers, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    for (int i = 0; i < ROUNDS; i++)
        for (int all = 0; all < 2; all++) {
            int some = all || test_rank % 2 == 0;
            for (int p = 0; p < count; p++) {
                out[p] = (i * 2 + all) * 1000 + test_rank * 10 + peers[p];
                in[p] = -1;
                counts[p] = 1;
                displs[p] = p;
            }
            if (all)
                must(MPI_Neighbor_alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, comm));
            else
                must(MPI_Neighbor_alltoall(out, some, MPI_INT, in, some, MPI_INT, comm));
            for (int p = 0; p < count; p++)
                good = good && in[p] == (some ? (i * 2 + all) * 1000 + peers[p] * 10 + test_rank : -1);
        }
    check(good, "wrong numbers");
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const int PERIODS[] = {0, 1, 5, 300, 4000};
    static struct around all[20];
    int count = 0, dims[3] = {0, 0, 0};
    test_init(&argc, &argv, "neighbor", MPI_THREAD_SINGLE);
    int full = has_option(argc, argv, "--full"), tiny = has_option(argc, argv, "--tiny");
    const char *ops = option_text(argc, argv, "--ops", "all");
    seed = (uint64_t)option_number(argc, argv, "--seed", 1);
    stock = has_option(argc, argv, "--stock") || has_option(argc, argv, "--below");
    if (test_size > MOST_MEMBERS) {
        fail("more than %d ranks", MOST_MEMBERS);
        return test_end();
    }
    make_types();
    doing("making communicators");
    all[count++] = grid("ring", 1, (int[]){test_size}, (int[]){1});
    all[count++] = grid("line", 1, (int[]){test_size}, (int[]){0});
    all[count++] = grid("ones around", 3, (int[]){1, test_size, 1}, (int[]){1, 1, 0});
    all[count++] = grid("ones and a line", 3, (int[]){1, 1, test_size}, (int[]){0, 1, 0});
    MPI_Dims_create(test_size, 2, dims);
    all[count++] = grid("torus", 2, dims, (int[]){1, 1});
    all[count++] = grid("cylinder", 2, dims, (int[]){0, 1});
    if (test_size % 2 == 0) {
        all[count++] = grid("narrow torus", 2, (int[]){2, test_size / 2}, (int[]){1, 1});
        all[count++] = grid("narrow grid", 2, (int[]){test_size / 2, 2}, (int[]){1, 0});
    }
    if (test_size >= 3)
        all[count++] = grid("ring of all but one", 1, (int[]){test_size - 1}, (int[]){1});
    all[count++] = symmetric_graph();
    all[count++] = adjacent_graph();
    if (!has_option(argc, argv, "--clusters")) /* Open MPI's own messages make it */
        all[count++] = described_graph();
    all[count++] = take("chain", chain());
    all[count] = copy(&all[4]);
    count++;
    all[count] = copy(&all[count - 4]);
    count++;
    for (int c = 0; c < count && !stock && !has_option(argc, argv, "--clusters"); c++)
        if (all[c].comm != MPI_COMM_NULL)
            all[c].reference = without_component(all[c].comm);
    for (int c = 0; c < count; c++)
        for (int o = 0; o < OPERATIONS; o++)
            for (int n = 0; n < ARRAY_LEN(PERIODS) && in_list(ops, TABLE[o].name); n++)
                for (int variant = 0; variant < ARRAY_LEN(TYPES); variant++)
                    for (int mode = BLOCKING; mode <= PERSISTENT; mode++) {
                        uint64_t h = mix4(seed, (uint64_t)(o * 3 + mode), (uint64_t)(n * 8 + variant), (uint64_t)c);
                        if (all[c].comm != MPI_COMM_NULL && (full || h % (uint64_t)(PERIODS[n] > 1000 ? 40 : PERIODS[n] > 100 ? 8 : tiny ? 9 : 3) == 0))
                            run_case((struct kase){.operation = o, .mode = mode, .periods = PERIODS[n], .variant = variant, .around = &all[c]});
                    }
    for (int c = 0; c < count; c++) {
        if (all[c].comm == MPI_COMM_NULL)
            continue;
        overlap(&all[c]);
        MPI_Comm_free(&all[c].comm);
        if (all[c].reference != MPI_COMM_NULL)
            MPI_Comm_free(&all[c].reference);
    }
    run_ahead();
    if (!has_option(argc, argv, "--clusters"))
        side_by_side();
    free_types();
    return test_end();
}
