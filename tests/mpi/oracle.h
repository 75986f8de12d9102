/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference of matrix.c: images of whole buffers, made by hand from what a case is, and where a buffer
 * differs from its image.
 */
#ifndef COLL_RUST_TESTS_ORACLE_H
#define COLL_RUST_TESTS_ORACLE_H

#include "types.h"

enum operation { BCAST, REDUCE, ALLREDUCE, BARRIER };
enum { GUARD = 64 };

struct place {
    const char *name;
    MPI_Comm comm, reference;
    int rank, size;
};

struct kase {
    enum operation operation;
    enum mode mode;
    const struct type *type;
    enum op op;
    size_t count;
    const struct place *place;
    int root, in_place;
};

struct buffer {
    char *bytes;
    size_t room;
};

static struct buffer send_buffer, recv_buffer, send_expected, recv_expected;

/* ---------------------------------------------------------------- images of buffers */

static size_t image_size(const struct kase *k)
{
    const struct type *t = k->type;
    return 2 * GUARD + (k->count ? (size_t)(t->high - t->low) + (k->count - 1) * (size_t)t->extent : 0);
}

/* Address of the first element's origin. */
static char *origin(const struct kase *k, struct buffer *b)
{
    return b->bytes + GUARD - (k->count ? k->type->low : 0);
}

static void make_room(struct buffer *b, size_t size)
{
    if (size <= b->room)
        return;
    free(b->bytes);
    b->room = size + size / 4;
    b->bytes = malloc(b->room);
    if (!b->bytes) {
        fail("no memory for %zu bytes", b->room);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void put_contribution(const struct kase *k, struct buffer *b, int rank, uint64_t data)
{
    const struct type *t = k->type;
    char *at = origin(k, b);
    for (size_t i = 0; i < k->count; i++, at += t->extent)
        for (int c = 0; c < t->components; c++)
            store(t->component[c].kind, at + t->component[c].offset, contribution(k->op, t->component[c].kind, rank, i, c, data));
}

static void put_result(const struct kase *k, struct buffer *b, uint64_t data)
{
    const struct type *t = k->type;
    char *at = origin(k, b);
    int step = k->op == OP_USER_ORDERED ? t->group : 1;
    for (size_t i = 0; i < k->count; i++, at += t->extent)
        for (int c = 0; c < t->components; c += step) {
            if (k->op == OP_USER_ORDERED) {
                uint32_t product[4], factor[4];
                for (int r = 0; r < k->place->size; r++) {
                    for (int j = 0; j < step; j++)
                        factor[j] = (uint32_t)contribution(k->op, U32, r, i, c + j, data).i;
                    if (r == 0)
                        memcpy(product, factor, sizeof product);
                    else
                        ordered_product(step, product, factor, product);
                }
                for (int j = 0; j < step; j++)
                    memcpy(at + t->component[c + j].offset, &product[j], 4);
                continue;
            }
            enum kind kind = t->component[c].kind;
            struct value v = contribution(k->op, kind, 0, i, c, data);
            for (int r = 1; r < k->place->size; r++)
                v = combine(k->op, class_of(kind), v, contribution(k->op, kind, r, i, c, data));
            if (k->op == OP_LAND && k->place->size > 1)
                v.i = v.i != 0;
            store(kind, at + t->component[c].offset, v);
        }
}

/* Where the buffer differs first from its expected image: 1 and a text, or 0. */
static int differs(const struct kase *k, const char *what, struct buffer *got, struct buffer *expected, char *text, size_t room)
{
    size_t size = image_size(k), at = 0;
    if (!memcmp(got->bytes, expected->bytes, size))
        return 0;
    while (got->bytes[at] == expected->bytes[at])
        at++;
    const struct type *t = k->type;
    ptrdiff_t from_origin = (ptrdiff_t)at - GUARD + (k->count ? t->low : 0);
    ptrdiff_t near = from_origin / t->extent;
    for (ptrdiff_t i = near - 3; i <= near + 3; i++) {
        int which;
        if (i < 0 || i >= (ptrdiff_t)k->count || !data_at(t, from_origin - i * t->extent, &which))
            continue;
        const struct component *c = &t->component[which];
        ptrdiff_t byte = i * t->extent + c->offset;
        char a[96], b[96];
        snprintf(text, room, "%s, element %td, component %d (%s): got %s, expected %s", what, i, which, KIND_NAME[c->kind],
                 show(c->kind, origin(k, got) + byte, a, sizeof a), show(c->kind, origin(k, expected) + byte, b, sizeof b));
        return 1;
    }
    snprintf(text, room, "%s, byte %td from the origin, which is no data: got %#x, was %#x", what, from_origin,
             (unsigned char)got->bytes[at], (unsigned char)expected->bytes[at]);
    return 1;
}

#endif
