/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator's first blocking calls go to the component below (coll_rust_first_calls). All ranks must
 * agree which those are, whatever else is under way: nonblocking calls, which one rank may have finished
 * already and another not, calls without data, which some ranks make and others do not, and what Open MPI
 * calls itself. A rank that goes another way than the others hangs, or gets wrong data.
 *
 *   --count    the first calls of the job only, of which the report tells how many went below
 *   --shares   these are Reduce_scatters
 */
#include "harness.h"

enum { ROUNDS = 60, MOST = 40 };

static unsigned state;

/* The same on all ranks. */
static unsigned draw(unsigned n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % n;
}

static void sums(MPI_Comm comm, int round)
{
    long mine = test_rank + round, sum = -1;
    must(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm));
    const long expected = (long)test_size * (test_size - 1) / 2 + (long)test_size * round;
    check(sum == expected, "%ld instead of %ld", sum, expected);
}

static void blocks(MPI_Comm comm, int round)
{
    int own[MOST], all[MOST];
    for (int i = 0; i < test_size; i++)
        own[i] = 100 * test_rank + i + round;
    must(MPI_Alltoall(own, 1, MPI_INT, all, 1, MPI_INT, comm));
    for (int i = 0; i < test_size; i++)
        check(all[i] == 100 * i + test_rank + round, "block of %d: %d", i, all[i]);
}

static void share(MPI_Comm comm, int round)
{
    const int root = round % test_size;
    int value = test_rank == root ? 7 * round : -1;
    must(MPI_Bcast(&value, 1, MPI_INT, root, comm));
    check(value == 7 * round, "%d instead of %d", value, 7 * round);
}

/* Every other rank gets nothing. */
static void shares(MPI_Comm comm, int round)
{
    int counts[MOST], own[MOST], mine = -1, at = 0;
    for (int i = 0; i < test_size; i++) {
        counts[i] = i % 2 == round % 2;
        if (counts[i])
            own[at++] = 100 * i + test_rank + round;
    }
    must(MPI_Reduce_scatter(own, &mine, counts, MPI_INT, MPI_SUM, comm));
    const int sum = test_size * (100 * test_rank + round) + test_size * (test_size - 1) / 2;
    check(mine == (counts[test_rank] ? sum : -1), "%d, the sum is %d", mine, sum);
}

/* No data: some describe them by elements of no size, for the others Open MPI's binding returns at once. */
static void nothing(MPI_Comm comm)
{
    MPI_Datatype empty;
    int value = 3;
    must(MPI_Type_contiguous(0, MPI_INT, &empty));
    must(MPI_Type_commit(&empty));
    if (test_rank % 2)
        must(MPI_Bcast(&value, 5, empty, 0, comm));
    else
        must(MPI_Bcast(&value, 0, MPI_INT, 0, comm));
    must(MPI_Type_free(&empty));
    check(value == 3, "no data changed it to %d", value);
}

static void on(MPI_Comm comm, int round)
{
    MPI_Request requests[3];
    int value[3], count = 0;
    for (int call = 0; call < 12; call++) {
        doing("round %d, call %d", round, call);
        switch (draw(8)) {
        case 0:
            sums(comm, round);
            break;
        case 1:
            blocks(comm, round);
            break;
        case 2:
            share(comm, round);
            break;
        case 3:
            nothing(comm);
            break;
        case 4:
            must(MPI_Barrier(comm));
            break;
        case 6:
            shares(comm, round);
            break;
        case 5:
            /* Under way over the blocking calls that follow; ranks come at different moments. */
            if (count < ARRAY_LEN(requests)) {
                if (draw(2) == (unsigned)test_rank % 2)
                    usleep(300);
                value[count] = test_rank == 0 ? round : -1;
                must(MPI_Ibcast(&value[count], 1, MPI_INT, 0, comm, &requests[count]));
                count++;
            }
            break;
        default:
            must(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
            for (int i = 0; i < count; i++)
                check(value[i] == round, "nonblocking one: %d", value[i]);
            count = 0;
        }
    }
    must(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
}

int main(int argc, char **argv)
{
    const int count = has_option(argc, argv, "--count");
    test_init(&argc, &argv, "first", MPI_THREAD_SINGLE);
    const int scatters = has_option(argc, argv, "--shares");
    for (int i = 0; i < 10; i++)
        (scatters ? shares : sums)(MPI_COMM_WORLD, i);
    for (int round = 0; round < (count ? 0 : ROUNDS); round++) {
        MPI_Comm comm;
        state = 77u + (unsigned)round;
        if (round % 3 == 0) {
            MPI_Request made;
            must(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &made));
            sums(MPI_COMM_WORLD, round);
            must(MPI_Wait(&made, MPI_STATUS_IGNORE));
        } else if (round % 3 == 1) {
            must(MPI_Comm_split(MPI_COMM_WORLD, 0, test_rank, &comm));
        } else {
            must(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        }
        on(comm, round);
        must(MPI_Comm_free(&comm));
    }
    return test_end();
}
