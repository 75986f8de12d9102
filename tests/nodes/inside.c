/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens within the nodes: Bcast, Reduce, Allreduce and Barrier in all modes, with results checked, and
 * how many messages of theirs stay in a node, by the component's counters.
 *
 *     inside shared       none, on no rank: everything goes through shared memory; but those of user-defined
 *     operations do not inside messages     some: there is no shared memory
 *     inside any          nobody knows
 *     inside kill         as the first; then one rank dies in the middle of it, and with it the job
 *     inside time <n>     microseconds of small calls, n of each, and the processor time that a rank took for
 *     one
 */
#include "nodes.h"
#include <signal.h>
#include <sys/resource.h>

#define OUTSTANDING 11 /* more than there are slots */
#define STARTS 5

static int passed, failed;
static const char *const levels[] = {"l2", "l3", "numa", "socket", "node"};
static const char *const operations[] = {"bcast", "reduce", "allreduce", "barrier"};
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle[4][5];

static void check(int good, const char *what)
{
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    passed += good;
    failed += !good;
    if (!good && me == 0)
        printf("FAIL: %s\n", what);
}

static void counters_open(void)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int o = 0; o < 4; o++)
        for (int l = 0; l < 5; l++) {
            char name[128];
            int index, count;
            snprintf(name, sizeof name, "coll_rust_%s_%s_messages", operations[o], levels[l]);
            if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
                MPI_T_pvar_handle_alloc(session, index, NULL, &handle[o][l], &count) != MPI_SUCCESS || count != 1)
                die("the component is not there: it has no counters");
        }
}

/* Messages within the node that this rank has sent for an operation. */
static unsigned long long inside(int o)
{
    unsigned long long sum = 0, value = 0;
    for (int l = 0; l < 5; l++) {
        if (MPI_T_pvar_read(session, handle[o][l], &value) != MPI_SUCCESS)
            die("cannot read a counter of the component");
        sum += value;
    }
    return sum;
}

/* Messages within all nodes for an operation since the last call. */
static unsigned long long inside_all(int o)
{
    static unsigned long long before[4];
    unsigned long long now = inside(o), sent = now - before[o], all;
    before[o] = now;
    MPI_Allreduce(&sent, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void blocking(size_t count, MPI_Comm comm)
{
    struct buffers b = buffers_new(count);
    for (enum operation op = 0; op < WITHOUT_BLOCKS; op++) {
        size_t wrong = 0;
        for (int root = 0; root < (op == ALLREDUCE ? 1 : np); root++) {
            buffers_fill(&b, op, root, root);
            operation_run(&b, op, root, comm);
            wrong += buffers_wrong(&b, op, root, root);
        }
        check(wrong == 0, operation_name[op]);
    }
    free(b.in);
    free(b.out);
}

/* Many at a time, waited for in the reverse order. */
static void nonblocking(size_t count, MPI_Comm comm)
{
    struct buffers b[OUTSTANDING];
    MPI_Request request[OUTSTANDING], barrier;
    size_t wrong = 0;
    for (int i = 0; i < OUTSTANDING; i++) {
        enum operation op = i % WITHOUT_BLOCKS;
        b[i] = buffers_new(count);
        buffers_fill(&b[i], op, i % np, i);
        if (op == BCAST)
            MPI_Ibcast(b[i].out, (int)count, MPI_INT32_T, i % np, comm, &request[i]);
        else if (op == REDUCE)
            MPI_Ireduce(b[i].in, b[i].out, (int)count, MPI_INT32_T, MPI_SUM, i % np, comm, &request[i]);
        else
            MPI_Iallreduce(b[i].in, b[i].out, (int)count, MPI_INT32_T, MPI_SUM, comm, &request[i]);
    }
    MPI_Ibarrier(comm, &barrier);
    MPI_Barrier(comm);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    for (int i = OUTSTANDING - 1; i >= 0; i--) {
        MPI_Wait(&request[i], MPI_STATUS_IGNORE);
        wrong += buffers_wrong(&b[i], i % WITHOUT_BLOCKS, i % np, i);
        free(b[i].in);
        free(b[i].out);
    }
    check(wrong == 0, "many at a time");
}

/* Started in another order on every other rank. */
static void persistent(size_t count, MPI_Comm comm)
{
    struct buffers b[WITHOUT_BLOCKS];
    MPI_Request request[WITHOUT_BLOCKS + 1];
    size_t wrong = 0;
    int root = np - 1;
    for (enum operation op = 0; op < WITHOUT_BLOCKS; op++)
        b[op] = buffers_new(count);
    MPI_Bcast_init(b[BCAST].out, (int)count, MPI_INT32_T, root, comm, MPI_INFO_NULL, &request[BCAST]);
    MPI_Reduce_init(b[REDUCE].in, b[REDUCE].out, (int)count, MPI_INT32_T, MPI_SUM, root, comm, MPI_INFO_NULL, &request[REDUCE]);
    MPI_Allreduce_init(b[ALLREDUCE].in, b[ALLREDUCE].out, (int)count, MPI_INT32_T, MPI_SUM, comm, MPI_INFO_NULL,
                        &request[ALLREDUCE]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request[WITHOUT_BLOCKS]);
    for (int start = 0; start < STARTS; start++) {
        for (enum operation op = 0; op < WITHOUT_BLOCKS; op++)
            buffers_fill(&b[op], op, root, start);
        for (int i = 0; i <= WITHOUT_BLOCKS; i++)
            MPI_Start(&request[me % 2 ? WITHOUT_BLOCKS - i : i]);
        MPI_Waitall(WITHOUT_BLOCKS + 1, request, MPI_STATUSES_IGNORE);
        for (enum operation op = 0; op < WITHOUT_BLOCKS; op++)
            wrong += buffers_wrong(&b[op], op, root, start);
    }
    check(wrong == 0, "persistent ones");
    for (int i = 0; i <= WITHOUT_BLOCKS; i++)
        MPI_Request_free(&request[i]);
    for (enum operation op = 0; op < WITHOUT_BLOCKS; op++) {
        free(b[op].in);
        free(b[op].out);
    }
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int32_t *)inout)[i] += ((int32_t *)in)[i];
}

static double processor_time(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void times(int repetitions, MPI_Comm comm)
{
    static const int counts[] = {-1, 1, 2048, 262144};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int count = counts[c], n = count > 10000 ? repetitions / 50 : repetitions;
        struct buffers b = buffers_new(count < 0 ? 1 : (size_t)count);
        double wall = 0, used = 0, all;
        for (int i = -n / 10; i < n; i++) {
            if (i == 0) {
                MPI_Barrier(MPI_COMM_WORLD);
                wall = MPI_Wtime();
                used = processor_time();
            }
            if (count < 0)
                MPI_Barrier(comm);
            else
                MPI_Allreduce(b.in, b.out, count, MPI_INT32_T, MPI_SUM, comm);
        }
        wall = (MPI_Wtime() - wall) / n * 1e6;
        used = (processor_time() - used) / n;
        MPI_Reduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (me == 0)
            printf("| %s | %d | %.1f | %.1f |\n", count < 0 ? "Barrier" : "Allreduce", count < 0 ? 0 : 4 * count, wall, all / np);
        free(b.in);
        free(b.out);
    }
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {1, 14, 15, 2000, 100003};
    MPI_Op op;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    if (argc < 2)
        die("usage: inside shared|messages|any|kill|time <n>");
    MPI_Comm comm = comm_of("rust");
    if (!strcmp(argv[1], "time")) {
        times(argc > 2 ? atoi(argv[2]) : 2000, comm);
        MPI_Finalize();
        return 0;
    }
    counters_open();
    for (int o = 0; o < 4; o++)
        inside_all(o);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        blocking(counts[c], comm);
        nonblocking(counts[c], comm);
        persistent(counts[c], comm);
    }
    if (!strcmp(argv[1], "kill")) {
        struct buffers b = buffers_new(100003);
        for (int i = 0;; i++) {
            if (i == 20 && me == np - 2)
                raise(SIGKILL);
            operation_run(&b, i % WITHOUT_BLOCKS, i % np, comm);
        }
    }
    for (int o = 0; o < 4; o++) {
        unsigned long long sent = inside_all(o);
        if (me == 0 && strcmp(argv[1], "any"))
            printf("messages within the nodes for %s: %llu\n", operations[o], sent);
        if (!strcmp(argv[1], "shared"))
            check(sent == 0, "a message within a node that should go through shared memory");
        else if (!strcmp(argv[1], "messages"))
            check(sent > 0, "no message within a node, but no shared memory either");
    }
    int32_t one = 1, sum = 0;
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(&one, &sum, 1, MPI_INT32_T, op, comm);
    check(sum == np, "a user-defined operation");
    if (strcmp(argv[1], "any"))
        check(inside_all(2) > 0, "no message for a user-defined operation");
    MPI_Op_free(&op);
    /* Communicators come and go, and with them what they had of the shared memory. */
    for (int i = 0; i < 50; i++) {
        MPI_Comm copy;
        MPI_Comm_dup(comm, &copy);
        blocking(i % 10 ? 2 : 20000, copy);
        MPI_Comm_free(&copy);
    }
    MPI_Comm_free(&comm);
    if (me == 0)
        printf("inside: %d passed, %d failed\n", passed, failed);
    MPI_Finalize();
    return me == 0 && failed;
}
