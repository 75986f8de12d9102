/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a neighbour exchange of small blocks takes on a torus whose columns are nodes.
 *
 *     torus <variants> <repetitions>
 *
 * The variants (names of coll components) take turns in one job, a batch of calls each; the table gives the
 * medians over the batches of the time per call of the last rank. The floor is one message between nodes for
 * each pair of neighbouring nodes, each way, sent by one rank of each, and no other communication: what a
 * bundle costs without being put together. Wrong data end the job; times have no verdict, since where ranks
 * share cores they say more about turns on the cores than about messages.
 */
#include "nodes.h"

#define BLOCK 64
#define BATCH 50

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static unsigned char number(int rank, int slot, int byte, int turn)
{
    return (unsigned char)(rank * 31 + slot * 7 + byte + turn * 13);
}

static void verify(MPI_Comm torus)
{
    unsigned char out[4][BLOCK], in[4][BLOCK];
    int peer[4];
    MPI_Cart_shift(torus, 0, 1, &peer[0], &peer[1]);
    MPI_Cart_shift(torus, 1, 1, &peer[2], &peer[3]);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Request request = MPI_REQUEST_NULL;
        for (int slot = 0; slot < 4; slot++)
            for (int b = 0; b < BLOCK; b++)
                out[slot][b] = number(me, slot, b, turn);
        memset(in, 0, sizeof in);
        MPI_Neighbor_alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, torus);
        for (int slot = 0; slot < 4; slot++)
            for (int b = 0; b < BLOCK; b++)
                if (in[slot][b] != number(peer[slot], slot ^ 1, b, turn))
                    die("wrong data of Neighbor_alltoall");
        memset(in, 0, sizeof in);
        MPI_Ineighbor_allgather(out[0], BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, torus, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int slot = 0; slot < 4; slot++)
            for (int b = 0; b < BLOCK; b++)
                if (in[slot][b] != number(peer[slot], 0, b, turn))
                    die("wrong data of Ineighbor_allgather");
    }
}

/* Seconds per call, of the last rank. */
static double batch(MPI_Comm torus, int nodes, MPI_Comm sync)
{
    static char out[64 * BLOCK], in[64 * BLOCK];
    int column = me % nodes, row = me / nodes, left = (column + nodes - 1) % nodes, right = (column + 1) % nodes;
    int bytes = np / nodes * BLOCK;
    MPI_Barrier(sync);
    int64_t start = now_ns();
    for (int i = 0; i < BATCH; i++) {
        if (torus != MPI_COMM_NULL) {
            MPI_Neighbor_alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, torus);
        } else if (row == 0) {
            MPI_Request r[4];
            MPI_Irecv(in, bytes, MPI_BYTE, left, 1, sync, &r[0]);
            MPI_Irecv(in + bytes, bytes, MPI_BYTE, right, 2, sync, &r[1]);
            MPI_Isend(out, bytes, MPI_BYTE, right, 1, sync, &r[2]);
            MPI_Isend(out + bytes, bytes, MPI_BYTE, left, 2, sync, &r[3]);
            MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        }
    }
    double time = (double)(now_ns() - start) * 1e-9 / BATCH, most;
    MPI_Allreduce(&time, &most, 1, MPI_DOUBLE, MPI_MAX, sync);
    return most;
}

int main(int argc, char **argv)
{
    enum { NODES = 4, MOST = 101 };
    char *variant[MAX_VARIANTS];
    MPI_Comm torus[MAX_VARIANTS + 1], sync, model;
    double time[MAX_VARIANTS + 1][MOST], best = 0;
    int ours = -1, passed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    if (argc != 3 || np % NODES || np / NODES > 16)
        die("usage: torus <variants> <repetitions>, with 4 to 64 ranks on 4 nodes");
    int variants = split_list(argv[1], variant, MAX_VARIANTS), n = atoi(argv[2]);
    n = n < 1 ? 1 : n > MOST ? MOST : n;
    sync = comm_of("tuned");
    MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){np / NODES, NODES}, (int[]){1, 1}, 0, &model); /* columns are nodes */
    for (int v = 0; v < variants; v++) {
        torus[v] = comm_like(model, variant[v]);
        verify(torus[v]);
        passed++;
        if (!strcmp(variant[v], "rust"))
            ours = v;
    }
    torus[variants] = MPI_COMM_NULL;
    for (int i = -1; i < n; i++) /* the first round warms up */
        for (int k = 0; k <= variants; k++) {
            int v = (i + 1 + k) % (variants + 1);
            double t = batch(torus[v], NODES, sync);
            if (i >= 0)
                time[v][i] = t;
        }
    if (me == 0) {
        printf("| operation | block |");
        for (int v = 0; v < variants; v++)
            printf(" %s µs |", variant[v]);
        printf(" floor µs |%s\n|---|---|", ours < 0 || variants < 2 ? "" : " rust/best other |");
        for (int v = 0; v < variants; v++)
            printf("---|");
        printf("---|%s\n| Neighbor_alltoall | %d |", ours < 0 || variants < 2 ? "" : "---|", BLOCK);
        for (int v = 0; v <= variants; v++) {
            qsort(time[v], (size_t)n, sizeof(double), compare);
            if (v != ours && v < variants && (best == 0 || time[v][n / 2] < best))
                best = time[v][n / 2];
            printf(" %.1f |", time[v][n / 2] * 1e6);
        }
        if (ours >= 0 && best > 0)
            printf(" %.2f |", time[ours][n / 2] / best);
        printf("\n\ntorus: %d passed, 0 failed\n", passed);
    }
    MPI_Finalize();
    return 0;
}
