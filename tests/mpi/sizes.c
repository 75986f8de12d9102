/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of the component at the sizes where its shared memory changes its way: what fits a line, a
 * share of a line, a fragment, a share of one, a set, a queue, or reaches a threshold, each with one byte
 * less and more; up to 16 MiB. x modes x datatypes (bytes, bytes with gaps, ranks that describe the same data
 * differently, records with gaps) x roots x in place.
 *
 * Every byte of a block is known from sender, receiver and position, so whole buffers are judged against
 * images, gaps and guard bytes included. (matrix.c and vector.c have the richer datatypes and operations, and
 * compare with Open MPI's own.)
 *
 *   --sample N       about one of N cases (default 1: all); of those above 256 KiB fewer, in steps
 *   --seed N         another sample, and other data
 *   --ops LIST       names in small letters
 *   --most BYTES     the largest size (default 16 MiB)
 *   --device WHOSE   buffers of odd ranks, or of all, in the memory of the stand-in for an accelerator
 *                    (tests/accelerator), which must be active
 *   --sides SIDES    of those, the send buffer, the receive buffer, or both (default)
 *   --fragment BYTES, --depth N, --sets N    as the parameters have them (default 16384, 4 fragments, 2 sets)
 */
#include "harness.h"
#include "../accelerator/standin.h"
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum operation { ALLGATHER, ALLGATHERV, ALLREDUCE, ALLTOALL, ALLTOALLV, ALLTOALLW, BCAST, EXSCAN, GATHER, GATHERV, REDUCE,
                 REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, SCATTER, SCATTERV, OPERATIONS };
enum { ROOTED = 1, REDUCES = 2, BLOCKS_OUT = 4, BLOCKS_IN = 8, IRREGULAR = 16, FROM_ROOT = 32 };
static const struct row {
    const char *name;
    int is;
} TABLE[OPERATIONS] = {
    [ALLGATHER] = {"allgather", BLOCKS_IN},
    [ALLGATHERV] = {"allgatherv", BLOCKS_IN | IRREGULAR},
    [ALLREDUCE] = {"allreduce", REDUCES},
    [ALLTOALL] = {"alltoall", BLOCKS_OUT | BLOCKS_IN},
    [ALLTOALLV] = {"alltoallv", BLOCKS_OUT | BLOCKS_IN | IRREGULAR},
    [ALLTOALLW] = {"alltoallw", BLOCKS_OUT | BLOCKS_IN | IRREGULAR},
    [BCAST] = {"bcast", ROOTED | FROM_ROOT},
    [EXSCAN] = {"exscan", REDUCES},
    [GATHER] = {"gather", ROOTED | BLOCKS_IN},
    [GATHERV] = {"gatherv", ROOTED | BLOCKS_IN | IRREGULAR},
    [REDUCE] = {"reduce", ROOTED | REDUCES},
    [REDUCE_SCATTER] = {"reduce_scatter", REDUCES | BLOCKS_OUT | IRREGULAR},
    [REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block", REDUCES | BLOCKS_OUT},
    [SCAN] = {"scan", REDUCES},
    [SCATTER] = {"scatter", ROOTED | FROM_ROOT | BLOCKS_OUT},
    [SCATTERV] = {"scatterv", ROOTED | FROM_ROOT | BLOCKS_OUT | IRREGULAR},
};

/* Elements of `unit` bytes in a row, one every `extent`. */
struct type {
    MPI_Datatype handle;
    size_t unit, extent;
};
enum { BYTES, GAPS, RECORDS, TYPES };
static struct type types[TYPES];
enum { DIFFERENT = TYPES, VARIANTS }; /* ranks alternate between BYTES and GAPS, and between their two buffers */
static const char *const VARIANT[] = {"bytes", "gaps", "records", "different"};

/* What is reduced, in place of a datatype. */
static const struct number {
    const char *name;
    MPI_Datatype handle;
    MPI_Op op;
    size_t size;
} NUMBERS[VARIANTS] = {
    {"uint8 bxor", MPI_UINT8_T, MPI_BXOR, 1}, /* a sum saturates in some versions (op/avx) */
    {"int32 bxor", MPI_INT32_T, MPI_BXOR, 4},
    {"double sum", MPI_DOUBLE, MPI_SUM, 8},
    {"2int maxloc", MPI_2INT, MPI_MAXLOC, 8},
};

struct kase {
    enum operation operation;
    int mode, variant, root, in_place;
    size_t bytes;
};

enum { MOST_RANKS = 64, GUARD = 64, FILL = 0xee, PERIOD = 65521, RESTARTS = 2 };
static unsigned char table[2 * PERIOD];

struct side {
    int blocks;
    struct type type;
    size_t bytes[MOST_RANKS];
    int counts[MOST_RANKS], displs[MOST_RANKS], offsets[MOST_RANKS]; /* the last in bytes */
    MPI_Datatype handles[MOST_RANKS];
    size_t span;
    unsigned char *image, *expected;
    size_t room;
    int on_device;
};
static struct side send, recv;
static uint64_t seed, salt;

/* ---------------------------------------------------------------- data */

static int is(const struct kase *k, int flag)
{
    return TABLE[k->operation].is & flag;
}

static size_t unit(const struct kase *k)
{
    return is(k, REDUCES) ? NUMBERS[k->variant].size : types[k->variant == DIFFERENT ? BYTES : k->variant].unit;
}

/* Bytes of the block from one rank to another, a multiple of the unit. */
static size_t length(const struct kase *k, int from, int to)
{
    size_t whole = k->bytes / unit(k) * unit(k);
    if (!is(k, IRREGULAR))
        return whole;
    int turn = !is(k, BLOCKS_OUT) ? from : is(k, FROM_ROOT | REDUCES) ? to : from + to;
    switch (turn % 4) {
    case 0: return whole;
    case 1: return whole / 2 / unit(k) * unit(k);
    case 2: return 0;
    default: return whole + unit(k);
    }
}

/* Where in the table the block from one rank to another begins. */
static size_t begin(const struct kase *k, int from, int to)
{
    return mix4(salt, (uint64_t)from, is(k, BLOCKS_OUT) ? (uint64_t)to : 0, 1) % PERIOD;
}

/* Writes `n` bytes of what one rank sends to another, in elements of a type. */
static void put(const struct kase *k, unsigned char *at, const struct type *t, size_t n, int from, int to)
{
    size_t start = begin(k, from, to);
    if (is(k, REDUCES)) {
        const struct number *number = &NUMBERS[k->variant];
        for (size_t e = 0; e < n / number->size; e++) {
            unsigned char value = table[(start + e) % PERIOD];
            switch (k->variant) {
            case 0: at[e] = value; break;
            case 1: ((int32_t *)at)[e] = value * 0x01010101; break;
            case 2: ((double *)at)[e] = value; break;
            default: ((int *)at)[2 * e] = value % 4, ((int *)at)[2 * e + 1] = from;
            }
        }
    } else if (t->unit == t->extent) {
        for (size_t j = 0; j < n; j += PERIOD)
            memcpy(at + j, table + start, n - j < PERIOD ? n - j : PERIOD);
    } else {
        for (size_t j = 0; j < n; j++)
            at[j / t->unit * t->extent + j % t->unit] = table[(start + j) % PERIOD];
    }
}

/* Combines `n` bytes of one rank's numbers with what is there. */
static void combine(const struct kase *k, unsigned char *at, const unsigned char *more, size_t n)
{
    size_t count = n / NUMBERS[k->variant].size;
    switch (k->variant) {
    case 0:
        for (size_t e = 0; e < count; e++)
            at[e] ^= more[e];
        break;
    case 1:
        for (size_t e = 0; e < count; e++)
            ((int32_t *)at)[e] ^= ((const int32_t *)more)[e];
        break;
    case 2:
        for (size_t e = 0; e < count; e++)
            ((double *)at)[e] += ((const double *)more)[e];
        break;
    default: /* the lower rank stays where values are equal */
        for (size_t e = 0; e < count; e++)
            if (((const int *)more)[2 * e] > ((int *)at)[2 * e])
                memcpy(at + 8 * e, more + 8 * e, 8);
    }
}

/* ---------------------------------------------------------------- buffers */

static struct type type_of(const struct kase *k, int which)
{
    if (is(k, REDUCES))
        return (struct type){NUMBERS[k->variant].handle, unit(k), unit(k)};
    return types[k->variant == DIFFERENT ? (test_rank + which) % 2 : k->variant];
}

static unsigned char *get(size_t bytes) { return aligned_alloc(64, (bytes + 63) / 64 * 64); }

/* Each side has a half of the device's memory. */
static unsigned char *image_of(struct side *s)
{
    if (!s->on_device)
        return get(s->room);
    return s->room > STANDIN_BYTES / 4 ? NULL : (unsigned char *)STANDIN_HOST + (s == &recv ? STANDIN_BYTES / 4 : 0);
}

/* What the program passes for an address in an image. */
static unsigned char *given(const struct side *s)
{
    return s->image + GUARD - (s->on_device ? STANDIN_HOST - STANDIN_DEVICE : 0);
}

static void choose_device(const char *whose, const char *sides)
{
    int mine = !strcmp(whose, "all") || (!strcmp(whose, "odd") && test_rank % 2) || (!strcmp(whose, "even") && test_rank % 2 == 0);
    send.on_device = mine && strcmp(sides, "recv");
    recv.on_device = mine && strcmp(sides, "send");
}

/* Lays out blocks; irregular ones with displacements lie apart, and backwards at odd ranks. */
static void lay_out(struct side *s, struct type type, int blocks, int apart)
{
    size_t at = 0;
    s->blocks = blocks;
    s->type = type;
    for (int i = 0; i < blocks; i++) {
        int b = apart && test_rank % 2 ? blocks - 1 - i : i;
        s->counts[b] = (int)(s->bytes[b] / type.unit);
        s->displs[b] = (int)at;
        s->offsets[b] = (int)(at * type.extent);
        s->handles[b] = type.handle;
        at += (size_t)s->counts[b] + (apart ? 1 : 0);
    }
    s->span = at * type.extent;
    if (2 * GUARD + s->span > s->room) {
        if (!s->on_device)
            free(s->image);
        free(s->expected);
        s->room = 2 * GUARD + s->span + s->span / 2;
        s->image = image_of(s);
        s->expected = aligned_alloc(64, (s->room + 63) / 64 * 64);
        if (!s->image || !s->expected) {
            fail("no memory for %zu bytes", s->room);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static unsigned char *block_at(const struct side *s, unsigned char *image, int block)
{
    return image + GUARD + s->offsets[block];
}

/* Does this rank give MPI_IN_PLACE? (Of Bcast there is one buffer anyway.) */
static int replaces(const struct kase *k)
{
    return k->in_place && (!is(k, ROOTED) || test_rank == k->root);
}

static int sends(const struct kase *k)
{
    return k->operation == BCAST ? 0 : is(k, FROM_ROOT) ? test_rank == k->root : !replaces(k);
}

static int receives(const struct kase *k)
{
    if (k->operation == BCAST)
        return 1;
    return is(k, FROM_ROOT) ? !replaces(k) : !is(k, ROOTED) || test_rank == k->root;
}

static void describe(const struct kase *k)
{
    int me = test_rank, p = test_size;
    for (int r = 0; r < p; r++) {
        send.bytes[r] = length(k, me, r);
        recv.bytes[r] = length(k, is(k, FROM_ROOT) ? k->root : r, is(k, BLOCKS_IN) ? me : r);
    }
    lay_out(&send, type_of(k, 0), is(k, BLOCKS_OUT) ? p : 1, is(k, IRREGULAR) && !is(k, REDUCES));
    if (!is(k, BLOCKS_IN) && !(is(k, REDUCES) && is(k, BLOCKS_OUT) && k->in_place))
        recv.bytes[0] = recv.bytes[me];
    lay_out(&recv, type_of(k, 1), is(k, BLOCKS_IN) || (is(k, REDUCES) && is(k, BLOCKS_OUT) && k->in_place) ? p : 1,
            is(k, IRREGULAR) && is(k, BLOCKS_IN));
}

/* The buffers before the call, and what they must be after it. */
static void prepare(const struct kase *k)
{
    int me = test_rank;
    memset(send.image, FILL, 2 * GUARD + send.span);
    memset(recv.image, FILL, 2 * GUARD + recv.span);
    for (int b = 0; b < send.blocks && sends(k); b++)
        put(k, block_at(&send, send.image, b), &send.type, send.bytes[b], me, b);
    memcpy(send.expected, send.image, 2 * GUARD + send.span);
    if (k->operation == BCAST && me == k->root)
        put(k, block_at(&recv, recv.image, 0), &recv.type, recv.bytes[0], me, 0);
    for (int b = 0; b < recv.blocks && k->in_place && !sends(k) && receives(k) && !is(k, FROM_ROOT); b++)
        if (recv.blocks == 1 || is(k, BLOCKS_OUT) || b == me)
            put(k, block_at(&recv, recv.image, b), &recv.type, recv.bytes[b], me, b);
    memcpy(recv.expected, recv.image, 2 * GUARD + recv.span);
    if (!receives(k))
        return;
    if (!is(k, REDUCES)) {
        for (int b = 0; b < recv.blocks; b++)
            put(k, block_at(&recv, recv.expected, b), &recv.type, recv.bytes[b], is(k, FROM_ROOT) ? k->root : b, me);
        return;
    }
    size_t n = length(k, 0, me);
    int end = k->operation == SCAN ? me + 1 : k->operation == EXSCAN ? me : test_size;
    unsigned char *result = block_at(&recv, recv.expected, 0), *more = malloc(n + 8);
    for (int r = 0; r < end; r++) {
        put(k, r ? more : result, &recv.type, n, r, me);
        if (r)
            combine(k, result, more, n);
    }
    free(more);
}

/* Where a buffer differs from what is expected: 1 and a text, or 0. */
static int differs(const struct side *s, const char *what, char *text, size_t room)
{
    size_t at = 0;
    if (!memcmp(s->image, s->expected, 2 * GUARD + s->span))
        return 0;
    while (s->image[at] == s->expected[at])
        at++;
    snprintf(text, room, "%s, byte %td of %zu: got %#x, expected %#x", what, (ptrdiff_t)at - GUARD, s->span, s->image[at], s->expected[at]);
    return 1;
}

static int judge(const struct kase *k, char *text, size_t room)
{
    /* What the result leaves of a reduction's input, in place, is anybody's; and of Exscan at rank 0. */
    if (is(k, REDUCES) && is(k, BLOCKS_OUT) && k->in_place) {
        size_t n = length(k, 0, test_rank);
        memcpy(recv.expected + GUARD + n, recv.image + GUARD + n, recv.span - n);
    }
    return differs(&recv, "receive buffer", text, room) || differs(&send, "send buffer", text, room);
}

/* ---------------------------------------------------------------- calls */

#define THREE(Name, name, ...) IN_MODE(k->mode, Name, name, MPI_COMM_WORLD, request, __VA_ARGS__)

static int call(const struct kase *k, MPI_Request *request)
{
    int in_place = replaces(k), root = k->root;
    const void *s = in_place && !is(k, FROM_ROOT) ? MPI_IN_PLACE : sends(k) ? given(&send) : NULL;
    void *r = in_place && is(k, FROM_ROOT) ? MPI_IN_PLACE : receives(k) ? given(&recv) : NULL;
    int sn = send.counts[0], rn = recv.counts[0];
    MPI_Datatype st = send.type.handle, rt = recv.type.handle;
    const int *sc = send.counts, *sd = send.displs, *so = send.offsets, *rc = recv.counts, *rd = recv.displs, *ro = recv.offsets;
    MPI_Op op = NUMBERS[k->variant].op;
    switch (k->operation) {
    case ALLGATHER: return THREE(Allgather, allgather, s, sn, st, r, rn, rt);
    case ALLGATHERV: return THREE(Allgatherv, allgatherv, s, sn, st, r, rc, rd, rt);
    case ALLREDUCE: return THREE(Allreduce, allreduce, s, r, rn, rt, op);
    case ALLTOALL: return THREE(Alltoall, alltoall, s, sn, st, r, rn, rt);
    case ALLTOALLV: return THREE(Alltoallv, alltoallv, s, sc, sd, st, r, rc, rd, rt);
    case ALLTOALLW: return THREE(Alltoallw, alltoallw, s, sc, so, send.handles, r, rc, ro, recv.handles);
    case BCAST: return THREE(Bcast, bcast, given(&recv), rn, rt, root);
    case EXSCAN: return THREE(Exscan, exscan, s, r, rn, rt, op);
    case GATHER: return THREE(Gather, gather, s, sn, st, r, rn, rt, root);
    case GATHERV: return THREE(Gatherv, gatherv, s, sn, st, r, rc, rd, rt, root);
    case REDUCE: return THREE(Reduce, reduce, s, r, sn, st, op, root);
    case REDUCE_SCATTER: return THREE(Reduce_scatter, reduce_scatter, s, r, sc, rt, op);
    case REDUCE_SCATTER_BLOCK: return THREE(Reduce_scatter_block, reduce_scatter_block, s, r, sn, rt, op);
    case SCAN: return THREE(Scan, scan, s, r, rn, rt, op);
    case SCATTER: return THREE(Scatter, scatter, s, sn, st, r, rn, rt, root);
    default: return THREE(Scatterv, scatterv, s, sc, sd, st, r, rn, rt, root);
    }
}

static void run_case(const struct kase *k)
{
    MPI_Request request = MPI_REQUEST_NULL;
    char text[256];
    int wrong = 0;
    doing("%s %s np=%d root=%d %zu bytes, %s%s", MODE_NAME[k->mode], TABLE[k->operation].name, test_size, k->root, k->bytes,
          is(k, REDUCES) ? NUMBERS[k->variant].name : VARIANT[k->variant], k->in_place ? ", in place" : "");
    describe(k);
    for (int start = 0; start < (k->mode == PERSISTENT ? RESTARTS : 1); start++) {
        salt = mix4(seed, (uint64_t)k->operation, k->bytes, (uint64_t)(k->root * 8 + k->variant + start));
        prepare(k);
        if (start == 0)
            must(call(k, &request));
        if (k->mode == PERSISTENT)
            must(MPI_Start(&request));
        if (k->mode != BLOCKING)
            must(MPI_Wait(&request, MPI_STATUS_IGNORE));
        wrong = wrong || judge(k, text, sizeof text);
    }
    check(!wrong, "%s", text);
    if (k->mode == PERSISTENT)
        must(MPI_Request_free(&request));
}

/* ---------------------------------------------------------------- sizes */

static int by_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

/* The sizes, ascending. `fragment` as the parameter says: it is made large enough for all. */
static int find_sizes(size_t *sizes, size_t fragment, size_t depth, size_t sets, size_t most)
{
    size_t others = test_size > 1 ? (size_t)test_size - 1 : 1, least = 128 * (size_t)test_size;
    fragment = ((fragment > least ? fragment : least) + 63) / 64 * 64;
    size_t share = fragment / others / 64 * 64;
    const size_t edges[] = {8, 56 / others / 8 * 8, 56, 64, share - 16, share, 8192, fragment, 2 * fragment, depth * (share - 16),
                            depth * fragment, share - 16 + fragment, sets * depth * fragment, 65536, 262144,
                            /* shares of half a queue of the largest fragments, as the slots of processes that
                             * take turns */
                            (512 << 10) / others / 64 * 64 - 16};
    const size_t more[] = {0, 24, 1000, 40000, 300000, (1 << 20) + 3, 4 << 20, (16 << 20) - 1, 16 << 20};
    int n = 0, kept = 0;
    for (int i = 0; i < ARRAY_LEN(edges); i++)
        for (int d = -1; d <= 1; d++)
            sizes[n++] = edges[i] + (size_t)d;
    for (int i = 0; i < ARRAY_LEN(more); i++)
        sizes[n++] = more[i];
    qsort(sizes, (size_t)n, sizeof *sizes, by_size);
    for (int i = 0; i < n; i++)
        if (sizes[i] <= most && (kept == 0 || sizes[i] != sizes[kept - 1]))
            sizes[kept++] = sizes[i];
    return kept;
}

static void make_types(void)
{
    static const struct type LAYOUTS[TYPES] = {{MPI_BYTE, 1, 1}, {MPI_BYTE, 1, 2}, {MPI_BYTE, 5, 8}};
    for (int i = 0; i < TYPES; i++) {
        MPI_Datatype run;
        types[i] = LAYOUTS[i];
        if (i == BYTES)
            continue;
        must(MPI_Type_contiguous((int)types[i].unit, MPI_BYTE, &run));
        must(MPI_Type_create_resized(run, 0, (MPI_Aint)types[i].extent, &types[i].handle));
        must(MPI_Type_commit(&types[i].handle));
        must(MPI_Type_free(&run));
    }
    for (size_t i = 0; i < 2 * PERIOD; i++)
        table[i] = (unsigned char)mix(i % PERIOD);
}

int main(int argc, char **argv)
{
    static size_t sizes[256];
    test_init(&argc, &argv, "sizes", MPI_THREAD_SINGLE);
    uint64_t sample = (uint64_t)option_number(argc, argv, "--sample", 1);
    const char *ops = option_text(argc, argv, "--ops", "all");
    seed = (uint64_t)option_number(argc, argv, "--seed", 1);
    choose_device(option_text(argc, argv, "--device", "none"), option_text(argc, argv, "--sides", "both"));
    make_types();
    int count = find_sizes(sizes, (size_t)option_number(argc, argv, "--fragment", 16384), (size_t)option_number(argc, argv, "--depth", 4),
                           (size_t)option_number(argc, argv, "--sets", 2), (size_t)option_number(argc, argv, "--most", 16 << 20));
    for (int o = 0; o < OPERATIONS; o++) {
        struct kase k = {.operation = (enum operation)o};
        if (!in_list(ops, TABLE[o].name))
            continue;
        for (int n = 0; n < count; n++)
            for (k.variant = 0; k.variant < VARIANTS; k.variant++)
                for (k.root = 0; k.root < (is(&k, ROOTED) ? test_size : 1); k.root++)
                    for (k.in_place = 0; k.in_place < (o == BCAST ? 1 : 2); k.in_place++)
                        for (k.mode = BLOCKING; k.mode <= PERSISTENT; k.mode++) {
                            uint64_t h = mix4(seed, (uint64_t)(o * 4 + k.mode), (uint64_t)(n * 8 + k.variant), (uint64_t)(k.root * 2 + k.in_place));
                            int several = is(&k, BLOCKS_IN | BLOCKS_OUT);
                            size_t all = sizes[n] * (size_t)(several ? test_size : 1);
                            uint64_t rarer = all <= 262144 ? 1 : all <= 1 << 20 ? 4 : all <= 8 << 20 ? 16 : 64;
                            k.bytes = sizes[n];
                            /* Bytes with gaps are packed one by one. */
                            if (h % (sample * rarer) || all > 48 << 20 || (k.variant != BYTES && !is(&k, REDUCES) && all > 4 << 20))
                                continue;
                            run_case(&k);
                        }
    }
    for (int i = BYTES + 1; i < TYPES; i++)
        must(MPI_Type_free(&types[i].handle));
    return test_end();
}
