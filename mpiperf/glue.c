/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the raw bindings cannot say: MPI's macros as values, and the persistent collectives, which Open MPI
 * 4.1 has under the prefix MPIX_ and older libraries not at all. build.rs finds out by linking, and defines
 * MPIPERF_PERSISTENT: 1: MPI_, 2: MPIX_, 0: none.
 */
#include <mpi.h>
#if MPIPERF_PERSISTENT == 2
#include <mpi-ext.h>
#endif

void *mpiperf_in_place(void) { return MPI_IN_PLACE; }
MPI_Datatype mpiperf_byte(void) { return MPI_BYTE; }
MPI_Datatype mpiperf_char(void) { return MPI_CHAR; }
MPI_Op mpiperf_op_null(void) { return MPI_OP_NULL; }

int mpiperf_persistent(void) { return MPIPERF_PERSISTENT; }

/* One wrapper for each persistent collective: parameters and arguments as the standard has them, without the
 * info. */
#if MPIPERF_PERSISTENT == 1
#define WRAP(name, parameters, ...) \
    int mpiperf_##name##_init parameters { return MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request); }
#elif MPIPERF_PERSISTENT == 2
#define WRAP(name, parameters, ...) \
    int mpiperf_##name##_init parameters { return MPIX_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request); }
#else
/* Never called: the tool refuses first. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define WRAP(name, parameters, ...) \
    int mpiperf_##name##_init parameters { return MPI_ERR_OTHER; }
#endif

#define T MPI_Datatype
#define SEND const void *sb, int sn, T st
#define SENDV const void *sb, const int *sn, const int *sd, T st
#define RECV void *rb, int rn, T rt
#define RECVV void *rb, const int *rn, const int *rd, T rt
#define REDUCE const void *sb, void *rb, int n, T t, MPI_Op op
#define END MPI_Comm comm, MPI_Request *request

WRAP(Barrier, (END), comm)
WRAP(Bcast, (void *b, int n, T t, int root, END), b, n, t, root, comm)
WRAP(Gather, (SEND, RECV, int root, END), sb, sn, st, rb, rn, rt, root, comm)
WRAP(Gatherv, (SEND, RECVV, int root, END), sb, sn, st, rb, rn, rd, rt, root, comm)
WRAP(Scatter, (SEND, RECV, int root, END), sb, sn, st, rb, rn, rt, root, comm)
WRAP(Scatterv, (SENDV, RECV, int root, END), sb, sn, sd, st, rb, rn, rt, root, comm)
WRAP(Allgather, (SEND, RECV, END), sb, sn, st, rb, rn, rt, comm)
WRAP(Allgatherv, (SEND, RECVV, END), sb, sn, st, rb, rn, rd, rt, comm)
WRAP(Alltoall, (SEND, RECV, END), sb, sn, st, rb, rn, rt, comm)
WRAP(Alltoallv, (SENDV, RECVV, END), sb, sn, sd, st, rb, rn, rd, rt, comm)
WRAP(Alltoallw, (const void *sb, const int *sn, const int *sd, const T *st, void *rb, const int *rn, const int *rd, const T *rt, END),
     sb, sn, sd, st, rb, rn, rd, rt, comm)
WRAP(Reduce, (REDUCE, int root, END), sb, rb, n, t, op, root, comm)
WRAP(Allreduce, (REDUCE, END), sb, rb, n, t, op, comm)
WRAP(Reduce_scatter, (const void *sb, void *rb, const int *n, T t, MPI_Op op, END), sb, rb, n, t, op, comm)
WRAP(Reduce_scatter_block, (REDUCE, END), sb, rb, n, t, op, comm)
WRAP(Scan, (REDUCE, END), sb, rb, n, t, op, comm)
WRAP(Exscan, (REDUCE, END), sb, rb, n, t, op, comm)
WRAP(Neighbor_allgather, (SEND, RECV, END), sb, sn, st, rb, rn, rt, comm)
WRAP(Neighbor_allgatherv, (SEND, RECVV, END), sb, sn, st, rb, rn, rd, rt, comm)
WRAP(Neighbor_alltoall, (SEND, RECV, END), sb, sn, st, rb, rn, rt, comm)
WRAP(Neighbor_alltoallv, (SENDV, RECVV, END), sb, sn, sd, st, rb, rn, rd, rt, comm)
WRAP(Neighbor_alltoallw, (const void *sb, const int *sn, const MPI_Aint *sd, const T *st, void *rb, const int *rn, const MPI_Aint *rd,
                          const T *rt, END),
     sb, sn, sd, st, rb, rn, rd, rt, comm)
