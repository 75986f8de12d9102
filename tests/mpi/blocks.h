/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers of vector.c: one or several blocks of 32-bit numbers, each block described by a count and a
 * datatype of types.h, placed as the operation has them. Who knows the numbers of a block knows every byte of
 * the buffer.
 */
#ifndef COLL_RUST_TESTS_BLOCKS_H
#define COLL_RUST_TESTS_BLOCKS_H

#include "types.h"

enum { MOST_RANKS = 64, GUARD = 64, PERIOD = 12 }; /* PERIOD numbers are whole elements of each of TYPES */

/* How blocks lie in a buffer: a single one; equal ones, or unequal ones, without displacements; with
 * displacements; with displacements in bytes and a datatype each. */
enum shape { ONE, EQUAL, PACKED, VECTOR, TYPED };

static const char *const TYPES[] = {"uint32", "contiguous", "negative-lb", "vector", "matrix", "nested"};

struct side {
    enum shape shape;
    int blocks;
    const struct type *type[MOST_RANKS];
    MPI_Datatype handle[MOST_RANKS];
    int numbers[MOST_RANKS], counts[MOST_RANKS], displs[MOST_RANKS];
    ptrdiff_t start[MOST_RANKS]; /* of the origin of a block's first element, from the buffer's origin */
    ptrdiff_t low, high;         /* bounds of all data */
    char *bytes, *expected;
    size_t room;
};

static const struct type *type_named(const char *name)
{
    for (int i = 0; i < type_count; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    fail("no type is called %s", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return NULL;
}

static size_t side_size(const struct side *s)
{
    return 2 * GUARD + (size_t)(s->high - s->low);
}

/* What the operation gets as the address of the buffer. */
static char *side_origin(const struct side *s)
{
    return s->bytes + GUARD - s->low;
}

/* Places `blocks` blocks of so many numbers. `first` is the datatype of block 0; blocks with datatypes of
 * their own have the next ones. Negative: all are of "forgotten-gap", with one number or none. `backwards`:
 * with displacements, the last block comes first. */
static void side_make(struct side *s, enum shape shape, int blocks, const int *numbers, int first, int backwards)
{
    ptrdiff_t cursor = 0;
    int before = 0;
    s->shape = shape;
    s->blocks = blocks;
    s->low = s->high = 0;
    for (int i = 0; i < blocks; i++) {
        int b = backwards && shape >= VECTOR ? blocks - 1 - i : i;
        const struct type *t = type_named(first < 0 ? "forgotten-gap" : TYPES[(first + (shape == TYPED ? b : 0)) % ARRAY_LEN(TYPES)]);
        int count = numbers[b] / t->components;
        ptrdiff_t length = count ? (count - 1) * t->extent + t->high : 0;
        s->type[b] = t;
        s->handle[b] = t->handle;
        s->numbers[b] = numbers[b];
        s->counts[b] = count;
        s->start[b] = shape == TYPED ? cursor - t->low : before * t->extent;
        s->displs[b] = shape == TYPED ? (int)s->start[b] : before;
        before += count + (shape == VECTOR ? 1 + b % 2 : 0);
        cursor = s->start[b] + length + 8;
        cursor += (8 - cursor % 8) % 8;
        if (count && s->start[b] + t->low < s->low)
            s->low = s->start[b] + t->low;
        if (count && s->start[b] + length > s->high)
            s->high = s->start[b] + length;
    }
    if (side_size(s) > s->room) {
        free(s->bytes);
        free(s->expected);
        s->room = 2 * side_size(s);
        s->bytes = malloc(s->room);
        s->expected = malloc(s->room);
        if (!s->bytes || !s->expected) {
            fail("no memory for %zu bytes", s->room);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

/* Where in the image number j of a block is. */
static size_t side_at(const struct side *s, int block, int j)
{
    const struct type *t = s->type[block];
    return (size_t)(GUARD - s->low + s->start[block] + j / t->components * t->extent + t->component[j % t->components].offset);
}

static void side_put(const struct side *s, char *image, int block, int j, uint32_t number)
{
    memcpy(image + side_at(s, block, j), &number, 4);
}

/* Where the buffer differs first from what is expected: 1 and a text, or 0. */
static int side_differs(const struct side *s, const char *what, char *text, size_t room)
{
    size_t at = 0;
    if (!memcmp(s->bytes, s->expected, side_size(s)))
        return 0;
    while (s->bytes[at] == s->expected[at])
        at++;
    for (int b = 0; b < s->blocks; b++)
        for (int j = 0; j < s->numbers[b]; j++) {
            size_t start = side_at(s, b, j);
            if (at < start || at >= start + 4)
                continue;
            uint32_t got, expected;
            memcpy(&got, s->bytes + start, 4);
            memcpy(&expected, s->expected + start, 4);
            snprintf(text, room, "%s, block %d of %d (%s), number %d of %d: got %#x, expected %#x", what, b, s->blocks,
                     s->type[b]->name, j, s->numbers[b], got, expected);
            return 1;
        }
    snprintf(text, room, "%s, byte %td from the origin, which is no data: got %#x, was %#x", what, (ptrdiff_t)at - GUARD + s->low,
             (unsigned char)s->bytes[at], (unsigned char)s->expected[at]);
    return 1;
}

#endif
