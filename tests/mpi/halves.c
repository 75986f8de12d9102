/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two halves of a job: the lower one has rank 0, which writes the placement store of the node, and which is
 * killed (COLL_RUST_TEST_STORE_KILL, or --late: when all have the store). The upper half goes on.
 *
 *   halves [--late]
 *
 * For a runtime that leaves the other ranks alive (mpiexec --enable-recovery). Those of the lower half, which
 * wait for the dead one, end after a while.
 */
#include "harness.h"
#include <signal.h>
#include <unistd.h>

enum { WAIT_US = 400000, LEFT_S = 3, CALLS = 20 };

static void end(int signal)
{
    (void)signal;
    _exit(0);
}

static void sums(MPI_Comm comm)
{
    int size, sum;
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < CALLS; i++) {
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm);
        check(sum == size * i, "Allreduce got %d, expected %d", sum, size * i);
    }
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "halves", MPI_THREAD_SINGLE);
    int upper = test_rank >= test_size / 2, late = has_option(argc, argv, "--late");
    MPI_Comm half, again;
    signal(SIGALRM, end);
    alarm(LEFT_S);
    /* By messages: so nobody has looked for a placement before the halves do. */
    MPI_Group world, mine;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int first = upper ? test_size / 2 : 0, last = upper ? test_size - 1 : test_size / 2 - 1;
    MPI_Group_range_incl(world, 1, (int[1][3]){{first, last, 1}}, &mine);
    MPI_Comm_create_group(MPI_COMM_WORLD, mine, 0, &half);
    if (late)
        sums(MPI_COMM_WORLD);
    if (!upper) {
        if (late && test_rank == 0) {
            fprintf(stderr, "halves: rank 0 kills itself\n");
            raise(SIGKILL);
        }
        sums(half);
        pause();
    }
    usleep(WAIT_US);
    sums(half);
    MPI_Comm_dup(half, &again);
    sums(again);
    if (test_failed == 0)
        fprintf(stderr, "halves: rank %d of %d went on\n", test_rank, test_size);
    _exit(0);
}
