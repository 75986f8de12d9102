/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that wait long in shared memory, while others are stopped, or need them for something else.
 *
 *   --parts LIST   of (default all)
 *     stop         the last rank is stopped for some seconds (SIGSTOP, SIGCONT) during a stream of operations
 *     rendezvous   a rank sends a large message to one that waits in a collective already
 *   --seconds N    that the rank is stopped (default 5)
 */
#include "fourops.h"

/* Lets another process stop this one a little later, and go on again. */
static void stop_myself(int seconds)
{
    char command[128];
    snprintf(command, sizeof command, "(sleep 0.5; kill -STOP %d; sleep %d; kill -CONT %d) </dev/null >/dev/null 2>&1 &", getpid(), seconds,
             getpid());
    check(system(command) == 0, "cannot start '%s'", command);
}

/* All ranks go on until the first one says that it is over. */
static void stop(int seconds)
{
    static const int COUNTS[] = {1, 100, 5000, 100000};
    double start = seconds_now(), longest = 0;
    int over = 0;
    if (test_rank == test_size - 1)
        stop_myself(seconds);
    for (int i = 0; !over; i++) {
        double before = seconds_now();
        doing("round %d of a stream with a rank that is stopped", i);
        all_four(MPI_COMM_WORLD, COUNTS[i % ARRAY_LEN(COUNTS)], i, "with a rank that is stopped");
        over = test_rank == 0 && seconds_now() - start > seconds + 1.0;
        must(MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD));
        double took = seconds_now() - before;
        longest = took > longest ? took : longest;
    }
    check(longest > seconds / 2.0, "nobody was stopped: the longest round took %g s", longest);
}

/* The receiver has posted its receive and waits in a collective, which the sender joins after its send. */
static void rendezvous(void)
{
    enum { BYTES = 1 << 20, ROUNDS = 10 };
    char *data = malloc(BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        int sender = round % test_size, receiver = (sender + 1) % test_size, sum = 0;
        MPI_Request request = MPI_REQUEST_NULL;
        doing("round %d of a large message to rank %d, which waits in a collective", round, receiver);
        memset(data, test_rank == sender ? 'a' + round : 0, BYTES);
        if (test_rank == receiver)
            must(MPI_Irecv(data, BYTES, MPI_CHAR, sender, 5, MPI_COMM_WORLD, &request));
        if (test_rank == sender) {
            usleep(20000); /* by now the others wait */
            must(MPI_Send(data, BYTES, MPI_CHAR, receiver, 5, MPI_COMM_WORLD));
        }
        if (round % 2)
            must(MPI_Barrier(MPI_COMM_WORLD));
        else
            must(MPI_Allreduce(&test_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        check(round % 2 || sum == test_size * (test_size - 1) / 2, "round %d: Allreduce got %d", round, sum);
        must(MPI_Wait(&request, MPI_STATUS_IGNORE));
        int wrong = 0;
        for (int i = 0; i < BYTES && test_rank == receiver; i++)
            wrong += data[i] != 'a' + round;
        check(!wrong, "round %d: %d bytes of the message are wrong", round, wrong);
    }
    free(data);
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "waits", MPI_THREAD_SINGLE);
    const char *parts = option_text(argc, argv, "--parts", "all");
    all_four(MPI_COMM_WORLD, 100, 1, "first");
    if (in_list(parts, "stop"))
        stop((int)option_number(argc, argv, "--seconds", 5));
    if (in_list(parts, "rendezvous"))
        rendezvous();
    return test_end();
}
