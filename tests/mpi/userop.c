/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions by operations of the user's, and of elements with gaps, from one element to more than what goes
 * through shared memory: the operands come in rank order, what lies in the gaps of the result stays, and
 * ranks describe the same numbers by elements of different datatypes. A function finds elements aligned.
 *
 *   --rounds N   (default 20)
 */
#include "harness.h"
#include <stdint.h>

/* Elements: two numbers. In rank order, a then b: (first of a, second of b), which does not
 * commute, or sums. */
enum form { TIGHT, GAPS, BEHIND, FORMS };
static const char *const FORM_NAME[FORMS] = {"tight", "with gaps", "behind their origin"};
/* Ints from an element's origin to its first and its second number, and to the next element. */
static const int FIRST[FORMS] = {0, 0, 2}, SECOND[FORMS] = {1, 3, 3}, STEP[FORMS] = {2, 5, 4};
static MPI_Datatype dtypes[FORMS];
static MPI_Op keep, join;
static long misplaced; /* arguments whose origin is not aligned as memory of malloc's */

static void by_form(void *in, void *inout, int *count, MPI_Datatype *type, int commutes)
{
    int form = 0;
    while (form < FORMS && dtypes[form] != *type)
        form++;
    if (form == FORMS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    misplaced += (uintptr_t) in % 16 != 0 || (uintptr_t) inout % 16 != 0;
    for (int i = 0; i < *count; i++) {
        int *a = (int *) in + i * STEP[form], *b = (int *) inout + i * STEP[form];
        if (commutes) {
            b[FIRST[form]] += a[FIRST[form]];
            b[SECOND[form]] ^= a[SECOND[form]];
        } else {
            b[FIRST[form]] = a[FIRST[form]];
        }
    }
}

static void keep_ends(void *in, void *inout, int *count, MPI_Datatype *type) { by_form(in, inout, count, type, 0); }
static void join_both(void *in, void *inout, int *count, MPI_Datatype *type) { by_form(in, inout, count, type, 1); }

static int first(int round, int rank, int i) { return round * 1009 + rank * 31 + i; }
static int second(int round, int rank, int i) { return round * 7 + rank * 65537 + i * 3; }

static const int SPOILT = -77;

static void fill(int *buffer, enum form form, int round, int count)
{
    for (int i = 0; i < count * STEP[form]; i++)
        buffer[i] = SPOILT;
    for (int i = 0; i < count; i++) {
        buffer[i * STEP[form] + FIRST[form]] = first(round, test_rank, i);
        buffer[i * STEP[form] + SECOND[form]] = second(round, test_rank, i);
    }
}

/* What the ranks from `from` to before `end` make together, and gaps as they were. */
static int good(const int *buffer, enum form form, int round, int count, int end, int commutes)
{
    for (int i = 0; i < count; i++) {
        int sum = 0, mixed = 0;
        for (int rank = 0; rank < end; rank++) {
            sum += first(round, rank, i);
            mixed ^= second(round, rank, i);
        }
        const int *element = buffer + i * STEP[form];
        if (element[FIRST[form]] != (commutes ? sum : first(round, 0, i)))
            return 0;
        if (element[SECOND[form]] != (commutes ? mixed : second(round, end - 1, i)))
            return 0;
        for (int j = 0; j < STEP[form]; j++)
            if (j != FIRST[form] && j != SECOND[form] && element[j] != SPOILT)
                return 0;
    }
    return 1;
}

static void one(MPI_Comm comm, int round, int count, int commutes, int in_place, int nonblocking)
{
    static const char *const NAME[] = {"Reduce", "Allreduce", "Scan", "Exscan"};
    enum form form = (enum form)((test_rank + round) % FORMS);
    MPI_Datatype dtype = dtypes[form];
    MPI_Op op = commutes ? join : keep;
    size_t ints = (size_t) count * (size_t) STEP[form];
    int *mine = malloc(ints * sizeof(int)), *result = malloc(ints * sizeof(int)), root = round % test_size;
    for (int which = 0; which < 4; which++) {
        doing("round %d: %s of %d elements %s%s%s", round, NAME[which], count, FORM_NAME[form], in_place ? ", in place" : "",
              nonblocking ? ", nonblocking" : "");
        fill(mine, form, round, count);
        for (size_t i = 0; i < ints; i++)
            result[i] = SPOILT;
        if (in_place)
            memcpy(result, mine, ints * sizeof(int));
        const void *from = in_place && (which || test_rank == root) ? MPI_IN_PLACE : mine;
        MPI_Request request = MPI_REQUEST_NULL;
        if (which == 0)
            must(nonblocking ? MPI_Ireduce(from, result, count, dtype, op, root, comm, &request)
                             : MPI_Reduce(from, result, count, dtype, op, root, comm));
        else if (which == 1)
            must(nonblocking ? MPI_Iallreduce(from, result, count, dtype, op, comm, &request)
                             : MPI_Allreduce(from, result, count, dtype, op, comm));
        else if (which == 2)
            must(nonblocking ? MPI_Iscan(from, result, count, dtype, op, comm, &request)
                             : MPI_Scan(from, result, count, dtype, op, comm));
        else
            must(nonblocking ? MPI_Iexscan(from, result, count, dtype, op, comm, &request)
                             : MPI_Exscan(from, result, count, dtype, op, comm));
        must(MPI_Wait(&request, MPI_STATUS_IGNORE));
        int ranks = which < 2 ? test_size : test_rank + (which == 2);
        int has = which || test_rank == root;
        if (has && ranks > 0)
            check(good(result, form, round, count, ranks, commutes), "round %d: %s of %d elements %s%s is wrong", round, NAME[which],
                  count, FORM_NAME[form], in_place ? ", in place" : "");
        fill(result, form, round, count);
        check(memcmp(mine, result, ints * sizeof(int)) == 0, "round %d: %s has written to what is sent", round, NAME[which]);
    }
    free(mine);
    free(result);
}

int main(int argc, char **argv)
{
    /* 8 bytes an element: in a cache line, in a slot, and more. */
    static const int COUNTS[] = {1, 7, 8, 64, 512, 513, 5000};
    test_init(&argc, &argv, "userop", MPI_THREAD_SINGLE);
    int rounds = (int) option_number(argc, argv, "--rounds", 20);
    for (int form = 0; form < FORMS; form++) {
        int lengths[] = {1, 1};
        MPI_Aint places[] = {FIRST[form] * (MPI_Aint) sizeof(int), SECOND[form] * (MPI_Aint) sizeof(int)};
        MPI_Datatype parts[] = {MPI_INT, MPI_INT}, bare;
        must(MPI_Type_create_struct(2, lengths, places, parts, &bare));
        must(MPI_Type_create_resized(bare, 0, STEP[form] * (MPI_Aint) sizeof(int), &dtypes[form]));
        must(MPI_Type_commit(&dtypes[form]));
        must(MPI_Type_free(&bare));
    }
    must(MPI_Op_create(keep_ends, 0, &keep));
    must(MPI_Op_create(join_both, 1, &join));
    for (int round = 0; round < rounds; round++)
        for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++)
            for (int how = 0; how < 8; how++)
                one(MPI_COMM_WORLD, round, COUNTS[c], how & 1, how & 2, how & 4);
    check(misplaced == 0, "%ld calls of a user's function had elements that are not aligned", misplaced);
    must(MPI_Op_free(&keep));
    must(MPI_Op_free(&join));
    for (int form = 0; form < FORMS; form++)
        must(MPI_Type_free(&dtypes[form]));
    return test_end();
}
