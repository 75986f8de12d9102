/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes: what they look like, packing and unpacking any range of their bytes; and reduction operations on
 * them.
 */
#include "compat.h"

void cr_dtype_info(struct ompi_datatype_t *dtype, struct cr_dtype_info *info)
{
    (void) ompi_datatype_type_size(dtype, &info->size);
    (void) ompi_datatype_get_extent(dtype, &info->lb, &info->extent);
    (void) ompi_datatype_get_true_extent(dtype, &info->true_lb, &info->true_extent);
    info->gapless = 0 != ompi_datatype_is_contiguous_memory_layout(dtype, 1);
    /* Open MPI 4.1 and 5.0 forget gaps that an element without data makes. */
    info->tiles = 0 != ompi_datatype_is_contiguous_memory_layout(dtype, 2) && (ptrdiff_t) info->size == info->extent;
    info->predefined = 0 != ompi_datatype_is_predefined(dtype);
}

int cr_dtype_retain(struct ompi_datatype_t *dtype)
{
    if (ompi_datatype_is_predefined(dtype)) {
        return 0;
    }
    OBJ_RETAIN(dtype);
    return 1;
}

void cr_dtype_release(struct ompi_datatype_t *dtype)
{
    OBJ_RELEASE(dtype);
}

CR_HOT size_t cr_dtype_plain(struct ompi_datatype_t *dtype)
{
    const opal_datatype_t *type = &dtype->super;
    const int plain = 0 != (type->flags & OPAL_DATATYPE_FLAG_NO_GAPS) && 0 == (type->true_lb | type->lb)
                      && (size_t) type->ub == type->size;
    return plain ? type->size : 0;
}

int cr_dtype_is_predefined(struct ompi_datatype_t *dtype)
{
    return 0 != ompi_datatype_is_predefined(dtype);
}

/* A convertor at byte position of the packed stream of count elements at buf. Returns an Open MPI code. */
static int convertor_open(opal_convertor_t *convertor, struct ompi_datatype_t *dtype, size_t count, void *buf,
                          size_t *position, int pack)
{
    OBJ_CONSTRUCT(convertor, opal_convertor_t);
    const int rc = pack ? opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &dtype->super, count,
                                                                   buf, 0, convertor)
                        : opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &dtype->super, count,
                                                                   buf, 0, convertor);
    return OPAL_SUCCESS == rc ? opal_convertor_set_position(convertor, position) : rc;
}

/* Moves up to size bytes between data and the convertor's position. The bytes moved; 0 is an error. */
static size_t convertor_step(opal_convertor_t *convertor, void *data, size_t size, int pack)
{
    struct iovec part = {.iov_base = data, .iov_len = size};
    uint32_t parts = 1;
    size_t moved = size;
    const int rc = pack ? opal_convertor_pack(convertor, &part, &parts, &moved)
                        : opal_convertor_unpack(convertor, &part, &parts, &moved);
    return rc < 0 ? 0 : moved;
}

/* Open MPI's convertors cannot cut a predefined element everywhere: packing moves whole ones only, and
 * unpacking part of one that is larger than 16 bytes overruns a buffer. So the shim hands them runs of whole
 * elements, and treats the elements that a range cuts, one at either end at most, in a copy. */
struct cut {
    size_t start; /* of the element in the packed stream */
    size_t size;  /* 0: nothing is cut */
    char bytes[64]; /* the element; the largest, long double complex, has 32 bytes */
};

/* Finds, and packs, the element that contains both the bytes before and after offset. Returns an Open MPI
 * code. */
static int cut_at(struct cut *cut, struct ompi_datatype_t *dtype, size_t count, void *buf, size_t offset)
{
    size_t size;
    cut->size = 0;
    (void) ompi_datatype_type_size(dtype, &size);
    if (0 == offset % size) {
        return OPAL_SUCCESS;
    }
    opal_convertor_t convertor;
    cut->start = offset;
    /* A packing convertor falls back to the start of the element. */
    int rc = convertor_open(&convertor, dtype, count, buf, &cut->start, 1);
    if (OPAL_SUCCESS == rc && cut->start < offset) {
        memset(cut->bytes, 0, sizeof(cut->bytes)); /* packing leaves a long double's padding as it is */
        /* The smallest room in which something fits is the element's size. */
        for (size_t room = offset - cut->start + 1; 0 == cut->size && room <= sizeof(cut->bytes); ++room) {
            cut->size = convertor_step(&convertor, cut->bytes, room, 1);
        }
        rc = cut->start + cut->size > offset ? OPAL_SUCCESS : OPAL_ERROR;
    }
    OBJ_DESTRUCT(&convertor);
    return rc;
}

/* Moves bytes [offset, offset + bytes), which cut no element, between the stream and data. Returns an Open
 * MPI code. */
static int move_run(struct ompi_datatype_t *dtype, size_t count, void *buf, size_t offset, char *data, size_t bytes,
                    int pack)
{
    opal_convertor_t convertor;
    size_t position = offset;
    int rc = convertor_open(&convertor, dtype, count, buf, &position, pack);
    if (OPAL_SUCCESS == rc && position != offset) {
        rc = OPAL_ERROR;
    }
    for (size_t done = 0; OPAL_SUCCESS == rc && done < bytes;) {
        const size_t moved = convertor_step(&convertor, data + done, bytes - done, pack);
        rc = 0 == moved ? OPAL_ERROR : OPAL_SUCCESS;
        done += moved;
    }
    OBJ_DESTRUCT(&convertor);
    return rc;
}

/* Moves what of the cut element lies in [offset, end). data holds the bytes from offset on. */
static int move_cut(struct cut *cut, struct ompi_datatype_t *dtype, size_t count, void *buf, size_t offset,
                    size_t end, char *data, int pack)
{
    const size_t from = cut->start > offset ? cut->start : offset;
    const size_t to = cut->start + cut->size < end ? cut->start + cut->size : end;
    char *const outside = data + (from - offset);
    char *const inside = cut->bytes + (from - cut->start);
    if (pack) {
        memcpy(outside, inside, to - from);
        return OPAL_SUCCESS;
    }
    memcpy(inside, outside, to - from);
    return move_run(dtype, count, buf, cut->start, cut->bytes, cut->size, 0);
}

static int convert(struct ompi_datatype_t *dtype, size_t count, void *buf, size_t offset, char *data, size_t bytes,
                   int pack)
{
    if (0 == bytes) {
        return MPI_SUCCESS;
    }
    const size_t end = offset + bytes;
    struct cut head, tail;
    int rc = cut_at(&head, dtype, count, buf, offset);
    if (OPAL_SUCCESS == rc) {
        rc = cut_at(&tail, dtype, count, buf, end);
    }
    if (OPAL_SUCCESS != rc) {
        return cr_mpi_code(rc);
    }
    const size_t first = 0 == head.size ? offset : head.start + head.size;
    const size_t last = 0 == tail.size ? end : tail.start;
    if (0 != head.size) {
        rc = move_cut(&head, dtype, count, buf, offset, end, data, pack);
    }
    if (OPAL_SUCCESS == rc && first < last) {
        rc = move_run(dtype, count, buf, first, data + (first - offset), last - first, pack);
    }
    if (OPAL_SUCCESS == rc && 0 != tail.size && tail.start >= first) {
        rc = move_cut(&tail, dtype, count, buf, offset, end, data, pack);
    }
    return cr_mpi_code(rc);
}

int cr_pack(struct ompi_datatype_t *dtype, size_t count, const void *buf, size_t offset, void *out, size_t bytes)
{
    return convert(dtype, count, (void *) buf, offset, out, bytes, 1);
}

int cr_unpack(struct ompi_datatype_t *dtype, size_t count, void *buf, size_t offset, const void *in, size_t bytes)
{
    return convert(dtype, count, buf, offset, (char *) in, bytes, 0);
}

int cr_copy(struct ompi_datatype_t *dtype, size_t count, void *to, const void *from)
{
    return 0 == ompi_datatype_copy_content_same_ddt(dtype, count, to, (char *) from) ? MPI_SUCCESS : MPI_ERR_INTERN;
}

/* ---------------------------------------------------------------- reduction operations */

/* Open MPI's bindings look, too, unless the user has told them not to (mpi_param_check): what is not defined
 * would be a crash. */
static CR_HOT int op_defined(struct ompi_op_t *op, struct ompi_datatype_t *dtype)
{
    char *why = NULL;
    if (ompi_op_is_valid(op, dtype, &why, "coll/rust")) {
        return 1;
    }
    free(why);
    return 0;
}

void cr_op_info(struct ompi_op_t *op, struct ompi_datatype_t *dtype, struct cr_op_info *info)
{
    info->defined = op_defined(op, dtype);
    info->commutative = ompi_op_is_commute(op) ? 1 : 0;
    info->intrinsic = ompi_op_is_intrinsic(op) ? 1 : 0;
    info->extremum = &ompi_mpi_op_max.op == op || &ompi_mpi_op_min.op == op;
}

CR_HOT int cr_op_is_plain(struct ompi_op_t *op, struct ompi_datatype_t *dtype)
{
    return ompi_op_is_intrinsic(op) && op_defined(op, dtype);
}

int cr_op_retain(struct ompi_op_t *op)
{
    if (ompi_op_is_intrinsic(op)) {
        return 0;
    }
    OBJ_RETAIN(op);
    return 1;
}

void cr_op_release(struct ompi_op_t *op)
{
    OBJ_RELEASE(op);
}

CR_HOT void cr_op_reduce(struct ompi_op_t *op, const void *in, void *inout, size_t count, struct ompi_datatype_t *dtype)
{
    ptrdiff_t lb, extent;
    (void) ompi_datatype_get_extent(dtype, &lb, &extent);
    for (size_t done = 0; done < count;) {
        const size_t part = count - done > INT_MAX ? INT_MAX : count - done;
        const ptrdiff_t shift = (ptrdiff_t) done * extent;
        ompi_op_reduce(op, (char *) in + shift, (char *) inout + shift, part, dtype);
        done += part;
    }
}

CR_HOT void cr_op_reduce_into(struct ompi_op_t *op, const void *left, const void *right, void *out, size_t count,
                              struct ompi_datatype_t *dtype)
{
    if (count <= INT_MAX) { /* as a rule: without a look at the extent */
        ompi_3buff_op_reduce(op, (void *) left, (void *) right, out, (int) count, dtype);
        return;
    }
    ptrdiff_t lb, extent;
    (void) ompi_datatype_get_extent(dtype, &lb, &extent);
    for (size_t done = 0; done < count;) {
        const int part = count - done > INT_MAX ? INT_MAX : (int) (count - done);
        const ptrdiff_t shift = (ptrdiff_t) done * extent;
        ompi_3buff_op_reduce(op, (char *) left + shift, (char *) right + shift, (char *) out + shift, part, dtype);
        done += (size_t) part;
    }
}
