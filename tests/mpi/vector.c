/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thirteen operations that move or combine a block for each rank, and the prefix reductions, x modes x
 * datatypes x roots x in place x sizes, with irregular counts and displacements. (matrix.c has the other
 * four.)
 *
 * Number j of the block from one rank to another is known, so each case is judged against an image of the
 * whole buffer, guard bytes and gaps included, and repeated on a communicator that excludes the component.
 * What MPI says the operation ignores is given as something invalid. Send buffers and arrays must come back
 * unchanged.
 *
 *   --quick            a sample (default), with every operation in every mode
 *   --full             every root and datatype at every size
 *   --tiny             a small sample, for runs with many parameter settings
 *   --seed N           another sample and other data
 *   --ops LIST         names in small letters
 *   --no-reference     without the second call
 *   --below LIST       operations that the component passes on: leave out what Open MPI itself gets wrong
 *   (see stock_fails) --stock            the component is not there: the same for all
 *
 * Run it without coll/tuned: of ranks that describe the same data by different datatypes it chooses different
 * algorithms.
 */
#include "blocks.h"

enum operation { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, EXSCAN, GATHER, GATHERV, REDUCE_SCATTER,
                 REDUCE_SCATTER_BLOCK, SCAN, SCATTER, SCATTERV, OPERATIONS };
enum { RESTARTS = 3, SINGLE = ARRAY_LEN(TYPES) }; /* SINGLE: the variant where blocks are one element of "forgotten-gap", or none */

static const struct row {
    const char *name;
    enum shape send, recv;
    int rooted, reduces;
} TABLE[OPERATIONS] = {
    [ALLGATHER] = {"allgather", ONE, EQUAL, 0, 0},
    [ALLGATHERV] = {"allgatherv", ONE, VECTOR, 0, 0},
    [ALLTOALL] = {"alltoall", EQUAL, EQUAL, 0, 0},
    [ALLTOALLV] = {"alltoallv", VECTOR, VECTOR, 0, 0},
    [ALLTOALLW] = {"alltoallw", TYPED, TYPED, 0, 0},
    [EXSCAN] = {"exscan", ONE, ONE, 0, 1},
    [GATHER] = {"gather", ONE, EQUAL, 1, 0},
    [GATHERV] = {"gatherv", ONE, VECTOR, 1, 0},
    [REDUCE_SCATTER] = {"reduce_scatter", PACKED, ONE, 0, 1},
    [REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block", EQUAL, ONE, 0, 1},
    [SCAN] = {"scan", ONE, ONE, 0, 1},
    [SCATTER] = {"scatter", EQUAL, ONE, 1, 0},
    [SCATTERV] = {"scatterv", VECTOR, ONE, 1, 0},
};

struct kase {
    enum operation operation;
    enum mode mode;
    int periods, root, in_place, variant; /* variant: which datatypes */
    int rank, size;
};

static struct side send, recv;
static uint64_t seed = 1, data;
static int stock = 0;
static const char *below = "";

/* ---------------------------------------------------------------- what goes where */

static int is_scatter(const struct kase *k)
{
    return k->operation == SCATTER || k->operation == SCATTERV;
}

/* Does the block from one rank depend on the rank that it goes to? */
static int differs_by_target(const struct kase *k)
{
    return TABLE[k->operation].send != ONE;
}

/* Numbers in the block from one rank to another. Alltoall's are symmetric, which in place must be, and no
 * rank is without data: in place, Open MPI 4.1.4 (coll/libnbc) lets such a rank out of step with the others'
 * tags. */
static int numbers(const struct kase *k, int from, int to)
{
    int turn = k->periods + k->variant, length = k->variant == SINGLE ? 1 : PERIOD * k->periods;
    switch (k->operation) {
    case ALLGATHERV: case GATHERV: turn += from; break;
    case SCATTERV: case REDUCE_SCATTER: turn += to; break;
    case ALLTOALLV: case ALLTOALLW: turn += from + to; break;
    default: return length;
    }
    return length * (turn % (k->variant == SINGLE ? 2 : 4));
}

static uint32_t number(const struct kase *k, int from, int to, int j)
{
    return (uint32_t)mix4(data, (uint64_t)from, differs_by_target(k) ? (uint64_t)to : 0, (uint64_t)j);
}

/* Does the reduction of this case mind the order? Then numbers are combined in pairs. */
static int is_ordered(const struct kase *k)
{
    return k->variant % 3 != 0;
}

/* Number j of what this rank gets of the contributions of ranks [0, end). */
static uint32_t reduced(const struct kase *k, int end, int j)
{
    uint32_t sum[2] = {0, 0};
    for (int r = 0; r < end; r++) {
        uint32_t pair[2] = {number(k, r, k->rank, j - j % 2), number(k, r, k->rank, j - j % 2 + 1)};
        if (is_ordered(k) && r > 0)
            ordered_product(2, sum, pair, pair);
        sum[0] = is_ordered(k) ? pair[0] : sum[0] + pair[0];
        sum[1] = is_ordered(k) ? pair[1] : sum[1] + pair[1];
    }
    return sum[j % 2];
}

/* Does this rank give MPI_IN_PLACE? */
static int replaces(const struct kase *k)
{
    return k->in_place && (!TABLE[k->operation].rooted || k->rank == k->root);
}

static int sends(const struct kase *k)
{
    return is_scatter(k) ? k->rank == k->root : !replaces(k);
}

static int receives(const struct kase *k)
{
    if (TABLE[k->operation].rooted && !is_scatter(k))
        return k->rank == k->root;
    return !is_scatter(k) || !replaces(k);
}

/* Both buffers and their arguments. */
static void describe(const struct kase *k)
{
    const struct row *row = &TABLE[k->operation];
    int to_all[MOST_RANKS], from_all[MOST_RANKS], all = 0, me = k->rank;
    for (int r = 0; r < k->size; r++) {
        to_all[r] = numbers(k, me, r);
        from_all[r] = numbers(k, r, me);
        all += to_all[r];
    }
    /* A reduction has one datatype everywhere; with SUM that is the predefined one. */
    int type = row->reduces ? (int[]){0, 1, 3}[k->variant % 3] : k->variant;
    int mine = row->reduces || !k->variant ? type : type + me, theirs = row->reduces || !k->variant ? type : type + 2 * me + 1;
    if (k->variant == SINGLE)
        mine = theirs = -1;
    side_make(&send, row->send, row->send == ONE ? 1 : k->size, to_all, mine, me % 2);
    if (row->reduces && row->send != ONE && k->in_place)
        side_make(&recv, ONE, 1, &all, theirs, 0);
    else
        side_make(&recv, row->recv, row->recv == ONE ? 1 : k->size, row->recv != ONE || !is_scatter(k) ? from_all : &from_all[0],
                  theirs, (me + 1) % 2);
}

/* What this rank contributes, into an image of a side. */
static void put_own(const struct kase *k, const struct side *s, char *image)
{
    int own_block = s == &recv && s->blocks > 1 && !differs_by_target(k);
    if (s->blocks == 1 && differs_by_target(k)) { /* in place: a reduction's blocks as one */
        for (int r = 0, at = 0; r < k->size; r++)
            for (int j = 0; j < numbers(k, k->rank, r); j++)
                side_put(s, image, 0, at++, number(k, k->rank, r, j));
        return;
    }
    for (int b = own_block ? k->rank : 0; b < (own_block ? k->rank + 1 : s->blocks); b++)
        for (int j = 0; j < s->numbers[b]; j++)
            side_put(s, image, b, j, number(k, k->rank, b, j));
}

/* The buffers before the call, and what they must be after it. */
static void prepare(const struct kase *k)
{
    const struct row *row = &TABLE[k->operation];
    int me = k->rank;
    memset(send.bytes, 0xa5 - me, side_size(&send));
    memset(recv.bytes, 0x5a + me, side_size(&recv));
    if (sends(k))
        put_own(k, &send, send.bytes);
    else if (receives(k) && !is_scatter(k))
        put_own(k, &recv, recv.bytes);
    memcpy(send.expected, send.bytes, side_size(&send));
    memcpy(recv.expected, recv.bytes, side_size(&recv));
    if (!receives(k))
        return;
    int end = k->operation == SCAN ? me + 1 : k->operation == EXSCAN ? me : k->size;
    for (int b = 0; b < recv.blocks; b++) {
        int length = row->reduces ? numbers(k, me, me) : recv.numbers[b];
        for (int j = 0; j < length && end > 0; j++)
            side_put(&recv, recv.expected, b, j, row->reduces ? reduced(k, end, j) : number(k, is_scatter(k) ? k->root : b, me, j));
    }
}

static int judge(const struct kase *k, char *text, size_t room)
{
    /* What the result leaves of a reduction's input, in place, is anybody's. */
    if (k->in_place && differs_by_target(k) && TABLE[k->operation].reduces)
        for (int j = numbers(k, k->rank, k->rank); j < recv.numbers[0]; j++)
            memcpy(recv.expected + side_at(&recv, 0, j), recv.bytes + side_at(&recv, 0, j), 4);
    return side_differs(&recv, "receive buffer", text, room) || side_differs(&send, "send buffer", text, room);
}

/* ---------------------------------------------------------------- calls */

#define THREE(Name, name, ...) IN_MODE(k->mode, Name, name, comm, request, __VA_ARGS__)

static int call(const struct kase *k, MPI_Comm comm, MPI_Request *request)
{
    int in_place = replaces(k);
    const void *s = in_place && !is_scatter(k) ? MPI_IN_PLACE : sends(k) ? side_origin(&send) : NULL;
    void *r = in_place && is_scatter(k) ? MPI_IN_PLACE : receives(k) ? side_origin(&recv) : NULL;
    int sn = sends(k) ? send.counts[0] : -1, rn = receives(k) ? recv.counts[0] : -1;
    MPI_Datatype st = sends(k) ? send.handle[0] : MPI_DATATYPE_NULL, rt = receives(k) ? recv.handle[0] : MPI_DATATYPE_NULL;
    const int *sc = sends(k) ? send.counts : NULL, *sd = sends(k) ? send.displs : NULL;
    const int *rc = receives(k) ? recv.counts : NULL, *rd = receives(k) ? recv.displs : NULL;
    const MPI_Datatype *sw = sends(k) ? send.handle : NULL;
    MPI_Op op = op_handle[is_ordered(k) ? OP_USER_ORDERED : k->variant == SINGLE ? OP_USER : OP_SUM];
    switch (k->operation) {
    case ALLGATHER: return THREE(Allgather, allgather, s, sn, st, r, rn, rt);
    case ALLGATHERV: return THREE(Allgatherv, allgatherv, s, sn, st, r, rc, rd, rt);
    case ALLTOALL: return THREE(Alltoall, alltoall, s, sn, st, r, rn, rt);
    case ALLTOALLV: return THREE(Alltoallv, alltoallv, s, sc, sd, st, r, rc, rd, rt);
    case ALLTOALLW: return THREE(Alltoallw, alltoallw, s, sc, sd, sw, r, rc, rd, recv.handle);
    case EXSCAN: return THREE(Exscan, exscan, s, r, rn, rt, op);
    case GATHER: return THREE(Gather, gather, s, sn, st, r, rn, rt, k->root);
    case GATHERV: return THREE(Gatherv, gatherv, s, sn, st, r, rc, rd, rt, k->root);
    case REDUCE_SCATTER: return THREE(Reduce_scatter, reduce_scatter, s, r, send.counts, rt, op);
    case REDUCE_SCATTER_BLOCK: return THREE(Reduce_scatter_block, reduce_scatter_block, s, r, send.counts[0], rt, op);
    case SCAN: return THREE(Scan, scan, s, r, rn, rt, op);
    case SCATTER: return THREE(Scatter, scatter, s, sn, st, r, rn, rt, k->root);
    default: return THREE(Scatterv, scatterv, s, sc, sd, st, r, rn, rt, k->root);
    }
}

/* The whole case on a communicator; 1 and a text where it went wrong. */
static int perform(const struct kase *k, MPI_Comm comm, char *text, size_t room)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int wrong = 0;
    describe(k);
    for (int s = 0; s < (k->mode == PERSISTENT ? RESTARTS : 1); s++) {
        data = mix4(seed, (uint64_t)k->operation * 100 + (uint64_t)k->root, (uint64_t)(k->periods * 8 + k->variant), (uint64_t)s);
        prepare(k);
        if (s == 0)
            must(call(k, comm, &request));
        if (k->mode == PERSISTENT)
            must(MPI_Start(&request));
        if (k->mode != BLOCKING)
            must(MPI_Wait(&request, MPI_STATUS_IGNORE));
        wrong = wrong || judge(k, text, room);
    }
    if (k->mode == PERSISTENT)
        must(MPI_Request_free(&request));
    return wrong;
}

/* Open MPI 4.1.4 (coll/libnbc) overwrites in place what it has not sent yet, once messages wait for their
 * receivers; and it may move several blocks as one, which is wrong with "forgotten-gap" (see types.h). */
static int stock_fails(const struct kase *k)
{
    int overwrites = (k->operation == ALLTOALLV || k->operation == ALLTOALLW) && k->mode != BLOCKING && k->in_place && k->periods > 5;
    return overwrites || k->variant == SINGLE;
}

static void run_case(struct kase k, MPI_Comm comm, MPI_Comm reference, const char *where)
{
    char text[512], other[512];
    MPI_Comm_rank(comm, &k.rank);
    MPI_Comm_size(comm, &k.size);
    doing("%s %s np=%d comm=%s root=%d periods=%d variant=%d%s", MODE_NAME[k.mode], TABLE[k.operation].name, k.size, where, k.root,
          k.periods, k.variant, k.in_place ? " in place" : "");
    if (stock_fails(&k)) {
        if (stock || in_list(below, TABLE[k.operation].name))
            return;
        reference = MPI_COMM_NULL;
    }
    int wrong = perform(&k, comm, text, sizeof text);
    int reference_wrong = reference != MPI_COMM_NULL && perform(&k, reference, other, sizeof other);
    check(!wrong, "%s (without the component: %s)", text,
          reference == MPI_COMM_NULL ? "not run" : reference_wrong ? "wrong too" : "right");
    if (!wrong && reference_wrong)
        fail("only WITHOUT the component: %s", other);
}

/* Has the operation cases with blocks of one element? Where reductions have a block for each rank, a rank's
 * are combined as one of several. */
static int has_singles(enum operation operation, int periods)
{
    return periods == 1 && (!TABLE[operation].reduces || TABLE[operation].send == ONE);
}

int main(int argc, char **argv)
{
    static const int PERIODS[] = {0, 1, 5, 300, 4000};
    MPI_Comm comms[2] = {MPI_COMM_WORLD}, references[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
    test_init(&argc, &argv, "vector", MPI_THREAD_SINGLE);
    int full = has_option(argc, argv, "--full"), thin = has_option(argc, argv, "--tiny") ? 4 : 1;
    const char *ops = option_text(argc, argv, "--ops", "all");
    seed = (uint64_t)option_number(argc, argv, "--seed", 1);
    stock = has_option(argc, argv, "--stock");
    below = option_text(argc, argv, "--below", "");
    if (test_size > MOST_RANKS) {
        fail("more than %d ranks", MOST_RANKS);
        return test_end();
    }
    make_types();
    MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank, &comms[1]);
    for (int c = 0; c < 2 && !stock && !has_option(argc, argv, "--no-reference"); c++)
        references[c] = without_component(comms[c]);
    for (int o = 0; o < OPERATIONS; o++)
        for (int n = 0; n < ARRAY_LEN(PERIODS) && in_list(ops, TABLE[o].name); n++)
            for (int variant = 0; variant <= (has_singles(o, PERIODS[n]) ? SINGLE : SINGLE - 1); variant++)
                for (int root = 0; root < (TABLE[o].rooted ? test_size : 1); root++)
                    for (int in_place = 0; in_place < 2; in_place++)
                        for (int mode = BLOCKING; mode <= PERSISTENT; mode++) {
                            uint64_t h = mix4(seed, (uint64_t)(o * 3 + mode), (uint64_t)(n * 8 + variant), (uint64_t)(root * 2 + in_place));
                            int sample = thin * (PERIODS[n] > 1000 ? 30 : PERIODS[n] > 100 ? 8 : TABLE[o].rooted ? 3 : 2);
                            int simple = (PERIODS[n] == 1 && variant == 0 && root == 0 && !in_place) || variant == SINGLE;
                            if (!full && !simple && h % (unsigned)sample)
                                continue;
                            int c = (int)((h >> 32) % 2);
                            run_case((struct kase){.operation = o, .mode = mode, .periods = PERIODS[n], .root = root,
                                                   .in_place = in_place, .variant = variant},
                                     comms[c], references[c], c ? "reversed" : "world");
                        }
    for (int c = 0; c < 2; c++)
        if (references[c] != MPI_COMM_NULL)
            MPI_Comm_free(&references[c]);
    MPI_Comm_free(&comms[1]);
    free_types();
    return test_end();
}
