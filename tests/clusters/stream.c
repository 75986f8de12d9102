/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of operations, in which something happens to the network between clusters.
 *
 *     stream <seconds> [--return | --until FILE]
 *
 * Blocking operations, nonblocking ones of which several are under way, and persistent ones; every result is
 * checked. Says "stream: begun" when all ranks have been through all of them once. Rank 0 decides when it is
 * over. Ends with the longest round, and "stream: N passed, M failed". With --return errors are returned: a
 * rank that has one says when, and ends the job. With --until it is over, too, as soon as there is such a
 * file.
 */
#include <mpi.h>
#if OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a short message, and of one that goes in pieces. */
enum { SHORT = 3, LONG = 40000, UNDER_WAY = 3 };

static int me, np;
static long passed, failed;
static double longest, begun;

static void check(int good, const char *what, int round)
{
    good ? passed++ : failed++;
    if (!good && failed < 5)
        printf("FAIL: %s, round %d, at rank %d\n", what, round, me);
}

/* What a call has returned. */
static void must(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    printf("stream: rank %d has an error of %s after %.1f s: %s\n", me, what, MPI_Wtime() - begun, text);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

/* What element `i` of a rank's vector is. */
static int64_t value(int rank, int round, int i) { return (int64_t)rank * 1000003 + (int64_t)round * 101 + i; }

static void fill(int64_t *vector, int count, int rank, int round)
{
    for (int i = 0; i < count; i++)
        vector[i] = value(rank, round, i);
}

static int is_from(const int64_t *vector, int count, int rank, int round)
{
    for (int i = 0; i < count; i++)
        if (vector[i] != value(rank, round, i))
            return 0;
    return 1;
}

static int is_sum(const int64_t *vector, int count, int round)
{
    for (int i = 0; i < count; i++)
        if (vector[i] != (int64_t)np * (np - 1) / 2 * 1000003 + np * ((int64_t)round * 101 + i))
            return 0;
    return 1;
}

static int64_t *vector(int count)
{
    int64_t *made = calloc((size_t)count, sizeof *made);
    if (!made)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return made;
}

static void blocking(int round, int64_t *in, int64_t *out)
{
    int root = round % np, count = round % 4 == 0 ? LONG : SHORT;
    fill(in, count, me, round);
    memcpy(out, in, (size_t)count * sizeof *out);
    must(MPI_Bcast(out, count, MPI_INT64_T, root, MPI_COMM_WORLD), "Bcast");
    check(is_from(out, count, root, round), "Bcast", round);
    must(MPI_Allreduce(in, out, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD), "Allreduce");
    check(is_sum(out, count, round), "Allreduce", round);
    must(MPI_Gather(in, SHORT, MPI_INT64_T, out, SHORT, MPI_INT64_T, root, MPI_COMM_WORLD), "Gather");
    for (int r = 0; me == root && r < np; r++)
        check(is_from(out + r * SHORT, SHORT, r, round), "Gather", round);
    for (int r = 0; r < np; r++)
        fill(in + r * SHORT, SHORT, me * np + r, round);
    must(MPI_Alltoall(in, SHORT, MPI_INT64_T, out, SHORT, MPI_INT64_T, MPI_COMM_WORLD), "Alltoall");
    for (int r = 0; r < np; r++)
        check(is_from(out + r * SHORT, SHORT, r * np + me, round), "Alltoall", round);
    must(MPI_Barrier(MPI_COMM_WORLD), "Barrier");
}

static void nonblocking(int round, int64_t *in, int64_t *out)
{
    MPI_Request under_way[UNDER_WAY];
    fill(in, SHORT, me, round);
    for (int i = 0; i < UNDER_WAY; i++)
        must(MPI_Iallreduce(in, out + i * SHORT, SHORT, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &under_way[i]), "Iallreduce");
    must(MPI_Waitall(UNDER_WAY, under_way, MPI_STATUSES_IGNORE), "Waitall");
    for (int i = 0; i < UNDER_WAY; i++)
        check(is_sum(out + i * SHORT, SHORT, round), "Iallreduce", round);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    begun = MPI_Wtime();
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    const char *until = argc > 3 && strcmp(argv[2], "--until") == 0 ? argv[3] : NULL;
    if (argc > 2 && strcmp(argv[2], "--return") == 0)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int room = np * SHORT > LONG ? np * SHORT : LONG, over = 0;
    int64_t *in = vector(room), *out = vector(room), kept[SHORT], sum[SHORT];
    MPI_Request persistent;
    must(MPI_Allreduce_init(kept, sum, SHORT, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent),
         "Allreduce_init");
    for (int round = 0; !over; round++) {
        double before = MPI_Wtime();
        blocking(round, in, out);
        nonblocking(round, in, out);
        fill(kept, SHORT, me, round);
        must(MPI_Start(&persistent), "Start");
        must(MPI_Wait(&persistent, MPI_STATUS_IGNORE), "Wait");
        check(is_sum(sum, SHORT, round), "persistent Allreduce", round);
        over = MPI_Wtime() - begun > seconds || (until && access(until, F_OK) == 0);
        must(MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD), "Bcast");
        if (me == 0 && round == 0) {
            printf("stream: begun\n");
            fflush(stdout);
        }
        double took = MPI_Wtime() - before;
        longest = took > longest ? took : longest;
    }
    MPI_Request_free(&persistent);
    long counts[2] = {passed, failed}, sums[2];
    MPI_Allreduce(counts, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0)
        printf("stream: the longest round took %.2f s\nstream: %ld passed, %ld failed\n", longest, sums[0], sums[1]);
    free(in);
    free(out);
    MPI_Finalize();
    return sums[1] != 0;
}
