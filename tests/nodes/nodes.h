/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of this folder share. */
#ifndef NODES_H
#define NODES_H

#include <mpi.h>
#include <mpi-ext.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Open MPI 4.1 has the persistent collectives of MPI-4 under names of its own. */
#if OMPI_MAJOR_VERSION < 5
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Reduce_init MPIX_Reduce_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Barrier_init MPIX_Barrier_init
#define MPI_Gather_init MPIX_Gather_init
#define MPI_Gatherv_init MPIX_Gatherv_init
#define MPI_Scatter_init MPIX_Scatter_init
#define MPI_Scatterv_init MPIX_Scatterv_init
#define MPI_Allgather_init MPIX_Allgather_init
#define MPI_Alltoall_init MPIX_Alltoall_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#define MPI_Reduce_scatter_block_init MPIX_Reduce_scatter_block_init
#define MPI_Scan_init MPIX_Scan_init
#define MPI_Exscan_init MPIX_Exscan_init
#endif

#define MAX_VARIANTS 8

static int me, np;

/* On a torus of two dimensions: the caller's neighbours, in the order of their blocks. */
enum { NEIGHBORS = 4 };
static int neighbor[NEIGHBORS];

static inline void die(const char *why)
{
    fprintf(stderr, "rank %d: %s\n", me, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Nanoseconds of a clock that all namespaces of the machine share. */
static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void sleep_until(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}

/* A copy of a communicator whose collectives come from the component `name` ("^x": from any but x). What
 * another component passes on to the one below it (han does where nodes have different numbers of ranks) must
 * not come to rust. */
static inline MPI_Comm comm_like(MPI_Comm model, const char *name)
{
    char preference[128];
    MPI_Info info;
    MPI_Comm comm;
    snprintf(preference, sizeof preference, "%s%s", name, strcmp(name, "rust") && name[0] != '^' ? ",^rust" : "");
    MPI_Info_create(&info);
    MPI_Info_set(info, "ompi_comm_coll_preference", preference);
    MPI_Comm_dup_with_info(model, info, &comm);
    MPI_Info_free(&info);
    return comm;
}

/* The same of the world. */
static inline MPI_Comm comm_of(const char *name)
{
    return comm_like(MPI_COMM_WORLD, name);
}

/* Splits "a,b,c" in place. */
static inline int split_list(char *text, char **parts, int limit)
{
    int n = 0;
    for (char *save, *part = strtok_r(text, ",", &save); part && n < limit; part = strtok_r(NULL, ",", &save))
        parts[n++] = part;
    return n;
}

/* Element i of the contribution of `rank`; salt tells operations apart. Sums of these are exact. */
static inline int32_t element(int rank, int salt, size_t i)
{
    return (int32_t)((uint32_t)(i * 2654435761u) >> 12) + rank * 7919 + salt * 104729;
}

/* Element i of the sum over all ranks. */
static inline int32_t element_sum(int salt, size_t i)
{
    int32_t sum = 0;
    for (int rank = 0; rank < np; rank++)
        sum = (int32_t)((uint32_t)sum + (uint32_t)element(rank, salt, i));
    return sum;
}

enum operation { BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, NEIGHBOR_ALLTOALL, OPERATIONS };
static const char *const operation_name[OPERATIONS] = {
    "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Alltoall", "Neighbor_alltoall",
};

/* Number of the operations whose buffers are as long as the message; they are the first ones. */
#define WITHOUT_BLOCKS GATHER

/* Whether an operation moves a block for each rank. */
static inline int has_blocks(enum operation op)
{
    return op >= WITHOUT_BLOCKS;
}

/* The buffers of one operation of `count` 32-bit integers; of an operation with blocks, in each block. */
struct buffers {
    int32_t *in, *out;
    size_t count;
};

static inline struct buffers buffers_new(size_t count)
{
    struct buffers b = {calloc(count, sizeof(int32_t)), calloc(count, sizeof(int32_t)), count};
    if (!b.in || !b.out)
        die("no memory");
    return b;
}

/* Blocks of a buffer. */
static inline size_t blocks_of(enum operation op)
{
    return !has_blocks(op) ? 1 : op == NEIGHBOR_ALLTOALL ? NEIGHBORS : (size_t)np;
}

/* For any operation. */
static inline struct buffers buffers_for(enum operation op, size_t count)
{
    struct buffers b = buffers_new(count * blocks_of(op));
    b.count = count;
    return b;
}

static inline void buffers_fill(struct buffers *b, enum operation op, int root, int salt)
{
    for (size_t i = 0; i < b->count * blocks_of(op); i++) {
        b->in[i] = element(me, salt, i);
        b->out[i] = op == BCAST && me == root ? element(root, salt, i) : -1;
    }
}

static inline void operation_run(struct buffers *b, enum operation op, int root, MPI_Comm comm)
{
    int n = (int)b->count;
    MPI_Datatype type = MPI_INT32_T;
    switch (op) {
    case BCAST: MPI_Bcast(b->out, n, type, root, comm); break;
    case REDUCE: MPI_Reduce(b->in, b->out, n, type, MPI_SUM, root, comm); break;
    case GATHER: MPI_Gather(b->in, n, type, b->out, n, type, root, comm); break;
    case SCATTER: MPI_Scatter(b->in, n, type, b->out, n, type, root, comm); break;
    case ALLGATHER: MPI_Allgather(b->in, n, type, b->out, n, type, comm); break;
    case ALLTOALL: MPI_Alltoall(b->in, n, type, b->out, n, type, comm); break;
    case NEIGHBOR_ALLTOALL: MPI_Neighbor_alltoall(b->in, n, type, b->out, n, type, comm); break;
    default: MPI_Allreduce(b->in, b->out, n, type, MPI_SUM, comm);
    }
}

/* The same for operations with blocks, of which the receive buffer is significant. */
static inline size_t blocks_wrong(const struct buffers *b, enum operation op, int root, int salt)
{
    size_t wrong = 0, blocks = op == SCATTER ? 1 : op == NEIGHBOR_ALLTOALL ? NEIGHBORS : (size_t)np;
    for (size_t j = 0; j < blocks; j++)
        for (size_t i = 0; i < b->count; i++) {
            int from = op == SCATTER ? root : op == NEIGHBOR_ALLTOALL ? neighbor[j] : (int)j;
            size_t at = op == SCATTER || op == ALLTOALL ? (size_t)me * b->count + i : i;
            if (op == NEIGHBOR_ALLTOALL) /* sent in the opposite direction */
                at = (j ^ 1) * b->count + i;
            wrong += b->out[j * b->count + i] != element(from, salt, at);
        }
    return wrong;
}

/* The number of wrong elements on this rank. */
static inline size_t buffers_wrong(const struct buffers *b, enum operation op, int root, int salt)
{
    size_t wrong = 0;
    if (has_blocks(op))
        return op == GATHER && me != root ? 0 : blocks_wrong(b, op, root, salt);
    for (size_t i = 0; i < b->count; i++) {
        int32_t want = -1;
        if (op == BCAST)
            want = element(root, salt, i);
        else if (op == ALLREDUCE || me == root)
            want = element_sum(salt, i);
        else
            break; /* the receive buffer is not significant */
        wrong += b->out[i] != want;
    }
    return wrong;
}

#endif
