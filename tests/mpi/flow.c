/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control: how far ranks may run ahead of one that is late. The last rank sleeps; meanwhile the root of
 * a stream of small Bcasts, and the other ranks of a stream of Reduces to the sleeper, go on until something
 * makes them wait.
 *
 *   --limit N   coll_rust_flow_limit of the job (default 64); 0: only the transport makes them wait, later
 *   than at 64 calls
 */
#include "harness.h"
#include <unistd.h>

enum { CALLS = 2000 };

/* How many calls of the stream are over before the late rank wakes. */
static int ahead(MPI_Comm comm, int reduce)
{
    int data[2] = {1, 1}, sum[2], n = 0, late = test_size - 1;
    MPI_Barrier(comm);
    double wakes = seconds_now() + 1.0;
    if (test_rank == late)
        usleep(1100000);
    for (int i = 0; i < CALLS; i++) {
        if (reduce)
            must(MPI_Reduce(data, sum, 2, MPI_INT, MPI_SUM, late, comm));
        else
            must(MPI_Bcast(data, 2, MPI_INT, 0, comm));
        if (seconds_now() < wakes)
            n = i + 1;
    }
    MPI_Barrier(comm);
    return n;
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "flow", MPI_THREAD_SINGLE);
    int limit = (int)option_number(argc, argv, "--limit", 64);
    for (int reduce = 0; reduce < 2; reduce++) {
        MPI_Comm comm;
        must(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        doing("%s while the last rank sleeps", reduce ? "Reduce" : "Bcast");
        int n = ahead(comm, reduce);
        int runs = reduce ? test_rank != test_size - 1 : test_rank == 0;
        if (runs && limit > 0)
            check(n <= limit, "%d calls were over before the late rank came, with a limit of %d", n, limit);
        if (runs && limit == 0)
            check(n > 64, "only %d of %d calls were over without a limit: then the other runs prove nothing", n, CALLS);
        MPI_Comm_free(&comm);
    }
    return test_end();
}
