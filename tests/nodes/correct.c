/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results of the four operations over all roots, each blocking, nonblocking and persistent, compared with
 * those of a communicator whose collectives come from other components.
 *
 *     correct <component>
 *
 * With the component `rust`, its counters must also say that it handled every call: a component that was not
 * loaded would pass every comparison.
 */
#include "nodes.h"

enum mode { BLOCKING, NONBLOCKING, PERSISTENT, MODES };
static const char *const mode_name[MODES] = {"blocking", "nonblocking", "persistent"};

static int passed, failed;

/* Composition of affine maps modulo a prime: associative, not commutative. A pair of integers is x -> a x +
 * b. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const uint32_t *f = in;
    uint32_t *g = inout;
    (void)type;
    for (int i = 0; i < *count; i++, f += 2, g += 2) { /* first f, then g */
        uint64_t a = (uint64_t)f[0] * g[0] % 65521, b = ((uint64_t)f[1] * g[0] + g[1]) % 65521;
        g[0] = (uint32_t)a;
        g[1] = (uint32_t)b;
    }
}

/* All ranks agree on whether a check held. */
static void check(int good, const char *operation, enum mode mode, size_t count, int root)
{
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (good)
        passed++;
    else {
        failed++;
        if (me == 0)
            printf("FAIL: %s, %s, %zu elements, root %d\n", operation, mode_name[mode], count, root);
    }
}

static void finish(MPI_Request *request, enum mode mode)
{
    if (mode == PERSISTENT)
        MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* One reduction: root < 0 is Allreduce. in may be MPI_IN_PLACE. A persistent one starts `starts` times. */
static void reduce(enum mode mode, int starts, const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root,
                   MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (mode == BLOCKING && root < 0)
        MPI_Allreduce(in, out, count, type, op, comm);
    else if (mode == BLOCKING)
        MPI_Reduce(in, out, count, type, op, root, comm);
    else if (mode == NONBLOCKING && root < 0)
        MPI_Iallreduce(in, out, count, type, op, comm, &request);
    else if (mode == NONBLOCKING)
        MPI_Ireduce(in, out, count, type, op, root, comm, &request);
    else if (root < 0)
        MPI_Allreduce_init(in, out, count, type, op, comm, MPI_INFO_NULL, &request);
    else
        MPI_Reduce_init(in, out, count, type, op, root, comm, MPI_INFO_NULL, &request);
    if (mode == BLOCKING)
        return;
    finish(&request, mode);
    if (mode == PERSISTENT) {
        for (int i = 1; i < starts; i++)
            finish(&request, mode);
        MPI_Request_free(&request);
    }
}

static void test_bcast(enum mode mode, size_t count, int root, MPI_Comm comm)
{
    struct buffers b = buffers_new(count);
    MPI_Request request = MPI_REQUEST_NULL;
    int good = 1;
    for (int salt = 1; salt <= 2; salt++) {
        buffers_fill(&b, BCAST, root, salt);
        if (mode == BLOCKING)
            MPI_Bcast(b.out, (int)count, MPI_INT32_T, root, comm);
        else if (mode == NONBLOCKING) {
            MPI_Ibcast(b.out, (int)count, MPI_INT32_T, root, comm, &request);
            finish(&request, mode);
        } else {
            if (salt == 1)
                MPI_Bcast_init(b.out, (int)count, MPI_INT32_T, root, comm, MPI_INFO_NULL, &request);
            finish(&request, mode);
        }
        good &= buffers_wrong(&b, BCAST, root, salt) == 0;
    }
    if (mode == PERSISTENT)
        MPI_Request_free(&request);
    check(good, "Bcast", mode, count, root);
    free(b.in);
    free(b.out);
}

/* The sum, not in place and in place, and the composition of maps, against the reference. */
static void test_reduce(enum mode mode, size_t count, int root, MPI_Comm comm, MPI_Comm other, MPI_Datatype pair, MPI_Op op)
{
    const char *name = root < 0 ? "Allreduce" : "Reduce";
    enum operation operation = root < 0 ? ALLREDUCE : REDUCE;
    struct buffers b = buffers_new(count), reference = buffers_new(count);
    int here = root < 0 || me == root, good, pairs = (int)(count / 2);

    buffers_fill(&b, operation, root, 3);
    reduce(mode, 2, b.in, b.out, (int)count, MPI_INT32_T, MPI_SUM, root, comm);
    check(buffers_wrong(&b, operation, root, 3) == 0, name, mode, count, root);

    buffers_fill(&b, operation, root, 4);
    if (here)
        memcpy(b.out, b.in, count * sizeof(int32_t));
    reduce(mode, 1, here ? MPI_IN_PLACE : (const void *)b.in, b.out, (int)count, MPI_INT32_T, MPI_SUM, root, comm);
    check(buffers_wrong(&b, operation, root, 4) == 0, root < 0 ? "Allreduce in place" : "Reduce in place", mode, count, root);

    for (size_t i = 0; i < count; i++) {
        b.in[i] = (int32_t)((uint32_t)element(me, 5, i) % 65521);
        b.out[i] = reference.out[i] = -1;
    }
    reduce(BLOCKING, 1, b.in, reference.out, pairs, pair, op, root, other);
    reduce(mode, 2, b.in, b.out, pairs, pair, op, root, comm);
    good = !here || memcmp(b.out, reference.out, (size_t)pairs * 8) == 0;
    check(good, root < 0 ? "Allreduce in order" : "Reduce in order", mode, count, root);
    free(b.in);
    free(b.out);
    free(reference.in);
    free(reference.out);
}

/* Nobody leaves before the last has come. Ranks come late in turn. */
static void test_barrier(enum mode mode, int late, MPI_Comm comm, MPI_Comm other)
{
    MPI_Request request;
    int64_t came, last, left;
    MPI_Barrier(other);
    if (me == late)
        usleep(3000);
    came = now_ns();
    if (mode == BLOCKING)
        MPI_Barrier(comm);
    else {
        if (mode == NONBLOCKING)
            MPI_Ibarrier(comm, &request);
        else
            MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
        finish(&request, mode);
    }
    left = now_ns();
    if (mode == PERSISTENT)
        MPI_Request_free(&request);
    MPI_Allreduce(&came, &last, 1, MPI_INT64_T, MPI_MAX, other);
    check(left >= last, "Barrier", mode, 0, late);
}

/* The component's counters of the calls that it handled on this rank. A handle counts from when it was made.
 * */
static const char *const counted[] = {"bcast", "reduce", "allreduce", "barrier"};
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle[4];

static void counters_open(void)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < 4; i++) {
        char name[128];
        int index, count;
        snprintf(name, sizeof name, "coll_rust_%s_handled", counted[i]);
        if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
            MPI_T_pvar_handle_alloc(session, index, NULL, &handle[i], &count) != MPI_SUCCESS || count != 1)
            die("the component is not there: it has no counters");
    }
}

static unsigned long long counters_read(int i)
{
    unsigned long long value = 0;
    if (MPI_T_pvar_read(session, handle[i], &value) != MPI_SUCCESS)
        die("cannot read a counter of the component");
    return value;
}

static void counters_close(void)
{
    for (int i = 0; i < 4; i++)
        MPI_T_pvar_handle_free(session, &handle[i]);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {2, 1000, 100003};
    char except[64];
    MPI_Datatype pair;
    MPI_Op op;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    if (argc != 2)
        die("usage: correct <component>");
    snprintf(except, sizeof except, "^%s", argv[1]);
    MPI_Comm comm = comm_of(argv[1]), other = comm_of(except);
    int counting = !strcmp(argv[1], "rust");
    if (counting)
        counters_open();
    MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);

    for (enum mode mode = 0; mode < MODES; mode++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            for (int root = 0; root < np; root++) {
                test_bcast(mode, counts[c], root, comm);
                test_reduce(mode, counts[c], root, comm, other, pair, op);
            }
            test_reduce(mode, counts[c], -1, comm, other, pair, op);
        }
        for (int late = 0; late < np; late++)
            test_barrier(mode, late, comm, other);
    }
    if (counting) {
        /* Per mode, at least a call for each count and root. */
        const int least[] = {MODES * 3 * np, MODES * 3 * np, MODES * 3, MODES * np};
        for (int i = 0; i < 4; i++) {
            unsigned long long handled = counters_read(i);
            int good = handled >= (unsigned long long)least[i];
            if (!good && me == 0)
                printf("FAIL: the component says it handled %llu calls of %s, not %d or more\n", handled, counted[i], least[i]);
            MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, other);
            passed += good;
            failed += !good;
        }
        counters_close();
    }
    if (me == 0)
        printf("correct: %d passed, %d failed\n", passed, failed);
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
    MPI_Finalize();
    return me == 0 && failed;
}
