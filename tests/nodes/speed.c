/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long an operation takes when the uplink between the switches is slow.
 *
 *     speed <variants> <bits per second of the uplink, each direction> <bytes of its burst>
 *     whole|blocks|torus|few
 *
 * The variants (names of coll components) take turns call by call in one job. All ranks start at an agreed
 * time of the clock that the nodes share, long enough after the operation before that queues and token
 * buckets are in the same state for every variant. The time of an operation is that of the last rank to end;
 * the table gives medians. Data is verified when all have ended, so that no rank does so on a core that
 * another one needs. The floor is the payload divided by the rate: each byte must cross the uplink once at
 * least (Allreduce: once in each direction, at the same time). With "blocks", operations with a block for
 * each rank; their payload is what the ranks on one side have for those on the other, and where everybody
 * waits for everybody the floor is no less than "turns": the time in which empty messages tell all ranks of
 * all others (dissemination), which is what processes that share cores need to take their turns. With
 * "torus", the same of a block for each neighbour on a torus of two dimensions, of which the second one is
 * four ranks long, so that its columns are nodes where all nodes have as many; "turns" there are empty
 * messages to and from each neighbour. The ratio to the best other variant comes with its interval at 99 %:
 * that of the median of the ratios of all rounds, by order statistics, whatever their distribution. With
 * "few", fewer repetitions of those, and times are not judged: the machine may be busy. A variant of Open
 * MPI's own whose data are wrong has no time. The burst is the part of it that passes without delay after a
 * pause, so a small operation may end below the floor, by no more than the time that is printed.
 */
#include "nodes.h"

#define LEAD_NS 15000000   /* from the agreement to the start */
#define LATE_NS 500000     /* a rank that wakes later than this and LATE_SHARE of the floor spoils the measurement, */
#define LATE_SHARE 0.03
#define SPOILED_LIMIT 5    /* which is repeated this many times at most */
#define SHARE_OF_STOCK 0.6 /* what is asked of rust: 0.6 of the best other variant (0.7 with blocks), */
#define SHARE_OF_STOCK_BLOCKS 0.7
#define TIMES_FLOOR 1.3    /* or 1.3 of the floor, whichever is more; */
#define NEVER_ABOVE 1.05   /* and the interval of the ratio to the best other must not lie above this */

static int spoiled;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ranks in a sorted sample of n between which the median lies with 99 %: the lower one, counted from 0 (the
 * upper one is its mirror image). */
static int median_rank(int n)
{
    double below = 0, term = 1;
    int k = 0;
    for (int i = 0; i < n; i++)
        term /= 2; /* of C(n, 0) / 2^n */
    while (k < n / 2 && below + term <= 0.005) {
        below += term;
        term *= (double)(n - k) / (k + 1);
        k++;
    }
    return k > 0 ? k - 1 : 0;
}

/* Tells all ranks of all others by empty messages; or those of their neighbours. */
static void turns_run(enum operation op, MPI_Comm sync)
{
    if (op == NEIGHBOR_ALLTOALL) {
        MPI_Request request[2 * NEIGHBORS];
        int n = 0;
        for (int i = 0; i < NEIGHBORS; i++) {
            int again = 0;
            for (int j = 0; j < i; j++)
                again |= neighbor[j] == neighbor[i];
            if (again)
                continue;
            MPI_Irecv(NULL, 0, MPI_BYTE, neighbor[i], 5, sync, &request[n++]);
            MPI_Isend(NULL, 0, MPI_BYTE, neighbor[i], 5, sync, &request[n++]);
        }
        MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
        return;
    }
    for (int distance = 1; distance < np; distance *= 2)
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (me + distance) % np, 5, NULL, 0, MPI_BYTE, (me + np - distance) % np, 5, sync, MPI_STATUS_IGNORE);
}

/* Whether everybody waits for everybody, or for its neighbours. */
static int has_turns(enum operation op)
{
    return op == ALLTOALL || op == ALLGATHER || op == NEIGHBOR_ALLTOALL;
}

/* Seconds of one operation (on no communicator: of the turns), the same on all ranks; negative where data are
 * wrong. */
static double once(struct buffers *b, double floor, enum operation op, int root, int salt, MPI_Comm comm, MPI_Comm sync)
{
    for (int try = 0;; try++) {
        int64_t start, time[2];
        int wrong = 0;
        buffers_fill(b, op, root, salt);
        MPI_Barrier(sync);
        start = now_ns() + LEAD_NS;
        MPI_Bcast(&start, 1, MPI_INT64_T, 0, sync);
        sleep_until(start);
        time[1] = now_ns() - start;
        if (comm == MPI_COMM_NULL)
            turns_run(op, sync);
        else
            operation_run(b, op, root, comm);
        time[0] = now_ns() - start;
        MPI_Allreduce(MPI_IN_PLACE, time, 2, MPI_INT64_T, MPI_MAX, sync);
        if (comm != MPI_COMM_NULL)
            wrong = buffers_wrong(b, op, root, salt) != 0;
        MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, sync);
        if (wrong)
            return -1;
        if ((double)time[1] <= LATE_NS + LATE_SHARE * 1e9 * floor || try == SPOILED_LIMIT)
            return (double)time[0] * 1e-9;
        spoiled++;
    }
}

struct size {
    size_t bytes;
    int repetitions;
    const char *name;
};

static const struct kase {
    enum operation op;
    struct size size[4]; /* ends with no bytes */
} WHOLE[] = {
    {BCAST, {{64 << 10, 21, "64 KiB"}, {1 << 20, 9, "1 MiB"}, {8 << 20, 9, "8 MiB"}, {0}}},
    {REDUCE, {{64 << 10, 21, "64 KiB"}, {1 << 20, 9, "1 MiB"}, {8 << 20, 9, "8 MiB"}, {0}}},
    {ALLREDUCE, {{64 << 10, 21, "64 KiB"}, {1 << 20, 9, "1 MiB"}, {8 << 20, 9, "8 MiB"}, {0}}},
}, BLOCKS[] = {
    {ALLTOALL, {{64, 61, "64 B"}, {0}}},
    {GATHER, {{4 << 10, 31, "4 KiB"}, {256 << 10, 9, "256 KiB"}, {0}}},
    {SCATTER, {{4 << 10, 31, "4 KiB"}, {256 << 10, 9, "256 KiB"}, {0}}},
    {ALLGATHER, {{4 << 10, 31, "4 KiB"}, {256 << 10, 9, "256 KiB"}, {0}}},
}, TORUS[] = {
    {NEIGHBOR_ALLTOALL, {{64, 61, "64 B"}, {4 << 10, 31, "4 KiB"}, {64 << 10, 21, "64 KiB"}, {0}}},
};

/* Bytes that must cross the uplink in the direction in which more must. */
static double must_cross(enum operation op, size_t bytes)
{
    char name[256];
    int side, all[64], far = 0, near;
    if (!has_blocks(op))
        return (double)bytes;
    gethostname(name, sizeof name);
    side = name[strlen(name) - 1] % 2; /* of node0 to node3: see cluster.sh */
    if (np > 64)
        die("too many ranks");
    MPI_Allgather(&side, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < np; rank++)
        far += all[rank] != all[0];
    near = np - far;
    if (op == NEIGHBOR_ALLTOALL) {
        int crossing[2] = {0, 0}, all_crossing[2];
        for (int i = 0; i < NEIGHBORS; i++)
            crossing[side] += all[neighbor[i]] != side;
        MPI_Allreduce(crossing, all_crossing, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        return (double)(all_crossing[0] > all_crossing[1] ? all_crossing[0] : all_crossing[1]) * (double)bytes;
    }
    switch (op) {
    case ALLTOALL: return (double)near * far * (double)bytes;
    case ALLGATHER: return (double)(near > far ? near : far) * (double)bytes;
    default: return (double)far * (double)bytes;
    }
}

int main(int argc, char **argv)
{
    char *variant[MAX_VARIANTS];
    MPI_Comm comm[MAX_VARIANTS + 1], sync;
    int passed = 0, failed = 0, ours = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    if (argc != 5)
        die("usage: speed <variants> <bits per second> <burst> whole|blocks|torus|few");
    int blocks = strcmp(argv[4], "whole") != 0, few = !strcmp(argv[4], "few"), torus = !strcmp(argv[4], "torus");
    const struct kase *kases = torus ? TORUS : blocks ? BLOCKS : WHOLE;
    size_t count = torus ? sizeof TORUS / sizeof *TORUS : blocks ? sizeof BLOCKS / sizeof *BLOCKS : sizeof WHOLE / sizeof *WHOLE;
    MPI_Comm model = MPI_COMM_WORLD;
    double share = blocks ? SHARE_OF_STOCK_BLOCKS : SHARE_OF_STOCK;
    int variants = split_list(argv[1], variant, MAX_VARIANTS);
    double rate = atof(argv[2]), burst = atof(argv[3]);
    if (variants < 1 || rate <= 0)
        die("nothing to do");
    sync = comm_of("tuned");
    if (torus) {
        if (np % 4)
            die("a torus needs a multiple of four ranks");
        MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){np / 4, 4}, (int[]){1, 1}, 0, &model);
        MPI_Cart_shift(model, 0, 1, &neighbor[0], &neighbor[1]);
        MPI_Cart_shift(model, 1, 1, &neighbor[2], &neighbor[3]);
    }
    for (int v = 0; v < variants; v++) {
        comm[v] = comm_like(model, variant[v]);
        if (!strcmp(variant[v], "rust"))
            ours = v;
    }
    comm[variants] = MPI_COMM_NULL;

    if (me == 0) {
        printf("| operation | size |");
        for (int v = 0; v < variants; v++)
            printf(" %s ms |", variant[v]);
        printf("%s floor ms |%s\n|---|---|", blocks ? " turns ms |" : "",
               ours < 0 ? "" : " rust/floor | rust/best other | 99 % interval | verdict |");
        for (int v = 0; v < variants; v++)
            printf("---|");
        printf("%s---|%s\n", blocks ? "---|" : "", ours < 0 ? "" : "---|---|---|---|");
    }
    for (size_t o = 0; o < count; o++) {
        enum operation op = kases[o].op;
        for (const struct size *size = kases[o].size; size->bytes; size++) {
            struct buffers b = buffers_for(op, size->bytes / sizeof(int32_t));
            int n = few ? (size->repetitions + 3) / 4 : size->repetitions;
            double time[MAX_VARIANTS + 1][64], ratio[64], floor = must_cross(op, size->bytes) * 8 / rate, best = 1e9;
            int others = variants + has_turns(op), best_other = -1;
            for (int i = -1; i < n; i++) /* the first round warms up */
                for (int k = 0; k < others; k++) {
                    int v = (i + 1 + k) % others;
                    double t = once(&b, floor, op, 0, i + 2, comm[v], sync);
                    if (t < 0 && v == ours)
                        die("wrong data");
                    if (i >= 0)
                        time[v][i] = t;
                }
            if (me == 0) {
                double sorted[64], turns = 0, t = 0;
                printf("| %s | %s |", operation_name[op], size->name);
                for (int v = 0; v < others; v++) {
                    memcpy(sorted, time[v], sizeof sorted);
                    qsort(sorted, (size_t)n, sizeof(double), compare);
                    if (sorted[0] < 0) {
                        printf(" wrong |");
                        continue;
                    }
                    if (v == variants)
                        turns = sorted[n / 2];
                    else if (v == ours)
                        t = sorted[n / 2];
                    else if (sorted[n / 2] < best)
                        best = sorted[n / 2], best_other = v;
                    printf(" %.2f |", sorted[n / 2] * 1e3);
                }
                if (blocks && !has_turns(op))
                    printf(" |");
                floor = turns > floor ? turns : floor;
                printf(" %.2f |", floor * 1e3);
                if (ours >= 0) {
                    double most = share * best > TIMES_FLOOR * floor ? share * best : TIMES_FLOOR * floor;
                    int low = median_rank(n);
                    for (int i = 0; i < n && best_other >= 0; i++)
                        ratio[i] = time[ours][i] / time[best_other][i];
                    qsort(ratio, (size_t)n, sizeof(double), compare);
                    int good = few || (t <= most && (best_other < 0 || ratio[low] <= NEVER_ABOVE));
                    printf(" %.2f | %.2f |", t / floor, t / best);
                    if (best_other < 0)
                        printf(" |");
                    else
                        printf(" %.2f to %.2f |", ratio[low], ratio[n - 1 - low]);
                    printf(" %s |", few ? "right" : good ? "pass" : "FAIL");
                    passed += good;
                    failed += !good;
                }
                printf("\n");
                fflush(stdout);
            }
            free(b.in);
            free(b.out);
        }
    }
    if (me == 0) {
        printf("\nThe first %.0f KiB pass without delay: a time may be %.2f ms below the floor. %d late starts, repeated.\n",
               burst / 1024, burst * 8 / rate * 1e3, spoiled);
        printf("\nspeed: %d passed, %d failed\n", passed, failed);
    }
    MPI_Finalize();
    return me == 0 && failed;
}
