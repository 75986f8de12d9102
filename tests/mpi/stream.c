/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endless stream of one collective, for killing one of its ranks in the middle.
 *
 *   stream OPERATION COUNT VICTIM [--return] [--inside | --outside] [--abort] [--after US]   the rank
 *   VICTIM kills itself with SIGKILL after some calls
 *
 * With --inside it does so while it waits in a call that the others begin late; with --outside, before a call
 * that the others wait in.
 *
 * With --abort it does so with SIGABRT, which leaves a core file where the limits allow one.
 *
 * With --after, so many microseconds after MPI_Init, whatever it does then; with 0 before its first call.
 *
 * With --return, where the runtime leaves the other ranks alive (mpiexec --enable-recovery), each of them
 * says that a call has returned an error, and ends.
 */
#include "fourops.h"
#include <time.h>

enum { LAST = 40, LATE_US = 1000000, SOON_MS = 300 };

/* The kernel sends SIGKILL in a while, whatever the caller does then. */
static void kill_soon(long us)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec when = {.it_value = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL))
        MPI_Abort(MPI_COMM_WORLD, 4);
}

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
    int inside = has_option(argc, argv, "--inside"), outside = has_option(argc, argv, "--outside");
    int aborts = has_option(argc, argv, "--abort"), is_victim = test_rank == victim;
    if (returns)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    long after = option_number(argc, argv, "--after", -1);
    if (after >= 0) {
        if (is_victim) {
            fprintf(stderr, "stream: rank %d of %d kills itself\n", test_rank, test_size);
            after ? kill_soon(after) : (void)raise(SIGKILL);
        }
        for (int i = 0;; i++) {
            MPI_Comm dup = MPI_COMM_WORLD;
            if (i > 0)
                MPI_Comm_dup(MPI_COMM_WORLD, &dup); /* each with a handshake of its own */
            w.comm = dup;
            work_fill(&w, i);
            work_do(&w);
        }
    }
    for (int i = 0;; i++) {
        MPI_Request request;
        doing("%s number %d of %d ints", argv[1], i, count);
        work_fill(&w, i);
        if (i == LAST && (inside || outside) && is_victim == outside)
            usleep(LATE_US);
        if (i == LAST && is_victim) {
            fprintf(stderr, "stream: rank %d of %d kills itself\n", test_rank, test_size);
            inside ? kill_soon(SOON_MS * 1000L) : (void)raise(aborts ? SIGABRT : SIGKILL);
        }
        int code;
        if (i % 3 == 2) {
            code = work_begin(&w, &request);
            code = code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
        } else {
            code = work_do(&w);
        }
        if (i == LAST && is_victim) /* it has not waited */
            MPI_Abort(MPI_COMM_WORLD, 5);
        if (returns && code != MPI_SUCCESS) {
            fprintf(stderr, "stream: rank %d of %d got an error\n", test_rank, test_size);
            _exit(9);
        }
        if (i < LAST)
            work_check(&w, i, "before the kill");
        if (test_failed)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
}
