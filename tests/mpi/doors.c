/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks come to one operation by different doors: data that are plain at one rank are described by a
 * derived datatype at another, so one takes the quick way and the other the long one. What tells operations
 * apart, and what limits how far ranks run ahead, must come out alike, or a later operation that needs
 * messages (a long user-defined reduction, or anything for which shared memory did not suffice) meets the
 * wrong ones, or waits for ever. Every other round calls the nonblocking forms, and then has many of them
 * under way at a time, each of which this rank may have come to by another door than the one before. At the
 * end, reductions are the first operations on communicators of their own that carry more than fits a cache
 * line.
 *
 *   --rounds N   (default 200)
 */
#include "harness.h"

enum { SMALL = 3, LARGE = 30000, FLOCK = 10, LINES = 600, PAIRS = 600 };

static MPI_Datatype pair; /* two numbers, of which the first is at the end */
static MPI_Op last_but_kept;

/* Keeps the higher rank's pair where the operands come in rank order: a op b = (first of a, second of b). */
static void keep(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; i++)
        ((int *) inout)[2 * i] = ((int *) in)[2 * i];
}

/* Which ranks describe their data by elements of a derived datatype, in this round? */
static int is_derived(int round, int rank)
{
    return (round / 3 + rank) % 2;
}

static int number(int round, int from, int to, int j)
{
    return round * 1000003 + from * 1009 + to * 31 + j;
}

/* Numbers wherever this rank's datatype of the round puts number j of a buffer: pairs are swapped. */
static int place(int derived, int j)
{
    return derived ? j ^ 1 : j;
}

static void put(int *buffer, int derived, int round, int from, int to, int n)
{
    for (int j = 0; j < n; j++)
        buffer[place(derived, j)] = number(round, from, to, j);
}

static int good(const int *buffer, int derived, int round, int from, int to, int n)
{
    for (int j = 0; j < n; j++)
        if (buffer[place(derived, j)] != number(round, from, to, j))
            return 0;
    return 1;
}

#define CALL(name, nonblocking_name, ...)                                                                              \
    do {                                                                                                               \
        if (round % 2) {                                                                                               \
            MPI_Request request;                                                                                       \
            must(MPI_##nonblocking_name(__VA_ARGS__, &request));                                                       \
            must(MPI_Wait(&request, MPI_STATUS_IGNORE));                                                               \
        } else {                                                                                                       \
            must(MPI_##name(__VA_ARGS__));                                                                             \
        }                                                                                                              \
    } while (0)

static void one_round(MPI_Comm comm, int round, int n, int *mine, int *all, int *others)
{
    int rank = test_rank, derived = is_derived(round, rank), root = round % test_size, wrong = 0;
    MPI_Datatype type = derived ? pair : MPI_INT;
    int count = derived ? n / 2 : n;
    doing("round %d: Bcast of %d numbers", round, n);
    memset(mine, 0, sizeof(int) * (size_t) n);
    if (rank == root)
        put(mine, derived, round, root, 0, n);
    CALL(Bcast, Ibcast, mine, count, type, root, comm);
    wrong += !good(mine, derived, round, root, 0, n);
    doing("round %d: Gather", round);
    put(mine, derived, round, rank, root, n);
    CALL(Gather, Igather, mine, count, type, all, count, type, root, comm);
    for (int r = 0; r < test_size && rank == root; r++)
        wrong += !good(all + r * n, derived, round, r, root, n);
    doing("round %d: Scatter", round);
    for (int r = 0; r < test_size; r++)
        put(all + r * n, derived, round, rank, r, n);
    CALL(Scatter, Iscatter, all, count, type, mine, count, type, root, comm);
    wrong += !good(mine, derived, round, root, rank, n);
    doing("round %d: Allgather", round);
    put(mine, derived, round, rank, 0, n);
    CALL(Allgather, Iallgather, mine, count, type, all, count, type, comm);
    for (int r = 0; r < test_size; r++)
        wrong += !good(all + r * n, derived, round, r, 0, n);
    doing("round %d: Alltoall", round);
    for (int r = 0; r < test_size; r++)
        put(all + r * n, derived, round, rank, r, n);
    CALL(Alltoall, Ialltoall, all, count, type, others, count, type, comm);
    for (int r = 0; r < test_size; r++)
        wrong += !good(others + r * n, derived, round, r, rank, n);
    check(!wrong, "round %d: wrong numbers in %d blocks", round, wrong);
    doing("round %d: Reduce by an operation of the user's", round);
    /* Of a few bytes it goes through shared memory, too. */
    static int own[2 * PAIRS], result[2 * PAIRS];
    int pairs = round % 3 ? PAIRS : 1;
    for (int i = 0; i < pairs; i++) {
        own[2 * i] = round + rank;
        own[2 * i + 1] = round - rank;
    }
    CALL(Reduce, Ireduce, own, result, pairs, MPI_2INT, last_but_kept, root, comm);
    check(rank != root || (result[0] == round && result[1] == round - (test_size - 1)), "round %d: Reduce gave %d %d", round,
          result[0], result[1]);
    doing("round %d: Scan by an operation of the user's", round);
    CALL(Scan, Iscan, own, result, pairs, MPI_2INT, last_but_kept, comm);
    check(result[0] == round && result[1] == round - rank, "round %d: Scan gave %d %d", round, result[0], result[1]);
}

/* FLOCK operations under way at a time, of `n` numbers in each block. `buffers`: so many times a buffer of
 * LINES numbers for each rank and two more. */
static void flock(MPI_Comm comm, int round, int n, int *buffers)
{
    MPI_Request requests[FLOCK];
    int rank = test_rank, wrong = 0, most[FLOCK];
    size_t each = (size_t) LINES * (2 * (size_t) test_size + 1);
    doing("round %d: %d operations of %d numbers at a time", round, FLOCK, n);
    for (int k = 0; k < FLOCK; k++) {
        int derived = is_derived(round + 5 * k, rank), root = (round + k) % test_size;
        int *mine = buffers + (size_t) k * each, *all = mine + LINES, *others = all + LINES * test_size;
        MPI_Datatype type = derived ? pair : MPI_INT;
        int count = derived ? n / 2 : n;
        memset(mine, 0, sizeof(int) * each);
        switch ((round / 2 + k) % 5) {
        case 0:
            if (rank == root)
                put(mine, derived, round + k, root, 0, n);
            must(MPI_Ibcast(mine, count, type, root, comm, &requests[k]));
            break;
        case 1:
            /* The root's own block lies in its place, and only the root says so. */
            put(rank == root ? all + rank * n : mine, derived, round + k, rank, root, n);
            must(MPI_Igather(rank == root ? MPI_IN_PLACE : mine, count, type, all, count, type, root, comm, &requests[k]));
            break;
        case 2:
            put(mine, derived, round + k, rank, 0, n);
            must(MPI_Iallgather(mine, count, type, all, count, type, comm, &requests[k]));
            break;
        case 3:
            for (int r = 0; r < test_size; r++)
                put(all + r * n, derived, round + k, rank, r, n);
            must(MPI_Ialltoall(all, count, type, others, count, type, comm, &requests[k]));
            break;
        default:
            /* As Open MPI's own, when it agrees on a number for a new communicator. */
            most[k] = -1;
            mine[0] = round + k + rank;
            must(MPI_Iallreduce(mine, &most[k], 1, MPI_INT, MPI_MAX, comm, &requests[k]));
        }
    }
    if (round % 4 == 1)
        must(MPI_Waitall(FLOCK, requests, MPI_STATUSES_IGNORE));
    for (int k = FLOCK - 1; k >= 0; k--) {
        int derived = is_derived(round + 5 * k, rank), root = (round + k) % test_size;
        int *mine = buffers + (size_t) k * each, *all = mine + LINES, *others = all + LINES * test_size;
        must(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
        switch ((round / 2 + k) % 5) {
        case 0:
            wrong += !good(mine, derived, round + k, root, 0, n);
            break;
        case 1:
            for (int r = 0; r < test_size && rank == root; r++)
                wrong += !good(all + r * n, derived, round + k, r, root, n);
            break;
        case 2:
            for (int r = 0; r < test_size; r++)
                wrong += !good(all + r * n, derived, round + k, r, 0, n);
            break;
        case 3:
            for (int r = 0; r < test_size; r++)
                wrong += !good(others + r * n, derived, round + k, r, rank, n);
            break;
        default:
            wrong += most[k] != round + k + test_size - 1;
        }
    }
    check(!wrong, "round %d: wrong numbers in %d blocks of %d operations at a time", round, wrong, FLOCK);
}

/* The first reduction of n numbers on a communicator whose operations so far had nothing to carry: how many
 * bytes it needs room for must be known before it begins, at the blocking door as at the nonblocking one. */
static void first(int which, int n, double *mine, double *all)
{
    int rank, root = n % test_size, got = n, *counts = malloc(sizeof(int) * (size_t) test_size);
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    must(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    must(MPI_Comm_rank(comm, &rank));
    for (int i = 0; i < 5; i++) {
        must(MPI_Barrier(comm));
        must(MPI_Ibarrier(comm, &request));
        must(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    for (int r = 0; r < test_size; r++)
        counts[r] = n;
    for (int i = 0; i < n * test_size; i++)
        mine[i] = rank + 1 + i % n;
    for (int i = 0; i < n; i++)
        all[i] = -1;
    doing("first reduction %d of %d numbers", which, n);
    double up = rank + 1, sum = test_size * (test_size + 1) / 2.0, terms = test_size, here = up * (up + 1) / 2;
    switch (which) {
    case 0:
        must(MPI_Allreduce(mine, all, n, MPI_DOUBLE, MPI_SUM, comm));
        break;
    case 1:
        must(MPI_Reduce(mine, all, n, MPI_DOUBLE, MPI_SUM, root, comm));
        got = rank == root ? n : 0;
        break;
    case 2:
        must(MPI_Scan(mine, all, n, MPI_DOUBLE, MPI_SUM, comm));
        sum = here, terms = up;
        break;
    case 3:
        must(MPI_Exscan(mine, all, n, MPI_DOUBLE, MPI_SUM, comm));
        sum = here - up, terms = rank;
        got = rank > 0 ? n : 0;
        break;
    case 4:
        must(MPI_Reduce_scatter_block(mine, all, n, MPI_DOUBLE, MPI_SUM, comm));
        break;
    case 5:
        must(MPI_Reduce_scatter(mine, all, counts, MPI_DOUBLE, MPI_SUM, comm));
        break;
    case 6:
        must(MPI_Iallreduce(mine, all, n, MPI_DOUBLE, MPI_SUM, comm, &request));
        break;
    default:
        must(MPI_Ireduce(mine, all, n, MPI_DOUBLE, MPI_SUM, root, comm, &request));
        got = rank == root ? n : 0;
    }
    must(MPI_Wait(&request, MPI_STATUS_IGNORE));
    int wrong = 0;
    for (int i = 0; i < got; i++)
        wrong += all[i] != sum + terms * i;
    check(!wrong, "first reduction %d of %d numbers: %d wrong", which, n, wrong);
    must(MPI_Comm_free(&comm));
    free(counts);
}

int main(int argc, char **argv)
{
    int lengths[2] = {1, 1}, displacements[2] = {1, 0};
    test_init(&argc, &argv, "doors", MPI_THREAD_SINGLE);
    int rounds = (int) option_number(argc, argv, "--rounds", 200);
    int *mine = malloc(sizeof(int) * LARGE), *all = malloc(sizeof(int) * LARGE * (size_t) test_size);
    int *others = malloc(sizeof(int) * LARGE * (size_t) test_size);
    int *buffers = malloc(sizeof(int) * FLOCK * LINES * (2 * (size_t) test_size + 1));
    must(MPI_Type_indexed(2, lengths, displacements, MPI_INT, &pair));
    must(MPI_Type_commit(&pair));
    must(MPI_Op_create(keep, 0, &last_but_kept));
    for (int round = 0; round < rounds; round++) {
        one_round(MPI_COMM_WORLD, round, round % 5 == 4 ? LARGE : 2 * (1 + round % SMALL), mine, all, others);
        if (round % 2)
            flock(MPI_COMM_WORLD, round, (int[]){2, 100, 6, LINES}[round / 2 % 4], buffers);
    }
    static const int LENGTHS[] = {1, 7, 8, 10, 56, 57, 500};
    double *numbers = malloc(sizeof(double) * 500 * (size_t) test_size * 2);
    for (int i = 0; i < (int) (sizeof LENGTHS / sizeof *LENGTHS); i++)
        for (int which = 0; which < 8; which++)
            first(which, LENGTHS[i], numbers, numbers + 500 * test_size);
    free(numbers);
    must(MPI_Op_free(&last_but_kept));
    must(MPI_Type_free(&pair));
    free(mine);
    free(all);
    free(others);
    free(buffers);
    return test_end();
}
