/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What operations cost over a long link: time, and what passes by the uplinks.
 *
 *     link <counters> <repetitions>
 *
 * The nodes of these tests share one clock: each operation begins at the same instant on all ranks, and ends
 * with the last one. Counters: a file in the format of /proc/net/dev with the uplinks up0, up1, ... of the
 * clusters. Prints one line for each operation: its name, the bytes of a rank, milliseconds (the least, and
 * the median), frames and KiB that leave clusters, acknowledgements of TCP among them. Ends with "link: N
 * passed, M failed".
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LONG (1 << 20)
#define MOST 64

static int me, np, passed, failed;
static int64_t *in, *out;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double when)
{
    struct timespec t = {.tv_sec = (time_t)when, .tv_nsec = (long)((when - (double)(time_t)when) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void bcast(int n) { MPI_Bcast(in, n, MPI_INT64_T, 0, MPI_COMM_WORLD); }
static void reduce(int n) { MPI_Reduce(in, out, n, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD); }
static void allreduce(int n) { MPI_Allreduce(in, out, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD); }
static void gather(int n) { MPI_Gather(in, n, MPI_INT64_T, out, n, MPI_INT64_T, 0, MPI_COMM_WORLD); }
static void scatter(int n) { MPI_Scatter(in, n, MPI_INT64_T, out, n, MPI_INT64_T, 0, MPI_COMM_WORLD); }
static void allgather(int n) { MPI_Allgather(in, n, MPI_INT64_T, out, n, MPI_INT64_T, MPI_COMM_WORLD); }
static void alltoall(int n) { MPI_Alltoall(in, n, MPI_INT64_T, out, n, MPI_INT64_T, MPI_COMM_WORLD); }
static void spread(int n) { MPI_Reduce_scatter_block(in, out, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD); }
static void scan(int n) { MPI_Scan(in, out, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD); }
static void barrier(int n)
{
    (void)n;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Bytes and frames that have left by the uplinks. */
struct crossed {
    double bytes, frames;
};

static struct crossed read_uplinks(const char *path)
{
    char line[512];
    struct crossed sum = {0, 0};
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        double bytes, frames;
        int end;
        /* What the switch hands to its uplink. */
        if (sscanf(line, " up%d: %*f %*f %*f %*f %*f %*f %*f %*f %lf %lf", &end, &bytes, &frames) == 3) {
            sum.bytes += bytes;
            sum.frames += frames;
        }
    }
    if (file)
        fclose(file);
    return sum;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, void (*run)(int), size_t bytes, const char *counters, int repetitions)
{
    double took[MOST], start = now() + 0.3;
    struct crossed before, after;
    int count = (int)(bytes / sizeof *in);
    repetitions = bytes < LONG ? repetitions : (repetitions + 1) / 2;
    for (int i = 0; i < (int)(LONG / sizeof *in); i++)
        in[i] = me + i;
    run(count); /* connections, and what is set up at first */
    MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    start = start > now() + 0.3 ? start : now() + 0.3;
    MPI_Allreduce(MPI_IN_PLACE, &start, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    sleep_until(start - 0.05);
    before = read_uplinks(counters);
    for (int i = 0; i < repetitions; i++, start += bytes < LONG ? 0.4 : 2) {
        sleep_until(start);
        double begun = now();
        /* Late: the machine was busy. It counts all the same. */
        begun = begun > start ? start : begun;
        run(count);
        took[i] = now() - begun;
    }
    sleep_until(start);
    after = read_uplinks(counters);
    MPI_Allreduce(MPI_IN_PLACE, took, repetitions, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(took, (size_t)repetitions, sizeof *took, by_value);
    if (me == 0)
        printf("%-22s %8zu %9.1f %9.1f %9.1f %10.1f\n", name, bytes, 1e3 * took[0], 1e3 * took[repetitions / 2],
               (after.frames - before.frames) / repetitions, (after.bytes - before.bytes) / repetitions / 1024);
    fflush(stdout);
    if (run == allreduce)
        for (int i = 0; i < count; i++)
            out[i] == (int64_t)np * (np - 1) / 2 + (int64_t)np * i ? passed++ : failed++;
    if (run == bcast)
        for (int i = 0; i < count; i++)
            in[i] == i ? passed++ : failed++;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    int repetitions = argc == 3 ? atoi(argv[2]) : 0;
    if (repetitions < 1 || repetitions > MOST) {
        fprintf(stderr, "link: <counters> <repetitions, at most %d>\n", MOST);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    in = calloc(LONG, (size_t)np);
    out = calloc(LONG, (size_t)np);
    measure("Barrier", barrier, 0, argv[1], repetitions);
    measure("Bcast", bcast, 8, argv[1], repetitions);
    measure("Bcast", bcast, LONG, argv[1], repetitions);
    measure("Reduce", reduce, 8, argv[1], repetitions);
    measure("Allreduce", allreduce, 8, argv[1], repetitions);
    measure("Allreduce", allreduce, LONG, argv[1], repetitions);
    measure("Gather", gather, 1024, argv[1], repetitions);
    measure("Scatter", scatter, 1024, argv[1], repetitions);
    measure("Allgather", allgather, 1024, argv[1], repetitions);
    measure("Alltoall", alltoall, 1024, argv[1], repetitions);
    measure("Reduce_scatter_block", spread, 1024, argv[1], repetitions);
    measure("Scan", scan, 8, argv[1], repetitions);
    int counts[2] = {passed, failed}, sums[2];
    MPI_Allreduce(counts, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0)
        printf("link: %d passed, %d failed\n", sums[0], sums[1]);
    free(in);
    free(out);
    MPI_Finalize();
    return sums[1] != 0;
}
