/*
 * An endless stream of one collective, for killing one of its ranks in the middle.
 *
 *   stream OPERATION COUNT VICTIM [--return]   the rank VICTIM kills itself with SIGKILL after some calls
 *
 * With --return, where the runtime leaves the other ranks alive (mpiexec --enable-recovery), each of them says that a call has returned an
 * error, and ends.
 */
#include "fourops.h"

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "stream", MPI_THREAD_SINGLE);
    if (argc < 4) {
        fail("wants an operation, a count and a rank");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int victim = atoi(argv[3]), count = atoi(argv[2]);
    enum operation operation = BCAST;
    while (operation < BARRIER && strcasecmp(OPERATION_NAME[operation], argv[1]))
        operation++;
    struct work w;
    work_make(&w, operation, count, 0, MPI_COMM_WORLD);
    int returns = has_option(argc, argv, "--return");
    if (returns)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0;; i++) {
        MPI_Request request;
        doing("%s number %d of %d ints", argv[1], i, count);
        if (i == 40 && test_rank == victim) {
            fprintf(stderr, "stream: rank %d of %d kills itself\n", test_rank, test_size);
            raise(SIGKILL);
        }
        work_fill(&w, i);
        int code;
        if (i % 3 == 2) {
            code = work_begin(&w, &request);
            code = code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
        } else {
            code = work_do(&w);
        }
        if (returns && code != MPI_SUCCESS) {
            fprintf(stderr, "stream: rank %d of %d got an error\n", test_rank, test_size);
            _exit(9);
        }
        if (i < 40)
            work_check(&w, i, "before the kill");
        if (test_failed)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
}
