/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Rust needs of Open MPI and cannot call itself, because it is a macro, an inline function or a struct's
 * field. One function each; datatypes and reduction operations are in datatype.c, requests in request.c.
 */
#include "compat.h"

#include <pthread.h>

/* ---------------------------------------------------------------- communicators and processes */

int cr_comm_rank(struct ompi_communicator_t *comm)
{
    return ompi_comm_rank(comm);
}

int cr_comm_size(struct ompi_communicator_t *comm)
{
    return ompi_comm_size(comm);
}

int cr_comm_is_inter(struct ompi_communicator_t *comm)
{
    return OMPI_COMM_IS_INTER(comm) ? 1 : 0;
}

int cr_comm_is_world(struct ompi_communicator_t *comm)
{
    return comm == &ompi_mpi_comm_world.comm;
}

int cr_is_finalizing(void)
{
    return ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT;
}

const char *cr_comm_name(struct ompi_communicator_t *comm)
{
    return cr_compat_comm_name(comm);
}

uint64_t cr_comm_key(struct ompi_communicator_t *comm)
{
    return cr_compat_comm_key(comm);
}

void cr_comm_topology(struct ompi_communicator_t *comm, struct cr_topology *topology)
{
    memset(topology, 0, sizeof(*topology));
    if (NULL == comm->c_topo) {
        return;
    }
    if (OMPI_COMM_IS_CART(comm)) {
        const mca_topo_base_comm_cart_2_2_0_t *cart = comm->c_topo->mtc.cart;
        topology->kind = CR_CART;
        topology->dimensions = cart->ndims;
        topology->dims = cart->dims;
        topology->periods = cart->periods;
    } else if (OMPI_COMM_IS_GRAPH(comm)) {
        const mca_topo_base_comm_graph_2_2_0_t *graph = comm->c_topo->mtc.graph;
        topology->kind = CR_GRAPH;
        topology->nodes = graph->nnodes;
        topology->index = graph->index;
        topology->edges = graph->edges;
    } else if (OMPI_COMM_IS_DIST_GRAPH(comm)) {
        const mca_topo_base_comm_dist_graph_2_2_0_t *graph = comm->c_topo->mtc.dist_graph;
        topology->kind = CR_DIST_GRAPH;
        topology->in_degree = graph->indegree;
        topology->out_degree = graph->outdegree;
        topology->sources = graph->in;
        topology->destinations = graph->out;
    }
}

static opal_process_name_t opal_name(const struct cr_proc *name)
{
    return (opal_process_name_t) {.jobid = name->job, .vpid = name->rank};
}

void cr_self(struct cr_proc *name)
{
    const opal_process_name_t self = OPAL_PROC_MY_NAME;
    name->job = self.jobid;
    name->rank = self.vpid;
}

int cr_comm_proc(struct ompi_communicator_t *comm, int rank, struct cr_proc *name)
{
    if (rank < 0 || rank >= ompi_comm_size(comm)) {
        return MPI_ERR_RANK;
    }
    const opal_process_name_t proc = ompi_group_get_proc_name(comm->c_local_group, rank);
    name->job = proc.jobid;
    name->rank = proc.vpid;
    return MPI_SUCCESS;
}

/* ---------------------------------------------------------------- placement */

/* The ranks of the own job on the own node, ascending. They do not change. */
static uint32_t *local_ranks;
static size_t local_count;
static pthread_once_t local_once = PTHREAD_ONCE_INIT;

static int by_rank(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return x < y ? -1 : x > y;
}

static void find_local_ranks(void)
{
    const opal_process_name_t node = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    char *text = cr_compat_job_string(CR_KEY_LOCAL_PEERS, &node);
    if (NULL == text) {
        return;
    }
    size_t bound = 1;
    for (const char *c = text; '\0' != *c; ++c) {
        bound += ',' == *c;
    }
    local_ranks = malloc(bound * sizeof(*local_ranks));
    if (NULL != local_ranks) {
        char *save = NULL;
        for (char *rank = strtok_r(text, ",", &save); NULL != rank; rank = strtok_r(NULL, ",", &save)) {
            local_ranks[local_count++] = (uint32_t) strtoul(rank, NULL, 10);
        }
        qsort(local_ranks, local_count, sizeof(*local_ranks), by_rank);
    }
    free(text);
}

void cr_local(uint32_t *number, uint32_t *count, uint32_t *first)
{
    (void) pthread_once(&local_once, find_local_ranks);
    *number = *count = *first = 0;
    for (size_t i = 0; i < local_count; ++i) {
        if (OPAL_PROC_MY_NAME.vpid == local_ranks[i]) {
            *number = (uint32_t) i;
            *count = (uint32_t) local_count;
            *first = local_ranks[0];
        }
    }
}

int cr_yields(void)
{
    const bool *value = NULL;
    int index = mca_base_var_find("ompi", "mpi", NULL, "yield_when_idle");
    return index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) && NULL != value && *value;
}

static int copy_text(char *to, size_t size, const char *from)
{
    if (NULL == from) {
        from = "";
    }
    const size_t length = strlen(from);
    if (length >= size) {
        return MPI_ERR_TRUNCATE;
    }
    memcpy(to, from, length + 1);
    return MPI_SUCCESS;
}

int cr_place(const struct cr_proc *name, char *host, size_t host_size, char *locality, size_t locality_size,
             int *local)
{
    const opal_process_name_t self = OPAL_PROC_MY_NAME;
    const opal_process_name_t proc = opal_name(name);
    if (proc.jobid != self.jobid) {
        return MPI_ERR_ARG;
    }
    const int own = proc.vpid == self.vpid;

    (void) pthread_once(&local_once, find_local_ranks);
    *local = own
             || (0 != local_count
                 && NULL != bsearch(&name->rank, local_ranks, local_count, sizeof(*local_ranks), by_rank));

    /* The job's data has the host of every process. Where it has not: our own name, or what the proc
     * structure says, if there is one already. */
    char *text = cr_compat_job_string(CR_KEY_HOSTNAME, &proc);
    const char *known = text;
    if (NULL == known && *local) {
        known = opal_process_info.nodename;
    }
    if (NULL == known) {
        const opal_proc_t *structure = ompi_proc_lookup(proc);
        known = NULL == structure ? NULL : cr_compat_proc_host(structure);
    }
    int rc = copy_text(host, host_size, known);
    free(text);
    if (MPI_SUCCESS != rc) {
        return rc;
    }

    /* 5.0 has strings for processes on other nodes, too: places in their nodes, which mean nothing here. */
    text = *local ? cr_compat_job_string(CR_KEY_LOCALITY, &proc) : NULL;
    rc = copy_text(locality, locality_size, text);
    free(text);
    return rc;
}

/* ---------------------------------------------------------------- point-to-point and progress */

int cr_isend(struct ompi_communicator_t *comm, const void *buf, size_t count, struct ompi_datatype_t *dtype,
             int dest, int tag, struct ompi_request_t **request)
{
    struct ompi_request_t *posted = NULL;
    const int rc = MCA_PML_CALL(isend((void *) buf, count, NULL == dtype ? &ompi_mpi_byte.dt : dtype, dest, tag,
                                      MCA_PML_BASE_SEND_STANDARD, comm, &posted));
    if (OMPI_SUCCESS == rc) {
        *request = posted;
        /* Short messages are mostly gone by now. */
        if (cr_request_done(posted) && MPI_SUCCESS == posted->req_status.MPI_ERROR) {
            *request = NULL;
            return cr_mpi_code(ompi_request_free(&posted));
        }
    }
    return cr_mpi_code(rc);
}

int cr_irecv(struct ompi_communicator_t *comm, void *buf, size_t count, struct ompi_datatype_t *dtype, int source,
             int tag, struct ompi_request_t **request)
{
    struct ompi_request_t *posted = NULL;
    const int rc = MCA_PML_CALL(
        irecv(buf, count, NULL == dtype ? &ompi_mpi_byte.dt : dtype, source, tag, comm, &posted));
    if (OMPI_SUCCESS == rc) {
        *request = posted;
    }
    return cr_mpi_code(rc);
}

int cr_max_tag(void)
{
    return mca_pml.pml_max_tag;
}

void cr_progress(void)
{
    opal_progress();
}

/* Where opal_progress gives the core away as soon as its callbacks have found nothing, among which are no
 * messages by TCP: the switch that tells it not to is one of the whole process, which other threads read, so
 * this callback says that something was found, to its own thread. */
static _Thread_local int hushed;

static int hush(void)
{
    const int now = hushed;
    hushed = 0; /* who waits in another callback does give the core away */
    return now;
}

int cr_hush_open(void)
{
    return CR_HUSHES && cr_yields() ? cr_progress_register(hush) : MPI_SUCCESS;
}

void cr_hush_close(void)
{
    if (CR_HUSHES) {
        cr_progress_unregister(hush);
    }
}

int cr_hushes(void)
{
    return CR_HUSHES;
}

void cr_progress_hushed(void)
{
    if (!CR_HUSHES) {
        opal_progress();
        return;
    }
    const int before = hushed;
    hushed = 1;
    opal_progress();
    hushed = before;
}

int cr_progress_register(int (*function)(void))
{
    return OPAL_SUCCESS == opal_progress_register(function) ? MPI_SUCCESS : MPI_ERR_INTERN;
}

void cr_progress_unregister(int (*function)(void))
{
    (void) opal_progress_unregister(function);
}

/* ---------------------------------------------------------------- start-up data, the end */

void cr_remove_at_end(const char *path)
{
    cr_compat_remove_at_end(path);
}

int cr_modex_put(const char *text)
{
    return 0 == cr_compat_modex_put(text, strlen(text) + 1) ? MPI_SUCCESS : MPI_ERR_INTERN;
}

int cr_modex_get(const struct cr_proc *name, char **text)
{
    const opal_process_name_t proc = opal_name(name);
    void *data = NULL;
    size_t size = 0;
    *text = NULL;
    if (0 != cr_compat_modex_get(&proc, &data, &size) || NULL == data) {
        return MPI_ERR_OTHER;
    }
    if (0 == size || '\0' != ((char *) data)[size - 1]) {
        free(data);
        return MPI_ERR_INTERN;
    }
    *text = data;
    return MPI_SUCCESS;
}

void cr_abort(struct ompi_communicator_t *comm, int code)
{
    (void) ompi_mpi_abort(NULL == comm ? &ompi_mpi_comm_world.comm : comm, code);
    _Exit(0 == code ? 1 : code);
}
