/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: each of four threads per rank on its own communicator, blocking and nonblocking
 * operations of the four kinds.
 *
 *   --iterations N   per thread (default 300)
 *   --threads N      (default 4)
 */
#include "fourops.h"

enum { MOST_THREADS = 8, IN_FLIGHT = 4 };

struct job {
    int number, iterations;
    MPI_Comm comm;
};

static void *hammer(void *argument)
{
    const struct job *job = argument;
    test_slot = 1 + job->number;
    for (int s = 0; s < job->iterations; s++) {
        uint64_t h = mix4((uint64_t)job->number, (uint64_t)s, 0, 5);
        int count = h % 20 == 0 ? 30000 : (int)((h >> 8) % 600);
        struct work works[IN_FLIGHT];
        MPI_Request requests[IN_FLIGHT];
        doing("thread %d, iteration %d of %d, count=%d", job->number, s, job->iterations, count);
        for (int i = 0; i < IN_FLIGHT; i++) {
            work_make(&works[i], (enum operation)((s + i) % 4), count, (int)((h >> 32) % 16) + i, job->comm);
            work_fill(&works[i], s + i);
            if (i == 2)
                must(work_do(&works[i]));
            else
                must(work_begin(&works[i], &requests[i]));
        }
        requests[2] = MPI_REQUEST_NULL;
        if (h >> 60 & 1) {
            must(MPI_Waitall(IN_FLIGHT, requests, MPI_STATUSES_IGNORE));
        } else {
            int done = 0;
            while (!done)
                must(MPI_Testall(IN_FLIGHT, requests, &done, MPI_STATUSES_IGNORE));
        }
        for (int i = 0; i < IN_FLIGHT; i++) {
            work_check(&works[i], s + i, i == 2 ? "blocking" : "nonblocking");
            work_free(&works[i]);
        }
    }
    test_doing[test_slot][0] = '\0';
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST_THREADS];
    struct job jobs[MOST_THREADS];
    test_init(&argc, &argv, "threads", MPI_THREAD_MULTIPLE);
    int iterations = (int)option_number(argc, argv, "--iterations", 300);
    int n = (int)option_number(argc, argv, "--threads", 4);
    if (n > MOST_THREADS)
        n = MOST_THREADS;
    for (int i = 0; i < n; i++) {
        doing("making the communicator of thread %d", i);
        jobs[i] = (struct job){i, iterations, MPI_COMM_NULL};
        MPI_Comm_dup(MPI_COMM_WORLD, &jobs[i].comm);
    }
    doing("%d threads", n);
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, hammer, &jobs[i]);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++)
        MPI_Comm_free(&jobs[i].comm);
    return test_end();
}
