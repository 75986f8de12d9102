/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The four operations on doubles or ints with results known in closed form: what the stress programs start,
 * complete and check.
 */
#ifndef COLL_RUST_TESTS_FOUROPS_H
#define COLL_RUST_TESTS_FOUROPS_H

#include "harness.h"

enum operation { BCAST, REDUCE, ALLREDUCE, BARRIER };
static const char *const OPERATION_NAME[] = {"Bcast", "Reduce", "Allreduce", "Barrier"};

/* One operation with its buffers. Rank r contributes start*7 + i%1000 + r; the sum of that is known. */
struct work {
    enum operation operation;
    int count, root;
    MPI_Comm comm;
    int rank, size;
    int *send, *recv;
};

static inline void work_make(struct work *w, enum operation operation, int count, int root, MPI_Comm comm)
{
    *w = (struct work){.operation = operation, .count = count, .root = root, .comm = comm};
    MPI_Comm_rank(comm, &w->rank);
    MPI_Comm_size(comm, &w->size);
    w->root = root % w->size;
    w->send = malloc(sizeof(int) * (size_t)count + 1);
    w->recv = malloc(sizeof(int) * (size_t)count + 1);
    if (!w->send || !w->recv) {
        fail("no memory for %d numbers", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static inline void work_free(struct work *w)
{
    free(w->send);
    free(w->recv);
}

static inline int work_value(int start, int i, int rank)
{
    return start % 100000 * 7 + i % 1000 + rank;
}

static inline void work_fill(struct work *w, int start)
{
    for (int i = 0; i < w->count; i++) {
        w->send[i] = work_value(start, i, w->rank);
        w->recv[i] = w->operation == BCAST && w->rank == w->root ? w->send[i] : -1;
    }
}

/* Blocking. */
static inline int work_do(struct work *w)
{
    switch (w->operation) {
    case BCAST: return MPI_Bcast(w->recv, w->count, MPI_INT, w->root, w->comm);
    case REDUCE: return MPI_Reduce(w->send, w->recv, w->count, MPI_INT, MPI_SUM, w->root, w->comm);
    case ALLREDUCE: return MPI_Allreduce(w->send, w->recv, w->count, MPI_INT, MPI_SUM, w->comm);
    default: return MPI_Barrier(w->comm);
    }
}

static inline int work_begin(struct work *w, MPI_Request *request)
{
    switch (w->operation) {
    case BCAST: return MPI_Ibcast(w->recv, w->count, MPI_INT, w->root, w->comm, request);
    case REDUCE: return MPI_Ireduce(w->send, w->recv, w->count, MPI_INT, MPI_SUM, w->root, w->comm, request);
    case ALLREDUCE: return MPI_Iallreduce(w->send, w->recv, w->count, MPI_INT, MPI_SUM, w->comm, request);
    default: return MPI_Ibarrier(w->comm, request);
    }
}

static inline int work_init(struct work *w, MPI_Request *request)
{
    MPI_Info none = MPI_INFO_NULL;
    switch (w->operation) {
    case BCAST: return MPI_Bcast_init(w->recv, w->count, MPI_INT, w->root, w->comm, none, request);
    case REDUCE: return MPI_Reduce_init(w->send, w->recv, w->count, MPI_INT, MPI_SUM, w->root, w->comm, none, request);
    case ALLREDUCE: return MPI_Allreduce_init(w->send, w->recv, w->count, MPI_INT, MPI_SUM, w->comm, none, request);
    default: return MPI_Barrier_init(w->comm, none, request);
    }
}

/* One check for the whole operation: the receive buffer, and that the send buffer did not change. */
static inline void work_check(const struct work *w, int start, const char *where)
{
    long ranks = (long)w->size * (w->size - 1) / 2;
    for (int i = 0; i < w->count && w->operation != BARRIER; i++) {
        int expected = -1;
        if (w->operation == BCAST)
            expected = work_value(start, i, w->root);
        else if (w->operation == ALLREDUCE || w->rank == w->root)
            expected = (int)((long)work_value(start, i, 0) * w->size + ranks);
        if (w->recv[i] != expected || w->send[i] != work_value(start, i, w->rank)) {
            fail("%s: %s np=%d root=%d count=%d int start=%d, element %d: got %d, expected %d; send buffer %d, expected %d", where,
                 OPERATION_NAME[w->operation], w->size, w->root, w->count, start, i, w->recv[i], expected, w->send[i],
                 work_value(start, i, w->rank));
            return;
        }
    }
    pass();
}

/* Blocking, with data and check. */
static inline void work_all(struct work *w, int start, const char *where)
{
    work_fill(w, start);
    must(work_do(w));
    work_check(w, start, where);
}

/* All four, blocking then nonblocking, on a communicator. */
static inline void all_four(MPI_Comm comm, int count, int start, const char *where)
{
    for (int o = BCAST; o <= BARRIER; o++) {
        struct work w;
        MPI_Request request;
        work_make(&w, (enum operation)o, count, start, comm);
        work_all(&w, start, where);
        work_fill(&w, start + 1);
        must(work_begin(&w, &request));
        must(MPI_Wait(&request, MPI_STATUS_IGNORE));
        work_check(&w, start + 1, where);
        work_free(&w);
    }
}

#endif
