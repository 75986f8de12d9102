/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts the instructions of short blocking calls on host memory, by single steps. Rank 0 is stepped; the
 * other ranks come to each call long before it needs them. Prints, for each call and kind of memory, the
 * least number in many calls: "count: bcast static 472". On x86-64 only; elsewhere it says so and prints
 * nothing else.
 */
#include "../mpi/harness.h"
#include <signal.h>

enum { CALLS = 200 };

static volatile sig_atomic_t steps;

#if defined __x86_64__
static void on_step(int signal)
{
    (void)signal;
    steps++;
}

#define STEP_ON() __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc")
#define STEP_OFF() __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc")
#endif

/* One call, stepped at rank 0 if so wanted. The red zone is not in use where a call follows. */
static __attribute__((noinline)) void call(int which, void *in, void *out)
{
    if (which == 0)
        must(MPI_Bcast(in, 1, MPI_LONG, 0, MPI_COMM_WORLD));
    else
        must(MPI_Allreduce(in == NULL ? MPI_IN_PLACE : in, out, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
}

static void count(int which, const char *memory, long *in, long *out)
{
    static const char *const NAME[] = {"bcast", "allreduce"};
    long least = -1;
    doing("%s of %s memory", NAME[which], memory);
    for (int i = 0; i < CALLS; i++) {
        *(in == NULL ? out : in) = test_rank + 1;
        steps = 0;
#if defined __x86_64__
        const int stepped = test_rank == 0 && i >= CALLS / 2; /* the first calls set much up */
        if (stepped)
            STEP_ON();
        call(which, in, out);
        if (stepped)
            STEP_OFF();
#endif
        const long taken = steps;
        check(which == 0 ? *in == 1 : *out == (long)test_size * (test_size + 1) / 2, "a wrong result");
        if (taken > 0 && (least < 0 || taken < least))
            least = taken;
        must(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (test_rank == 0)
        printf("count: %s %s %ld\n", NAME[which], memory, least);
}

int main(int argc, char **argv)
{
    static long in_data[2] = {1, 1}, in_bss[2];
    long on_stack[2];
    test_init(&argc, &argv, "count", MPI_THREAD_SINGLE);
#if defined __x86_64__
    struct sigaction action = {.sa_handler = on_step};
    sigaction(SIGTRAP, &action, NULL);
    long *heap = malloc(64), *large = malloc(1 << 20);
    for (int which = 0; which < 2; which++) {
        count(which, "static", in_data, in_bss);
        count(which, "stack", &on_stack[0], &on_stack[1]);
        count(which, "heap", heap, heap + 1);
        count(which, "mapped", large, large + 1);
        if (which == 1)
            count(which, "in place", NULL, in_data);
    }
    free(large);
    free(heap);
#else
    printf("count: SKIPPED: single steps are for x86-64\n");
#endif
    return test_end();
}
