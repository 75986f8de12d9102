/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What keeps operations apart: nobody's messages may reach another operation, whatever is outstanding at the
 * same time, however few tags there are, and whatever failed before.
 *
 *   --parts LIST     of idup, persistent, few, limit, bcast_error, reduce_error (default all)
 *   --rounds N       of MPI_Comm_idup on each communicator (default 20)
 *   --iterations N   persistent operations made, started and freed (default 2000)
 *   --seed N
 *   --stock          without what only the component gets right or limits
 *
 * limit is to be run with few tags (COLL_RUST_TEST_MAX_TAG=32768), or it takes long. The errors are to be run
 * where the sizes, which differ, do not choose the algorithm, and where a rank that notices nothing depends
 * on none that does: coll_rust_levels=none, flat algorithms, coll_rust_bcast_segment_size=64k,
 * coll_rust_reduce_segment_size=0.
 */
#include "fourops.h"
#include <sys/mman.h>

static int stock = 0;

/* ---------------------------------------------------------------- MPI_Comm_idup */

enum { TESTS_FEW = 3, TESTS_MANY = 200 };

/* MPI_Comm_idup calls Iallreduce on its communicator when the request makes progress: at other places of the
 * sequence of calls on rank 0, which tests, than on the others. Overlapping it with the user's own Iallreduce
 * is not tried: Open MPI itself confuses the two, with all of its components. */
static void idup(MPI_Comm comm, int round)
{
    MPI_Comm copy;
    MPI_Request request, other;
    int rank, done = 0, same, tests = round % 2 ? TESTS_MANY : TESTS_FEW;
    struct work w;
    MPI_Comm_rank(comm, &rank);
    doing("Comm_idup, round %d", round);
    must(MPI_Comm_idup(comm, &copy, &request));
    for (int i = 0; i <= BARRIER; i++) {
        enum operation operation = (enum operation)((round / 2 + i) % 4);
        for (int t = 0; rank == 0 && t < tests && !done; t++)
            must(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        doing("round %d of Comm_idup: overlapped with a blocking %s", round, OPERATION_NAME[operation]);
        work_make(&w, operation, 1 + round * 50, round, comm);
        work_all(&w, round, "blocking while Comm_idup is outstanding");
        if (!stock && operation != ALLREDUCE) { /* coll/libnbc numbers all its operations in one sequence */
            doing("round %d of Comm_idup: overlapped with a nonblocking %s", round, OPERATION_NAME[operation]);
            work_fill(&w, round + 1);
            must(work_begin(&w, &other));
            for (int t = 0; rank == 0 && t < tests && !done; t++)
                must(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            must(MPI_Wait(&other, MPI_STATUS_IGNORE));
            work_check(&w, round + 1, "nonblocking while Comm_idup is outstanding");
        }
        work_free(&w);
    }
    doing("completing Comm_idup, round %d", round);
    if (!done)
        must(MPI_Wait(&request, MPI_STATUS_IGNORE));
    must(MPI_Comm_compare(comm, copy, &same));
    check(same == MPI_CONGRUENT, "Comm_idup made a communicator that compares as %d", same);
    doing("using the communicator of Comm_idup, round %d", round);
    all_four(copy, 100, round, "on the communicator of Comm_idup");
    must(MPI_Comm_free(&copy));
}

/* ---------------------------------------------------------------- persistent operations that stay and that
 * go */

enum { KEPT = 40 };

static void start_kept(MPI_Comm comm, struct work *works, MPI_Request *requests, int kept, int number, uint64_t *mine)
{
    int order[KEPT];
    struct work between;
    for (int k = 0; k < kept; k++)
        work_fill(&works[k], number);
    permutation(mine, order, kept);
    for (int k = 0; k < kept; k++) {
        must(MPI_Start(&requests[order[k]]));
        if (k != kept / 2)
            continue;
        work_make(&between, (enum operation)(number % 4), 30, number, comm);
        work_all(&between, number, "blocking between starts of those kept");
        work_free(&between);
    }
    permutation(mine, order, kept);
    for (int k = 0; k < kept; k++)
        must(MPI_Wait(&requests[order[k]], MPI_STATUS_IGNORE));
    for (int k = 0; k < kept; k++)
        work_check(&works[k], number, "kept persistent");
}

/* Most requests are freed after one start. Every 45th part of the way one stays, until forty are alive: they
 * are started together again and again, in an order of each rank's own. */
static void persistent(MPI_Comm comm, int iterations, uint64_t seed)
{
    struct work works[KEPT], w;
    MPI_Request requests[KEPT], request;
    uint64_t mine = mix4(seed, 1, (uint64_t)test_rank, 0);
    int kept = 0, every = iterations / (KEPT + 5) + 1;
    for (int i = 0; i < iterations; i++) {
        doing("persistent operation %d of %d, %d kept", i, iterations, kept);
        work_make(&w, (enum operation)(mix4(seed, 2, (uint64_t)i, 0) % 4), i % 100, i, comm);
        must(work_init(&w, &request));
        work_fill(&w, i);
        must(MPI_Start(&request));
        must(MPI_Wait(&request, MPI_STATUS_IGNORE));
        work_check(&w, i, "persistent, started once");
        must(MPI_Request_free(&request));
        work_free(&w);
        if (i % every == every / 2 && kept < KEPT) {
            work_make(&works[kept], (enum operation)(kept % 4), 1 + kept, kept, comm);
            must(work_init(&works[kept], &requests[kept]));
            kept++;
        }
        if (kept && i % 5 == 0)
            start_kept(comm, works, requests, kept, i, &mine);
    }
    for (int k = 0; k < kept; k++) {
        must(MPI_Request_free(&requests[k]));
        work_free(&works[k]);
    }
}

/* Never more than eight alive: each rank starts and frees them in an order of its own, and some ranks late.
 * */
static void few(MPI_Comm world, int iterations, uint64_t seed)
{
    enum { FEW = 8 };
    MPI_Comm comm;
    struct work works[FEW];
    MPI_Request requests[FEW];
    int order[FEW];
    uint64_t mine = mix4(seed, 4, (uint64_t)test_rank, 0);
    must(MPI_Comm_dup(world, &comm));
    for (int i = 0; i < iterations; i += FEW) {
        doing("eight persistent operations from %d of %d", i, iterations);
        for (int k = 0; k < FEW; k++) {
            uint64_t h = mix4(seed, 5, (uint64_t)i, (uint64_t)k);
            work_make(&works[k], (enum operation)(h % 4), (h >> 8) % 20 ? (int)((h >> 16) % 300) : 20000, k, comm);
            must(work_init(&works[k], &requests[k]));
        }
        for (int start = 0; start < 2; start++) {
            for (int k = 0; k < FEW; k++)
                work_fill(&works[k], i + start);
            permutation(&mine, order, FEW);
            for (int k = 0; k < FEW; k++)
                must(MPI_Start(&requests[order[k]]));
            permutation(&mine, order, FEW);
            for (int k = 0; k < FEW; k++)
                must(MPI_Wait(&requests[order[k]], MPI_STATUS_IGNORE));
            for (int k = 0; k < FEW; k++)
                work_check(&works[k], i + start, "one of eight persistent");
        }
        permutation(&mine, order, FEW);
        if (next_below(&mine, 10) == 0)
            usleep(500);
        for (int k = 0; k < FEW; k++) {
            must(MPI_Request_free(&requests[order[k]]));
            work_free(&works[order[k]]);
        }
    }
    must(MPI_Comm_free(&comm));
}

/* ---------------------------------------------------------------- too many of them */

/* All ranks' numbers must be the first rank's. Over point-to-point. */
static void same_everywhere(int number, const char *what)
{
    enum { TAG = 815 };
    if (test_rank != 0) {
        MPI_Send(&number, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    for (int r = 1; r < test_size; r++) {
        int other;
        MPI_Recv(&other, 1, MPI_INT, r, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(other == number, "%s: %d at rank 0, %d at rank %d", what, number, other, r);
    }
}

/* Makes as many of one kind as there can be. How many; the error is in `code`. */
static int exhaust(struct work *w, MPI_Request *requests, int most, int *code)
{
    int alive = 0;
    *code = MPI_SUCCESS;
    while (alive < most && (*code = work_init(w, &requests[alive])) == MPI_SUCCESS)
        alive++;
    return alive;
}

static void limit(MPI_Comm world, uint64_t seed)
{
    enum { MOST = 20000 };
    MPI_Comm comm;
    MPI_Request *requests = calloc(MOST, sizeof *requests);
    int *order = calloc(MOST, sizeof *order);
    uint64_t mine = mix4(seed, 3, (uint64_t)test_rank, 0);
    must(MPI_Comm_dup(world, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int round = 0; round < 8; round++) {
        struct work w, other;
        char text[MPI_MAX_ERROR_STRING];
        int code, class = MPI_SUCCESS, length = 0, alive;
        work_make(&w, (enum operation)(round % 4), 5, 0, comm);
        doing("as many persistent %s as possible, round %d", OPERATION_NAME[w.operation], round);
        alive = exhaust(&w, requests, MOST, &code);
        check(alive >= 16 && alive < MOST, "%d persistent requests could be made, then code %d", alive, code);
        same_everywhere(alive, "persistent requests that could be made");
        MPI_Error_class(code, &class);
        same_everywhere(class, "the error class of one too many");
        check(class != MPI_SUCCESS && MPI_Error_string(code, text, &length) == MPI_SUCCESS && length > 0,
              "one persistent request too many gave code %d, class %d", code, class);
        /* All that exist work, and everything else does. */
        work_fill(&w, round);
        must(MPI_Start(&requests[alive - 1]));
        must(MPI_Wait(&requests[alive - 1], MPI_STATUS_IGNORE));
        work_check(&w, round, "the last persistent request");
        all_four(comm, 20, round, "with no persistent request left");
        /* Half of them go, in another order on each rank: as many can be made again. */
        int half = alive / 2, again;
        permutation(&mine, order, half);
        for (int i = 0; i < half; i++)
            must(MPI_Request_free(&requests[order[i]]));
        doing("again as many persistent %s as possible, round %d", OPERATION_NAME[w.operation], round);
        again = exhaust(&w, requests, half, &code);
        check(again == half, "%d of %d persistent requests could be made again, then code %d", again, half, code);
        work_make(&other, w.operation, 5, 1, comm);
        code = work_init(&other, &requests[alive]);
        check(code != MPI_SUCCESS, "one persistent request more than %d could be made", alive);
        doing("freeing %d persistent requests, round %d", alive, round);
        permutation(&mine, order, alive);
        for (int i = 0; i < alive; i++)
            if (order[i] < again || order[i] >= half)
                must(MPI_Request_free(&requests[order[i]]));
        work_free(&w);
        work_free(&other);
    }
    must(MPI_Comm_free(&comm));
    free(requests);
    free(order);
}

/* ---------------------------------------------------------------- buffers after an error */

enum { CANARIES = 64 };

static void progress_for(double seconds)
{
    int flag;
    for (double end = seconds_now() + seconds; seconds_now() < end;)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/* The last rank has room for less than the root's last segment, which is small and comes before the large
 * ones: it must get an error. Then its buffer is its own again: what is there now must stay as it is. */
static void broken_bcast(int mode, int unmap)
{
    enum { SEGMENT = 64 << 10, SIZE = 7 * SEGMENT + 2048 };
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int last = test_rank == test_size - 1, mine = last ? SIZE - 1024 : SIZE, code;
    must(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    doing("Bcast of %d bytes to a rank with room for %d, mode %d", SIZE, SIZE - 1024, mode);
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, test_rank == 0 ? 7 : 0, SIZE);
    if (test_rank == 0)
        usleep(20000);
    if (mode == 0) {
        code = MPI_Bcast(p, mine, MPI_BYTE, 0, comm);
    } else {
        code = mode == 1 ? MPI_Ibcast(p, mine, MPI_BYTE, 0, comm, &request)
                         : MPI_Bcast_init(p, mine, MPI_BYTE, 0, comm, MPI_INFO_NULL, &request);
        if (mode == 2 && code == MPI_SUCCESS)
            code = MPI_Start(&request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (mode == 2 && code != MPI_SUCCESS && request != MPI_REQUEST_NULL)
            MPI_Request_free(&request);
    }
    check(!last || code != MPI_SUCCESS, "a truncated Bcast returned MPI_SUCCESS");
    if (!last) {
        progress_for(0.1);
    } else if (unmap) {
        munmap(p, SIZE);
        progress_for(0.1);
        pass();
    } else {
        int changed = 0;
        memset(p, 1, SIZE);
        progress_for(0.1);
        for (int i = 0; i < SIZE; i++)
            changed += p[i] != 1;
        check(changed == 0, "%d bytes of the buffer changed after Bcast, mode %d, had returned an error", changed, mode);
    }
    /* Neither the communicator nor the others' buffers: after an error, they may still be sending. */
}

/* Rank 1 sends more than the root has room for, the last rank comes late, when the root is through with its
 * error: what it sends must not land in memory that is the user's by now. */
static void broken_reduce(int mode)
{
    enum { NUMBERS = 500, MORE = 20 };
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int count = test_rank == 1 ? NUMBERS + MORE : NUMBERS, code;
    int *s = malloc(sizeof(int) * (NUMBERS + MORE)), *r = malloc(sizeof(int) * (NUMBERS + MORE));
    must(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < NUMBERS + MORE; i++)
        s[i] = r[i] = 1;
    doing("Reduce of %d ints, at rank 1 of %d, mode %d", NUMBERS, NUMBERS + MORE, mode);
    if (test_rank == test_size - 1)
        usleep(30000);
    if (mode == 0) {
        code = MPI_Reduce(s, r, count, MPI_INT, MPI_SUM, 0, comm);
    } else {
        code = MPI_Ireduce(s, r, count, MPI_INT, MPI_SUM, 0, comm, &request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    free(r);
    if (test_rank != 0) {
        progress_for(0.1); /* s stays: it may still be sent */
        return;
    }
    free(s);
    check(code != MPI_SUCCESS, "a truncated Reduce returned MPI_SUCCESS");
    unsigned char *canary[CANARIES];
    int changed = 0;
    for (int c = 0; c < CANARIES; c++) {
        canary[c] = malloc(sizeof(int) * NUMBERS);
        memset(canary[c], 0x77, sizeof(int) * NUMBERS);
    }
    progress_for(0.1);
    for (int c = 0; c < CANARIES; c++) {
        for (size_t i = 0; i < sizeof(int) * NUMBERS; i++)
            changed += canary[c][i] != 0x77;
        free(canary[c]);
    }
    check(changed == 0, "%d bytes of the user's changed after Reduce, mode %d, had returned an error", changed, mode);
}

static void errors(const char *parts)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* 5.0 reports errors of persistent requests there */
    for (int mode = 0; mode < 3 && in_list(parts, "bcast_error"); mode++)
        for (int unmap = 0; unmap < 2; unmap++)
            broken_bcast(mode, unmap);
    for (int round = 0; round < 6 && test_size > 2 && in_list(parts, "reduce_error"); round++)
        broken_reduce(round % 2);
    all_four(MPI_COMM_WORLD, 100, 0, "on MPI_COMM_WORLD after errors elsewhere");
}

int main(int argc, char **argv)
{
    const char *parts = option_text(argc, argv, "--parts", "all");
    stock = has_option(argc, argv, "--stock");
    /* Copying in one step would end large transfers too early for the last segment to fail before them. */
    int with_errors = in_list(parts, "bcast_error") || in_list(parts, "reduce_error");
    if (with_errors) {
        setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
        setenv("OMPI_MCA_smsc", "^cma,xpmem,knem", 1);
    }
    test_init(&argc, &argv, "identity", MPI_THREAD_SINGLE);
    int rounds = (int)option_number(argc, argv, "--rounds", 20), iterations = (int)option_number(argc, argv, "--iterations", 2000);
    uint64_t seed = (uint64_t)option_number(argc, argv, "--seed", 1);
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank, &reversed);
    for (int round = 0; round < rounds && in_list(parts, "idup"); round++) {
        idup(MPI_COMM_WORLD, round);
        idup(reversed, round);
    }
    if (in_list(parts, "few"))
        few(MPI_COMM_WORLD, iterations, seed);
    if (in_list(parts, "persistent")) {
        persistent(MPI_COMM_WORLD, iterations, seed);
        persistent(reversed, iterations / 4, seed + 1);
    }
    if (in_list(parts, "limit") && !stock)
        limit(reversed, seed);
    MPI_Comm_free(&reversed);
    if (with_errors && !stock && test_size > 1)
        errors(parts);
    return test_end();
}
