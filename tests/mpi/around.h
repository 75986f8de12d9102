/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communicators of neighbor.c: grids, graphs, distributed graphs; and what every rank must know of them
 * to say what goes where.
 */
#ifndef COLL_RUST_TESTS_AROUND_H
#define COLL_RUST_TESTS_AROUND_H

#include "harness.h"

/* MPI_UNWEIGHTED is the address of no array. */
#pragma GCC diagnostic ignored "-Wstringop-overread"

enum { MOST_DEGREE = 32, MOST_MEMBERS = 12 };

static uint64_t seed = 1;

/* A communicator with a topology, and everybody's lists. */
struct around {
    char name[64];
    MPI_Comm comm, reference;
    int rank, size, cart, short_period;
    int in_degree, out_degree, sources[MOST_DEGREE];
    int degrees[MOST_MEMBERS], destinations[MOST_MEMBERS][MOST_DEGREE];
};

/* The rank, or MPI_PROC_NULL, and the slot of its send buffer that the block in slot `slot` of this rank's
 * receive buffer comes from. */
static int origin(const struct around *a, int slot, int *of_sender)
{
    int from = a->sources[slot], before = 0;
    if (a->cart || from == MPI_PROC_NULL) {
        *of_sender = slot ^ 1;
        return from;
    }
    for (int s = 0; s < slot; s++)
        before += a->sources[s] == from;
    for (*of_sender = 0; *of_sender < a->degrees[from]; ++*of_sender)
        if (a->destinations[from][*of_sender] == a->rank && before-- == 0)
            return from;
    fail("the lists of ranks %d and %d do not fit together", from, a->rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return MPI_PROC_NULL;
}

/* Takes over a communicator: asks MPI for its lists, tells them to all. */
static struct around take(const char *name, MPI_Comm comm)
{
    struct around a = {.comm = comm, .reference = MPI_COMM_NULL};
    int kind, out[MOST_DEGREE + 1] = {0}, all[MOST_MEMBERS][MOST_DEGREE + 1];
    snprintf(a.name, sizeof a.name, "%s", name);
    if (comm == MPI_COMM_NULL)
        return a;
    doing("looking at %s", name);
    MPI_Comm_rank(comm, &a.rank);
    MPI_Comm_size(comm, &a.size);
    MPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        int dimensions;
        MPI_Cartdim_get(comm, &dimensions);
        int dims[8], periods[8], coords[8];
        MPI_Cart_get(comm, dimensions, dims, periods, coords);
        a.cart = 1;
        a.in_degree = a.out_degree = 2 * dimensions;
        for (int d = 0; d < dimensions; d++) {
            MPI_Cart_shift(comm, d, 1, &a.sources[2 * d], &a.sources[2 * d + 1]);
            a.short_period = a.short_period || (periods[d] && dims[d] <= 2);
        }
        memcpy(out, a.sources, sizeof a.sources);
    } else if (kind == MPI_GRAPH) {
        MPI_Graph_neighbors_count(comm, a.rank, &a.in_degree);
        a.out_degree = a.in_degree;
        MPI_Graph_neighbors(comm, a.rank, MOST_DEGREE, a.sources);
        memcpy(out, a.sources, sizeof a.sources);
    } else {
        int weighted, weights[MOST_DEGREE];
        MPI_Dist_graph_neighbors_count(comm, &a.in_degree, &a.out_degree, &weighted);
        MPI_Dist_graph_neighbors(comm, MOST_DEGREE, a.sources, weights, MOST_DEGREE, out, weights);
    }
    out[MOST_DEGREE] = a.out_degree;
    must(MPI_Allgather(out, MOST_DEGREE + 1, MPI_INT, all, MOST_DEGREE + 1, MPI_INT, comm));
    for (int r = 0; r < a.size; r++) {
        memcpy(a.destinations[r], all[r], sizeof a.destinations[r]);
        a.degrees[r] = all[r][MOST_DEGREE];
    }
    return a;
}

static struct around grid(const char *name, int dimensions, const int *dims, const int *periods)
{
    MPI_Comm comm;
    must(MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &comm));
    return take(name, comm);
}

/* How often an edge is there, and this rank's lists in an order of its own. */
static int multiplicity(int from, int to, int salt)
{
    uint64_t h = mix4(seed, (uint64_t)from, (uint64_t)to, (uint64_t)salt);
    return h % 10 < (test_size > 4 ? 5 : 3) ? 0 : (int)(h >> 32) % 8 < 5 ? 1 : 2;
}

static void shuffle(int *list, int n, int salt)
{
    uint64_t state = mix4(seed, (uint64_t)test_rank, (uint64_t)salt, 99);
    int order[MOST_DEGREE], copy[MOST_DEGREE];
    permutation(&state, order, n);
    memcpy(copy, list, sizeof *list * (size_t)n);
    for (int i = 0; i < n; i++)
        list[i] = copy[order[i]];
}

static struct around symmetric_graph(void)
{
    int index[MOST_MEMBERS], edges[MOST_MEMBERS * MOST_DEGREE], n = 0;
    MPI_Comm comm;
    for (int r = 0; r < test_size; r++) {
        int start = n;
        for (int peer = 0; peer < test_size; peer++)
            for (int m = multiplicity(r < peer ? r : peer, r < peer ? peer : r, 1); m > 0; m--)
                edges[n++] = peer;
        /* The same order on all ranks: all give the whole graph. */
        for (int i = n - 1; i > start; i--) {
            int j = start + (int)(mix4(seed, (uint64_t)r, (uint64_t)i, 5) % (uint64_t)(i - start + 1)), t = edges[i];
            edges[i] = edges[j];
            edges[j] = t;
        }
        index[r] = n;
    }
    must(MPI_Graph_create(MPI_COMM_WORLD, test_size, index, edges, 0, &comm));
    return take("graph", comm);
}

static struct around adjacent_graph(void)
{
    int out[MOST_DEGREE], in[MOST_DEGREE], outs = 0, ins = 0;
    MPI_Comm comm;
    for (int peer = 0; peer < test_size; peer++) {
        for (int m = multiplicity(test_rank, peer, 2); m > 0; m--)
            out[outs++] = peer;
        for (int m = multiplicity(peer, test_rank, 2); m > 0; m--)
            in[ins++] = peer;
    }
    shuffle(out, outs, 3);
    shuffle(in, ins, 4);
    must(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ins, in, MPI_UNWEIGHTED, outs, out, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    return take("adjacent lists", comm);
}

/* The last rank has no neighbours; each rank describes the edges of the next one. */
static struct around described_graph(void)
{
    int source = (test_rank + 1) % test_size, targets[MOST_DEGREE], degree = 0;
    MPI_Comm comm;
    for (int peer = 0; peer < test_size - 1 && source < test_size - 1; peer++)
        for (int m = multiplicity(source, peer, 6); m > 0; m--)
            targets[degree++] = peer;
    must(MPI_Dist_graph_create(MPI_COMM_WORLD, degree > 0, &source, &degree, targets, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    return take("described by others", comm);
}

/* Nobody sends to rank 0, and the last one sends to nobody. */
static MPI_Comm chain(void)
{
    int before = test_rank - 1, after = test_rank + 1;
    MPI_Comm comm;
    must(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, test_rank > 0, &before, MPI_UNWEIGHTED, after < test_size, &after, MPI_UNWEIGHTED,
                                        MPI_INFO_NULL, 0, &comm));
    return comm;
}

static struct around copy(const struct around *a)
{
    MPI_Comm comm;
    char name[64];
    must(MPI_Comm_dup(a->comm, &comm));
    snprintf(name, sizeof name, "copy of %.50s", a->name);
    return take(name, comm);
}

#endif
