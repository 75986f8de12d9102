/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts and sizes at the limit of int and beyond 4 GiB. Each rank holds up to about 4.5 GB at a time.
 *
 *   --parts LIST   of bcast, reduce, allreduce, derived, blocks (default all)
 */
#include "harness.h"
#include <limits.h>

static unsigned char *get(size_t bytes)
{
    unsigned char *p = malloc(bytes);
    if (!p) {
        fail("no memory for %zu bytes", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

/* Eight bytes at a time; the value of a byte depends on its position in all its digits. */
static void fill(unsigned char *p, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t x = (i + seed) * 0x9e3779b97f4a7c15u;
        x ^= x >> 29;
        memcpy(p + i, &x, bytes - i < 8 ? bytes - i : 8);
    }
}

static unsigned char byte_at(size_t i, uint64_t seed)
{
    uint64_t x = ((i & ~(size_t)7) + seed) * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    return (unsigned char)(x >> (i % 8 * 8));
}

static void verify_copy(const unsigned char *p, size_t bytes, uint64_t seed, const char *what)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t x = (i + seed) * 0x9e3779b97f4a7c15u;
        x ^= x >> 29;
        if (memcmp(p + i, &x, bytes - i < 8 ? bytes - i : 8)) {
            size_t at = i;
            while (at + 1 < bytes && p[at] == byte_at(at, seed))
                at++;
            fail("%s: byte %zu of %zu: got %u, expected %u", what, at, bytes, p[at], byte_at(at, seed));
            return;
        }
    }
    pass();
}

static void bcast(void)
{
    size_t n = INT_MAX;
    for (int root = 0; root < test_size; root += test_size > 1 ? test_size - 1 : 1) {
        unsigned char *p = get(n + 1);
        doing("Bcast root=%d count=%zu type=byte", root, n);
        memset(p, 0x11, n + 1);
        if (test_rank == root)
            fill(p, n, 1);
        MPI_Bcast(p, (int)n, MPI_BYTE, root, MPI_COMM_WORLD);
        doing("verifying Bcast root=%d count=%zu", root, n);
        verify_copy(p, n, 1, "Bcast");
        check(p[n] == 0x11, "the byte behind the buffer was written: %#x", p[n]);
        free(p);
    }
}

static void verify_reduced(const unsigned char *p, size_t n, int is_and, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        int expected = is_and ? 0xff : -128;
        for (int r = 0; r < test_size; r++) {
            int x = byte_at(i, (uint64_t)r * 64);
            expected = is_and ? expected & x : (int8_t)x > expected ? (int8_t)x : expected;
        }
        if (p[i] != (unsigned char)expected) {
            fail("%s: element %zu of %zu: got %u, expected %u", what, i, n, p[i], (unsigned char)expected);
            return;
        }
    }
    pass();
}

static void reduce(void)
{
    size_t n = INT_MAX;
    int root = test_size - 1;
    unsigned char *p = get(n + 1);
    doing("Reduce root=%d count=%zu type=byte op=BAND, in place at the root", root, n);
    fill(p, n, (uint64_t)test_rank * 64);
    p[n] = 0x11;
    if (test_rank == root)
        MPI_Reduce(MPI_IN_PLACE, p, (int)n, MPI_BYTE, MPI_BAND, root, MPI_COMM_WORLD);
    else
        MPI_Reduce(p, NULL, (int)n, MPI_BYTE, MPI_BAND, root, MPI_COMM_WORLD);
    doing("verifying Reduce count=%zu", n);
    if (test_rank == root)
        verify_reduced(p, n, 1, "Reduce");
    else
        verify_copy(p, n, (uint64_t)test_rank * 64, "Reduce, send buffer");
    check(p[n] == 0x11, "the byte behind the buffer was written: %#x", p[n]);
    free(p);
}

static void allreduce(void)
{
    size_t n = INT_MAX;
    unsigned char *p = get(n + 1);
    doing("Allreduce count=%zu type=int8 op=MAX, in place", n);
    fill(p, n, (uint64_t)test_rank * 64);
    p[n] = 0x11;
    MPI_Allreduce(MPI_IN_PLACE, p, (int)n, MPI_INT8_T, MPI_MAX, MPI_COMM_WORLD);
    doing("verifying Allreduce count=%zu", n);
    verify_reduced(p, n, 0, "Allreduce");
    check(p[n] == 0x11, "the byte behind the buffer was written: %#x", p[n]);
    free(p);
}

/* More than 4 GiB by 70,001 elements of a datatype of 65,536 bytes. */
static void derived(void)
{
    enum { ELEMENT = 65536, COUNT = 70001 };
    size_t bytes = (size_t)ELEMENT * COUNT;
    MPI_Datatype t;
    unsigned char *p = get(bytes + 1);
    doing("Bcast root=0 count=%d of %d contiguous bytes: %zu bytes", COUNT, ELEMENT, bytes);
    MPI_Type_contiguous(ELEMENT / 4, MPI_INT, &t);
    MPI_Type_commit(&t);
    memset(p, 0x11, bytes + 1);
    if (test_rank == 0)
        fill(p, bytes, 3);
    MPI_Bcast(p, COUNT, t, 0, MPI_COMM_WORLD);
    doing("verifying Bcast of %zu bytes", bytes);
    verify_copy(p, bytes, 3, "Bcast");
    check(p[bytes] == 0x11, "the byte behind the buffer was written: %#x", p[bytes]);
    MPI_Type_free(&t);
    free(p);
}

/* Blocks that are longer than a message may be. */
static void blocks(void)
{
    size_t n = (size_t)600 << 20;
    unsigned char *own = get(n), *all = test_rank == 0 ? get(n * (size_t)test_size) : NULL;
    fill(own, n, (uint64_t)test_rank * 64);
    doing("Gather root=0 count=%zu type=byte", n);
    MPI_Gather(own, (int)n, MPI_BYTE, all, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int r = 0; test_rank == 0 && r < test_size; r++)
        verify_copy(all + (size_t)r * n, n, (uint64_t)r * 64, "Gather");
    memset(own, 0, n);
    doing("Scatter root=0 count=%zu type=byte", n);
    MPI_Scatter(all, (int)n, MPI_BYTE, own, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
    verify_copy(own, n, (uint64_t)test_rank * 64, "Scatter");
    free(own);
    free(all);
}

int main(int argc, char **argv)
{
    test_watchdog_seconds = 200;
    test_init(&argc, &argv, "large", MPI_THREAD_SINGLE);
    const char *parts = option_text(argc, argv, "--parts", "all");
    if (in_list(parts, "bcast"))
        bcast();
    if (in_list(parts, "reduce"))
        reduce();
    if (in_list(parts, "allreduce"))
        allreduce();
    if (in_list(parts, "derived"))
        derived();
    if (in_list(parts, "blocks"))
        blocks();
    return test_end();
}
