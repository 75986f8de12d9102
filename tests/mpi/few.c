/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program as many are: it reduces a few numbers; with "more", it also does short ones of the other usual
 * operations, and makes communicators. Prints the resident memory of its first rank, in KiB, as it is then.
 *
 *   few [more]
 */
#include <mpi.h>
#include <stdio.h>

static long resident(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kib = -1;

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "Rss: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

static void more(MPI_Comm comm, int size)
{
    enum { most = 64 };
    int from[most] = { 0 }, to[most];

    MPI_Bcast(from, 2, MPI_INT, 0, comm);
    MPI_Reduce(from, to, 2, MPI_INT, MPI_SUM, 0, comm);
    MPI_Gather(from, 1, MPI_INT, to, 1, MPI_INT, 0, comm);
    MPI_Scatter(from, 1, MPI_INT, to, 1, MPI_INT, 0, comm);
    MPI_Allgather(from, 1, MPI_INT, to, 1, MPI_INT, comm);
    if (size <= most)
        MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm);
    MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    MPI_Comm half;
    double sum, one = 1;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 100; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 1) {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        for (int i = 0; i < 8; i++)
            more(MPI_COMM_WORLD, size);
        MPI_Comm_free(&half);
    }
    if (rank == 0)
        printf("resident %ld KiB\n", resident());
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return sum == size ? 0 : 1;
}
