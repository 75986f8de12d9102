/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program as a user writes it: an Allreduce. Then it asks Open MPI's counters (MPI_T) who served it.
 *
 *     uses      every rank prints "coll/rust", or "another component"; a wrong sum ends the job
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64 };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[MOST];
static int handle_count;

/* coll/rust's counters of Allreduce, from here on; none where it is not loaded. */
static void watch(void)
{
    int counters = 0, provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&counters);
    for (int i = 0; i < counters && handle_count < MOST; i++) {
        char name[256] = "";
        int room = sizeof name, verbosity, class, bind, readonly, continuous, atomic, count, width;
        MPI_Datatype type;
        MPI_T_enum list;
        if (MPI_T_pvar_get_info(i, name, &room, &verbosity, &class, &type, &list, NULL, NULL, &bind, &readonly, &continuous, &atomic) !=
                MPI_SUCCESS || strncmp(name, "coll_rust_allreduce_", strlen("coll_rust_allreduce_")))
            continue;
        MPI_Type_size(type, &width);
        if (width != sizeof(unsigned long long) ||
            MPI_T_pvar_handle_alloc(session, i, NULL, &handles[handle_count], &count) != MPI_SUCCESS)
            continue;
        if (!continuous)
            MPI_T_pvar_start(session, handles[handle_count]);
        handle_count++;
    }
}

static unsigned long long served(void)
{
    unsigned long long sum = 0, value;
    for (int i = 0; i < handle_count; i++)
        if (MPI_T_pvar_read(session, handles[i], &value) == MPI_SUCCESS)
            sum += value;
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return sum;
}

int main(int argc, char **argv)
{
    int rank, ranks, one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    watch();
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != ranks)
        MPI_Abort(MPI_COMM_WORLD, 1);
    printf("rank %d of %d: %s\n", rank, ranks, served() > 0 ? "coll/rust" : "another component");
    MPI_Finalize();
    return 0;
}
