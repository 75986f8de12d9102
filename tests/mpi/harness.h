/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the test programs share: the watchdog, the counting of checks, the names of the persistent
 * collectives in the version of Open MPI at hand, and small random numbers.
 *
 * A program calls test_init first, doing(...) before whatever may hang, check(...) for what must
 * hold, and ends with `return test_end();`. On failure each rank prints its first few messages; rank
 * 0 ends with "name: N passed, N failed", and every rank returns non-zero if any rank failed.
 */
#ifndef COLL_RUST_TESTS_HARNESS_H
#define COLL_RUST_TESTS_HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Reduce_init MPIX_Reduce_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Barrier_init MPIX_Barrier_init
#define MPI_Allgather_init MPIX_Allgather_init
#define MPI_Allgatherv_init MPIX_Allgatherv_init
#define MPI_Alltoall_init MPIX_Alltoall_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#define MPI_Alltoallw_init MPIX_Alltoallw_init
#define MPI_Exscan_init MPIX_Exscan_init
#define MPI_Gather_init MPIX_Gather_init
#define MPI_Gatherv_init MPIX_Gatherv_init
#define MPI_Reduce_scatter_init MPIX_Reduce_scatter_init
#define MPI_Reduce_scatter_block_init MPIX_Reduce_scatter_block_init
#define MPI_Scan_init MPIX_Scan_init
#define MPI_Scatter_init MPIX_Scatter_init
#define MPI_Scatterv_init MPIX_Scatterv_init
#endif
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_LEN(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* ---------------------------------------------------------------- watchdog */

enum { DOING_SLOTS = 16, DOING_TEXT = 256, MESSAGES_PER_RANK = 4 };

static const char *test_name = "test";
static int test_rank = -1, test_size = 0;
static unsigned test_watchdog_seconds = 60;
static char test_doing[DOING_SLOTS][DOING_TEXT];
static __thread int test_slot = 0;
static struct sigaction test_old_action[NSIG];
static pthread_mutex_t test_lock = PTHREAD_MUTEX_INITIALIZER;
static long test_passed = 0, test_failed = 0;

/* Says where this rank is. Called from signal handlers: the texts were made by doing(). */
static void test_where(const char *what)
{
    char text[DOING_TEXT + 128];
    for (int slot = 0; slot < DOING_SLOTS; slot++) {
        if (!test_doing[slot][0])
            continue;
        int length = snprintf(text, sizeof text, "%s: rank %d of %d %s in: %s\n", test_name, test_rank, test_size, what,
                              test_doing[slot]);
        if (write(2, text, (size_t)length) < 0)
            break;
    }
}

/* The time is counted in parts, by the process itself: one that was stopped for long (SIGSTOP) has not waited
 * so long. */
enum { TEST_PARTS = 12 };
static volatile sig_atomic_t test_parts = 0;

static void test_start_clock(void)
{
    test_parts = 0;
    alarm((test_watchdog_seconds + TEST_PARTS - 1) / TEST_PARTS);
}

static void test_alarm(int signal)
{
    (void)signal;
    if (++test_parts < TEST_PARTS) {
        alarm((test_watchdog_seconds + TEST_PARTS - 1) / TEST_PARTS);
        return;
    }
    test_where("hangs");
    sleep(1); /* the other ranks say where they are before mpiexec ends the job */
    _exit(124);
}

static void test_crash(int number, siginfo_t *info, void *context)
{
    test_where("crashes");
    if (test_old_action[number].sa_flags & SA_SIGINFO)
        test_old_action[number].sa_sigaction(number, info, context); /* Open MPI's stack trace */
    signal(number, SIG_DFL);
    raise(number);
}

/* Says what comes next, for the watchdog, and gives it the full time again. */
__attribute__((format(printf, 1, 2))) static inline void doing(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(test_doing[test_slot], DOING_TEXT, format, arguments);
    va_end(arguments);
    test_start_clock();
}

/* ---------------------------------------------------------------- checks */

__attribute__((format(printf, 1, 2))) static inline void fail(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&test_lock);
    if (test_failed++ < MESSAGES_PER_RANK) {
        printf("%s: FAILED at rank %d of %d: %s [%s]\n", test_name, test_rank, test_size, text, test_doing[test_slot]);
        fflush(stdout);
    }
    pthread_mutex_unlock(&test_lock);
}

static inline void pass(void)
{
    pthread_mutex_lock(&test_lock);
    test_passed++;
    pthread_mutex_unlock(&test_lock);
}

/* Counts a check; the message (what was got, what was expected) is only made on failure. */
#define check(condition, ...)          \
    do {                               \
        if (condition)                 \
            pass();                    \
        else                           \
            fail(__VA_ARGS__);         \
    } while (0)

/* An MPI call that must succeed where the error handler returns. */
#define must(call)                                                     \
    do {                                                               \
        int must_code = (call);                                        \
        if (must_code != MPI_SUCCESS) {                                \
            fail("%s returned error %d", #call, must_code);            \
            MPI_Abort(MPI_COMM_WORLD, 1);                              \
        }                                                              \
    } while (0)

/* ---------------------------------------------------------------- start and end */

static void test_init(int *argc, char ***argv, const char *name, int thread_level)
{
    int provided;
    test_name = name;
    const char *seconds = getenv("COLL_RUST_TEST_WATCHDOG");
    if (seconds && atoi(seconds) > 0)
        test_watchdog_seconds = (unsigned)atoi(seconds);
    struct sigaction action = {.sa_handler = test_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    doing("MPI_Init_thread");
    MPI_Init_thread(argc, argv, thread_level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &test_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test_size);
    static const int CRASHES[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
    struct sigaction crash = {.sa_sigaction = test_crash, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < ARRAY_LEN(CRASHES); i++)
        sigaction(CRASHES[i], &crash, &test_old_action[CRASHES[i]]);
    if (provided < thread_level) {
        printf("%s: FAILED: thread level %d asked, %d provided\n", name, thread_level, provided);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Adds up the counts over point-to-point, so that a wrong collective cannot hide itself; with
 * COLL_RUST_TEST_COLLECTIVE_SUM, where ranks do not reach each other so, by an Allreduce. */
static inline int test_end(void)
{
    enum { TAG = 4711 };
    long all[2] = {test_passed, test_failed};
    doing("adding up the checks");
    if (getenv("COLL_RUST_TEST_COLLECTIVE_SUM")) {
        MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    } else if (test_rank == 0) {
        for (int r = 1; r < test_size; r++) {
            long one[2];
            MPI_Recv(one, 2, MPI_LONG, r, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            all[0] += one[0];
            all[1] += one[1];
        }
        for (int r = 1; r < test_size; r++)
            MPI_Send(all, 2, MPI_LONG, r, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Send(all, 2, MPI_LONG, 0, TAG, MPI_COMM_WORLD);
        MPI_Recv(all, 2, MPI_LONG, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (all[0] == 0 && all[1] == 0)
        all[1] = 1; /* a test that checked nothing has not passed */
    doing("MPI_Finalize");
    MPI_Finalize();
    alarm(0);
    if (test_rank == 0) {
        printf("%s: %ld passed, %ld failed\n", test_name, all[0], all[1]);
        fflush(stdout);
    }
    return all[1] != 0;
}

/* ---------------------------------------------------------------- options and numbers */

static inline int has_option(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], option))
            return 1;
    return 0;
}

/* The word after `option`, or `otherwise`. */
static inline const char *option_text(int argc, char **argv, const char *option, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], option))
            return argv[i + 1];
    return otherwise;
}

static inline long option_number(int argc, char **argv, const char *option, long otherwise)
{
    const char *text = option_text(argc, argv, option, NULL);
    return text ? atol(text) : otherwise;
}

/* Is `word` in the comma list? "all" holds everything. */
static inline int in_list(const char *list, const char *word)
{
    size_t length = strlen(word);
    if (!strcmp(list, "all"))
        return 1;
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, word, length) && (at[length] == ',' || at[length] == '\0'))
            return 1;
    return 0;
}

/* A well mixed number from a seed (splitmix64's finaliser). */
static inline uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t mix4(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return mix(mix(mix(mix(a) ^ b) ^ c) ^ d);
}

/* The next number of a rank's own stream, below `bound`. */
static inline unsigned next_below(uint64_t *state, unsigned bound)
{
    *state = mix(*state);
    return (unsigned)((*state >> 16) % bound);
}

/* A random order of 0..n-1. */
static inline void permutation(uint64_t *state, int *order, int n)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)next_below(state, (unsigned)i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static inline double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A duplicate of comm whose collectives never come from the component: the reference. */
static inline MPI_Comm without_component(MPI_Comm comm)
{
    MPI_Info info;
    MPI_Comm reference;
    MPI_Info_create(&info);
    MPI_Info_set(info, "ompi_comm_coll_preference", "^rust");
    MPI_Comm_dup_with_info(comm, info, &reference);
    MPI_Info_free(&info);
    return reference;
}

/* ---------------------------------------------------------------- ways of calling an operation */

enum mode { BLOCKING, NONBLOCKING, PERSISTENT };
static const char *const MODE_NAME[] __attribute__((unused)) = {"blocking", "nonblocking", "persistent"};

/* Calls an operation so; a nonblocking one is started, a persistent one is made. */
#define IN_MODE(mode, Name, name, comm, request, ...)                       \
    ((mode) == BLOCKING      ? MPI_##Name(__VA_ARGS__, comm)                \
     : (mode) == NONBLOCKING ? MPI_I##name(__VA_ARGS__, comm, request)      \
                             : MPI_##Name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, request))

#endif
