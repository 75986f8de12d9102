/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the component takes of a process: descriptors, mappings, memory.
 *
 *   --parts LIST     of closed, locked, alive, freed (default: closed,alive,freed)
 *   --alive N        communicators for `alive` and `freed` (default 400)
 *   --ints N         numbers in the one Allreduce on each of them; 0: none (default 2)
 *   --each KIB       the most memory that such a communicator may cost all ranks together (default: not
 *   checked) --shared KIB     the most shared memory that they may take of one rank together (default: not
 *   checked)
 */
#include "harness.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { STANDARD = 3, LONG = 50000, LINE = 512 };

/* ---------------------------------------------------------------- what a process has */

/* Of open files whose names have this in them: KiB that the system holds for them, how many there are, and
 * rights beyond the owner's. */
struct files {
    long kib;
    int files, low, rights;
};

static struct files files(const char *name)
{
    struct files sum = {0};
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder)) {
        char link[64], target[LINE];
        struct stat data;
        snprintf(link, sizeof link, "/proc/self/fd/%.20s", e->d_name);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (!strstr(target, name) || stat(link, &data))
            continue;
        sum.files++;
        sum.kib += data.st_blocks / 2;
        sum.low += atoi(e->d_name) < STANDARD;
        sum.rights |= (int)(data.st_mode & 0177);
    }
    if (folder)
        closedir(folder);
    return sum;
}

/* A line of a file of /proc/self, as a number. */
static long number_of(const char *file, const char *name)
{
    char line[LINE];
    long found = -1;
    FILE *f = fopen(file, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)))
            found = strtol(line + strlen(name), NULL, 10);
    if (f)
        fclose(f);
    return found;
}

/* Of the mappings of the component's files: KiB in all, of which a core dump would have so many, and so many
 * are locked. */
struct mappings {
    long kib, dumped, locked, resident;
};

static struct mappings mappings(void)
{
    struct mappings sum = {0};
    char line[LINE];
    int ours = 0;
    long kib = 0, number;
    unsigned long from, to;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            ours = strstr(line, "memfd:coll_rust") != NULL; /* and not the component itself */
        if (!ours)
            continue;
        if (sscanf(line, "Size: %ld", &number) == 1)
            sum.kib += kib = number;
        if (sscanf(line, "Rss: %ld", &number) == 1)
            sum.resident += number;
        if (sscanf(line, "Locked: %ld", &number) == 1)
            sum.locked += number;
        if (!strncmp(line, "VmFlags:", 8) && !strstr(line, " dd"))
            sum.dumped += kib;
    }
    if (f)
        fclose(f);
    return sum;
}

/* KiB of the process' own memory, and its part of what it shares. */
static long proportional(void)
{
    long kib = number_of("/proc/self/smaps_rollup", "Pss:");
    return kib < 0 ? number_of("/proc/self/status", "VmRSS:") : kib;
}

static void allreduce(MPI_Comm comm, int count, int shift)
{
    int *send = calloc((size_t)count + 1, sizeof *send), *recv = calloc((size_t)count + 1, sizeof *recv), wrong = 0;
    for (int i = 0; i < count; i++)
        send[i] = test_rank + i + shift;
    MPI_Allreduce(send, recv, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        wrong += recv[i] != test_size * (i + shift) + test_size * (test_size - 1) / 2;
    check(wrong == 0, "Allreduce of %d numbers: %d are wrong", count, wrong);
    free(send);
    free(recv);
}

/* ---------------------------------------------------------------- the parts */

/* A program may close its standard descriptors, and print all the same. */
static void closed(void)
{
    int keep[STANDARD];
    doing("closed descriptors");
    fflush(NULL);
    for (int fd = 0; fd < STANDARD; fd++) {
        keep[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
        close(fd);
    }
    allreduce(MPI_COMM_WORLD, 2, 1);
    allreduce(MPI_COMM_WORLD, LONG, 2);
    int found[STANDARD];
    for (int fd = 0; fd < STANDARD; fd++) {
        char link[64], target[LINE] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        found[fd] = readlink(link, target, sizeof target - 1) > 0 && (strstr(target, "coll_rust") || strstr(target, "pidfd"));
        for (int i = 0; i < 5000 && found[fd]; i++) /* what the program prints */
            if (write(fd, "a line that goes nowhere, or into the pool of a process\n", 56) < 0)
                break;
    }
    allreduce(MPI_COMM_WORLD, 3, 3);
    allreduce(MPI_COMM_WORLD, LONG, 4);
    for (int fd = 0; fd < STANDARD; fd++) {
        dup2(keep[fd], fd);
        close(keep[fd]);
        check(!found[fd], "the component has descriptor %d", fd);
    }
    struct files pools = files("coll_rust");
    check(pools.files > 0, "there is no pool");
    check(pools.rights == 0, "others have the rights %o on a pool", pools.rights);
}

/* A core dump has nothing of pools, and locked memory only what is used. */
static void locked(int before)
{
    enum { USED_KIB = 8192 };
    doing("locked memory");
    if (!before && mlockall(MCL_CURRENT | MCL_FUTURE)) {
        printf("        (memory cannot be locked: %m)\n");
        return;
    }
    allreduce(MPI_COMM_WORLD, 2, 1);
    allreduce(MPI_COMM_WORLD, LONG, 2);
    struct mappings maps = mappings();
    struct files pools = files("coll_rust");
    check(maps.kib > 0 && maps.dumped == 0, "%ld of %ld KiB of pools are in a core dump", maps.dumped, maps.kib);
    check(pools.kib <= USED_KIB, "the own pool takes %ld KiB, with memory locked", pools.kib);
    check(maps.resident <= test_size * USED_KIB, "%ld KiB of pools are there, with memory locked", maps.resident);
    check(!before || maps.locked > 0, "nothing of the pools is locked");
    if (test_rank == 0)
        printf("        locked: pools of %ld KiB: %ld dumped, %ld locked, %ld there; all of the process: %ld KiB locked\n", maps.kib,
               maps.dumped, maps.locked, maps.resident, number_of("/proc/self/status", "VmLck:"));
    munlockall();
}

static long all_of(long mine)
{
    long sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void alive(int count, int ints, long each, long shared, int freed)
{
    MPI_Comm *comms = malloc(sizeof *comms * (size_t)count);
    allreduce(MPI_COMM_WORLD, 2, 1);
    allreduce(MPI_COMM_WORLD, LONG, 2);
    MPI_Comm warm;
    MPI_Comm_dup(MPI_COMM_WORLD, &warm);
    allreduce(warm, ints, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    long before = all_of(proportional()), own = files("coll_rust").kib;
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        doing("communicator %d of %d", i, count);
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        if (ints > 0)
            allreduce(comms[i], ints, i);
    }
    double took = MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD);
    long after = all_of(proportional()), later = files("coll_rust").kib;
    doing("%d communicators are alive", count);
    check(each < 0 || after - before <= each * count, "%d communicators with an Allreduce of %d numbers: %ld KiB became %ld", count, ints,
          before, after);
    check(shared < 0 || later - own <= shared, "%d communicators with an Allreduce of %d numbers: %ld KiB of own shared memory became %ld",
          count, ints, own, later);
    if (test_rank == 0)
        printf("        alive: %d communicators, Allreduce of %d numbers: %.1f KiB each on %d ranks, %.1f of own shared memory, %.1f us\n",
               count, ints, (double)(after - before) / count, test_size, (double)(later - own) / count, 1e6 * took / count);
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Comm_free(&warm);
    free(comms);
    if (!freed)
        return;
    /* What the others are through with shows when something is leased or freed. */
    for (int i = 0; i < 3; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_dup(MPI_COMM_WORLD, &warm);
        allreduce(warm, 2, i);
        MPI_Comm_free(&warm);
    }
    long rest = files("coll_rust").kib;
    enum { WARM_KIB = 6144 };
    check(rest - own <= WARM_KIB, "%ld KiB of own shared memory were %ld with %d communicators, and are %ld without", own, later, count, rest);
    if (test_rank == 0)
        printf("        freed: %ld KiB of own shared memory, %ld with %d communicators, %ld after they were freed\n", own, later, count, rest);
}

int main(int argc, char **argv)
{
    const char *parts = option_text(argc, argv, "--parts", "closed,alive,freed");
    int early = in_list(parts, "locked") && !mlockall(MCL_CURRENT | MCL_FUTURE);
    test_init(&argc, &argv, "frugal", MPI_THREAD_SINGLE);
    if (in_list(parts, "closed")) /* first: before there are pools */
        closed();
    if (in_list(parts, "locked"))
        locked(early);
    if (in_list(parts, "later"))
        locked(0);
    if (in_list(parts, "alive"))
        alive((int)option_number(argc, argv, "--alive", 400), (int)option_number(argc, argv, "--ints", 2),
              option_number(argc, argv, "--each", -1), option_number(argc, argv, "--shared", -1), in_list(parts, "freed"));
    return test_end();
}
