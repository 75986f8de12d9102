/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From how many bytes on processes read each other's memory is measured by the first blocking operation of a
 * job. Others come before and after it here: nonblocking ones that are under way meanwhile, and persistent
 * ones that were made before it. In each all ranks must go the same way: their data say.
 *
 *   --never   no blocking operation at all
 */
#include "harness.h"

enum { MOST = 300000, AT_A_TIME = 3 };

static unsigned char *own[AT_A_TIME], *all[AT_A_TIME];

static unsigned char expected(int of, int at, int round, int i)
{
    return (unsigned char)(i * 7 + (i >> 9) + 31 * of + 3 * round + at);
}

static void fill(int at, int bytes, int round)
{
    for (int i = 0; i < bytes; i++)
        own[at][i] = expected(test_rank, at, round, i);
    memset(all[at], 0, (size_t)bytes * test_size);
}

static void look(int at, int bytes, int round)
{
    int wrong = 0;
    for (int of = 0; of < test_size; of++)
        for (int i = 0; i < bytes; i++)
            wrong += all[at][(size_t)of * bytes + i] != expected(of, at, round, i);
    check(wrong == 0, "%d of %d bytes are wrong", wrong, bytes * test_size);
}

/* Nonblocking ones under way, a blocking one in between. */
static void round_of(int round, int bytes, int blocks, MPI_Comm comm)
{
    MPI_Request requests[AT_A_TIME - 1];
    for (int at = 1; at < AT_A_TIME; at++) {
        fill(at, bytes, round);
        must(MPI_Iallgather(own[at], bytes, MPI_BYTE, all[at], bytes, MPI_BYTE, comm, &requests[at - 1]));
    }
    if (blocks) {
        fill(0, bytes, round);
        must(MPI_Allgather(own[0], bytes, MPI_BYTE, all[0], bytes, MPI_BYTE, comm));
        look(0, bytes, round);
    }
    must(MPI_Waitall(AT_A_TIME - 1, requests, MPI_STATUSES_IGNORE));
    for (int at = 1; at < AT_A_TIME; at++)
        look(at, bytes, round);
}

int main(int argc, char **argv)
{
    static const int LENGTHS[] = {1, 70000, 131072, MOST};
    const int blocks = !has_option(argc, argv, "--never");
    test_init(&argc, &argv, "learn", MPI_THREAD_SINGLE);
    for (int at = 0; at < AT_A_TIME; at++) {
        own[at] = malloc(MOST);
        all[at] = malloc((size_t)MOST * test_size);
    }
    /* The second communicator knows the times from its beginning. */
    MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    for (int c = 0; c < 2; c++) {
        MPI_Request kept;
        must(MPI_Allgather_init(own[0], MOST, MPI_BYTE, all[0], MOST, MPI_BYTE, comms[c], MPI_INFO_NULL, &kept));
        for (int round = 0; round < 4 * ARRAY_LEN(LENGTHS); round++) {
            const int bytes = LENGTHS[round % ARRAY_LEN(LENGTHS)];
            doing("communicator %d, round %d, %d bytes", c, round, bytes);
            round_of(round, bytes, blocks && round > 1, comms[c]);
            fill(0, MOST, round);
            must(MPI_Start(&kept));
            must(MPI_Wait(&kept, MPI_STATUS_IGNORE));
            look(0, MOST, round);
        }
        must(MPI_Request_free(&kept));
        if (c == 0) {
            MPI_Request duplication;
            must(MPI_Comm_idup(MPI_COMM_WORLD, &comms[1], &duplication));
            must(MPI_Wait(&duplication, MPI_STATUS_IGNORE));
        }
    }
    must(MPI_Comm_free(&comms[1]));
    return test_end();
}
