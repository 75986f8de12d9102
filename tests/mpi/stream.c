/*
 * An endless stream of one collective, for killing one of its ranks in the middle.
 *
 *   stream OPERATION COUNT VICTIM   the rank VICTIM kills itself with SIGKILL after some calls
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
    for (int i = 0;; i++) {
        MPI_Request request;
        doing("%s number %d of %d ints", argv[1], i, count);
        if (i == 40 && test_rank == victim) {
            fprintf(stderr, "stream: rank %d of %d kills itself\n", test_rank, test_size);
            raise(SIGKILL);
        }
        work_fill(&w, i);
        if (i % 3 == 2) {
            work_begin(&w, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            work_do(&w);
        }
        if (i < 40)
            work_check(&w, i, "before the kill");
        if (test_failed)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
}
