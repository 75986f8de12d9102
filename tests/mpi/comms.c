/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of communicators: what they leave behind, many at once, freed with operations pending, every way
 * of a first collective, spawned and inter-communicators.
 *
 *   --parts LIST     of idle, leak, many, pending, first, overlap, split, inter, spawn (default all)
 *   --cycles N       dup, Allreduce, free for `leak` (default 2000)
 *   --alive N        communicators for `idle` and `many` (default 200)
 *   --share BYTES    the most shared memory that a process may hold (default 128 MiB)
 */
#include "fourops.h"
#include <dirent.h>
#include <sys/stat.h>

static char *program;

/* ---------------------------------------------------------------- what a process holds */

struct holdings {
    long resident_kib, own_shared_kib; /* the latter in files of its own that others map */
    int descriptors, shared_files;
};

static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    if (!d)
        return -1;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Of the open files whose names have this in them. */
static long held_kib(const char *name)
{
    long kib = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        char link[64], target[512];
        struct stat data;
        snprintf(link, sizeof link, "/proc/self/fd/%.20s", e->d_name);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strstr(target, name) && !stat(link, &data))
            kib += data.st_blocks / 2;
    }
    if (d)
        closedir(d);
    return kib;
}

static struct holdings holdings(void)
{
    struct holdings h = {.own_shared_kib = held_kib("coll_rust"), .descriptors = entries("/proc/self/fd")};
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmRSS: %ld", &h.resident_kib);
    if (f)
        fclose(f);
    /* Those that this process maps, removed ones too: other jobs may use /dev/shm at the same time. */
    f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        h.shared_files += strstr(line, " /dev/shm/") != NULL;
    if (f)
        fclose(f);
    return h;
}

static void cycle(int n)
{
    static int data[1000];
    for (int i = 0; i < n; i++) {
        MPI_Comm dup;
        int one = test_rank + i, sum = 0;
        if (i % 100 == 0)
            doing("dup, Allreduce, free: %d of %d", i, n);
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, dup);
        check(sum == test_size * i + test_size * (test_size - 1) / 2, "Allreduce on duplicate %d: got %d, expected %d", i, sum,
              test_size * i + test_size * (test_size - 1) / 2);
        for (int j = 0; i % 5 == 0 && j < ARRAY_LEN(data); j++) /* some use queues, too */
            data[j] = test_rank == i % test_size ? i + j : -1;
        if (i % 5 == 0) {
            MPI_Bcast(data, ARRAY_LEN(data), MPI_INT, i % test_size, dup);
            check(data[0] == i && data[999] == i + 999, "Bcast on duplicate %d: got %d and %d", i, data[0], data[999]);
        }
        MPI_Comm_free(&dup);
    }
}

static void leak(int cycles)
{
    enum { WARM = 300, TOLERANCE_KIB = 3000, SHARED_KIB = 64 }; /* what others are through with is taken back a little later */
    cycle(WARM);
    MPI_Barrier(MPI_COMM_WORLD);
    struct holdings before = holdings();
    cycle(cycles);
    MPI_Barrier(MPI_COMM_WORLD);
    struct holdings after = holdings();
    doing("leak: after %d cycles", cycles);
    check(after.resident_kib - before.resident_kib <= TOLERANCE_KIB, "%d cycles: VmRSS grew from %ld to %ld KiB", cycles,
          before.resident_kib, after.resident_kib);
    check(after.descriptors == before.descriptors, "%d cycles: open files went from %d to %d", cycles, before.descriptors,
          after.descriptors);
    check(after.own_shared_kib - before.own_shared_kib <= SHARED_KIB, "%d cycles: own shared memory grew from %ld to %ld KiB", cycles,
          before.own_shared_kib, after.own_shared_kib);
    check(after.shared_files <= before.shared_files, "%d cycles: mappings of /dev/shm went from %d to %d", cycles, before.shared_files,
          after.shared_files);
}

/* ---------------------------------------------------------------- idle, many, pending */

/* Without data, each takes a page. */
static void idle(int alive)
{
    enum { PAGE_KIB = 4 };
    MPI_Comm *comms = malloc(sizeof *comms * (size_t)alive);
    must(MPI_Barrier(MPI_COMM_WORLD));
    long before = holdings().own_shared_kib;
    for (int i = 0; i < alive; i++) {
        doing("idle communicator %d of %d", i, alive);
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        must(MPI_Barrier(comms[i]));
    }
    long after = holdings().own_shared_kib;
    doing("idle: %d communicators", alive);
    check(after - before <= (long)PAGE_KIB * alive, "%d communicators without data: own shared memory grew from %ld to %ld KiB", alive,
          before, after);
    check(before == 0 || after > before, "%d communicators have taken no shared memory", alive);
    for (int i = 0; i < alive; i++)
        MPI_Comm_free(&comms[i]);
    free(comms);
}

static void many(int alive, long share)
{
    MPI_Comm *comms = malloc(sizeof *comms * (size_t)alive);
    for (int i = 0; i < alive; i++) {
        doing("communicator %d of %d", i, alive);
        if (i % 3 == 2)
            MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, -test_rank, &comms[i]);
        else
            MPI_Comm_dup(i ? comms[i / 2] : MPI_COMM_WORLD, &comms[i]);
        if (i % 2)
            all_four(comms[i], 20, i, "new communicator");
    }
    for (int i = 0; i < alive; i++) {
        doing("operations on communicator %d of %d", i, alive);
        all_four(comms[i], 50, i, "many communicators");
    }
    long held = holdings().own_shared_kib;
    doing("many: %d communicators", alive);
    check(held <= share / 1024, "%d communicators: %ld KiB of own shared memory, allowed are %ld", alive, held, share / 1024);
    for (int i = 0; i < alive; i++) {
        doing("freeing communicator %d of %d", i, alive);
        MPI_Comm_free(&comms[i]);
    }
    free(comms);
    all_four(MPI_COMM_WORLD, 50, 1, "after many communicators");
}

/* The communicator is freed while operations on it run; their requests complete all the same. */
static void pending(void)
{
    enum { ROUNDS = 30 };
    for (int s = 0; s < ROUNDS; s++) {
        static const int COUNTS[] = {1, 1000, 100000};
        MPI_Comm dup;
        struct work works[4];
        MPI_Request requests[4];
        doing("Comm_free with four operations pending, round %d", s);
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        for (int i = 0; i < 4; i++) {
            work_make(&works[i], (enum operation)((i + s) % 4), COUNTS[s % 3], i + s, dup);
            work_fill(&works[i], s);
        }
        if (test_rank == s % test_size)
            usleep(1000); /* so that the others' operations cannot be complete */
        for (int i = 0; i < 4; i++)
            must(work_begin(&works[i], &requests[i]));
        must(MPI_Comm_free(&dup));
        must(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 4; i++) {
            work_check(&works[i], s, "freed communicator");
            work_free(&works[i]);
        }
    }
}

/* ---------------------------------------------------------------- the first collective */

static void first(void)
{
    for (int o = BCAST; o <= BARRIER; o++)
        for (int mode = 0; mode < 3; mode++) {
            static const char *const MODES[] = {"blocking", "nonblocking", "persistent"};
            MPI_Comm dup;
            struct work w;
            MPI_Request request;
            doing("%s %s as the first collective", MODES[mode], OPERATION_NAME[o]);
            MPI_Comm_split(MPI_COMM_WORLD, 0, (test_rank * 7) % 5, &dup);
            work_make(&w, (enum operation)o, 3000, 1, dup);
            work_fill(&w, o);
            if (mode == 0) {
                must(work_do(&w));
            } else if (mode == 1) {
                must(work_begin(&w, &request));
                must(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                must(work_init(&w, &request));
                must(MPI_Start(&request));
                must(MPI_Wait(&request, MPI_STATUS_IGNORE));
                must(MPI_Request_free(&request));
            }
            work_check(&w, o, MODES[mode]);
            work_free(&w);
            all_four(dup, 30, 2, "after the first collective");
            MPI_Comm_free(&dup);
        }
}

/* Overlapping communicators, whose first operations (all nonblocking, of different kinds) are in flight
 * together. */
static void overlap(void)
{
    enum { COMMS = 4 };
    for (int s = 0; s < 8; s++) {
        MPI_Comm comms[COMMS];
        struct work works[COMMS];
        MPI_Request requests[COMMS];
        int order[COMMS];
        uint64_t mine = mix4(7, (uint64_t)test_rank, (uint64_t)s, 0);
        doing("overlapping communicators, round %d", s);
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
        MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &comms[1]);
        MPI_Comm_split(MPI_COMM_WORLD, test_rank / 2, 0, &comms[2]);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank, &comms[3]);
        for (int i = 0; i < COMMS; i++) {
            work_make(&works[i], (enum operation)((i + s) % 4), 500, s, comms[i]);
            work_fill(&works[i], s);
        }
        permutation(&mine, order, COMMS); /* different communicators: any order is legal */
        for (int i = 0; i < COMMS; i++)
            must(work_begin(&works[order[i]], &requests[order[i]]));
        permutation(&mine, order, COMMS);
        for (int i = 0; i < COMMS; i++)
            must(MPI_Wait(&requests[order[i]], MPI_STATUS_IGNORE));
        for (int i = 0; i < COMMS; i++) {
            work_check(&works[i], s, "overlapping communicators");
            work_free(&works[i]);
            MPI_Comm_free(&comms[i]);
        }
    }
}

static void split_one(int color, int key, const char *shape)
{
    MPI_Comm comm;
    doing("split: %s", shape);
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
    if (comm == MPI_COMM_NULL)
        return;
    all_four(comm, 700, 5, shape);
    MPI_Comm_free(&comm);
}

static void split(void)
{
    int me = test_rank, n = test_size, dims[3] = {0, 0, 0}, periods[3] = {0, 0, 0}, keep[3] = {1, 0, 1};
    MPI_Comm cart, rows, node;
    MPI_Group world, part;
    MPI_Comm made;
    split_one(0, 0, "all");
    split_one(0, -me, "reversed");
    split_one(me, 0, "alone");
    split_one(me < n / 2, me, "halves");
    split_one(me % 2, -me, "odd and even, reversed");
    split_one(me % 3, me, "every third");
    split_one(me == 0 ? MPI_UNDEFINED : 0, me, "all but rank 0");
    split_one(me == n - 1 ? MPI_UNDEFINED : 0, me, "all but the last");
    split_one(0, (int)(mix((uint64_t)me) % 100), "random order");
    doing("split: Cartesian rows");
    MPI_Dims_create(n, 3, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 1, &cart);
    MPI_Cart_sub(cart, keep, &rows);
    all_four(cart, 100, 2, "Cartesian");
    all_four(rows, 100, 2, "Cartesian rows");
    MPI_Comm_free(&rows);
    MPI_Comm_free(&cart);
    doing("split: by shared memory");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -me, MPI_INFO_NULL, &node);
    all_four(node, 100, 2, "by shared memory");
    MPI_Comm_free(&node);
    doing("split: Comm_create_group and Comm_create");
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, (int[][3]){{n - 1, 0, -2}}, &part);
    MPI_Comm_create(MPI_COMM_WORLD, part, &made);
    if (made != MPI_COMM_NULL) {
        all_four(made, 100, 2, "Comm_create");
        MPI_Comm_free(&made);
    }
    int position;
    MPI_Group_rank(part, &position);
    if (position != MPI_UNDEFINED) {
        MPI_Comm_create_group(MPI_COMM_WORLD, part, 17, &made);
        all_four(made, 100, 2, "Comm_create_group");
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&part);
    MPI_Group_free(&world);
    /* Operations on the communicator being duplicated would be legal too, but Open MPI's own ones, which its
     * progress starts, then take their places among them in another order on each rank: no component can mend
     * that. */
    doing("split: Comm_idup");
    MPI_Request request;
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
    all_four(other, 10, 1, "while Comm_idup runs");
    must(MPI_Wait(&request, MPI_STATUS_IGNORE));
    all_four(made, 100, 2, "Comm_idup");
    MPI_Comm_free(&made);
    MPI_Comm_free(&other);
}

/* ---------------------------------------------------------------- inter-communicators, spawn */

static void four_between(MPI_Comm inter, int side, const char *where)
{
    int remote, mine = 10 + test_rank, sum = -1, word = side == 0 ? 77 : -1;
    MPI_Comm_remote_size(inter, &remote);
    doing("%s: four operations", where);
    must(MPI_Barrier(inter));
    mine = side + 1;
    must(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter));
    check(sum == remote * (2 - side), "%s: Allreduce got %d, expected %d", where, sum, remote * (2 - side));
    /* Rank 0 of side 0 is the root for side 1. */
    int rank;
    MPI_Comm_rank(inter, &rank);
    must(MPI_Bcast(&word, 1, MPI_INT, side ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT, inter));
    check(word == 77, "%s: Bcast got %d, expected 77", where, word);
    sum = -1;
    must(MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, side ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT, inter));
    check(sum == (side == 0 && rank == 0 ? 2 * remote : -1), "%s: Reduce got %d", where, sum);
}

static void inter(void)
{
    MPI_Comm half, between, merged;
    int side = test_rank >= test_size / 2;
    if (test_size < 2)
        return;
    doing("inter-communicator");
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : test_size / 2, 9, &between);
    four_between(between, side, "inter-communicator");
    MPI_Intercomm_merge(between, !side, &merged);
    all_four(merged, 1000, 3, "merged inter-communicator");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

enum { CHILDREN = 2 };

static void with_family(MPI_Comm between, int child)
{
    MPI_Comm merged;
    four_between(between, child, "spawned inter-communicator");
    doing("Intercomm_merge");
    MPI_Intercomm_merge(between, child, &merged);
    all_four(merged, 1, 1, "merged with spawned processes");
    all_four(merged, 5000, 4, "merged with spawned processes");
    all_four(merged, 200000, 4, "merged with spawned processes");
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&between);
}

static void spawn(void)
{
    MPI_Comm between;
    int codes[CHILDREN];
    doing("Comm_spawn of %d", CHILDREN);
    must(MPI_Comm_spawn(program, (char *[]){"--child", NULL}, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, codes));
    with_family(between, 0);
}

int main(int argc, char **argv)
{
    int child = has_option(argc, argv, "--child");
    program = argv[0];
    test_init(&argc, &argv, child ? "comms (spawned)" : "comms", MPI_THREAD_SINGLE);
    if (child) {
        MPI_Comm parent;
        MPI_Comm_get_parent(&parent);
        with_family(parent, 1);
        return test_end();
    }
    const char *parts = option_text(argc, argv, "--parts", "all");
    if (in_list(parts, "idle")) /* first: where nothing has been given back, what is taken shows */
        idle((int)option_number(argc, argv, "--alive", 200));
    if (in_list(parts, "leak"))
        leak((int)option_number(argc, argv, "--cycles", 2000));
    if (in_list(parts, "many"))
        many((int)option_number(argc, argv, "--alive", 200), option_number(argc, argv, "--share", 128 << 20));
    if (in_list(parts, "pending"))
        pending();
    if (in_list(parts, "first"))
        first();
    if (in_list(parts, "overlap"))
        overlap();
    if (in_list(parts, "split"))
        split();
    if (in_list(parts, "inter"))
        inter();
    if (in_list(parts, "spawn"))
        spawn();
    return test_end();
}
