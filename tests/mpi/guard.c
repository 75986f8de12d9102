/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that give different lengths for the same data, and what each of them gets: a judge.
 *
 * One rank, the odd one, has another length than the others, on the side where it receives or on that where
 * it sends. Each buffer ends at a page that cannot be accessed, and what lies before it is looked at. Every
 * call has a communicator of its own and a time limit; after it, one that is right is made on the same
 * communicator. What a case comes to is the worst that any rank meets:
 *
 *   right     success, with what has come; a place that is too short for that gets MPI_ERR_TRUNCATE
 *   error     another error, or an error without need
 *   garbage   success, and the data are not those that were sent, or not all that were
 *   hang      a call does not return in time
 *   crash     an access beyond a buffer, or a byte beyond it that has changed
 *
 *   --quick        a part of the cases
 *   --only LIST    these operations
 *   --sizes LIST   these classes of sizes
 *   --allow LIST   what does not count as a failure: error (unless none is given), garbage, hang, crash, or
 *                  operation/garbage and so on
 *   --cold         no operation with long data before, on the same communicator
 *   --cases        prints each case that is neither right nor an error
 */
#include "harness.h"
#include <setjmp.h>
#include <sys/mman.h>

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#define MPI_Neighbor_allgather_init MPIX_Neighbor_allgather_init
#define MPI_Neighbor_allgatherv_init MPIX_Neighbor_allgatherv_init
#define MPI_Neighbor_alltoall_init MPIX_Neighbor_alltoall_init
#define MPI_Neighbor_alltoallv_init MPIX_Neighbor_alltoallv_init
#define MPI_Neighbor_alltoallw_init MPIX_Neighbor_alltoallw_init
#endif

enum { FILL = 0xa5, PAGE = 4096, PATIENCE_MS = 4000, LEAK_MS = 4000, MOST = 8 };

enum operation {
    BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, REDUCE, ALLREDUCE, REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, NEIGHBOR_ALLGATHER, NEIGHBOR_ALLGATHERV, NEIGHBOR_ALLTOALL, NEIGHBOR_ALLTOALLV, NEIGHBOR_ALLTOALLW,
    OPERATIONS
};
static const char *const NAME[OPERATIONS] = {
    "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce",
    "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan", "neighbor_allgather", "neighbor_allgatherv",
    "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw"};

static int is_reduction(enum operation o) { return o >= REDUCE && o <= EXSCAN; }
static int is_around(enum operation o) { return o >= NEIGHBOR_ALLGATHER; }

/* Ints of a block. */
static const int COUNT[] = {2, 10, 500, 10000, 100000};
static const char *const SIZE_NAME[] = {"8B", "inline", "slot", "slots", "long"};

/* The odd rank has a fourth, or four times as much, in ints; as many doubles; half as much, with gaps. */
enum variant { SHORTER, LONGER, DOUBLES, GAPS, VARIANTS };
static const char *const VARIANT_NAME[] = {"shorter", "longer", "doubles", "gaps"};

enum verdict { RIGHT, ERROR, GARBAGE, HANG, CRASH, VERDICTS };
static const char *const VERDICT_NAME[] = {"right", "error", "garbage", "hang", "crash"};

/* Bytes up to the end of pages, behind which nothing can be accessed. */
struct guarded {
    char *pages, *at;
    size_t mapped, bytes;
};

static struct guarded guarded(size_t bytes)
{
    struct guarded g = {.bytes = bytes};
    g.mapped = (bytes + PAGE - 1) / PAGE * PAGE + PAGE;
    g.pages = mmap(NULL, g.mapped + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.pages == MAP_FAILED || mprotect(g.pages + g.mapped, PAGE, PROT_NONE))
        MPI_Abort(MPI_COMM_WORLD, 6);
    memset(g.pages, FILL, g.mapped);
    g.at = g.pages + g.mapped - bytes;
    return g;
}

static void let_go(struct guarded *g) { munmap(g->pages, g->mapped + PAGE); }

/* One side of a call: so many elements in each of several blocks, which lie one after the other. */
struct side {
    MPI_Datatype type;
    int count, blocks;
    size_t extent;       /* bytes from one element to the next */
    size_t size;         /* bytes of data in an element */
    size_t bytes;        /* of all blocks, gaps included */
    struct guarded memory;
    int counts[MOST], displs[MOST];
    MPI_Aint wide[MOST];
    int narrow[MOST];
    MPI_Datatype types[MOST];
};

struct call {
    enum operation operation;
    enum mode mode;
    int size, rank, root, odd, sends, count;
    enum variant variant;
    struct side out, in;
    MPI_Comm comm;
    int code, code_after, sum_after;
    volatile int done, crashed;
};

static MPI_Datatype gaps_type;

/* Open MPI's binding compares what a rank sends to itself with the place for it, and refuses the call: then
 * the rank takes no part at all. So the odd rank is odd on both sides where all blocks are alike. */
static int is_compared(enum operation o) { return o == ALLTOALL || o == NEIGHBOR_ALLTOALL; }

/* What a rank has for that side: only the odd one's differs. */
static void describe(struct side *s, const struct call *c, int rank, int sends, int blocks)
{
    enum variant variant = rank == c->odd && (sends == c->sends || is_compared(c->operation)) ? c->variant : VARIANTS;
    *s = (struct side){.type = MPI_INT, .count = c->count, .blocks = blocks, .extent = sizeof(int), .size = sizeof(int)};
    switch (variant) {
    case SHORTER: s->count = c->count < 8 ? 1 : c->count / 4; break;
    case LONGER: s->count = c->count * 4; break;
    case DOUBLES: s->type = is_reduction(c->operation) ? MPI_LONG : MPI_DOUBLE, s->extent = s->size = 8; break;
    case GAPS:
        if (is_reduction(c->operation))
            s->count = c->count / 2;
        else
            s->type = gaps_type, s->count = c->count / 2, s->extent = 8;
        break;
    case VARIANTS: break;
    }
    for (int i = 0, at = 0; i < blocks; at += s->counts[i++]) {
        int own = i == rank && (c->operation == ALLTOALLV || c->operation == ALLTOALLW);
        s->counts[i] = own ? c->count * (int)sizeof(int) / (int)s->size : s->count, s->displs[i] = at, s->types[i] = s->type;
        s->wide[i] = (MPI_Aint)s->extent * at, s->narrow[i] = (int)s->wide[i];
        s->bytes = s->extent * (size_t)(at + s->counts[i]);
    }
}

static size_t block_bytes(const struct side *s, int block) { return s->size * (size_t)s->counts[block]; }

static unsigned char pattern(int from, int to, size_t i) { return (unsigned char)(mix(i / 8 * 64 + (unsigned)(from * 8 + to)) >> i % 8 * 8); }

/* Byte i of the data of a block. */
static char *byte_of(const struct side *s, int block, size_t i)
{
    return s->memory.at + s->extent * ((size_t)s->displs[block] + i / s->size) + i % s->size;
}

static long value(int rank, size_t i) { return rank + 1 + (long)(i % 1000); }

static int code_of(struct call *c)
{
    const struct side *o = &c->out, *i = &c->in;
    void *out = o->memory.at, *in = i->memory.at;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
#define CALL(Name, name, ...)                                                 \
    code = IN_MODE(c->mode, Name, name, c->comm, &request, __VA_ARGS__);      \
    break
    switch (c->operation) {
    case BCAST: CALL(Bcast, bcast, in, i->count, i->type, c->root);
    case GATHER: CALL(Gather, gather, out, o->count, o->type, in, i->count, i->type, c->root);
    case GATHERV: CALL(Gatherv, gatherv, out, o->count, o->type, in, i->counts, i->displs, i->type, c->root);
    case SCATTER: CALL(Scatter, scatter, out, o->count, o->type, in, i->count, i->type, c->root);
    case SCATTERV: CALL(Scatterv, scatterv, out, o->counts, o->displs, o->type, in, i->count, i->type, c->root);
    case ALLGATHER: CALL(Allgather, allgather, out, o->count, o->type, in, i->count, i->type);
    case ALLGATHERV: CALL(Allgatherv, allgatherv, out, o->count, o->type, in, i->counts, i->displs, i->type);
    case ALLTOALL: CALL(Alltoall, alltoall, out, o->count, o->type, in, i->count, i->type);
    case ALLTOALLV: CALL(Alltoallv, alltoallv, out, o->counts, o->displs, o->type, in, i->counts, i->displs, i->type);
    case ALLTOALLW: CALL(Alltoallw, alltoallw, out, o->counts, o->narrow, o->types, in, i->counts, i->narrow, i->types);
    case REDUCE: CALL(Reduce, reduce, out, in, i->count, i->type, MPI_SUM, c->root);
    case ALLREDUCE: CALL(Allreduce, allreduce, out, in, i->count, i->type, MPI_SUM);
    case REDUCE_SCATTER: CALL(Reduce_scatter, reduce_scatter, out, in, o->counts, i->type, MPI_SUM);
    case REDUCE_SCATTER_BLOCK: CALL(Reduce_scatter_block, reduce_scatter_block, out, in, i->count, i->type, MPI_SUM);
    case SCAN: CALL(Scan, scan, out, in, i->count, i->type, MPI_SUM);
    case EXSCAN: CALL(Exscan, exscan, out, in, i->count, i->type, MPI_SUM);
    case NEIGHBOR_ALLGATHER: CALL(Neighbor_allgather, neighbor_allgather, out, o->count, o->type, in, i->count, i->type);
    case NEIGHBOR_ALLGATHERV: CALL(Neighbor_allgatherv, neighbor_allgatherv, out, o->count, o->type, in, i->counts, i->displs, i->type);
    case NEIGHBOR_ALLTOALL: CALL(Neighbor_alltoall, neighbor_alltoall, out, o->count, o->type, in, i->count, i->type);
    case NEIGHBOR_ALLTOALLV: CALL(Neighbor_alltoallv, neighbor_alltoallv, out, o->counts, o->displs, o->type, in, i->counts, i->displs, i->type);
    case NEIGHBOR_ALLTOALLW: CALL(Neighbor_alltoallw, neighbor_alltoallw, out, o->counts, o->wide, o->types, in, i->counts, i->wide, i->types);
    case OPERATIONS: break;
    }
    if (code != MPI_SUCCESS || request == MPI_REQUEST_NULL)
        return code;
    if (c->mode == PERSISTENT)
        code = MPI_Start(&request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (c->mode == PERSISTENT)
        MPI_Request_free(&request);
    return code;
}

static __thread sigjmp_buf *back;

static void on_access(int number, siginfo_t *info, void *context)
{
    if (back)
        siglongjmp(*back, 1);
    test_crash(number, info, context);
}

/* The call, and a right one after it. */
static void *in_thread(void *argument)
{
    struct call *c = argument;
    sigjmp_buf here;
    back = &here;
    if (sigsetjmp(here, 1)) {
        c->crashed = 1;
    } else {
        c->code = code_of(c);
        int one = c->rank + 1;
        c->sum_after = 0;
        c->code_after = MPI_Allreduce(&one, &c->sum_after, 1, MPI_INT, MPI_SUM, c->comm);
    }
    back = NULL;
    c->done = 1;
    return NULL;
}

static int wait_for(struct call *c, int ms)
{
    for (int i = 0; i < ms * 5 && !c->done; i++)
        usleep(i < 10 ? 20 : 200);
    return c->done;
}

/* Whether the first bytes before the buffer are as they were, and the gaps in it. */
static int is_untouched(const struct side *s)
{
    const struct guarded *g = &s->memory;
    for (const char *at = g->pages; at < g->at; at++)
        if (*(const unsigned char *)at != FILL)
            return 0;
    for (size_t at = 0; s->extent > s->size && at < g->bytes; at++)
        if (at % s->extent >= s->size && (unsigned char)g->at[at] != FILL)
            return 0;
    return 1;
}

/* Whom block i of what is received comes from, and which of that rank's blocks it is. */
static int source(const struct call *c, int block, int *its)
{
    *its = 0;
    switch (c->operation) {
    case BCAST: return c->root;
    case SCATTER: case SCATTERV: return *its = c->rank, c->root;
    case ALLTOALL: case ALLTOALLV: case ALLTOALLW: return *its = c->rank, block;
    case NEIGHBOR_ALLTOALL: case NEIGHBOR_ALLTOALLV: case NEIGHBOR_ALLTOALLW: *its = 1 - block; /* fall through */
    case NEIGHBOR_ALLGATHER: case NEIGHBOR_ALLGATHERV: return (c->rank + (block ? 1 : c->size - 1)) % c->size;
    default: return block;
    }
}

static void describe_both(const struct call *c, int rank, struct side *out, struct side *in);

static int cold = 0, verbose = 0;

static enum verdict judge_moved(const struct call *c, const struct side *in)
{
    int is_short = 0;
    for (int block = 0; block < in->blocks; block++) {
        int its, from = source(c, block, &its);
        if (c->operation == BCAST && c->rank == c->root)
            continue;
        struct side theirs, unused;
        describe_both(c, from, &theirs, &unused);
        size_t sent = c->operation == BCAST ? block_bytes(&unused, 0) : block_bytes(&theirs, theirs.blocks > 1 ? its : 0),
               room = block_bytes(in, block);
        is_short |= sent > room;
        for (size_t i = 0; c->code == MPI_SUCCESS && i < room; i++) {
            unsigned char got = (unsigned char)*byte_of(in, block, i);
            if (got != (i < sent ? pattern(from, its, i) : FILL)) {
                if (verbose)
                    printf("guard: rank %d: byte %zu of block %d, of %zu sent, is %02x\n", c->rank, i, block, sent, got);
                return GARBAGE;
            }
        }
    }
    if (c->code == MPI_SUCCESS)
        return is_short ? GARBAGE : RIGHT;
    int class;
    MPI_Error_class(c->code, &class);
    return is_short && class == MPI_ERR_TRUNCATE ? RIGHT : ERROR;
}

/* Of a reduction: where it succeeds, all sums must be right, as far as the odd rank has operands. */
static enum verdict judge_reduced(const struct call *c, const struct side *in)
{
    if (c->code != MPI_SUCCESS)
        return ERROR;
    int first = 0, last = c->size;
    if (c->operation == SCAN || c->operation == EXSCAN)
        last = c->rank + (c->operation == SCAN);
    if (last == 0)
        return RIGHT;
    int with_odd = c->odd < last && c->odd != c->rank, am_odd = c->odd == c->rank;
    struct side out, unused;
    describe_both(c, c->odd, &out, &unused);
    /* Other elements cannot be summed up; blocks that begin elsewhere are others. */
    int scattered = c->operation == REDUCE_SCATTER || c->operation == REDUCE_SCATTER_BLOCK;
    if (last - first > 1 && (with_odd || am_odd) && (c->variant == DOUBLES || scattered))
        return GARBAGE;
    size_t base = scattered ? (size_t)c->rank * (size_t)in->count : 0;
    for (size_t i = 0; i < (size_t)in->count; i++) {
        long sum = 0, got = in->size == 8 ? ((long *)in->memory.at)[i] : ((int *)in->memory.at)[i];
        for (int r = first; r < last; r++) {
            if (r == c->odd && i >= (size_t)out.count * (size_t)out.blocks)
                return GARBAGE;
            if (am_odd && r != c->odd && i >= (size_t)c->count)
                return GARBAGE;
            sum += value(r, base + i);
        }
        if (got != sum)
            return GARBAGE;
    }
    return RIGHT;
}

/* Whether the rank has such a side at all. */
static void describe_both(const struct call *c, int rank, struct side *out, struct side *in)
{
    int is_root = rank == c->root, outs = 1, ins = 1;
    switch (c->operation) {
    case BCAST: outs = 0; break;
    case GATHER: case GATHERV: ins = is_root ? c->size : 0; break;
    case SCATTER: case SCATTERV: outs = is_root ? c->size : 0; break;
    case ALLGATHER: case ALLGATHERV: ins = c->size; break;
    case ALLTOALL: case ALLTOALLV: case ALLTOALLW: outs = ins = c->size; break;
    case REDUCE: ins = is_root; break;
    case REDUCE_SCATTER: case REDUCE_SCATTER_BLOCK: outs = c->size; break;
    case NEIGHBOR_ALLGATHER: case NEIGHBOR_ALLGATHERV: ins = 2; break;
    case NEIGHBOR_ALLTOALL: case NEIGHBOR_ALLTOALLV: case NEIGHBOR_ALLTOALLW: outs = ins = 2; break;
    default: break;
    }
    int sends = is_reduction(c->operation) ? c->sends : 1;
    describe(out, c, rank, sends, outs);
    describe(in, c, rank, is_reduction(c->operation) || (c->operation == BCAST && is_root) ? c->sends : 0, ins);
}

static void fill_out(const struct call *c, struct side *out)
{
    for (int block = 0; block < out->blocks; block++) {
        size_t elements = (size_t)out->count;
        for (size_t i = 0; is_reduction(c->operation) && i < elements; i++) {
            size_t at = (size_t)block * elements + i;
            if (out->size == 8)
                ((long *)out->memory.at)[at] = value(c->rank, at);
            else
                ((int *)out->memory.at)[at] = (int)value(c->rank, at);
        }
        for (size_t i = 0; !is_reduction(c->operation) && i < block_bytes(out, block); i++)
            *byte_of(out, block, i) = (char)pattern(c->rank, block, i);
    }
}


/* What the component agrees about at the first calls is not the matter, unless it is. */
static void warm(MPI_Comm comm)
{
    static char mine[5000], all[MOST * 5000];
    MPI_Request request;
    /* One stream of nonblocking operations: where memory is spent, messages take over. */
    if (!cold)
        MPI_Iallgather(mine, 5000, MPI_CHAR, all, 5000, MPI_CHAR, comm, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!cold)
        MPI_Allgather(mine, 5000, MPI_CHAR, all, 5000, MPI_CHAR, comm);
    MPI_Barrier(comm);
}

static long table[OPERATIONS][VERDICTS];
static int leaks = 0;

static enum verdict one(struct call wanted)
{
    struct call *c = malloc(sizeof *c);
    *c = wanted;
    c->size = test_size, c->rank = test_rank;
    doing("%s %s, %d ints, rank %d has %s %s", MODE_NAME[c->mode], NAME[c->operation], c->count, c->odd,
          c->sends ? "to send" : "room for", VARIANT_NAME[c->variant]);
    if (is_around(c->operation)) {
        int periodic = 1;
        MPI_Cart_create(MPI_COMM_WORLD, 1, &c->size, &periodic, 0, &c->comm);
    } else {
        MPI_Comm_dup(MPI_COMM_WORLD, &c->comm);
    }
    MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
    describe_both(c, c->rank, &c->out, &c->in);
    c->out.memory = guarded(c->out.bytes);
    c->in.memory = guarded(c->in.bytes);
    fill_out(c, &c->out);
    if (c->operation == BCAST && c->rank == c->root)
        for (size_t i = 0; i < block_bytes(&c->in, 0); i++)
            *byte_of(&c->in, 0, i) = (char)pattern(c->rank, 0, i);
    warm(c->comm);
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, c);
    wait_for(c, PATIENCE_MS);
    enum verdict verdict = RIGHT;
    int bad = c->done ? c->crashed : 2, any = 0;
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        /* Whoever is left waiting learns that another rank has failed. */
        verdict = c->crashed ? CRASH : HANG;
        int mine[4] = {0}, all[2 * MOST] = {0}, ones[MOST], places[MOST];
        MPI_Request request = MPI_REQUEST_NULL;
        for (int i = 0; i < c->size; i++)
            ones[i] = 1, places[i] = i;
        int code = MPI_Iallgatherv(mine, 4, MPI_INT, all, ones, places, MPI_INT, c->comm, &request);
        for (int i = 0, flag = 0; i < LEAK_MS && code == MPI_SUCCESS && !flag && !c->done; i++, usleep(1000))
            code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        wait_for(c, LEAK_MS / 4);
        int left = !c->done;
        MPI_Allreduce(&left, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        leaks += any;
        if (!any) {
            pthread_join(thread, NULL);
            MPI_Comm_free(&c->comm); /* too many would leave no shared memory */
        }
        return verdict; /* the buffers stay: something may be under way */
    }
    pthread_join(thread, NULL);
    if (!is_untouched(&c->in) || !is_untouched(&c->out))
        verdict = CRASH;
    else if (c->in.blocks > 0)
        verdict = is_reduction(c->operation) ? judge_reduced(c, &c->in) : judge_moved(c, &c->in);
    else
        verdict = c->code == MPI_SUCCESS ? RIGHT : ERROR;
    if (verbose)
        printf("guard: rank %d: %s, code %d, then code %d, sum %d\n", c->rank, VERDICT_NAME[verdict], c->code, c->code_after, c->sum_after), fflush(stdout);
    if (verdict <= ERROR && c->code_after == MPI_SUCCESS && c->sum_after != c->size * (c->size + 1) / 2)
        verdict = GARBAGE;
    let_go(&c->in.memory);
    let_go(&c->out.memory);
    MPI_Comm_free(&c->comm);
    free(c);
    return verdict;
}

static int is_allowed(const char *allow, enum operation operation, enum verdict verdict)
{
    char both[64];
    snprintf(both, sizeof both, "%s/%s", NAME[operation], VERDICT_NAME[verdict]);
    return verdict == RIGHT || in_list(allow, VERDICT_NAME[verdict]) || in_list(allow, both);
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "guard", MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    struct sigaction access = {.sa_sigaction = on_access, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &access, NULL);
    sigaction(SIGBUS, &access, NULL);
    MPI_Type_create_resized(MPI_INT, 0, 8, &gaps_type);
    MPI_Type_commit(&gaps_type);
    const char *only = option_text(argc, argv, "--only", "all"), *sizes = option_text(argc, argv, "--sizes", "all");
    const char *allow = option_text(argc, argv, "--allow", "error");
    const char *modes = option_text(argc, argv, "--modes", "all");
    const char *variants = option_text(argc, argv, "--variants", "all");
    cold = has_option(argc, argv, "--cold"), verbose = has_option(argc, argv, "--verbose");
    int quick = has_option(argc, argv, "--quick"), print = has_option(argc, argv, "--cases"), number = 0;
    for (int operation = 0; operation < OPERATIONS; operation++) {
        for (int i = 0; i < ARRAY_LEN(COUNT) * VARIANTS * 3 * 2; i++) {
            int size = i % ARRAY_LEN(COUNT), variant = i / ARRAY_LEN(COUNT) % VARIANTS, mode = i / ARRAY_LEN(COUNT) / VARIANTS % 3;
            int sends = i / ARRAY_LEN(COUNT) / VARIANTS / 3;
            if (!in_list(only, NAME[operation]) || !in_list(sizes, SIZE_NAME[size]) || !in_list(modes, MODE_NAME[mode]) ||
                !in_list(variants, VARIANT_NAME[variant]))
                continue;
            if ((is_reduction(operation) || is_compared(operation)) && !sends)
                continue; /* a rank has one length there */
            if (quick && (size + variant + mode + sends + operation) % 5)
                continue;
            int roots = operation == BCAST || operation == GATHER || operation == GATHERV || operation == SCATTER || operation == SCATTERV;
            int root = 0, odd = test_size - 1;
            /* The odd rank must have that side. */
            if (roots && ((operation == BCAST || operation == SCATTER || operation == SCATTERV) ? sends : !sends))
                odd = root;
            struct call call = {.operation = operation, .mode = mode, .root = root, .odd = odd, .sends = sends,
                                .count = COUNT[size], .variant = variant};
            int mine = one(call), worst = 0;
            MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
            table[operation][worst]++;
            number++;
            if (print && worst >= GARBAGE && test_rank == 0)
                printf("guard: %s: %s\n", VERDICT_NAME[worst], test_doing[test_slot]), fflush(stdout);
            check(is_allowed(allow, operation, worst), "%s", VERDICT_NAME[worst]);
            if (leaks > 60) {
                operation = OPERATIONS;
                break;
            }
        }
    }
    if (test_rank == 0) {
        long sum[VERDICTS] = {0};
        printf("%-22s %7s %7s %7s %7s %7s\n", "", "right", "error", "garbage", "hang", "crash");
        for (int o = 0; o < OPERATIONS; o++) {
            long all = 0;
            for (int v = 0; v < VERDICTS; v++)
                sum[v] += table[o][v], all += table[o][v];
            if (all)
                printf("%-22s %7ld %7ld %7ld %7ld %7ld\n", NAME[o], table[o][0], table[o][1], table[o][2], table[o][3], table[o][4]);
        }
        printf("%-22s %7ld %7ld %7ld %7ld %7ld\n", "all", sum[0], sum[1], sum[2], sum[3], sum[4]);
        fflush(stdout);
    }
    check(leaks <= 60, "more calls hang for ever than can be left alone");
    MPI_Type_free(&gaps_type);
    if (leaks) {
        /* Calls are still under way: there is no end in good order. */
        long all[2] = {test_passed, test_failed}, sums[2];
        MPI_Allreduce(all, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (test_rank == 0)
            printf("guard: %ld passed, %ld failed\n", sums[0], sums[1]), fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        sleep(1);
        _exit(sums[1] != 0);
    }
    return test_end();
}
