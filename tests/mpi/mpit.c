/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component as MPI_T shows it: performance variables that count, control variables that cannot be
 * written.
 *
 *   --stock   there must be none of them
 */
#include "harness.h"

enum { CALLS = 12, MOST = 1024 };
static const char *const OPERATIONS[] = {"bcast", "reduce", "allreduce", "barrier"};

struct counter {
    char name[128];
    MPI_T_pvar_handle handle;
    unsigned long long before, after;
};

static struct counter counters[MOST];
static int counter_count = 0;

static void find_counters(MPI_T_pvar_session session)
{
    int n;
    MPI_T_pvar_get_num(&n);
    for (int i = 0; i < n && counter_count < MOST; i++) {
        struct counter *c = &counters[counter_count];
        char text[1024];
        int name_room = sizeof c->name, text_room = sizeof text, verbosity, class, bind, readonly, continuous, atomic, count;
        MPI_Datatype type;
        MPI_T_enum list;
        if (MPI_T_pvar_get_info(i, c->name, &name_room, &verbosity, &class, &type, &list, text, &text_room, &bind, &readonly,
                                &continuous, &atomic) != MPI_SUCCESS || strncmp(c->name, "coll_rust_", 10))
            continue;
        check(readonly, "%s can be written", c->name);
        check(text_room > 1, "%s has no description", c->name);
        int width = 0;
        MPI_Type_size(type, &width);
        check(width == 8, "%s is %d bytes wide", c->name, width);
        if (width != 8)
            continue;
        must(MPI_T_pvar_handle_alloc(session, i, NULL, &c->handle, &count));
        if (!continuous)
            must(MPI_T_pvar_start(session, c->handle));
        counter_count++;
    }
}

static void read_counters(MPI_T_pvar_session session, int after)
{
    for (int i = 0; i < counter_count; i++)
        must(MPI_T_pvar_read(session, counters[i].handle, after ? &counters[i].after : &counters[i].before));
}

/* What grew in coll_rust_<operation>_...<suffix>, added up; -1 if there is none. */
static long long growth(const char *operation, const char *suffix)
{
    char prefix[64];
    long long sum = -1;
    snprintf(prefix, sizeof prefix, "coll_rust_%s_", operation);
    for (int i = 0; i < counter_count; i++) {
        size_t a = strlen(counters[i].name), b = strlen(suffix);
        if (strncmp(counters[i].name, prefix, strlen(prefix)) || a < b || strcmp(counters[i].name + a - b, suffix))
            continue;
        sum = (sum < 0 ? 0 : sum) + (long long)(counters[i].after - counters[i].before);
    }
    return sum;
}

/* Each has its type, and those with words have an enumeration of so many. */
static const struct kind {
    const char *name;
    MPI_Datatype type;
    int words;
} KINDS[] = {
    {"coll_rust_window", MPI_INT, 0},         {"coll_rust_shm_wait", MPI_INT, 4},
    {"coll_rust_shm_sets", MPI_INT, 1},       {"coll_rust_shm_node_limit", MPI_UNSIGNED_LONG, 0},
    {"coll_rust_bcast_algorithm", MPI_CHAR, 0}, {"coll_rust_reproducible", MPI_C_BOOL, 2},
};

/* Whether it is one of them. */
static int has_kind(const char *name, MPI_Datatype type, MPI_T_enum list)
{
    for (int k = 0; k < ARRAY_LEN(KINDS); k++) {
        if (strcmp(name, KINDS[k].name))
            continue;
        char text[128];
        int words = 0, room = sizeof text;
        if (list != MPI_T_ENUM_NULL)
            must(MPI_T_enum_get_info(list, &words, text, &room));
        check(type == KINDS[k].type, "%s has another type", name);
        check(words == KINDS[k].words, "%s has %d words", name, words);
        for (int w = 0; w < words; w++) {
            int value = -2;
            room = sizeof text;
            must(MPI_T_enum_get_item(list, w, &value, text, &room));
            check(value >= -1 && room > 1, "%s has no word %d", name, w);
        }
        return 1;
    }
    return 0;
}

static void control_variables(int stock)
{
    int n, found = 0, kinds = 0;
    MPI_T_cvar_get_num(&n);
    for (int i = 0; i < n; i++) {
        char name[128], text[2048];
        int name_room = sizeof name, text_room = sizeof text, verbosity, bind, scope, count = 0;
        MPI_Datatype type;
        MPI_T_enum list;
        MPI_T_cvar_handle handle;
        if (MPI_T_cvar_get_info(i, name, &name_room, &verbosity, &type, &list, text, &text_room, &bind, &scope) != MPI_SUCCESS ||
            strncmp(name, "coll_rust_", 10))
            continue;
        if (strstr(name, "_version")) /* Open MPI makes these three for every component */
            continue;
        found++;
        doing("control variable %s", name);
        check(scope == MPI_T_SCOPE_READONLY || scope == MPI_T_SCOPE_CONSTANT, "%s has scope %d, not read-only", name, scope);
        check(text_room > 1 && text_room <= 161, "%s has a description of %d bytes", name, text_room);
        kinds += has_kind(name, type, list);
        must(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count));
        char *value = calloc(1, (size_t)count * 8 + 4096);
        check(MPI_T_cvar_read(handle, value) == MPI_SUCCESS, "%s cannot be read", name);
        check(MPI_T_cvar_write(handle, value) != MPI_SUCCESS, "%s can be written", name);
        MPI_T_cvar_handle_free(&handle);
        free(value);
    }
    check(stock ? found == 0 : found > 5, "%d control variables coll_rust_* found", found);
    check(stock || kinds == ARRAY_LEN(KINDS), "%d variables of known types found", kinds);
}

int main(int argc, char **argv)
{
    int provided, stock = has_option(argc, argv, "--stock"), x[1000] = {0}, y[1000];
    MPI_T_pvar_session session;
    MPI_Comm comm;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    test_init(&argc, &argv, "mpit", MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    doing("finding performance variables");
    MPI_T_pvar_session_create(&session);
    find_counters(session);
    read_counters(session, 0);
    doing("%d calls of each operation", CALLS);
    for (int i = 0; i < CALLS; i++) {
        MPI_Request request;
        int root = i % test_size;
        if (i % 3) {
            MPI_Bcast(x, 1000, MPI_INT, root, comm);
            MPI_Reduce(x, y, 1000, MPI_INT, MPI_SUM, root, comm);
            MPI_Allreduce(x, y, 1000, MPI_INT, MPI_SUM, comm);
            MPI_Barrier(comm);
        } else {
            MPI_Ibcast(x, 1000, MPI_INT, root, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Ireduce(x, y, 1000, MPI_INT, MPI_SUM, root, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Iallreduce(x, y, 1000, MPI_INT, MPI_SUM, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Ibarrier(comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    doing("reading performance variables");
    read_counters(session, 1);
    if (stock) {
        check(counter_count == 0, "%d performance variables coll_rust_* found without the component", counter_count);
    } else {
        check(counter_count > 0, "no performance variable coll_rust_* found");
        for (int o = 0; o < ARRAY_LEN(OPERATIONS); o++) {
            long long handled = growth(OPERATIONS[o], "_handled"), passed = growth(OPERATIONS[o], "_passed");
            long long messages = growth(OPERATIONS[o], "_messages"), bytes = growth(OPERATIONS[o], "_bytes");
            int wanted = test_size > 1 ? CALLS : 0;
            check(handled == wanted, "coll_rust_%s_handled grew by %lld in %d calls", OPERATIONS[o], handled, wanted);
            check(passed == 0, "coll_rust_%s_passed grew by %lld", OPERATIONS[o], passed);
            check(test_size == 1 || messages > 0, "coll_rust_%s_*_messages grew by %lld", OPERATIONS[o], messages);
            /* A leaf of a Bcast sends nothing unless it is the root at times. */
            check(test_size == 1 || test_size > CALLS || o == ARRAY_LEN(OPERATIONS) - 1 || bytes >= 4000, "coll_rust_%s_*_bytes grew by %lld", OPERATIONS[o],
                  bytes);
        }
    }
    for (int i = 0; i < counter_count; i++)
        MPI_T_pvar_handle_free(session, &counters[i].handle);
    MPI_T_pvar_session_free(&session);
    control_variables(stock);
    MPI_Comm_free(&comm);
    MPI_T_finalize(); /* after MPI_Finalize, 4.1.4 crashes in it */
    return test_end();
}
