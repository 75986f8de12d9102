/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 2-D wave equation by explicit steps, rows of the grid dealt out to the ranks, with two collectives in
 * each step: the neighbours' rows, and the energy of the whole grid. With --mode nonblocking the inner rows
 * are computed while these are under way; the energy is that of the step before then.
 *
 *     mpicc -O3 -o wave2d examples/wave2d.c -lm
 *     mpiexec -n 8 ./wave2d --size 2000 --steps 200
 *
 *   --size N           rows and columns of the grid (default: 1000)
 *   --steps N          steps (default: 100)
 *   --mode MODE        blocking, nonblocking, or both (default), which compares their grids
 *
 * All messages are collectives' own: so it runs over clusters that reach each other by gateways only
 * (docs/guide/clusters.md).
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TESTS = 16 }; /* looks at what is under way, in a step */

static int rank, ranks, size = 1000, steps = 100, rows, first;
static MPI_Comm line;

struct grid {
    double *before, *now; /* rows + 2, of which the outer ones are the neighbours' */
    double *out, *in;     /* two rows each: for and from the rank above, and the one below */
};

struct result {
    double seconds, energy, sum;
};

static double *row(double *of, int number)
{
    return of + (size_t)(number + 1) * (size_t)size;
}

static struct grid start(void)
{
    size_t cells = (size_t)(rows + 2) * (size_t)size;
    struct grid g = {calloc(cells, 8), calloc(cells, 8), calloc(2 * (size_t)size, 8), calloc(2 * (size_t)size, 8)};
    if (!g.before || !g.now || !g.out || !g.in)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < size; c++) {
            double y = (first + r - size / 3.0) / size, x = (c - size / 2.0) / size;
            row(g.now, r)[c] = row(g.before, r)[c] = exp(-200 * (x * x + y * y));
        }
    return g;
}

/* One step of rows [from, to), into the place of those of the step before; returns their kinetic energy. */
static double step(struct grid *g, int from, int to)
{
    const double speed = 0.25;
    double energy = 0;
    for (int r = from; r < to; r++) {
        const double *up = row(g->now, r - 1), *here = row(g->now, r), *down = row(g->now, r + 1);
        double *next = row(g->before, r);
        for (int c = 1; c < size - 1; c++) {
            double value = 2 * here[c] - next[c] + speed * (up[c] + down[c] + here[c - 1] + here[c + 1] - 4 * here[c]);
            energy += (value - here[c]) * (value - here[c]);
            next[c] = value;
        }
    }
    return energy;
}

/* The edges of the grid stay as they are. */
static int from_row(void) { return first == 0 ? 1 : 0; }
static int to_row(void) { return first + rows == size ? rows - 1 : rows; }

static void pack(struct grid *g)
{
    memcpy(g->out, row(g->now, 0), (size_t)size * 8);
    memcpy(g->out + size, row(g->now, rows - 1), (size_t)size * 8);
}

static void unpack(struct grid *g)
{
    memcpy(row(g->now, -1), g->in, (size_t)size * 8);
    memcpy(row(g->now, rows), g->in + size, (size_t)size * 8);
}

static void swap(struct grid *g)
{
    double *t = g->now;
    g->now = g->before;
    g->before = t;
}

static double blocking(struct grid *g)
{
    double mine, all = 0;
    for (int s = 0; s < steps; s++) {
        pack(g);
        MPI_Neighbor_alltoall(g->out, size, MPI_DOUBLE, g->in, size, MPI_DOUBLE, line);
        unpack(g);
        mine = step(g, from_row(), to_row());
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, line);
        swap(g);
    }
    return all;
}

static double nonblocking(struct grid *g)
{
    double sent = 0, all = 0;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}; /* the rows, and the energy */
    for (int s = 0; s < steps; s++) {
        int done, from = from_row(), to = to_row(), inner = from > 1 ? from : 1, end = to < rows - 1 ? to : rows - 1;
        double mine = 0;
        pack(g);
        MPI_Ineighbor_alltoall(g->out, size, MPI_DOUBLE, g->in, size, MPI_DOUBLE, line, &requests[0]);
        for (int part = 0, at = inner; part < TESTS; part++) {
            int upto = inner + (int)((long)(end - inner) * (part + 1) / TESTS);
            if (upto > at) {
                mine += step(g, at, upto);
                at = upto;
            }
            MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        unpack(g);
        if (from < inner)
            mine += step(g, from, inner < to ? inner : to);
        if (end < to && end >= inner)
            mine += step(g, end, to);
        sent = mine;
        MPI_Iallreduce(&sent, &all, 1, MPI_DOUBLE, MPI_SUM, line, &requests[1]);
        swap(g);
    }
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    return all;
}

static struct result run(double (*mode)(struct grid *))
{
    struct grid g = start();
    struct result result = {0};
    double sum = 0;
    MPI_Barrier(line);
    result.seconds = MPI_Wtime();
    result.energy = mode(&g);
    MPI_Barrier(line);
    result.seconds = MPI_Wtime() - result.seconds;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < size; c++)
            sum += fabs(row(g.now, r)[c]) * ((first + r) % 97 + c % 89 + 1);
    MPI_Allreduce(&sum, &result.sum, 1, MPI_DOUBLE, MPI_SUM, line);
    free(g.before);
    free(g.now);
    free(g.out);
    free(g.in);
    return result;
}

int main(int argc, char **argv)
{
    const char *mode = "both";
    int periodic = 0, failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--size") == 0)
            size = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--steps") == 0)
            steps = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--mode") == 0)
            mode = argv[i + 1];
    }
    if (size < 3 || size / ranks < 2 || steps < 1) {
        if (rank == 0)
            fprintf(stderr, "wave2d: each rank needs two rows at least, and there is a step\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    first = (int)((long)size * rank / ranks);
    rows = (int)((long)size * (rank + 1) / ranks) - first;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &line);
    const char *names[] = {"blocking", "nonblocking"};
    double (*modes[])(struct grid *) = {blocking, nonblocking};
    struct result results[2] = {{0}};
    for (int m = 0; m < 2; m++) {
        if (strcmp(mode, "both") != 0 && strcmp(mode, names[m]) != 0)
            continue;
        results[m] = run(modes[m]);
        if (rank == 0)
            printf("wave2d: %-11s %8.3f ms a step, energy %.12g, sum %.12g\n", names[m], results[m].seconds * 1e3 / steps,
                   results[m].energy, results[m].sum);
    }
    if (strcmp(mode, "both") == 0) {
        /* The grids are the same, bit by bit; sums of energies are made of other parts. */
        failed = results[0].sum != results[1].sum || fabs(results[0].energy / results[1].energy - 1) > 1e-9;
        if (rank == 0)
            printf("wave2d: nonblocking takes %.2f of the time of blocking; %s\n", results[1].seconds / results[0].seconds,
                   failed ? "FAILED: the results differ" : "the results are the same");
    }
    MPI_Comm_free(&line);
    MPI_Finalize();
    return failed;
}
