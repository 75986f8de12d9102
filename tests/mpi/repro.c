/*
 * Floating-point sums whose bits depend on the order of combination. Prints a line "repro <type> <count> <hash>" for
 * each; with coll_rust_reproducible=1 they must be the same for every placement of the same number of ranks (the runner
 * compares), for every root, and for Reduce and Allreduce, blocking, nonblocking and persistent (checked here).
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

int main(int argc, char **argv)
{
    static const int COUNTS[] = {1, 100, 4097, 65536 + 3};
    test_init(&argc, &argv, "repro", MPI_THREAD_SINGLE);
    for (int n = 0; n < ARRAY_LEN(COUNTS); n++) {
        run(MPI_DOUBLE, "double", sizeof(double), COUNTS[n], has_option(argc, argv, "--any-order"));
        run(MPI_FLOAT, "float", sizeof(float), COUNTS[n], has_option(argc, argv, "--any-order"));
    }
    return test_end();
}
