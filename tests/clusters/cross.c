/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations whose messages between clusters are counted: from and to every rank, each several times.
 *
 *     cross <times>
 *
 * Ends with "cross: N passed, M failed", of results; the counters tell the rest.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int me, np, passed, failed;

static void check(int good, const char *what, int root)
{
    good ? passed++ : failed++;
    if (!good)
        printf("FAIL: %s, root %d, at rank %d\n", what, root, me);
}

/* Composition of affine maps modulo a prime: associative, not commutative. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const uint32_t *f = in;
    uint32_t *g = inout;
    (void)type;
    for (int i = 0; i < *count; i++, f += 2, g += 2) { /* first f, then g */
        uint64_t a = (uint64_t)f[0] * g[0] % 65521, b = ((uint64_t)f[1] * g[0] + g[1]) % 65521;
        g[0] = (uint32_t)a;
        g[1] = (uint32_t)b;
    }
}

/* What the ranks up to `last` make together. */
static void fold(int last, uint32_t out[2])
{
    int one = 1;
    for (int r = 0; r <= last; r++) {
        uint32_t f[2] = {out[0], out[1]};
        uint32_t g[2] = {(uint32_t)r + 2, (uint32_t)r * r + 1};
        if (r > 0)
            compose(f, g, &one, NULL);
        out[0] = g[0];
        out[1] = g[1];
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    int times = argc > 1 ? atoi(argv[1]) : 1;
    int64_t *all = malloc(np * sizeof *all), *from = malloc(np * sizeof *from);
    MPI_Datatype map;
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_UINT32_T, &map);
    MPI_Type_commit(&map);
    MPI_Op_create(compose, 0, &op);
    uint32_t expected[2], upto[2];
    fold(np - 1, expected);
    fold(me, upto);
    for (int i = 0; i < times; i++) {
        for (int root = 0; root < np; root++) {
            int64_t value = me == root ? 7 * root + i : -1, sum = me + 1, total = -1;
            MPI_Bcast(&value, 1, MPI_INT64_T, root, MPI_COMM_WORLD);
            check(value == 7 * root + i, "Bcast", root);
            MPI_Reduce(&sum, &total, 1, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD);
            check(me != root || total == (int64_t)np * (np + 1) / 2, "Reduce", root);
            value = 100 * me + root;
            MPI_Gather(&value, 1, MPI_INT64_T, all, 1, MPI_INT64_T, root, MPI_COMM_WORLD);
            for (int r = 0; r < np && me == root; r++)
                check(all[r] == 100 * r + root, "Gather", root);
            for (int r = 0; r < np; r++)
                all[r] = 100 * r + root;
            MPI_Scatter(all, 1, MPI_INT64_T, &value, 1, MPI_INT64_T, root, MPI_COMM_WORLD);
            check(value == 100 * me + root, "Scatter", root);
            uint32_t mine[2] = {(uint32_t)me + 2, (uint32_t)me * me + 1}, out[2] = {0, 0};
            MPI_Request request;
            MPI_Ireduce(mine, out, 1, map, op, root, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check(me != root || (out[0] == expected[0] && out[1] == expected[1]), "Ireduce in order", root);
        }
        int64_t value = me + i, sum = -1;
        MPI_Allreduce(&value, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        check(sum == (int64_t)np * (np - 1) / 2 + (int64_t)np * i, "Allreduce", -1);
        for (int r = 0; r < np; r++)
            all[r] = 1000 * me + r;
        MPI_Alltoall(all, 1, MPI_INT64_T, from, 1, MPI_INT64_T, MPI_COMM_WORLD);
        for (int r = 0; r < np; r++)
            check(from[r] == 1000 * r + me, "Alltoall", r);
        uint32_t mine[2] = {(uint32_t)me + 2, (uint32_t)me * me + 1}, out[2] = {0, 0};
        MPI_Scan(mine, out, 1, map, op, MPI_COMM_WORLD);
        check(out[0] == upto[0] && out[1] == upto[1], "Scan", -1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&map);
    int counts[2] = {passed, failed}, sums[2];
    MPI_Allreduce(counts, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0)
        printf("cross: %d passed, %d failed\n", sums[0], sums[1]);
    MPI_Finalize();
    return sums[1] != 0;
}
