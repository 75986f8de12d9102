/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floating-point sums whose bits depend on the order of combination. Prints a line "repro <type> <count>
 * <hash>" for each; with coll_rust_reproducible=1 they must be the same for every placement of the same
 * number of ranks (the runner compares), for every root, and for Reduce and Allreduce, blocking, nonblocking
 * and persistent (checked here). The same of Reduce_scatter, Reduce_scatter_block, Scan and Exscan: "repro
 * <operation> <type> <count> <hash>".
 *
 *   --any-order   print only, without the checks here (nothing promises reproducibility)
 */
#include "harness.h"

static uint64_t hash(const void *bytes, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return h;
}

/* Magnitudes over sixty binary orders, both signs: nearly every other order gives other bits. */
static double value(int rank, int i)
{
    uint64_t h = mix4(11, (uint64_t)rank, (uint64_t)i, 0);
    double x = 1.0 + (double)(h & 0xffffff) / 16777216.0;
    for (int e = (int)((h >> 24) % 60) - 30; e; e += e < 0 ? 1 : -1)
        x = e < 0 ? x / 2 : x * 2;
    return h >> 63 ? -x : x;
}

static void run(MPI_Datatype type, const char *name, size_t width, int count, int any_order)
{
    size_t bytes = width * (size_t)count;
    char *send = malloc(bytes), *recv = malloc(bytes);
    uint64_t first = 0;
    int have_first = 0;
    for (int i = 0; i < count; i++) {
        double x = value(test_rank, i);
        float y = (float)x;
        memcpy(send + (size_t)i * width, width == 8 ? (void *)&x : (void *)&y, width);
    }
    /* root == test_size: Allreduce. */
    for (int root = 0; root <= test_size; root++)
        for (int mode = 0; mode < 3; mode++) {
            static const char *const MODES[] = {"blocking", "nonblocking", "persistent"};
            MPI_Request request = MPI_REQUEST_NULL;
            int all = root == test_size;
            doing("%s %s np=%d root=%d count=%d type=%s op=SUM", MODES[mode], all ? "Allreduce" : "Reduce", test_size, all ? -1 : root, count,
                  name);
            memset(recv, 0, bytes);
            if (mode == 0)
                all ? MPI_Allreduce(send, recv, count, type, MPI_SUM, MPI_COMM_WORLD)
                    : MPI_Reduce(send, recv, count, type, MPI_SUM, root, MPI_COMM_WORLD);
            else if (mode == 1)
                all ? MPI_Iallreduce(send, recv, count, type, MPI_SUM, MPI_COMM_WORLD, &request)
                    : MPI_Ireduce(send, recv, count, type, MPI_SUM, root, MPI_COMM_WORLD, &request);
            else
                all ? MPI_Allreduce_init(send, recv, count, type, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request)
                    : MPI_Reduce_init(send, recv, count, type, MPI_SUM, root, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
            if (mode == 2)
                MPI_Start(&request);
            if (mode) {
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                if (request != MPI_REQUEST_NULL)
                    MPI_Request_free(&request);
            }
            /* Whoever has the result sends its hash to all, over point-to-point. */
            uint64_t mine = hash(recv, bytes), theirs = mine;
            int owner = all ? 0 : root;
            for (int r = 0; test_rank == owner && r < test_size; r++)
                if (r != owner)
                    MPI_Send(&mine, 1, MPI_UINT64_T, r, 5, MPI_COMM_WORLD);
            if (test_rank != owner)
                MPI_Recv(&theirs, 1, MPI_UINT64_T, owner, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!have_first) {
                first = theirs;
                have_first = 1;
            }
            check(any_order || theirs == first, "the result has hash %016llx, that of the blocking Reduce to 0 has %016llx",
                  (unsigned long long)theirs, (unsigned long long)first);
            check(!all || any_order || mine == theirs, "rank %d's Allreduce has hash %016llx, rank 0's %016llx", test_rank,
                  (unsigned long long)mine, (unsigned long long)theirs);
        }
    if (test_rank == 0) {
        printf("repro %s %d %016llx\n", name, count, (unsigned long long)first);
        fflush(stdout);
    }
    free(send);
    free(recv);
}

/* The hashes of all ranks' results as one, at all ranks, over point-to-point. */
static uint64_t together(uint64_t mine)
{
    uint64_t all = mine, other;
    if (test_rank > 0)
        MPI_Send(&mine, 1, MPI_UINT64_T, 0, 6, MPI_COMM_WORLD);
    for (int r = 1; test_rank == 0 && r < test_size; r++) {
        MPI_Recv(&other, 1, MPI_UINT64_T, r, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        all = mix4(all, other, 0, 0);
    }
    for (int r = 1; test_rank == 0 && r < test_size; r++)
        MPI_Send(&all, 1, MPI_UINT64_T, r, 7, MPI_COMM_WORLD);
    if (test_rank > 0)
        MPI_Recv(&all, 1, MPI_UINT64_T, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return all;
}

enum { REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, OPERATIONS };

#define THREE(Name, name, ...)                                                                                      \
    (mode == 0   ? MPI_##Name(send, recv, __VA_ARGS__, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)                         \
     : mode == 1 ? MPI_I##name(send, recv, __VA_ARGS__, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request)              \
                 : MPI_##Name##_init(send, recv, __VA_ARGS__, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request))

/* `count`: of the vector that is combined, rounded up where all blocks are equal. */
static void run_rest(int operation, int count, int any_order)
{
    static const char *const NAMES[] = {"reduce_scatter", "reduce_scatter_block", "scan", "exscan"};
    int each = (count + test_size - 1) / test_size, total = each * test_size, *counts = malloc(sizeof(int) * (size_t)test_size);
    double *send = malloc(sizeof(double) * (size_t)total), *recv = malloc(sizeof(double) * (size_t)total);
    uint64_t first = 0;
    for (int r = 0; r < test_size; r++)
        counts[r] = count / test_size + (r < count % test_size);
    for (int i = 0; i < total; i++)
        send[i] = value(test_rank, i);
    for (int mode = 0; mode < 3; mode++) {
        MPI_Request request = MPI_REQUEST_NULL;
        doing("mode %d of %s np=%d count=%d op=SUM", mode, NAMES[operation], test_size, count);
        memset(recv, 0, sizeof(double) * (size_t)total);
        switch (operation) {
        case REDUCE_SCATTER: must(THREE(Reduce_scatter, reduce_scatter, counts)); break;
        case REDUCE_SCATTER_BLOCK: must(THREE(Reduce_scatter_block, reduce_scatter_block, each)); break;
        case SCAN: must(THREE(Scan, scan, count)); break;
        default: must(THREE(Exscan, exscan, count)); break;
        }
        if (mode == 2)
            MPI_Start(&request);
        if (mode)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (request != MPI_REQUEST_NULL)
            MPI_Request_free(&request);
        uint64_t all = together(hash(recv, sizeof(double) * (size_t)total));
        first = mode ? first : all;
        check(any_order || all == first, "the results have hash %016llx, those of the blocking call %016llx", (unsigned long long)all,
              (unsigned long long)first);
    }
    if (test_rank == 0) {
        printf("repro %s double %d %016llx\n", NAMES[operation], count, (unsigned long long)first);
        fflush(stdout);
    }
    free(counts);
    free(send);
    free(recv);
}

int main(int argc, char **argv)
{
    static const int COUNTS[] = {1, 100, 4097, 65536 + 3};
    test_init(&argc, &argv, "repro", MPI_THREAD_SINGLE);
    for (int n = 0; n < ARRAY_LEN(COUNTS); n++) {
        run(MPI_DOUBLE, "double", sizeof(double), COUNTS[n], has_option(argc, argv, "--any-order"));
        run(MPI_FLOAT, "float", sizeof(float), COUNTS[n], has_option(argc, argv, "--any-order"));
        for (int operation = 0; operation < OPERATIONS; operation++)
            run_rest(operation, COUNTS[n], has_option(argc, argv, "--any-order"));
    }
    return test_end();
}
