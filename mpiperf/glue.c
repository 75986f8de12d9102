/*
 * What the raw bindings cannot say: MPI's macros as values, and the persistent collectives, which Open MPI 4.1 has under
 * the prefix MPIX_ and older libraries not at all.
 */
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

void *mpiperf_in_place(void) { return MPI_IN_PLACE; }
MPI_Datatype mpiperf_byte(void) { return MPI_BYTE; }

/* 1: MPI_, 2: MPIX_, 0: none. */
#if MPI_VERSION >= 4 || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000)
#define MPIPERF_PERSISTENT 1
#define INIT(name) MPI_##name##_init
#elif defined(OPEN_MPI) && defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define MPIPERF_PERSISTENT 2
#define INIT(name) MPIX_##name##_init
#else
#define MPIPERF_PERSISTENT 0
#endif

int mpiperf_persistent(void) { return MPIPERF_PERSISTENT; }

/* One wrapper for each persistent collective: parameters and arguments as the standard has them, without the request. */
#if MPIPERF_PERSISTENT
#define WRAP(name, parameters, ...) \
    int mpiperf_##name##_init parameters { return INIT(name)(__VA_ARGS__, MPI_INFO_NULL, request); }
#else
#define WRAP(name, parameters, ...) \
    int mpiperf_##name##_init parameters { return MPI_ERR_UNSUPPORTED_OPERATION; }
#endif

#define T MPI_Datatype
#define C MPI_Comm comm, MPI_Request *request
WRAP(Barrier, (C), comm)
WRAP(Bcast, (void *buffer, int count, T type, int root, C), buffer, count, type, root, comm)
