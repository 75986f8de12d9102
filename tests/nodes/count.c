/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many bytes of an operation of 1 MiB cross the uplink between the two switches.
 *
 *     count <counters> <variants> <operations> <roots> <repetitions>
 *
 * counters: a file in the format of /proc/net/dev of the fabric; variants: names of coll components;
 * operations: Bcast,Reduce,Allreduce; roots: "all" or a list. Rank 0 reads the counters between barriers.
 * Both ends of the uplink are read and must agree. For the variant `rust`, at most LIMIT payloads may cross
 * for a Bcast or a Reduce (both directions together) and, in each direction, for an Allreduce.
 */
#include "nodes.h"

#define PAYLOAD (1 << 20)
#define LIMIT 1.10

/* Bytes that crossed from switch 0 to switch 1, and back. */
struct crossed {
    uint64_t up, down;
};

/* One end's received and sent bytes. */
static int read_end(const char *text, const char *name, uint64_t *rx, uint64_t *tx)
{
    const char *line = strstr(text, name);
    return line && sscanf(line + strlen(name),
                          "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, rx, tx) == 2;
}

static struct crossed read_uplink(const char *path)
{
    char text[8192];
    uint64_t rx0, tx0, rx1, tx1;
    for (int try = 0; try < 200; try++) {
        usleep(5000);
        FILE *file = fopen(path, "r");
        if (!file)
            die("cannot open the counters");
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[length] = 0;
        if (!read_end(text, " up0:", &rx0, &tx0) || !read_end(text, " up1:", &rx1, &tx1))
            die("no up0 and up1 among the counters");
        if (tx0 == rx1 && tx1 == rx0) /* nothing is on its way */
            return (struct crossed){tx0, tx1};
    }
    die("the two ends of the uplink do not agree");
    return (struct crossed){0, 0};
}

static struct crossed measure(const char *path, enum operation op, int root, int repetitions, MPI_Comm comm, MPI_Comm sync)
{
    struct buffers b = buffers_new(PAYLOAD / sizeof(int32_t));
    struct crossed before = {0, 0}, after = {0, 0};
    buffers_fill(&b, op, root, 1);
    operation_run(&b, op, root, comm); /* connections, first-use set-up */
    buffers_fill(&b, op, root, 2);
    MPI_Barrier(sync);
    if (me == 0)
        before = read_uplink(path);
    MPI_Barrier(sync);
    for (int i = 0; i < repetitions; i++)
        operation_run(&b, op, root, comm);
    MPI_Barrier(sync);
    if (me == 0)
        after = read_uplink(path);
    MPI_Barrier(sync);
    if (buffers_wrong(&b, op, root, 2))
        die("wrong data");
    free(b.in);
    free(b.out);
    return (struct crossed){after.up - before.up, after.down - before.down};
}

int main(int argc, char **argv)
{
    char *variant[MAX_VARIANTS], *wanted[OPERATIONS], *root_text[256];
    MPI_Comm comm[MAX_VARIANTS], sync;
    double least[OPERATIONS][MAX_VARIANTS], most[OPERATIONS][MAX_VARIANTS];
    int passed = 0, failed = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &np);
    if (argc != 6)
        die("usage: count <counters> <variants> <operations> <roots> <repetitions>");
    int variants = split_list(argv[2], variant, MAX_VARIANTS);
    int operations = split_list(argv[3], wanted, OPERATIONS);
    int all = strcmp(argv[4], "all") == 0;
    int roots = all ? np : split_list(argv[4], root_text, 256);
    int repetitions = atoi(argv[5]);
    if (variants < 1 || operations < 1 || roots < 1 || repetitions < 1)
        die("nothing to do");

    sync = comm_of("tuned");
    for (int v = 0; v < variants; v++)
        comm[v] = comm_of(variant[v]);

    if (me == 0) {
        printf("| operation | root |");
        for (int v = 0; v < variants; v++)
            printf(" %s sw0→sw1 | %s sw1→sw0 |", variant[v], variant[v]);
        printf("\n|---|---|");
        for (int v = 0; v < variants; v++)
            printf("---|---|");
        printf("\n");
    }
    for (int o = 0; o < operations; o++) {
        enum operation op = BCAST;
        while (op < OPERATIONS && strcmp(wanted[o], operation_name[op]))
            op++;
        if (op == OPERATIONS)
            die("no such operation");
        for (int v = 0; v < variants; v++) {
            least[op][v] = 1e9;
            most[op][v] = 0;
        }
        for (int r = 0; r < (op == ALLREDUCE ? 1 : roots); r++) {
            int root = all || op == ALLREDUCE ? r : atoi(root_text[r]);
            if (root < 0 || root >= np)
                die("no such root");
            if (me == 0 && op == ALLREDUCE)
                printf("| %s | – |", operation_name[op]);
            else if (me == 0)
                printf("| %s | %d |", operation_name[op], root);
            for (int v = 0; v < variants; v++) {
                struct crossed c = measure(argv[1], op, root, repetitions, comm[v], sync);
                double up = (double)c.up / repetitions / PAYLOAD, down = (double)c.down / repetitions / PAYLOAD;
                double figure = op == ALLREDUCE ? (up > down ? up : down) : up + down;
                if (me)
                    continue;
                printf(" %.3f | %.3f |", up, down);
                least[op][v] = figure < least[op][v] ? figure : least[op][v];
                most[op][v] = figure > most[op][v] ? figure : most[op][v];
            }
            if (me == 0)
                printf("\n");
        }
        if (me == 0)
            fflush(stdout);
    }
    if (me == 0) {
        printf("\nPayloads of 1 MiB across the uplink per operation, least and most over the roots "
               "(Allreduce: the busier direction; others: both together)\n\n| operation |");
        for (int v = 0; v < variants; v++)
            printf(" %s |", variant[v]);
        printf(" verdict |\n|---|");
        for (int v = 0; v < variants; v++)
            printf("---|");
        printf("---|\n");
        for (int op = 0; op < OPERATIONS; op++) {
            const char *verdict = "";
            int asked = 0;
            for (int o = 0; o < operations; o++)
                asked |= !strcmp(wanted[o], operation_name[op]);
            if (!asked)
                continue;
            printf("| %s |", operation_name[op]);
            for (int v = 0; v < variants; v++) {
                printf(" %.2f to %.2f |", least[op][v], most[op][v]);
                if (!strcmp(variant[v], "rust")) {
                    /* At least one payload must cross: less would mean that the counters are not where the
                     * data goes. */
                    int good = most[op][v] <= LIMIT && least[op][v] >= 1.0;
                    verdict = good ? "pass" : "FAIL";
                    passed += good;
                    failed += !good;
                }
            }
            printf(" %s |\n", verdict);
        }
        printf("\ncount: %d passed, %d failed\n", passed, failed);
    }
    MPI_Finalize();
    return me == 0 && failed;
}
