/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thousand outstanding nonblocking operations of all four kinds, completed in an order that differs from
 * rank to rank with Wait, Waitsome, Testsome and Testany, blocking operations in between.
 *
 *   --operations N   outstanding at once (default 1000)
 *   --rounds N       (default 3)
 *   --seed N
 */
#include "fourops.h"

static int pick_count(uint64_t h)
{
    return h % 40 == 0 ? 20000 : h % 7 == 0 ? 1500 : (int)(h % 64);
}

static void round_of(MPI_Comm comm, int operations, int number, uint64_t seed)
{
    struct work *works = calloc((size_t)operations, sizeof *works), between;
    MPI_Request *requests = calloc((size_t)operations, sizeof *requests);
    MPI_Request *some = calloc((size_t)operations, sizeof *some);
    int *map = calloc((size_t)operations, sizeof *map), *order = calloc((size_t)operations, sizeof *order);
    int *indices = calloc((size_t)operations, sizeof *indices);
    uint64_t mine = mix4(seed, 3, (uint64_t)test_rank, (uint64_t)number);
    int left = operations, next_between = operations * 3 / 4;
    for (int i = 0; i < operations; i++) {
        uint64_t h = mix4(seed, 4, (uint64_t)number, (uint64_t)i);
        doing("posting operation %d of %d, round %d", i, operations, number);
        work_make(&works[i], (enum operation)(h % 4), pick_count(h >> 8), (int)(h >> 40) % 64, comm);
        work_fill(&works[i], i);
        must(work_begin(&works[i], &requests[i]));
        if (i % 211 == 100) {
            work_make(&between, (enum operation)(i % 4), 300, i, comm);
            work_all(&between, i, "blocking while posting");
            work_free(&between);
        }
    }
    while (left) {
        /* A random part of those left, in a random order. */
        int n = 0, part, done = 0;
        for (int i = 0; i < operations; i++)
            if (requests[i] != MPI_REQUEST_NULL)
                map[n++] = i;
        permutation(&mine, order, n);
        part = 1 + (int)next_below(&mine, (unsigned)(n < 50 ? n : 50));
        for (int i = 0; i < part; i++)
            some[i] = requests[map[order[i]]];
        switch (next_below(&mine, 4)) {
        case 0:
            doing("round %d: Waitsome of %d, %d left", number, part, left);
            must(MPI_Waitsome(part, some, &done, indices, MPI_STATUSES_IGNORE));
            break;
        case 1:
            doing("round %d: Testsome of %d, %d left", number, part, left);
            must(MPI_Testsome(part, some, &done, indices, MPI_STATUSES_IGNORE));
            break;
        case 2:
            doing("round %d: Wait for operation %d (%s), %d left", number, map[order[0]], OPERATION_NAME[works[map[order[0]]].operation],
                  left);
            must(MPI_Wait(&some[0], MPI_STATUS_IGNORE));
            indices[0] = 0;
            done = 1;
            break;
        case 3:
            doing("round %d: Testany of %d, %d left", number, part, left);
            must(MPI_Testany(part, some, &indices[0], &done, MPI_STATUS_IGNORE));
            break;
        }
        check(done >= 0 && done <= part, "%d of %d requests completed", done, part);
        for (int d = 0; d < done; d++) {
            int i = map[order[indices[d]]];
            check(some[indices[d]] == MPI_REQUEST_NULL, "a completed request is not null");
            requests[i] = MPI_REQUEST_NULL;
            work_check(&works[i], i, "outstanding");
            work_free(&works[i]);
            left--;
        }
        /* Blocking operations at the same places of every rank's sequence of calls, but with other requests
         * complete. */
        while (left <= next_between && next_between > 0) {
            doing("round %d: blocking operation with %d left", number, left);
            work_make(&between, (enum operation)(next_between % 4), 700, next_between, comm);
            work_all(&between, next_between, "blocking while completing");
            work_free(&between);
            next_between -= operations / 8 + 1;
        }
    }
    free(works);
    free(requests);
    free(some);
    free(map);
    free(order);
    free(indices);
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "outstanding", MPI_THREAD_SINGLE);
    int operations = (int)option_number(argc, argv, "--operations", 1000);
    int rounds = (int)option_number(argc, argv, "--rounds", 3);
    uint64_t seed = (uint64_t)option_number(argc, argv, "--seed", 1);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm comm = MPI_COMM_WORLD;
        if (i % 2)
            MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank, &comm);
        round_of(comm, operations, i, seed);
        if (i % 2)
            MPI_Comm_free(&comm);
    }
    return test_end();
}
