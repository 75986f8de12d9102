/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_ERRORS_RETURN: an erroneous call gives an error code to the ranks that can know, and the program lives
 * on. Every part uses a communicator of its own, because after an error its state is undefined.
 *
 * To be run where the algorithm does not depend on the size (which these calls get wrong) and where the last
 * rank is a leaf: coll_rust_levels=none, coll_rust_bcast_algorithm=flat, coll_rust_bcast_segment_size=0.
 *
 *   --stock       without the truncations: Open MPI's own Bcast hangs or writes behind the buffer
 *   --unchecked   only reductions that are not defined, where Open MPI's bindings do not look
 *   (mpi_param_check = 0)
 */
#include "harness.h"

/* The root broadcasts more than the last rank has room for. That rank must get an error; the others may or
 * may not notice, but all must return. */
static void truncation(int numbers, int room, int mode)
{
    static const char *const MODES[] = {"blocking", "nonblocking", "persistent"};
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    doing("making a communicator");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int last = test_rank == test_size - 1, mine = last ? room : numbers, code;
    int *p = malloc(sizeof(int) * ((size_t)numbers + 64));
    for (int i = 0; i < numbers + 64; i++)
        p[i] = test_rank == 0 ? i : -1;
    doing("%s Bcast np=%d root=0 of %d ints to a rank with room for %d", MODES[mode], test_size, numbers, room);
    if (mode == 0) {
        code = MPI_Bcast(p, mine, MPI_INT, 0, comm);
    } else {
        code = mode == 1 ? MPI_Ibcast(p, mine, MPI_INT, 0, comm, &request)
                         : MPI_Bcast_init(p, mine, MPI_INT, 0, comm, MPI_INFO_NULL, &request);
        if (mode == 2 && code == MPI_SUCCESS)
            code = MPI_Start(&request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (last) {
        int class = -1, beyond = 0;
        MPI_Error_class(code, &class);
        for (int i = room; i < numbers + 64; i++)
            beyond += p[i] != -1;
        check(code != MPI_SUCCESS, "a truncated Bcast returned MPI_SUCCESS");
        check(class == MPI_ERR_TRUNCATE || class == MPI_ERR_OTHER || class == MPI_ERR_INTERN || class == MPI_ERR_UNKNOWN || class == MPI_ERR_COUNT,
              "a truncated Bcast returned the error class %d", class);
        /* Only for messages that travel at once: of larger ones, Open MPI's own Recv writes all behind the
         * buffer too. */
        check(numbers > 100 || beyond == 0, "%d ints behind the room of %d were written", beyond, room);
    } else if (test_rank == 0) {
        check(p[numbers - 1] == numbers - 1, "the root's buffer changed");
    }
    /* The communicator is not freed: what a failed operation left in flight must not meet a later one. The
     * buffer stays for the same reason. */
}

/* What the bindings reject themselves never reaches the module and must not disturb it. */
static void rejected(void)
{
    MPI_Comm comm;
    MPI_Request request;
    int x = test_rank, y = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    doing("calls with wrong arguments");
    check(MPI_Bcast(&x, 1, MPI_INT, test_size, comm) != MPI_SUCCESS, "Bcast from a root outside the communicator succeeded");
    check(MPI_Bcast(&x, -1, MPI_INT, 0, comm) != MPI_SUCCESS, "Bcast of -1 elements succeeded");
    check(MPI_Reduce(&x, &y, 1, MPI_INT, MPI_SUM, -5, comm) != MPI_SUCCESS, "Reduce to root -5 succeeded");
    check(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_OP_NULL, comm) != MPI_SUCCESS, "Allreduce with MPI_OP_NULL succeeded");
    check(MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_BAND, comm) != MPI_SUCCESS, "Allreduce of doubles with MPI_BAND succeeded");
    check(MPI_Ireduce(&x, &y, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, comm, &request) != MPI_SUCCESS, "Ireduce of no type succeeded");
    MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm);
    check(y == test_size * (test_size - 1) / 2, "Allreduce after rejected calls: got %d", y);
    MPI_Comm_free(&comm);
}

static void refused(const char *what, int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_OP, "%s returned the error class %d", what, class);
}

/* Predefined operations on a derived datatype, and on a predefined one that they are not defined on. */
static void undefined(void)
{
    static double a[8000], b[8000];
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    for (int round = 0; round < 3; round++) {
        int n = round == 1 ? 4000 : 1, root = round % test_size;
        for (int mode = BLOCKING; mode <= PERSISTENT; mode++) {
            MPI_Request request = MPI_REQUEST_NULL;
            doing("%s reductions of derived datatypes", MODE_NAME[mode]);
            refused("Allreduce", IN_MODE(mode, Allreduce, allreduce, MPI_COMM_WORLD, &request, a, b, n, pair, MPI_SUM));
            refused("Reduce", IN_MODE(mode, Reduce, reduce, MPI_COMM_WORLD, &request, a, b, n, pair, MPI_MAX, root));
            refused("Scan", IN_MODE(mode, Scan, scan, MPI_COMM_WORLD, &request, a, b, n, pair, MPI_PROD));
            refused("Allreduce", IN_MODE(mode, Allreduce, allreduce, MPI_COMM_WORLD, &request, a, b, n, MPI_DOUBLE, MPI_BAND));
        }
        double one = 1, sum = 0;
        must(MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        check(sum == test_size, "Allreduce after those that were refused: got %g", sum);
    }
    MPI_Type_free(&pair);
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "errors", MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (has_option(argc, argv, "--unchecked")) {
        undefined();
        return test_end();
    }
    rejected();
    for (int mode = 0; mode < 3 && test_size > 1 && !has_option(argc, argv, "--stock"); mode++) {
        truncation(10, 3, mode);
        truncation(20000, 19000, mode);
        truncation(300000, 3, mode);
    }
    int x = 1, sum = 0;
    doing("Allreduce at the end");
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == test_size, "Allreduce on MPI_COMM_WORLD after errors elsewhere: got %d, expected %d", sum, test_size);
    return test_end();
}
