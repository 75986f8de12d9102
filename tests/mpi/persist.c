/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent requests: restarted many times, started in an order that differs from rank to rank, with
 * blocking and nonblocking operations between them, with Startall, freed while inactive.
 *
 *   --iterations N   rounds of starts of all live requests (default 2000)
 *   --seed N
 */
#include "fourops.h"

enum { LIVE = 8 };

static void restart(MPI_Comm comm, int iterations, uint64_t seed)
{
    static const int COUNTS[LIVE] = {1, 3, 17, 0, 500, 1025, 2, 4096};
    struct work works[LIVE], between;
    MPI_Request requests[LIVE], other;
    uint64_t mine = mix4(seed, 1, (uint64_t)test_rank, 0); /* differs from rank to rank */
    int order[LIVE];
    for (int i = 0; i < LIVE; i++) {
        doing("init of request %d", i);
        work_make(&works[i], (enum operation)(i % 4), COUNTS[i], i, comm);
        must(work_init(&works[i], &requests[i]));
    }
    for (int s = 0; s < iterations; s++) {
        uint64_t common = mix4(seed, 2, (uint64_t)s, 0); /* the same on all ranks */
        doing("round %d of %d: %d live requests", s, iterations, LIVE);
        for (int i = 0; i < LIVE; i++)
            work_fill(&works[i], s);
        permutation(&mine, order, LIVE);
        if (common % 8 == 0) {
            MPI_Request shuffled[LIVE];
            for (int i = 0; i < LIVE; i++)
                shuffled[i] = requests[order[i]];
            must(MPI_Startall(LIVE, shuffled));
            must(MPI_Waitall(LIVE, shuffled, MPI_STATUSES_IGNORE));
        } else {
            for (int i = 0; i < LIVE; i++) {
                must(MPI_Start(&requests[order[i]]));
                if (i != LIVE / 2)
                    continue;
                /* In the middle of the starts, while other requests run on this rank than on the next. */
                if (common % 8 == 1) {
                    work_make(&between, (enum operation)(s / 8 % 4), 100, s, comm);
                    work_all(&between, s, "blocking between persistent");
                    work_free(&between);
                } else if (common % 8 == 2) {
                    work_make(&between, (enum operation)(s / 8 % 4), 2000, s, comm);
                    work_fill(&between, s);
                    must(work_begin(&between, &other));
                    must(MPI_Wait(&other, MPI_STATUS_IGNORE));
                    work_check(&between, s, "nonblocking between persistent");
                    work_free(&between);
                }
            }
            permutation(&mine, order, LIVE);
            for (int i = 0; i < LIVE; i++)
                must(MPI_Wait(&requests[order[i]], MPI_STATUS_IGNORE));
        }
        for (int i = 0; i < LIVE; i++) {
            work_check(&works[i], s, "persistent");
            check(requests[i] != MPI_REQUEST_NULL, "round %d: request %d became null", s, i);
        }
        /* An inactive one goes and comes back; init is collective, so all ranks choose the same. */
        if (common % 50 == 3) {
            int i = (int)(common / 50 % LIVE);
            doing("round %d: free and init of request %d", s, i);
            must(MPI_Request_free(&requests[i]));
            must(work_init(&works[i], &requests[i]));
        }
    }
    for (int i = 0; i < LIVE; i++) {
        doing("free of request %d", i);
        must(MPI_Request_free(&requests[i]));
        work_free(&works[i]);
    }
}

/* Requests that are never started, on a communicator that is freed before them. */
static void never_started(MPI_Comm comm)
{
    struct work works[4];
    MPI_Request requests[4];
    MPI_Comm dup;
    doing("requests that are never started");
    MPI_Comm_dup(comm, &dup);
    for (int i = 0; i < 4; i++) {
        work_make(&works[i], (enum operation)i, 10, i, dup);
        must(work_init(&works[i], &requests[i]));
    }
    for (int i = 3; i >= 0; i--) {
        must(MPI_Request_free(&requests[i]));
        work_free(&works[i]);
        check(requests[i] == MPI_REQUEST_NULL, "a freed request is not null");
    }
    all_four(dup, 50, 3, "after requests that were never started");
    MPI_Comm_free(&dup);
}

/* Waiting for, and testing, inactive requests returns at once. */
static void inactive(MPI_Comm comm)
{
    struct work w;
    MPI_Request request;
    MPI_Status status;
    int done = 0;
    doing("Wait and Test of an inactive request");
    work_make(&w, ALLREDUCE, 5, 0, comm);
    must(work_init(&w, &request));
    must(MPI_Wait(&request, &status));
    must(MPI_Test(&request, &done, &status));
    check(done, "Test of an inactive request says it is not complete");
    work_fill(&w, 9);
    must(MPI_Start(&request));
    must(MPI_Wait(&request, &status));
    work_check(&w, 9, "after Wait of an inactive request");
    must(MPI_Wait(&request, &status));
    must(MPI_Request_free(&request));
    work_free(&w);
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "persist", MPI_THREAD_SINGLE);
    int iterations = (int)option_number(argc, argv, "--iterations", 2000);
    uint64_t seed = (uint64_t)option_number(argc, argv, "--seed", 1);
    MPI_Comm reversed;
    inactive(MPI_COMM_WORLD);
    restart(MPI_COMM_WORLD, iterations, seed);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank, &reversed);
    restart(reversed, iterations / 10, seed + 1);
    never_started(reversed);
    MPI_Comm_free(&reversed);
    return test_end();
}
