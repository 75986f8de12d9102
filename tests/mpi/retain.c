/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program may free a datatype or an operation as soon as it has handed it over: a request that needs it
 * must keep it. After the call, the handles are freed and others made, which get their memory.
 */
#include "harness.h"

enum { BLOCKS = 700, OTHERS = 24, RESTARTS = 3 };
enum operation { BCAST, REDUCE, ALLREDUCE, OPERATIONS };
static const char *const NAME[] = {"Bcast", "Reduce", "Allreduce"};

/* Every second number of a buffer, added up; a wrong datatype has another extent. */
static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *count; i++)
        for (int j = 0; j < 3; j++) {
            uint32_t a, b;
            memcpy(&a, (char *)in + i * extent + 8 * j, 4);
            memcpy(&b, (char *)inout + i * extent + 8 * j, 4);
            b += a;
            memcpy((char *)inout + i * extent + 8 * j, &b, 4);
        }
}

static void subtract(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
    fail("an operation was called that nobody uses");
}

static uint32_t value(int rank, int start, int i)
{
    return (uint32_t)mix4((uint64_t)rank, (uint64_t)start, (uint64_t)i, 7);
}

static void run(enum operation operation, int persistent, int root)
{
    static uint32_t send[BLOCKS * 6], recv[BLOCKS * 6];
    MPI_Datatype type, inner, others[OTHERS];
    MPI_Op op, other_ops[OTHERS];
    MPI_Request request;
    MPI_Info none = MPI_INFO_NULL;
    MPI_Comm comm = MPI_COMM_WORLD;
    int n = BLOCKS;
    doing("%s %s root=%d", persistent ? "persistent" : "nonblocking", NAME[operation], root);
    MPI_Type_vector(3, 1, 2, MPI_UINT32_T, &inner);
    MPI_Type_create_resized(inner, 0, 24, &type);
    MPI_Type_free(&inner);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &op);
    for (int s = 0; s < (persistent ? RESTARTS : 1); s++) {
        for (int i = 0; i < BLOCKS * 6; i++) {
            send[i] = value(test_rank, s, i);
            recv[i] = operation == BCAST && test_rank == root ? send[i] : 0;
        }
        if (s == 0) {
            switch (operation * 2 + persistent) {
            case 2 * BCAST: must(MPI_Ibcast(recv, n, type, root, comm, &request)); break;
            case 2 * BCAST + 1: must(MPI_Bcast_init(recv, n, type, root, comm, none, &request)); break;
            case 2 * REDUCE: must(MPI_Ireduce(send, recv, n, type, op, root, comm, &request)); break;
            case 2 * REDUCE + 1: must(MPI_Reduce_init(send, recv, n, type, op, root, comm, none, &request)); break;
            case 2 * ALLREDUCE: must(MPI_Iallreduce(send, recv, n, type, op, comm, &request)); break;
            default: must(MPI_Allreduce_init(send, recv, n, type, op, comm, none, &request)); break;
            }
            MPI_Type_free(&type);
            MPI_Op_free(&op);
            for (int i = 0; i < OTHERS; i++) {
                MPI_Type_vector(2, 1, 5 + i, MPI_DOUBLE, &others[i]);
                MPI_Type_commit(&others[i]);
                MPI_Op_create(subtract, 0, &other_ops[i]);
            }
        }
        if (persistent)
            must(MPI_Start(&request));
        must(MPI_Wait(&request, MPI_STATUS_IGNORE));
        int wrong = -1;
        for (int i = 0; i < BLOCKS * 6 && wrong < 0; i++) {
            uint32_t expected = operation == BCAST && test_rank == root ? send[i] : 0;
            if (i % 2 == 0 && operation == BCAST)
                expected = value(root, s, i);
            for (int r = 0; r < test_size && i % 2 == 0 && (operation == ALLREDUCE || (operation == REDUCE && test_rank == root)); r++)
                expected += value(r, s, i);
            if (recv[i] != expected)
                wrong = i;
        }
        check(wrong < 0, "start %d: number %d is wrong", s + 1, wrong);
    }
    if (persistent)
        must(MPI_Request_free(&request));
    for (int i = 0; i < OTHERS; i++) {
        MPI_Type_free(&others[i]);
        MPI_Op_free(&other_ops[i]);
    }
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv, "retain", MPI_THREAD_SINGLE);
    for (int round = 0; round < 5; round++)
        for (int o = BCAST; o < OPERATIONS; o++)
            for (int root = 0; root < (o == ALLREDUCE ? 1 : test_size); root++)
                /* Open MPI's own persistent operations keep nothing. */
                for (int persistent = 0; persistent <= !has_option(argc, argv, "--stock"); persistent++)
                    run((enum operation)o, persistent, root);
    return test_end();
}
