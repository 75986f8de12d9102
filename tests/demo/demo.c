/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A real job with the component selected: checks the four operations in their three forms against a
 * communicator that excludes the component, and compares their times with it in the same job.
 *
 *   demo [--smoke]      --smoke: the checks only, no times
 *
 * Compiles with Open MPI 4.1 (MPIX_*_init) and 5.0 (MPI_*_init). Ends with 1 if a result is wrong, or if the
 * component did not take the calls of some operation in some form: what was tested is then not the component.
 */
#include <mpi.h>
#if OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Reduce_init MPIX_Reduce_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Barrier_init MPIX_Barrier_init
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BCAST, REDUCE, ALLREDUCE, BARRIER, OPS };
static const char *const op_name[OPS] = { "bcast", "reduce", "allreduce", "barrier" };

enum { BLOCKING, NONBLOCKING, PERSISTENT, MODES };
static const char *const mode_name[MODES] = { "blocking", "nonblocking", "persistent" };

static int rank, size;

/* Seconds by the machine's clock, the same in all its processes; MPI_Wtime counts from each process's own
 * start. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* One operation on one communicator. */
struct call {
    int op, mode, root, count;
    MPI_Datatype type;
    MPI_Op function;
    const void *in; /* may be MPI_IN_PLACE */
    void *out;
    MPI_Comm comm;
    MPI_Request request; /* persistent: between prepare and release; else: within perform */
};

/* Makes the request of a persistent operation; nothing to do for the other forms. */
static void prepare(struct call *c)
{
    if (c->mode != PERSISTENT) return;
    switch (c->op) {
    case BCAST:
        MPI_Bcast_init(c->out, c->count, c->type, c->root, c->comm, MPI_INFO_NULL, &c->request);
        break;
    case REDUCE:
        MPI_Reduce_init(c->in, c->out, c->count, c->type, c->function, c->root, c->comm, MPI_INFO_NULL, &c->request);
        break;
    case ALLREDUCE:
        MPI_Allreduce_init(c->in, c->out, c->count, c->type, c->function, c->comm, MPI_INFO_NULL, &c->request);
        break;
    case BARRIER:
        MPI_Barrier_init(c->comm, MPI_INFO_NULL, &c->request);
        break;
    }
}

static void perform_blocking(struct call *c)
{
    switch (c->op) {
    case BCAST: MPI_Bcast(c->out, c->count, c->type, c->root, c->comm); break;
    case REDUCE: MPI_Reduce(c->in, c->out, c->count, c->type, c->function, c->root, c->comm); break;
    case ALLREDUCE: MPI_Allreduce(c->in, c->out, c->count, c->type, c->function, c->comm); break;
    case BARRIER: MPI_Barrier(c->comm); break;
    }
}

static void perform_nonblocking(struct call *c)
{
    switch (c->op) {
    case BCAST: MPI_Ibcast(c->out, c->count, c->type, c->root, c->comm, &c->request); break;
    case REDUCE: MPI_Ireduce(c->in, c->out, c->count, c->type, c->function, c->root, c->comm, &c->request); break;
    case ALLREDUCE: MPI_Iallreduce(c->in, c->out, c->count, c->type, c->function, c->comm, &c->request); break;
    case BARRIER: MPI_Ibarrier(c->comm, &c->request); break;
    }
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
}

/* Once, from the call to its completion. */
static void perform(struct call *c)
{
    switch (c->mode) {
    case BLOCKING: perform_blocking(c); break;
    case NONBLOCKING: perform_nonblocking(c); break;
    case PERSISTENT:
        MPI_Start(&c->request);
        MPI_Wait(&c->request, MPI_STATUS_IGNORE);
        break;
    }
}

static void release(struct call *c)
{
    if (c->mode == PERSISTENT) MPI_Request_free(&c->request);
}

/* ---------------------------------------------------------------- checks */

static long checks, wrong;

/* Counts one check of this process. */
static void check(int good, const struct call *c, const char *what)
{
    checks++;
    if (good) return;
    wrong++;
    fprintf(stderr, "demo: rank %d of %d: %s %s, %d elements, root %d: %s\n", rank, size, mode_name[c->mode],
            op_name[c->op], c->count, c->root, what);
}

/* Different in every process, element and round; a sum over all processes fits. */
static long value(int who, int i, int round)
{
    return 1000003L * who + 31L * i + 7919L * round + 1;
}

/* Reduction that is associative but not commutative: composes x -> a x + b, pairs (a, b) modulo 2^64. */
static void compose(void *in_pairs, void *inout_pairs, int *count, MPI_Datatype *type)
{
    (void)type;
    unsigned long *in = in_pairs, *inout = inout_pairs;
    for (int i = 0; i < *count; i++, in += 2, inout += 2) {
        inout[1] = in[0] * inout[1] + in[1];
        inout[0] = in[0] * inout[0];
    }
}

/* ---------------------------------------------------------------- did the component run? */

/* The component's counters of the calls that it took in this process: MPI_T variables
 * coll_rust_<operation>_handled. A handle counts from when it was made. */
static MPI_T_pvar_session counters;
static MPI_T_pvar_handle counter[OPS];
static int has_counter[OPS];

static void open_counters(void)
{
    int provided, variables;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&counters);
    MPI_T_pvar_get_num(&variables);
    for (int i = 0; i < variables; i++) {
        char name[256], wanted[64];
        int name_size = sizeof name, verbosity, class, bind, readonly, continuous, atomic, elements;
        MPI_Datatype type;
        MPI_T_enum enumeration;
        if (MPI_T_pvar_get_info(i, name, &name_size, &verbosity, &class, &type, &enumeration, NULL, NULL, &bind,
                                &readonly, &continuous, &atomic) != MPI_SUCCESS)
            continue;
        for (int op = 0; op < OPS; op++) {
            snprintf(wanted, sizeof wanted, "coll_rust_%s_handled", op_name[op]);
            if (strcmp(name, wanted) == 0)
                has_counter[op] = MPI_T_pvar_handle_alloc(counters, i, NULL, &counter[op], &elements) == MPI_SUCCESS;
        }
    }
}

static void close_counters(void)
{
    for (int op = 0; op < OPS; op++)
        if (has_counter[op]) MPI_T_pvar_handle_free(counters, &counter[op]);
    MPI_T_pvar_session_free(&counters);
    MPI_T_finalize();
}

/* Calls taken so far; 0 where there is no counter. */
static void read_handled(unsigned long long handled[OPS])
{
    for (int op = 0; op < OPS; op++) {
        handled[op] = 0;
        if (has_counter[op]) MPI_T_pvar_read(counters, counter[op], &handled[op]);
    }
}

/* Counts a failure for each operation that the component did not take since before. */
static void check_ran(int mode, const unsigned long long before[OPS])
{
    unsigned long long after[OPS];
    read_handled(after);
    for (int op = 0; op < OPS; op++)
        check(after[op] > before[op], &(struct call){ .op = op, .mode = mode }, "the component did not take the calls");
}

/* ---------------------------------------------------------------- results */

/* bcast, reduce and allreduce: the same call on both communicators, with the same input, must leave the same
 * buffer. */
static void check_data(int op, int mode, int root, int count, MPI_Datatype type, MPI_Op function, int in_place,
                       int longs_per_element, MPI_Comm comm, MPI_Comm reference)
{
    size_t n = (size_t)count * longs_per_element, bytes = (n + 1) * sizeof(long); /* one more as a guard */
    long *in = malloc(bytes), *out = malloc(bytes), *expected = malloc(bytes);
    int replaces = in_place && (op == ALLREDUCE || rank == root);
    struct call ours = { op, mode, root, count, type, function, replaces ? MPI_IN_PLACE : in, out, comm,
                         MPI_REQUEST_NULL };
    struct call theirs = ours;
    theirs.mode = BLOCKING;
    theirs.out = expected;
    theirs.comm = reference;
    prepare(&ours);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i <= n; i++) {
            in[i] = value(rank, (int)i, round);
            out[i] = expected[i] = replaces || op == BCAST ? in[i] : -1;
        }
        perform(&theirs);
        perform(&ours);
        check(memcmp(out, expected, bytes) == 0, &ours, "the result differs");
        check(op != BCAST || n == 0 || out[n - 1] == value(root, (int)n - 1, round), &ours, "not the root's data");
        check(op == BCAST || in[n / 2] == value(rank, (int)(n / 2), round), &ours, "the input was changed");
    }
    release(&ours);
    free(in);
    free(out);
    free(expected);
}

/* Nobody may leave before the last one came: each process is late in turn. */
static void check_barrier(int mode, MPI_Comm comm, MPI_Comm reference)
{
    struct call barrier = { BARRIER, mode, 0, 0, MPI_BYTE, MPI_SUM, NULL, NULL, comm, MPI_REQUEST_NULL };
    prepare(&barrier);
    for (int late = 0; late < size; late++) {
        perform_blocking(&(struct call){ .op = BARRIER, .comm = reference });
        if (rank == late) usleep(20000);
        double came = now(), last_came;
        perform(&barrier);
        double left = now();
        MPI_Allreduce(&came, &last_came, 1, MPI_DOUBLE, MPI_MAX, reference);
        check(left >= last_came, &barrier, "left before the last process came");
    }
    release(&barrier);
}

static void check_everything(MPI_Comm comm, MPI_Comm reference)
{
    static const int counts[] = { 1, 7, 1000, 100003 };
    MPI_Datatype pair, sparse;
    MPI_Op composed;
    MPI_Type_contiguous(2, MPI_LONG, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_vector(2, 1, 2, MPI_LONG, &sparse); /* first and third of three longs */
    MPI_Type_commit(&sparse);
    MPI_Op_create(compose, 0, &composed);
    for (int mode = 0; mode < MODES; mode++) {
        unsigned long long before[OPS];
        read_handled(before);
        check_barrier(mode, comm, reference);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            int count = counts[k];
            for (int root = 0; root < size; root += size > 1 ? size - 1 : 1) {
                check_data(BCAST, mode, root, count, MPI_LONG, MPI_SUM, 0, 1, comm, reference);
                check_data(REDUCE, mode, root, count, MPI_LONG, MPI_SUM, 0, 1, comm, reference);
                check_data(REDUCE, mode, root, count, MPI_LONG, MPI_SUM, 1, 1, comm, reference);
                check_data(REDUCE, mode, root, count, pair, composed, 0, 2, comm, reference);
            }
            check_data(ALLREDUCE, mode, 0, count, MPI_LONG, MPI_SUM, 0, 1, comm, reference);
            check_data(ALLREDUCE, mode, 0, count, MPI_LONG, MPI_MAX, 1, 1, comm, reference);
            check_data(ALLREDUCE, mode, 0, count, pair, composed, 0, 2, comm, reference);
        }
        check_data(BCAST, mode, size - 1, 1, sparse, MPI_SUM, 0, 3, comm, reference);
        check_ran(mode, before);
    }
    MPI_Op_free(&composed);
    MPI_Type_free(&sparse);
    MPI_Type_free(&pair);
}

/* ---------------------------------------------------------------- times */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int n)
{
    qsort(times, n, sizeof *times, by_value);
    return n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

/* Medians over alternating samples, in microseconds per call. A sample is some calls in a row, from the start
 * of the first process to the end of the last one: with more processes than processors no single process sees
 * all of it. */
static void compare(struct call *ours, struct call *theirs, MPI_Comm reference, int samples, int calls, double *us,
                    double *their_us)
{
    struct call *pair[2] = { ours, theirs };
    int n = 2 * samples;
    double *start = malloc(n * sizeof *start), *first = malloc(n * sizeof *first);
    double *end = malloc(n * sizeof *end), *last = malloc(n * sizeof *last);
    for (int which = 0; which < 2; which++) prepare(pair[which]);
    for (int sample = -5; sample < samples; sample++) { /* the first ones warm up */
        for (int which = 0; which < 2; which++) {
            MPI_Barrier(reference);
            int slot = which * samples + (sample < 0 ? 0 : sample);
            start[slot] = now();
            for (int i = 0; i < calls; i++) perform(pair[which]);
            end[slot] = now();
        }
    }
    for (int which = 0; which < 2; which++) release(pair[which]);
    MPI_Allreduce(start, first, n, MPI_DOUBLE, MPI_MIN, reference);
    MPI_Allreduce(end, last, n, MPI_DOUBLE, MPI_MAX, reference);
    for (int i = 0; i < n; i++) last[i] = 1e6 * (last[i] - first[i]) / calls;
    *us = median(last, samples);
    *their_us = median(last + samples, samples);
    free(start);
    free(first);
    free(end);
    free(last);
}

static void show_times(MPI_Comm comm, MPI_Comm reference)
{
    static const int sizes[] = { 8, 64, 512, 4096, 32768, 262144, 1048576 };
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char *in = calloc(1, sizes[SIZES - 1]), *out = calloc(1, sizes[SIZES - 1]);
    if (rank == 0) {
        printf("\nMicroseconds per call, from the first process's start to the last one's end; medians over alternating samples\n"
               "(10 calls in a row up to 4096 bytes, 1 above). \"without\": the same on a communicator that excludes the\n"
               "component, which leaves coll/tuned for blocking calls and coll/libnbc for the others.\n"
               "ratio = without / rust: above 1 the component is faster.\n\n%-10s %8s", "", "");
        for (int mode = 0; mode < MODES; mode++) printf(" | %-27s", mode_name[mode]);
        printf("\n%-10s %8s", "operation", "bytes");
        for (int mode = 0; mode < MODES; mode++) printf(" | %10s %9s %6s", "rust", "without", "ratio");
        printf("\n");
    }
    for (int op = 0; op < OPS; op++) {
        for (int k = 0; k < (op == BARRIER ? 1 : SIZES); k++) {
            int bytes = op == BARRIER ? 0 : sizes[k];
            int calls = bytes <= 4096 ? 10 : 1, samples = bytes <= 262144 ? 41 : 21;
            if (rank == 0) printf("%-10s %8d", op_name[op], bytes);
            for (int mode = 0; mode < MODES; mode++) {
                struct call ours = { op, mode, 0, bytes / 8, MPI_DOUBLE, MPI_SUM, in, out, comm, MPI_REQUEST_NULL };
                struct call theirs = ours;
                theirs.comm = reference;
                double us, their_us;
                compare(&ours, &theirs, reference, samples, calls, &us, &their_us);
                if (rank == 0) printf(" | %10.1f %9.1f %6.2f", us, their_us, their_us / us);
            }
            if (rank == 0) printf("\n");
        }
    }
    if (rank == 0) printf("\n");
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int smoke = argc > 1 && strcmp(argv[1], "--smoke") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    setvbuf(stdout, NULL, _IOLBF, 0);

    MPI_Info without;
    MPI_Comm reference;
    MPI_Info_create(&without);
    MPI_Info_set(without, "ompi_comm_coll_preference", "^rust");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, without, &reference);
    MPI_Info_free(&without);

    unsigned long long before[OPS], after[OPS];
    open_counters();
    read_handled(before);
    MPI_Barrier(reference);
    read_handled(after);
    check(after[BARRIER] == before[BARRIER], &(struct call){ .op = BARRIER },
          "the component runs on the communicator that excludes it");
    check_everything(MPI_COMM_WORLD, reference);
    if (!smoke) show_times(MPI_COMM_WORLD, reference);

    long local[2] = { checks, wrong }, total[2];
    MPI_Allreduce(local, total, 2, MPI_LONG, MPI_SUM, reference);
    if (rank == 0)
        printf("demo: Open MPI %d.%d.%d, %d processes: %ld checks, %ld wrong\n", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
               OMPI_RELEASE_VERSION, size, total[0], total[1]);
    close_counters();
    MPI_Comm_free(&reference);
    MPI_Finalize();
    return total[1] > 0;
}
