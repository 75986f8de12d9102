/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datatypes and operations of matrix.c, and arithmetic on their elements done by hand.
 *
 * A datatype is described by its components: which kind of number lies at which offset from the
 * element's origin. From that the programs build images of whole buffers and know every byte that a
 * collective may touch. All values are chosen so that the results are exact in any order.
 */
#ifndef COLL_RUST_TESTS_TYPES_H
#define COLL_RUST_TESTS_TYPES_H

#include "harness.h"
#include <complex.h>
#include <stddef.h>

enum kind { I8, I16, I32, I64, U8, U32, F32, F64, C32, C64, P_2INT, P_FLOAT, P_DOUBLE, P_LONG, P_SHORT };
enum class { INTEGER, REAL, COMPLEX, PAIR };

struct pair_2int { int value; int index; };
struct pair_float { float value; int index; };
struct pair_double { double value; int index; };
struct pair_long { long value; int index; };
struct pair_short { short value; int index; };

static const char *const KIND_NAME[] = {"int8", "int16", "int32", "int64", "uint8", "uint32", "float", "double", "complex float",
                                        "complex double", "2int", "float_int", "double_int", "long_int", "short_int"};
static const size_t KIND_SIZE[] = {1, 2, 4, 8, 1, 4, 4, 8, 8, 16, sizeof(struct pair_2int), sizeof(struct pair_float),
                                   sizeof(struct pair_double), sizeof(struct pair_long), sizeof(struct pair_short)};

enum { MOST_COMPONENTS = 16 };

struct component {
    enum kind kind;
    int offset;
};

struct type {
    const char *name;
    MPI_Datatype handle;
    int derived;
    int components;
    struct component component[MOST_COMPONENTS];
    ptrdiff_t extent, low, high; /* low, high: true bounds of the data */
    int group; /* components per factor of the non-commutative product: 2 affine map, 4 matrix, 0 none */
    size_t most; /* so many elements Open MPI itself moves rightly; 0: any number */
};

enum op { OP_NONE, OP_SUM, OP_MAX, OP_BAND, OP_PROD, OP_LAND, OP_MAXLOC, OP_MINLOC, OP_USER, OP_USER_ORDERED, OPS };
static const char *const OP_NAME[] = {"-", "SUM", "MAX", "BAND", "PROD", "LAND", "MAXLOC", "MINLOC", "user", "user-noncommutative"};

struct value {
    int64_t i; /* integers, and the value of a pair */
    double re, im;
    int index;
};

static struct type types[32];
static int type_count = 0;
static MPI_Op op_handle[OPS];

static enum class class_of(enum kind kind)
{
    return kind <= U32 ? INTEGER : kind <= F64 ? REAL : kind <= C64 ? COMPLEX : PAIR;
}

static void store(enum kind kind, char *at, struct value v)
{
    switch (kind) {
    case I8: case U8: { uint8_t x = (uint8_t)v.i; memcpy(at, &x, 1); break; }
    case I16: { uint16_t x = (uint16_t)v.i; memcpy(at, &x, 2); break; }
    case I32: case U32: { uint32_t x = (uint32_t)v.i; memcpy(at, &x, 4); break; }
    case I64: memcpy(at, &v.i, 8); break;
    case F32: { float x = (float)v.re; memcpy(at, &x, 4); break; }
    case F64: memcpy(at, &v.re, 8); break;
    case C32: { float x[2] = {(float)v.re, (float)v.im}; memcpy(at, x, 8); break; }
    case C64: { double x[2] = {v.re, v.im}; memcpy(at, x, 16); break; }
    /* A pair is written member by member: its padding is not data. */
#define STORE_PAIR(KIND, STRUCT, TYPE)                                        \
    case KIND: {                                                              \
        TYPE x = (TYPE)v.i;                                                   \
        memcpy(at + offsetof(STRUCT, value), &x, sizeof x);                   \
        memcpy(at + offsetof(STRUCT, index), &v.index, sizeof v.index);       \
        break;                                                                \
    }
    STORE_PAIR(P_2INT, struct pair_2int, int)
    STORE_PAIR(P_FLOAT, struct pair_float, float)
    STORE_PAIR(P_DOUBLE, struct pair_double, double)
    STORE_PAIR(P_LONG, struct pair_long, long)
    STORE_PAIR(P_SHORT, struct pair_short, short)
    }
}

static struct value load(enum kind kind, const char *at)
{
    struct value v = {0, 0, 0, 0};
    switch (kind) {
    case I8: { int8_t x; memcpy(&x, at, 1); v.i = x; break; }
    case U8: { uint8_t x; memcpy(&x, at, 1); v.i = x; break; }
    case I16: { int16_t x; memcpy(&x, at, 2); v.i = x; break; }
    case I32: { int32_t x; memcpy(&x, at, 4); v.i = x; break; }
    case U32: { uint32_t x; memcpy(&x, at, 4); v.i = x; break; }
    case I64: memcpy(&v.i, at, 8); break;
    case F32: { float x; memcpy(&x, at, 4); v.re = x; break; }
    case F64: memcpy(&v.re, at, 8); break;
    case C32: { float x[2]; memcpy(x, at, 8); v.re = x[0]; v.im = x[1]; break; }
    case C64: { double x[2]; memcpy(x, at, 16); v.re = x[0]; v.im = x[1]; break; }
#define LOAD_PAIR(KIND, STRUCT, TYPE)                                         \
    case KIND: {                                                              \
        TYPE x;                                                               \
        memcpy(&x, at + offsetof(STRUCT, value), sizeof x);                   \
        v.i = (int64_t)x;                                                     \
        memcpy(&v.index, at + offsetof(STRUCT, index), sizeof v.index);       \
        break;                                                                \
    }
    LOAD_PAIR(P_2INT, struct pair_2int, int)
    LOAD_PAIR(P_FLOAT, struct pair_float, float)
    LOAD_PAIR(P_DOUBLE, struct pair_double, double)
    LOAD_PAIR(P_LONG, struct pair_long, long)
    LOAD_PAIR(P_SHORT, struct pair_short, short)
    }
    return v;
}

static inline const char *show(enum kind kind, const char *at, char *text, size_t size)
{
    struct value v = load(kind, at);
    switch (class_of(kind)) {
    case INTEGER: snprintf(text, size, "%lld", (long long)v.i); break;
    case REAL: snprintf(text, size, "%.17g", v.re); break;
    case COMPLEX: snprintf(text, size, "(%.17g, %.17g)", v.re, v.im); break;
    case PAIR: snprintf(text, size, "(%lld at %d)", (long long)v.i, v.index); break;
    }
    return text;
}

/* Does the datatype have a byte of data at `offset` of its element? Then *which is the component. */
static inline int data_at(const struct type *t, ptrdiff_t offset, int *which)
{
    for (int c = 0; c < t->components; c++) {
        ptrdiff_t in = offset - t->component[c].offset;
        enum kind k = t->component[c].kind;
        if (in < 0 || in >= (ptrdiff_t)KIND_SIZE[k])
            continue;
        *which = c;
        char image[32];
        memset(image, 1, sizeof image);
        store(k, image, (struct value){0, 0, 0, 0});
        return image[in] == 0; /* a hole in a pair is no data */
    }
    return 0;
}

/* What `rank` contributes to component c of element i: exact under the operation in any order. */
static inline struct value contribution(enum op op, enum kind kind, int rank, size_t i, int c, uint64_t seed)
{
    uint64_t h = mix(seed + i * 0x9e3779b1u + (uint64_t)rank * 0xc2b2ae3d27d4eb4fu + (uint64_t)c * 0x165667b1u);
    unsigned r = (unsigned)(h >> 8);
    int is_unsigned = kind == U8 || kind == U32;
    struct value v = {0, 0, 0, 0};
    switch (op) {
    case OP_SUM: case OP_USER:
        v.i = (int)(is_unsigned ? r % 4 : r % 7) - (is_unsigned ? 0 : 3);
        v.im = (int)((h >> 40) % 7) - 3;
        break;
    case OP_MAX: v.i = (int)(r % 251) - (is_unsigned ? 0 : 125); break;
    case OP_BAND: v.i = (int64_t)(h | mix(h)); break;
    case OP_PROD:
        if (class_of(kind) == COMPLEX) {
            /* Gaussian primes without their conjugates: no product has a zero part, whose sign would
             * depend on the order. */
            static const int prime[2][2] = {{2, 1}, {3, 2}};
            v.re = rank < 6 ? prime[r % 2][0] : 1;
            v.im = rank < 6 ? prime[r % 2][1] : 0;
            return v;
        }
        v.i = rank < 6 && r % 2 ? 2 : is_unsigned || r % 3 ? 1 : -1;
        break;
    case OP_LAND: v.i = r % 6 ? r % 100 + 1 : 0; break;
    case OP_MAXLOC: case OP_MINLOC:
        v.i = r % 5; /* many ties: the index decides */
        v.index = (int)((h >> 40) % 1000);
        break;
    default: /* Bcast and the products of maps and matrices: any bits; numbers that floats hold exactly */
        v.i = class_of(kind) == INTEGER ? (int64_t)h : (int)(h % 30000);
        v.im = (int)((h >> 40) % 1000);
        v.index = (int)(h >> 33);
        break;
    }
    v.re = (double)v.i;
    return v;
}

static struct value combine(enum op op, enum class class, struct value a, struct value b)
{
    struct value v = a;
    switch (op) {
    case OP_SUM: case OP_USER: v.i = a.i + b.i; v.re = a.re + b.re; v.im = a.im + b.im; break;
    case OP_MAX: v.i = a.i > b.i ? a.i : b.i; v.re = a.re > b.re ? a.re : b.re; break;
    case OP_BAND: v.i = a.i & b.i; break;
    case OP_LAND: v.i = a.i && b.i; break;
    case OP_PROD:
        v.i = a.i * b.i;
        v.re = class == COMPLEX ? a.re * b.re - a.im * b.im : a.re * b.re;
        v.im = a.re * b.im + a.im * b.re;
        break;
    case OP_MAXLOC: v = a.i > b.i || (a.i == b.i && a.index < b.index) ? a : b; break;
    case OP_MINLOC: v = a.i < b.i || (a.i == b.i && a.index < b.index) ? a : b; break;
    default: break;
    }
    return v;
}

/* The associative, not commutative product of `group` 32-bit numbers: affine maps, or 2x2 matrices, modulo
 * 2^32. */
static void ordered_product(int group, const uint32_t *a, const uint32_t *b, uint32_t *out)
{
    if (group == 2) {
        uint32_t factor = a[0] * b[0], shift = a[1] * b[0] + b[1];
        out[0] = factor;
        out[1] = shift;
    } else {
        uint32_t m[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        memcpy(out, m, sizeof m);
    }
}

/* ---------------------------------------------------------------- the user's operations */

static const struct type *type_of(MPI_Datatype handle)
{
    for (int i = 0; i < type_count; i++)
        if (types[i].handle == handle)
            return &types[i];
    fail("a user operation was called with an unknown datatype");
    MPI_Abort(MPI_COMM_WORLD, 1);
    return NULL;
}

static void user_sum(void *in, void *inout, int *count, MPI_Datatype *handle)
{
    const struct type *t = type_of(*handle);
    for (int i = 0; i < *count; i++)
        for (int c = 0; c < t->components; c++) {
            enum kind k = t->component[c].kind;
            ptrdiff_t at = i * t->extent + t->component[c].offset;
            store(k, (char *)inout + at, combine(OP_USER, class_of(k), load(k, (char *)in + at), load(k, (char *)inout + at)));
        }
}

static void user_ordered(void *in, void *inout, int *count, MPI_Datatype *handle)
{
    const struct type *t = type_of(*handle);
    for (int i = 0; i < *count; i++)
        for (int c = 0; c < t->components; c += t->group) {
            uint32_t a[4], b[4];
            for (int k = 0; k < t->group; k++) {
                memcpy(&a[k], (char *)in + i * t->extent + t->component[c + k].offset, 4);
                memcpy(&b[k], (char *)inout + i * t->extent + t->component[c + k].offset, 4);
            }
            ordered_product(t->group, a, b, b);
            for (int k = 0; k < t->group; k++)
                memcpy((char *)inout + i * t->extent + t->component[c + k].offset, &b[k], 4);
        }
}

/* ---------------------------------------------------------------- the table of datatypes */

static void add_type(const char *name, MPI_Datatype handle, int derived, int group, int components, const struct component *list)
{
    struct type *t = &types[type_count++];
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Type_get_extent(handle, &lb, &extent);
    MPI_Type_get_true_extent(handle, &true_lb, &true_extent);
    *t = (struct type){.name = name, .handle = handle, .derived = derived, .components = components, .extent = extent,
                       .low = true_lb, .high = true_lb + true_extent, .group = group};
    memcpy(t->component, list, sizeof *list * (size_t)components);
}

static void add_plain(enum kind kind, MPI_Datatype handle)
{
    add_type(KIND_NAME[kind], handle, 0, 0, 1, &(struct component){kind, 0});
    if (class_of(kind) == PAIR) /* its padding at the end counts as the element's */
        types[type_count - 1].high = (ptrdiff_t)KIND_SIZE[kind];
}

static MPI_Datatype committed(MPI_Datatype handle)
{
    MPI_Type_commit(&handle);
    return handle;
}

static void make_types(void)
{
    MPI_Datatype t, u;
    add_plain(I8, MPI_INT8_T);
    add_plain(I16, MPI_INT16_T);
    add_plain(I32, MPI_INT32_T);
    add_plain(I64, MPI_INT64_T);
    add_plain(U8, MPI_UINT8_T);
    add_plain(U32, MPI_UINT32_T);
    add_plain(F32, MPI_FLOAT);
    add_plain(F64, MPI_DOUBLE);
    add_plain(C32, MPI_C_FLOAT_COMPLEX);
    add_plain(C64, MPI_C_DOUBLE_COMPLEX);
    add_plain(P_2INT, MPI_2INT);
    add_plain(P_FLOAT, MPI_FLOAT_INT);
    add_plain(P_DOUBLE, MPI_DOUBLE_INT);
    add_plain(P_LONG, MPI_LONG_INT);
    add_plain(P_SHORT, MPI_SHORT_INT);

    MPI_Type_contiguous(2, MPI_UINT32_T, &t);
    add_type("contiguous", committed(t), 1, 2, 2, (struct component[]){{U32, 0}, {U32, 4}});
    MPI_Type_contiguous(4, MPI_UINT32_T, &t);
    add_type("matrix", committed(t), 1, 4, 4, (struct component[]){{U32, 0}, {U32, 4}, {U32, 8}, {U32, 12}});
    MPI_Type_vector(3, 2, 4, MPI_UINT32_T, &t);
    add_type("vector", committed(t), 1, 2, 6,
             (struct component[]){{U32, 0}, {U32, 4}, {U32, 16}, {U32, 20}, {U32, 32}, {U32, 36}});
    /* Data before the origin, and an extent larger than the data. */
    MPI_Type_create_hindexed(2, (int[]){2, 2}, (MPI_Aint[]){-8, 4}, MPI_UINT32_T, &t);
    MPI_Type_create_resized(t, -12, 32, &u);
    MPI_Type_free(&t);
    add_type("negative-lb", committed(u), 1, 4, 4, (struct component[]){{U32, -8}, {U32, -4}, {U32, 4}, {U32, 8}});
    /* Holes between and behind members of different kinds. */
    MPI_Type_create_struct(3, (int[]){1, 1, 2}, (MPI_Aint[]){0, 8, 17}, (MPI_Datatype[]){MPI_INT32_T, MPI_DOUBLE, MPI_INT8_T}, &t);
    MPI_Type_create_resized(t, 0, 24, &u);
    MPI_Type_free(&t);
    add_type("struct", committed(u), 1, 0, 4, (struct component[]){{I32, 0}, {F64, 8}, {I8, 17}, {I8, 18}});
    /* A vector of resized structs; its elements overlap in extent, not in data. */
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){4, 12}, (MPI_Datatype[]){MPI_UINT32_T, MPI_UINT32_T}, &t);
    MPI_Type_create_resized(t, -4, 24, &u);
    MPI_Type_free(&t);
    MPI_Type_vector(2, 1, 2, u, &t);
    MPI_Type_free(&u);
    add_type("nested", committed(t), 1, 2, 4, (struct component[]){{U32, 4}, {U32, 12}, {U32, 52}, {U32, 60}});
    /* A gap that an element without data makes. Open MPI 4.1 and 5.0 take several of these for one run, in
     * point-to-point and MPI_Pack too. */
    MPI_Type_contiguous(0, MPI_UINT32_T, &u);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_UINT32_T, u}, &t);
    MPI_Type_free(&u);
    add_type("forgotten-gap", committed(t), 1, 0, 1, (struct component[]){{U32, 0}});
    types[type_count - 1].most = 1;

    op_handle[OP_SUM] = MPI_SUM;
    op_handle[OP_MAX] = MPI_MAX;
    op_handle[OP_BAND] = MPI_BAND;
    op_handle[OP_PROD] = MPI_PROD;
    op_handle[OP_LAND] = MPI_LAND;
    op_handle[OP_MAXLOC] = MPI_MAXLOC;
    op_handle[OP_MINLOC] = MPI_MINLOC;
    MPI_Op_create(user_sum, 1, &op_handle[OP_USER]);
    MPI_Op_create(user_ordered, 0, &op_handle[OP_USER_ORDERED]);
}

static void free_types(void)
{
    for (int i = 0; i < type_count; i++)
        if (types[i].derived)
            MPI_Type_free(&types[i].handle);
    MPI_Op_free(&op_handle[OP_USER]);
    MPI_Op_free(&op_handle[OP_USER_ORDERED]);
}

/* May this operation be used with this datatype? */
static inline int op_fits(enum op op, const struct type *t)
{
    enum class class = class_of(t->component[0].kind);
    if (op == OP_USER)
        return class != PAIR;
    if (op == OP_USER_ORDERED)
        return t->group != 0;
    if (t->derived)
        return 0;
    switch (op) {
    case OP_SUM: case OP_PROD: return class != PAIR;
    case OP_MAX: return class == INTEGER || class == REAL;
    case OP_BAND: case OP_LAND: return class == INTEGER;
    case OP_MAXLOC: case OP_MINLOC: return class == PAIR;
    default: return 0;
    }
}

#endif
