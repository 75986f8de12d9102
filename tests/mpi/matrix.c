/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The four operations x modes x datatypes x operations x counts x roots x in place x communicators.
 *
 * Each case is judged against an image of the whole buffer made by hand, guard bytes and gaps
 * included, and then repeated on a communicator that excludes the component: a failure says whether
 * the rest of Open MPI gets it right. Send buffers must come back unchanged.
 *
 *   --quick            every type and operation at small counts, a sample of the large ones (default)
 *   --full             every communicator and root, all counts
 *   --tiny             a sample of everything, for runs with many parameter settings
 *   --seed N           another sample and other data
 *   --ops LIST         of bcast, reduce, allreduce, barrier, signatures
 *   --types LIST       names as in types.h
 *   --max-count N      no counts above N
 *   --no-reference     without the second call
 *   --stock            the component is not there: leave out what Open MPI itself gets wrong (see
 *   stock_fails)
 */
#include "oracle.h"

static const char *const OPERATION_NAME[] = {"Bcast", "Reduce", "Allreduce", "Barrier"};
enum { RESTARTS = 3 };

static struct place places[8];
static int place_count = 0;
static int with_reference = 1, stock = 0;
static uint64_t seed = 1;

/* ---------------------------------------------------------------- one case */

static void finish(MPI_Request *request)
{
    int done = 0;
    for (int i = 0; i < 3 && !done && (test_rank & 1); i++)
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (!done)
        MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void call(const struct kase *k, MPI_Comm comm, enum mode mode, MPI_Request *request)
{
    MPI_Datatype dt = k->type->handle;
    MPI_Op op = op_handle[k->op];
    int n = (int)k->count, at_root = k->place->rank == k->root;
    int replace = k->in_place && (k->operation == ALLREDUCE || at_root);
    const void *s = replace ? MPI_IN_PLACE : origin(k, &send_buffer);
    void *r = origin(k, &recv_buffer);
    switch (k->operation * 3 + mode) {
    case BCAST * 3 + BLOCKING: MPI_Bcast(r, n, dt, k->root, comm); break;
    case BCAST * 3 + NONBLOCKING: MPI_Ibcast(r, n, dt, k->root, comm, request); break;
    case BCAST * 3 + PERSISTENT: MPI_Bcast_init(r, n, dt, k->root, comm, MPI_INFO_NULL, request); break;
    case REDUCE * 3 + BLOCKING: MPI_Reduce(s, r, n, dt, op, k->root, comm); break;
    case REDUCE * 3 + NONBLOCKING: MPI_Ireduce(s, r, n, dt, op, k->root, comm, request); break;
    case REDUCE * 3 + PERSISTENT: MPI_Reduce_init(s, r, n, dt, op, k->root, comm, MPI_INFO_NULL, request); break;
    case ALLREDUCE * 3 + BLOCKING: MPI_Allreduce(s, r, n, dt, op, comm); break;
    case ALLREDUCE * 3 + NONBLOCKING: MPI_Iallreduce(s, r, n, dt, op, comm, request); break;
    case ALLREDUCE * 3 + PERSISTENT: MPI_Allreduce_init(s, r, n, dt, op, comm, MPI_INFO_NULL, request); break;
    }
}

/* The buffers before the call, and the images of what they must be after it. */
static void prepare(const struct kase *k, uint64_t data, int with_images)
{
    size_t size = image_size(k);
    int me = k->place->rank, at_root = me == k->root;
    int gets = k->operation == ALLREDUCE || (k->operation == REDUCE && at_root);
    make_room(&send_buffer, size);
    make_room(&recv_buffer, size);
    make_room(&send_expected, size);
    make_room(&recv_expected, size);
    memset(recv_buffer.bytes, 0x5a + me, size);
    if (k->operation == BCAST ? at_root : gets && k->in_place)
        put_contribution(k, &recv_buffer, me, data);
    if (k->operation != BCAST) {
        memset(send_buffer.bytes, 0xa5 - me, size);
        put_contribution(k, &send_buffer, me, data);
    }
    if (!with_images)
        return;
    memcpy(recv_expected.bytes, recv_buffer.bytes, size);
    if (k->operation == BCAST)
        put_contribution(k, &recv_expected, k->root, data);
    else
        memcpy(send_expected.bytes, send_buffer.bytes, size);
    if (gets)
        put_result(k, &recv_expected, data);
}

static int judge(const struct kase *k, char *text, size_t room)
{
    return differs(k, "receive buffer", &recv_buffer, &recv_expected, text, room) ||
           (k->operation != BCAST && differs(k, "send buffer", &send_buffer, &send_expected, text, room));
}

/* Open MPI 4.1.4 frees a pointer that it never allocated when it reduces a datatype with data before its
 * origin: coll/libnbc (Ireduce and others) always, coll/base's ring (Allreduce) from about 10 KB on. */
static int stock_fails(const struct kase *k)
{
    return k->operation != BCAST && k->type->low < 0 && (k->mode != BLOCKING || k->operation == ALLREDUCE);
}

static void run_case(const struct kase *k)
{
    int compare = with_reference && !stock_fails(k);
    if (stock && stock_fails(k))
        return;
    char text[512], other[512];
    /* From what every rank of the communicator knows, and nothing else. */
    uint64_t data = mix4(seed, (uint64_t)k->root * 2 + (uint64_t)k->in_place, k->count, (uint64_t)(k->type - types) * 16 + k->op);
    const struct place *p = k->place;
    MPI_Request mine = MPI_REQUEST_NULL, theirs = MPI_REQUEST_NULL;
    int restarts = k->mode == PERSISTENT ? RESTARTS : 1;
    doing("%s %s np=%d comm=%s root=%d count=%zu type=%s op=%s%s", MODE_NAME[k->mode], OPERATION_NAME[k->operation], p->size, p->name,
          k->root, k->count, k->type->name, OP_NAME[k->op], k->in_place ? " in place" : "");
    for (int s = 0; s < restarts; s++) {
        prepare(k, data + (uint64_t)s, 1);
        if (s == 0)
            call(k, p->comm, k->mode, &mine);
        if (k->mode == PERSISTENT)
            MPI_Start(&mine);
        if (k->mode != BLOCKING)
            finish(&mine);
        int wrong = judge(k, text, sizeof text), reference_wrong = 0;
        if (compare) {
            prepare(k, data + (uint64_t)s, 0);
            if (s == 0)
                call(k, p->reference, k->mode, &theirs);
            if (k->mode == PERSISTENT)
                MPI_Start(&theirs);
            if (k->mode != BLOCKING)
                finish(&theirs);
            reference_wrong = judge(k, other, sizeof other);
        }
        check(!wrong, "%s, start %d (without the component: %s)", text, s + 1,
              !compare ? "not run" : reference_wrong ? "wrong too" : "right");
        if (!wrong && reference_wrong)
            fail("only WITHOUT the component: %s", other);
    }
    if (k->mode == PERSISTENT) {
        MPI_Request_free(&mine);
        if (compare)
            MPI_Request_free(&theirs);
    }
}

/* ---------------------------------------------------------------- Barrier */

/* Nobody leaves before the last one came: all clocks here are one machine's. */
static void run_barrier(const struct place *p, enum mode mode, int late)
{
    MPI_Request request = MPI_REQUEST_NULL;
    doing("%s Barrier np=%d comm=%s late=%d", MODE_NAME[mode], p->size, p->name, late);
    if (mode == PERSISTENT)
        MPI_Barrier_init(p->comm, MPI_INFO_NULL, &request);
    for (int s = 0; s < (mode == PERSISTENT ? RESTARTS : 1); s++) {
        if (p->rank == (late + s) % p->size)
            usleep(2000);
        double came = seconds_now(), last = 0;
        switch (mode) {
        case BLOCKING: MPI_Barrier(p->comm); break;
        case NONBLOCKING: MPI_Ibarrier(p->comm, &request); finish(&request); break;
        case PERSISTENT: MPI_Start(&request); finish(&request); break;
        }
        double left = seconds_now();
        MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, with_reference ? p->reference : p->comm);
        check(left >= last, "start %d: left %.1f us before the last rank came", s + 1, (last - left) * 1e6);
    }
    if (mode == PERSISTENT)
        MPI_Request_free(&request);
}

/* ---------------------------------------------------------------- equal signatures */

/* Bcast where every rank describes the same 32-bit numbers by another (count, datatype). */
static void run_signature(const struct place *p, enum mode mode, size_t numbers, int root, int shift)
{
    static const char *const NAMES[] = {"uint32", "contiguous", "matrix", "vector", "negative-lb", "nested"};
    const struct type *t = NULL;
    for (int i = 0; i < type_count; i++)
        if (!strcmp(types[i].name, NAMES[(p->rank + shift) % ARRAY_LEN(NAMES)]))
            t = &types[i];
    struct kase k = {BCAST, mode, t, OP_NONE, numbers / (size_t)t->components, p, root, 0};
    size_t size = image_size(&k);
    char text[512];
    MPI_Request request = MPI_REQUEST_NULL;
    doing("%s Bcast np=%d comm=%s root=%d: %zu numbers, here as count=%zu type=%s, shift=%d", MODE_NAME[mode], p->size, p->name, root,
          numbers, k.count, t->name, shift);
    make_room(&recv_buffer, size);
    make_room(&recv_expected, size);
    for (int s = 0; s < (mode == PERSISTENT ? RESTARTS : 1); s++) {
        memset(recv_buffer.bytes, 0x33 + p->rank, size);
        memset(recv_expected.bytes, 0x33 + p->rank, size);
        for (size_t i = 0; i < k.count * (size_t)t->components; i++) {
            ptrdiff_t at = (ptrdiff_t)(i / (size_t)t->components) * t->extent + t->component[i % (size_t)t->components].offset;
            uint32_t x = (uint32_t)mix4(seed, i, (uint64_t)s, numbers);
            memcpy(origin(&k, &recv_expected) + at, &x, 4);
            if (p->rank == root)
                memcpy(origin(&k, &recv_buffer) + at, &x, 4);
        }
        if (s == 0)
            call(&k, p->comm, mode, &request);
        if (mode == PERSISTENT)
            MPI_Start(&request);
        if (mode != BLOCKING)
            finish(&request);
        check(!differs(&k, "buffer", &recv_buffer, &recv_expected, text, sizeof text), "%s, start %d", text, s + 1);
    }
    if (mode == PERSISTENT)
        MPI_Request_free(&request);
}

/* Five elements of a type without data at some ranks, none of another at the others; then a real one, which
 * must not be confused by what ranks did or did not do before. */
static void run_empty(const struct place *p, enum mode mode, int root, int shift)
{
    MPI_Datatype empty;
    MPI_Request request = MPI_REQUEST_NULL;
    int some = (p->rank + shift) % 2, number = 42, next = p->rank == root ? 4711 + shift : -1;
    doing("%s Bcast np=%d comm=%s root=%d: empty, here as count=%d of a %s type", MODE_NAME[mode], p->size, p->name, root, some ? 5 : 0,
          some ? "zero-size" : "4-byte");
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    switch (mode) {
    case BLOCKING: MPI_Bcast(&number, some ? 5 : 0, some ? empty : MPI_INT, root, p->comm); break;
    case NONBLOCKING:
        MPI_Ibcast(&number, some ? 5 : 0, some ? empty : MPI_INT, root, p->comm, &request);
        finish(&request);
        break;
    case PERSISTENT:
        MPI_Bcast_init(&number, some ? 5 : 0, some ? empty : MPI_INT, root, p->comm, MPI_INFO_NULL, &request);
        for (int s = 0; s < RESTARTS; s++) {
            MPI_Start(&request);
            finish(&request);
        }
        MPI_Request_free(&request);
        break;
    }
    MPI_Bcast(&next, 1, MPI_INT, root, p->comm);
    check(number == 42, "an empty Bcast wrote %d", number);
    check(next == 4711 + shift, "the Bcast after an empty one: got %d, expected %d", next, 4711 + shift);
    MPI_Type_free(&empty);
}

/* ---------------------------------------------------------------- the matrix */

static void add_place(const char *name, MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return;
    struct place *p = &places[place_count];
    doing("making a reference for %s", name);
    *p = (struct place){name, comm, without_component(comm), 0, 0};
    MPI_Comm_rank(comm, &p->rank);
    MPI_Comm_size(comm, &p->size);
    place_count++;
}

static void make_places(void)
{
    MPI_Comm comm;
    int n = test_size, me = test_rank, dims[2] = {0, 0}, periods[2] = {0, 1};
    doing("making communicators");
    add_place("world", MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    add_place("dup", comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &comm);
    add_place("reversed", comm);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &comm);
    add_place("odd-even", comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, (int)(mix4(seed, 5, (uint64_t)me, 0) % 1000), &comm);
    add_place("random-key", comm);
    MPI_Dims_create(n, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm);
    add_place("cart", comm);
    MPI_Comm_split(MPI_COMM_WORLD, me < (n > 3 ? 3 : 2) ? 0 : MPI_UNDEFINED, -me, &comm); /* last: not all have it */
    add_place("first-few", comm);
}

/* One (operation, mode, type, op, count): which communicators, roots and in-place settings. `extent` 0 tiny,
 * 1 quick, 2 full. */
static void run_combination(enum operation operation, enum mode mode, const struct type *t, enum op op, size_t count, int extent)
{
    uint64_t h = mix4(seed, (uint64_t)operation * 3 + mode, (uint64_t)(t - types) * 16 + op, count);
    size_t bytes = count * (size_t)t->extent;
    static const unsigned rarely[] = {60, 16, 1}, seldom[] = {20, 5, 1}, at_times[] = {5, 2, 1};
    if (count > 70000 ? h % rarely[extent] : count > 5000 ? h % seldom[extent] : count > 500 ? h % at_times[extent] : 0)
        return;
    int every_root = extent == 2 ? bytes < 100000 : extent == 1 && count <= 7;
    for (int c = 0; c < place_count; c++) {
        const struct place *p = &places[c];
        /* first-few is not everybody's: it must not shift the choice for others, so it comes on top */
        int common = 6;
        if (extent == 2 && count <= 5000 ? 0 : c < common ? c != (int)((h >> 8) % (unsigned)common) : (h >> 20) % 4 != 0)
            continue;
        int roots = operation == ALLREDUCE ? 1 : p->size;
        for (int root = 0; root < roots; root++) {
            if (!every_root && root != (int)((h >> 24) % (unsigned)roots))
                continue;
            for (int in_place = 0; in_place < (operation == BCAST ? 1 : 2); in_place++) {
                if (!every_root && operation != BCAST && in_place != (int)(h >> 40) % 2)
                    continue;
                run_case(&(struct kase){operation, mode, t, op, count, p, root, in_place});
            }
        }
    }
}

int main(int argc, char **argv)
{
    static const size_t COUNTS[] = {0, 1, 2, 7, 1000, 4097, 65536 + 3, 300000};
    test_init(&argc, &argv, "matrix", MPI_THREAD_SINGLE);
    int extent = has_option(argc, argv, "--full") ? 2 : has_option(argc, argv, "--tiny") ? 0 : 1;
    const char *ops = option_text(argc, argv, "--ops", "all"), *wanted = option_text(argc, argv, "--types", "all");
    size_t most = (size_t)option_number(argc, argv, "--max-count", 1 << 30);
    seed = (uint64_t)option_number(argc, argv, "--seed", 1);
    stock = has_option(argc, argv, "--stock");
    with_reference = !stock && !has_option(argc, argv, "--no-reference");
    make_types();
    make_places();
    for (enum operation o = BCAST; o <= ALLREDUCE; o++) {
        if (!in_list(ops, o == BCAST ? "bcast" : o == REDUCE ? "reduce" : "allreduce"))
            continue;
        for (int t = 0; t < type_count; t++)
            for (enum op op = OP_NONE; in_list(wanted, types[t].name) && op < OPS; op++) {
                if (o == BCAST ? op != OP_NONE : !op_fits(op, &types[t]))
                    continue;
                size_t limit = types[t].most && types[t].most < most ? types[t].most : most;
                for (int n = 0; n < ARRAY_LEN(COUNTS); n++)
                    for (enum mode m = BLOCKING; m <= PERSISTENT && COUNTS[n] <= limit; m++)
                        run_combination(o, m, &types[t], op, COUNTS[n], extent);
            }
    }
    for (int c = 0; c < place_count; c++)
        for (enum mode m = BLOCKING; m <= PERSISTENT; m++)
            for (int r = 0; r < places[c].size; r++) {
                if (extent == 0 && (c % 3 || r > 1))
                    continue;
                if (in_list(ops, "barrier"))
                    run_barrier(&places[c], m, r);
                for (int shift = 0; in_list(ops, "signatures") && shift < (extent == 2 ? 6 : 2); shift++) {
                    if (!stock) /* Open MPI 4.1.4: the ranks that return at once leave the others' messages unmatched */
                        run_empty(&places[c], m, r, shift);
                    run_signature(&places[c], m, 12, r, shift);
                    run_signature(&places[c], m, 12 * 999, r, shift);
                    if (extent == 2 || r == 0)
                        run_signature(&places[c], m, 12 * 30011, r, shift);
                }
            }
    for (int c = place_count - 1; c >= 0; c--) {
        doing("freeing %s", places[c].name);
        MPI_Comm_free(&places[c].reference);
        if (places[c].comm != MPI_COMM_WORLD)
            MPI_Comm_free(&places[c].comm);
    }
    free_types();
    return test_end();
}
