/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls on plain data go the ways that were made for them: nothing else would tell, since by the way of all
 * calls they are only slower. What tells is the memory that they allocate, which this program counts: it has
 * an allocator in front of the C library's. With a derived datatype, the same calls must be seen to allocate
 * more.
 *
 *   --messages   the processes exchange messages, and only blocking calls along edges have a way of their own
 */
#include "harness.h"
#include <errno.h>
#include <limits.h>

enum { CALLS = 20, WARM = 20, FEW = 2, MANY = 16, PROCESSES = 8 };

/* Allocations of this thread. */
static __thread long allocations;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    allocations++;
    return __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    allocations++;
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **at, size_t alignment, size_t bytes)
{
    *at = memalign(alignment, bytes);
    return *at ? 0 : ENOMEM;
}

static int in[MANY * PROCESSES], out[MANY * PROCESSES], counts[PROCESSES], displs[PROCESSES];

/* Every operation that has a way of its own, with blocks of `n` elements: along edges, blocking, and not. */
#define ALONG_EDGES(X)                                                                                                 \
    X(Neighbor_allgather, in, n, type, out, n, type, comm)                                                             \
    X(Neighbor_allgatherv, in, n, type, out, counts, displs, type, comm)                                               \
    X(Neighbor_alltoall, in, n, type, out, n, type, comm)                                                              \
    X(Neighbor_alltoallv, in, counts, displs, type, out, counts, displs, type, comm)
#define BLOCKING_ONES(X)                                                                                               \
    X(Bcast, in, n, type, 1, comm)                                                                                     \
    X(Gather, in, n, type, out, n, type, 1, comm)                                                                      \
    X(Gatherv, in, n, type, out, counts, displs, type, 1, comm)                                                        \
    X(Scatter, in, n, type, out, n, type, 1, comm)                                                                     \
    X(Scatterv, in, counts, displs, type, out, n, type, 1, comm)                                                       \
    X(Allgather, in, n, type, out, n, type, comm)                                                                      \
    X(Allgatherv, in, n, type, out, counts, displs, type, comm)                                                        \
    X(Alltoall, in, n, type, out, n, type, comm)                                                                       \
    X(Alltoallv, in, counts, displs, type, out, counts, displs, type, comm)                                            \
    X(Barrier, comm)                                                                                                   \
    X(Reduce, in, out, n, type, MPI_SUM, 1, comm)                                                                      \
    X(Allreduce, in, out, n, type, MPI_SUM, comm)                                                                      \
    X(Scan, in, out, n, type, MPI_SUM, comm)                                                                           \
    X(Exscan, in, out, n, type, MPI_SUM, comm)                                                                         \
    X(Reduce_scatter, in, out, counts, type, MPI_SUM, comm)                                                            \
    X(Reduce_scatter_block, in, out, n, type, MPI_SUM, comm)
#define NONBLOCKING_ONES(X)                                                                                            \
    X(Ibcast, in, n, type, 1, comm, &request)                                                                          \
    X(Igather, in, n, type, out, n, type, 1, comm, &request)                                                           \
    X(Iscatter, in, n, type, out, n, type, 1, comm, &request)                                                          \
    X(Iallgather, in, n, type, out, n, type, comm, &request)                                                           \
    X(Ialltoall, in, n, type, out, n, type, comm, &request)                                                            \
    X(Ibarrier, comm, &request)                                                                                        \
    X(Ireduce, in, out, n, type, MPI_SUM, 1, comm, &request)                                                           \
    X(Iallreduce, in, out, n, type, MPI_SUM, comm, &request)

#define EVERY_ONE(X) ALONG_EDGES(X) BLOCKING_ONES(X) NONBLOCKING_ONES(X)
#define NUMBER(Name, ...) NUMBER_##Name,
#define NAME(Name, ...) #Name,
#define MAKE(Name, ...)                                                                                                \
    case NUMBER_##Name:                                                                                                \
        must(MPI_##Name(__VA_ARGS__));                                                                                 \
        break;

enum { EVERY_ONE(NUMBER) ALL };
static const char *const NAMES[] = {EVERY_ONE(NAME)};

/* How many allocations a call takes once it has been made a few times: the most, and the least. */
static void measure(int number, MPI_Comm comm, int n, MPI_Datatype type, long *most, long *least)
{
    doing("%s of %d elements", NAMES[number], n);
    for (int r = 0; r < PROCESSES; r++) {
        counts[r] = n;
        displs[r] = n * r;
    }
    *most = 0;
    *least = LONG_MAX;
    for (int i = 0; i < WARM + CALLS; i++) {
        MPI_Request request = MPI_REQUEST_NULL;
        const long before = allocations;
        switch (number) {
            EVERY_ONE(MAKE)
        }
        must(MPI_Wait(&request, MPI_STATUS_IGNORE));
        const long took = allocations - before;
        if (i >= WARM) {
            *most = took > *most ? took : *most;
            *least = took < *least ? took : *least;
        }
    }
}

/* The others have no data, or want numbers, for MPI_SUM. */
static int takes_any_type(int number)
{
    return number < NUMBER_Barrier || (number > NUMBER_Reduce_scatter_block && number < NUMBER_Ibarrier);
}

int main(int argc, char **argv)
{
    MPI_Comm ring;
    MPI_Datatype swapped; /* two numbers, of which the first is at the end */
    test_init(&argc, &argv, "lean", MPI_THREAD_SINGLE);
    must(MPI_Type_indexed(2, (int[]){1, 1}, (int[]){1, 0}, MPI_INT, &swapped));
    must(MPI_Type_commit(&swapped));
    must(MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){test_size}, (int[]){1}, 0, &ring));
    const int numbers = has_option(argc, argv, "--messages") ? NUMBER_Bcast : ALL;
    for (int number = 0; number < numbers; number++) {
        /* The future of an operation that does not block has to live somewhere. */
        const long limit = number < NUMBER_Ibcast ? 0 : 1;
        long most, least;
        for (int n = FEW; n <= MANY; n += MANY - FEW) {
            measure(number, ring, n, MPI_INT, &most, &least);
            check(most <= limit, "a call allocates %ld times, not %ld", most, limit);
        }
        if (takes_any_type(number)) {
            measure(number, ring, 1, swapped, &most, &least);
            check(least > limit, "a call on swapped numbers allocates no more than %ld times", least);
        }
    }
    must(MPI_Comm_free(&ring));
    must(MPI_Type_free(&swapped));
    return test_end();
}
