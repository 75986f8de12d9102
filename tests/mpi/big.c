/* SPDX-License-Identifier: BSD-3-Clause */
/* Data beyond 2 GiB: by derived datatypes, and, from Open MPI 6 on, by counts and displacements of 64 bits.
 * 2.2 GiB for each rank. */
#include "harness.h"
#include <sys/mman.h>

static const size_t LARGE = ((size_t)1 << 31) + 5;
static unsigned char *buffer;

/* The byte at a place, of this round. */
static unsigned char byte_at(size_t place, int round)
{
    return (unsigned char)(place * 2654435761u >> 13 ^ (size_t)round * 37);
}

static void fill(size_t from, size_t len, int round)
{
    for (size_t i = from; i < from + len; i++)
        buffer[i] = byte_at(i, round);
}

static void look(size_t from, size_t len, int round)
{
    size_t wrong = 0;
    for (size_t i = from; i < from + len; i++)
        wrong += buffer[i] != byte_at(i, round);
    check(wrong == 0, "%zu of %zu bytes from %zu on are wrong in round %d", wrong, len, from, round);
}

static void derived(void)
{
    enum { ELEMENT = 1 << 20 };
    MPI_Datatype type;
    MPI_Type_contiguous(ELEMENT, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    const int count = (int)(LARGE / ELEMENT) + 1;
    const size_t len = (size_t)count * ELEMENT;
    doing("Bcast of %d elements of 1 MiB", count);
    if (test_rank == 0)
        fill(0, len, 1);
    MPI_Bcast(buffer, count, type, 0, MPI_COMM_WORLD);
    look(0, len, 1);
    MPI_Type_free(&type);
}

#if OMPI_MAJOR_VERSION >= 6
static void counted(void)
{
    MPI_Request request;
    doing("Bcast_c");
    if (test_rank == test_size - 1)
        fill(0, LARGE, 2);
    MPI_Bcast_c(buffer, (MPI_Count)LARGE, MPI_BYTE, test_size - 1, MPI_COMM_WORLD);
    look(0, LARGE, 2);

    /* Short blocks far from each other: nonblocking ones outlive their arrays. */
    MPI_Count counts[test_size];
    MPI_Aint displs[test_size];
    enum { BLOCK = 5000 };
    for (int mode = 0; mode < 2; mode++) {
        const int round = 3 + mode;
        memset(buffer + LARGE, 0, (size_t)test_size * BLOCK);
        memset(buffer, 0, (size_t)test_size * BLOCK);
        for (int r = 0; r < test_size; r++) {
            counts[r] = BLOCK - r;
            displs[r] = (r % 2 == 0 ? 0 : (MPI_Aint)LARGE) + r * BLOCK;
        }
        fill((size_t)displs[test_rank], (size_t)counts[test_rank], round);
        doing("Allgatherv_c, mode %d", mode);
        if (mode == 0) {
            MPI_Allgatherv_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, counts, displs, MPI_BYTE, MPI_COMM_WORLD);
        } else {
            MPI_Iallgatherv_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, counts, displs, MPI_BYTE, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        for (int r = 0; r < test_size; r++)
            look((size_t)displs[r], (size_t)counts[r], round);
    }

    doing("Gatherv_c");
    fill((size_t)displs[test_rank], (size_t)counts[test_rank], 5);
    MPI_Gatherv_c(test_rank == 0 ? MPI_IN_PLACE : buffer + displs[test_rank], counts[test_rank], MPI_BYTE, buffer, counts, displs, MPI_BYTE, 0,
                  MPI_COMM_WORLD);
    for (int r = 0; r < test_size && test_rank == 0; r++)
        look((size_t)displs[r], (size_t)counts[r], 5);

    doing("Reduce_scatter_c");
    MPI_Count parts[test_size];
    size_t all = 0;
    for (int r = 0; r < test_size; r++)
        all += (size_t)(parts[r] = 1000 + r);
    int *numbers = calloc(all, sizeof *numbers), *sums = calloc(2000, sizeof *sums);
    for (size_t i = 0; i < all; i++)
        numbers[i] = (int)i;
    MPI_Reduce_scatter_c(numbers, sums, parts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    size_t before = 0, wrong = 0;
    for (int r = 0; r < test_rank; r++)
        before += (size_t)parts[r];
    for (size_t i = 0; i < (size_t)parts[test_rank]; i++)
        wrong += sums[i] != test_size * (int)(before + i);
    check(wrong == 0, "%zu sums are wrong", wrong);
    free(numbers);
    free(sums);
}
#else
static void counted(void)
{
}
#endif

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "big", MPI_THREAD_SINGLE);
    test_watchdog_seconds = 240;
    const size_t len = LARGE + ((size_t)4 << 20);
    buffer = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (buffer == MAP_FAILED)
        return fail("no memory"), test_end();
    derived();
    counted();
    return test_end();
}
