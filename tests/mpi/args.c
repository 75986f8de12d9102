/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls whose arguments do not fit together, with MPI_ERRORS_RETURN: an error code that says so, or success,
 * and no panic. All ranks make the same mistake, on a communicator of its own, of which nothing is defined
 * after the error.
 */
#include "harness.h"

enum { ROOM = 1 << 14 };

static int send_room[ROOM], receive_room[ROOM];

/* What the call may end with. */
enum expected { MUST_FAIL, MUST_SUCCEED, MAY };

static void judge(const char *what, int mode, enum expected expected, int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    if (expected == MUST_SUCCEED)
        check(class == MPI_SUCCESS, "%s %s returned the error class %d", MODE_NAME[mode], what, class);
    else if (expected == MAY)
        check(class != MPI_ERR_UNKNOWN, "%s %s returned the error class %d", MODE_NAME[mode], what, class);
    else
        check(class == MPI_ERR_TRUNCATE || class == MPI_ERR_COUNT || class == MPI_ERR_ARG, "%s %s returned the error class %d", MODE_NAME[mode], what, class);
}

static int finish(int mode, int code, MPI_Request *request)
{
    if (mode == PERSISTENT && code == MPI_SUCCESS)
        code = MPI_Start(request);
    if (mode != BLOCKING && code == MPI_SUCCESS)
        code = MPI_Wait(request, MPI_STATUS_IGNORE);
    return code;
}

static MPI_Comm fresh(int around)
{
    MPI_Comm comm;
    int size = test_size, periodic = 1, weight = 1;
    if (around == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else if (around == 1)
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
    else { /* one edge from each rank to itself */
        int me = test_rank;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &me, &weight, 1, &me, &weight, MPI_INFO_NULL, 0, &comm);
    }
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

/* Nothing is under way any more when all are here; the communicator's shared memory is needed. */
static void leave(MPI_Comm *comm, MPI_Request *request)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (*request != MPI_REQUEST_NULL)
        MPI_Request_free(request);
    MPI_Comm_free(comm);
}

/* One call in the mode at hand, on a communicator of its own. */
#define TRY(expected, around, Name, name, ...)                                                                   \
    do {                                                                                                         \
        MPI_Request request = MPI_REQUEST_NULL;                                                                  \
        doing("%s %s(%s)", MODE_NAME[mode], #Name, #__VA_ARGS__);                                                \
        MPI_Comm comm = fresh(around);                                                                           \
        judge(#Name "(" #__VA_ARGS__ ")", mode, expected,                                                        \
              finish(mode, IN_MODE(mode, Name, name, comm, &request, __VA_ARGS__), &request));                   \
        leave(&comm, &request);                                                                                  \
    } while (0)
#define TRY_AROUND(expected, around, Name, name, ...)                                                            \
    do {                                                                                                         \
        MPI_Request request = MPI_REQUEST_NULL;                                                                  \
        if (mode == PERSISTENT)                                                                                  \
            break;                                                                                               \
        doing("%s %s(%s)", MODE_NAME[mode], #Name, #__VA_ARGS__);                                                \
        MPI_Comm comm = fresh(around);                                                                           \
        judge(#Name "(" #__VA_ARGS__ ")", mode, expected,                                                        \
              finish(mode, mode == BLOCKING ? MPI_##Name(__VA_ARGS__, comm) : MPI_I##name(__VA_ARGS__, comm, &request), &request)); \
        leave(&comm, &request);                                                                                  \
    } while (0)

/* n: ints that fit a line, a slot, or neither. */
static void mistakes(int mode, int n)
{
    int *s = send_room, *r = receive_room, np = test_size, root = np - 1;
    int counts[16], displs[16], zeros[16] = {0}, longer[16], shorter[16], negative[16], huge[16], bytes[16];
    MPI_Datatype ints[16], empties[16], empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int i = 0; i < np; i++) {
        counts[i] = n, displs[i] = i * 2 * n, longer[i] = 2 * n, shorter[i] = n / 2;
        negative[i] = -(i + 1), huge[i] = 0x7fffffff - i, bytes[i] = displs[i] * (int)sizeof(int), ints[i] = MPI_INT, empties[i] = empty;
    }
    /* Both sides of the caller's own block. */
    TRY(MUST_FAIL, 0, Allgather, allgather, s, n, MPI_INT, r, n / 2, MPI_INT);
    TRY(MUST_FAIL, 0, Allgather, allgather, s, n / 2, MPI_INT, r, n, MPI_INT);
    TRY(MUST_FAIL, 0, Allgatherv, allgatherv, s, n, MPI_INT, r, shorter, displs, MPI_INT);
    TRY(MUST_FAIL, 0, Allgatherv, allgatherv, s, n, MPI_INT, r, longer, displs, MPI_INT);
    TRY(MUST_FAIL, 0, Allgatherv, allgatherv, s, 0, MPI_INT, r, counts, displs, MPI_INT);
    TRY(MUST_FAIL, 0, Alltoall, alltoall, s, n, MPI_INT, r, n / 2, MPI_INT);
    TRY(MUST_FAIL, 0, Alltoallv, alltoallv, s, counts, displs, MPI_INT, r, shorter, displs, MPI_INT);
    TRY(MUST_FAIL, 0, Alltoallw, alltoallw, s, counts, bytes, ints, r, shorter, bytes, ints);
    TRY(MAY, 0, Alltoall, alltoall, s, n / 2, MPI_INT, r, n, MPI_INT);
    TRY(MAY, 0, Alltoallv, alltoallv, s, shorter, displs, MPI_INT, r, counts, displs, MPI_INT);
    int mine = test_rank == root;
    TRY(mine ? MUST_FAIL : MAY, 0, Gather, gather, s, n, MPI_INT, r, n / 2, MPI_INT, root);
    TRY(mine ? MUST_FAIL : MAY, 0, Gatherv, gatherv, s, n, MPI_INT, r, shorter, displs, MPI_INT, root);
    TRY(mine ? MUST_FAIL : MAY, 0, Scatter, scatter, s, n, MPI_INT, r, n / 2, MPI_INT, root);
    TRY(mine ? MUST_FAIL : MAY, 0, Scatterv, scatterv, s, counts, displs, MPI_INT, r, n / 2, MPI_INT, root);
    /* What Open MPI's own components accept: the root's own block is where it should be. */
    TRY(MAY, 0, Gatherv, gatherv, s, mine ? 0 : n, MPI_INT, r, counts, displs, MPI_INT, root);
    TRY(MAY, 0, Scatterv, scatterv, s, counts, displs, MPI_INT, r, mine ? 0 : n, MPI_INT, root);
    /* An edge of a rank with itself. */
    TRY_AROUND(MUST_FAIL, 2, Neighbor_allgather, neighbor_allgather, s, n, MPI_INT, r, n / 2, MPI_INT);
    TRY_AROUND(MUST_FAIL, 2, Neighbor_allgatherv, neighbor_allgatherv, s, n, MPI_INT, r, shorter, displs, MPI_INT);
    TRY_AROUND(MUST_FAIL, 2, Neighbor_alltoall, neighbor_alltoall, s, n, MPI_INT, r, n / 2, MPI_INT);
    TRY_AROUND(MUST_FAIL, 2, Neighbor_alltoallv, neighbor_alltoallv, s, counts, displs, MPI_INT, r, shorter, displs, MPI_INT);
    /* Places that hold nothing may be anywhere; types without data; blocks that overlap. */
    TRY(MUST_SUCCEED, 0, Allgatherv, allgatherv, s, 0, MPI_INT, r, zeros, huge, MPI_INT);
    TRY(MUST_SUCCEED, 0, Alltoallv, alltoallv, s, zeros, negative, MPI_INT, r, zeros, huge, MPI_INT);
    TRY(MUST_SUCCEED, 0, Alltoallw, alltoallw, s, zeros, huge, ints, r, zeros, negative, ints);
    TRY(MUST_SUCCEED, 0, Alltoallw, alltoallw, s, counts, bytes, empties, r, counts, bytes, empties);
    TRY(MUST_SUCCEED, 0, Gatherv, gatherv, s, 0, MPI_INT, r, zeros, negative, MPI_INT, root);
    TRY(MUST_SUCCEED, 0, Scatterv, scatterv, s, zeros, huge, MPI_INT, r, 0, MPI_INT, root);
    TRY(MUST_SUCCEED, 0, Allgather, allgather, s, n, empty, r, n, empty);
    TRY(MUST_SUCCEED, 0, Alltoallv, alltoallv, s, counts, huge, empty, r, counts, negative, empty);
    TRY(MUST_SUCCEED, 0, Bcast, bcast, r, n, empty, root);
    TRY(MUST_SUCCEED, 0, Reduce_scatter, reduce_scatter, s, r, zeros, MPI_INT, MPI_SUM);
    TRY(MUST_SUCCEED, 0, Allgatherv, allgatherv, s, n, MPI_INT, r, counts, zeros, MPI_INT);
    TRY(MUST_SUCCEED, 0, Alltoallv, alltoallv, s, counts, zeros, MPI_INT, r, counts, zeros, MPI_INT);
    TRY(MUST_SUCCEED, 0, Allgatherv, allgatherv, s, n, MPI_INT, r + ROOM / 2, counts, negative, MPI_INT);
    TRY_AROUND(MUST_SUCCEED, 1, Neighbor_allgather, neighbor_allgather, s, n, empty, r, n, empty);
    TRY_AROUND(MUST_SUCCEED, 1, Neighbor_alltoallv, neighbor_alltoallv, s, zeros, negative, MPI_INT, r, zeros, huge, MPI_INT);
    MPI_Type_free(&empty);
}

int main(int argc, char **argv)
{
    static const int COUNTS[] = {4, 16, 500, 1800};
    test_init(&argc, &argv, "args", MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int mode = BLOCKING; mode <= PERSISTENT; mode++)
        for (int i = 0; i < ARRAY_LEN(COUNTS); i++)
            mistakes(mode, COUNTS[i]);
    int x = 1, sum = 0;
    doing("Allreduce at the end");
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == test_size, "Allreduce after errors elsewhere: got %d, expected %d", sum, test_size);
    return test_end();
}
