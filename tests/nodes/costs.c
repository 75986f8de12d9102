/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a message costs between the two ranks of a job, and what a copy: the constants of src/select/cost.rs.
 *
 *     costs        two ranks, on one node or on two
 *
 * "way": half of a round trip of 8 bytes. "message": a process' own time for one of many messages of 64 bytes
 * that it sends and one that it receives meanwhile, as in an exchange. "rate": of messages of 1 MiB, one way,
 * in bytes per nanosecond; "copy": of a copy of 64 KiB within a process. Medians over repetitions, on plain
 * point-to-point messages.
 */
#include "nodes.h"

#define TIMES 101
#define MANY 64

static char out[MANY][64], in[MANY][64];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds of one round trip of `bytes` each way. */
static double round_trip(char *buffer, int bytes, int back)
{
    int64_t start = now_ns();
    if (me == 0) {
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer, back, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, back, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
    return (double)(now_ns() - start);
}

/* Nanoseconds of MANY messages each way at a time, for each of them. */
static double exchange(void)
{
    MPI_Request requests[2 * MANY];
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t start = now_ns();
    for (int i = 0; i < MANY; i++)
        MPI_Irecv(in[i], sizeof in[i], MPI_BYTE, 1 - me, 2, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < MANY; i++)
        MPI_Isend(out[i], sizeof out[i], MPI_BYTE, 1 - me, 2, MPI_COMM_WORLD, &requests[MANY + i]);
    MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
    return (double)(now_ns() - start) / MANY;
}

static double median(double *times)
{
    qsort(times, TIMES, sizeof *times, compare);
    return times[TIMES / 2];
}

int main(int argc, char **argv)
{
    enum { LARGE = 1 << 20, COPY = 64 << 10 };
    double way[TIMES], message[TIMES], large[TIMES], copied[TIMES];
    char *buffer = calloc(2, LARGE), name[256];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    if (np != 2 || !buffer)
        die("usage: costs, with two ranks");
    for (int i = -20; i < TIMES; i++) { /* the first ones warm up */
        int at = i < 0 ? 0 : i;
        way[at] = round_trip(buffer, 8, 8) / 2;
        message[at] = exchange();
        large[at] = round_trip(buffer, LARGE, 8);
        buffer[COPY / 2] = (char)i;
        int64_t start = now_ns();
        memcpy(buffer + LARGE, buffer, COPY);
        copied[at] = (double)(now_ns() - start);
        if (buffer[LARGE + COPY / 2] != (char)i)
            die("a copy that is none");
    }
    gethostname(name, sizeof name);
    if (me == 0)
        printf("from %s: way %.0f ns, message %.0f ns, rate %.2f bytes/ns, copy %.1f bytes/ns\n", name, median(way), median(message),
               LARGE / (median(large) - median(way)), COPY / median(copied));
    free(buffer);
    MPI_Finalize();
    return 0;
}
