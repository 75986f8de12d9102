/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of nonblocking and persistent collectives.
 *
 * A request is the object that MPI_Wait and friends know plus a pointer to Rust's half. It derives from
 * ompi_coll_base_nbc_request_t because the bindings of MPI_I* write that type's tail when they retain the
 * user's op and datatypes. They do so after our function has returned, and hook themselves in as the
 * completion callback. A request that another thread completed between the binding's check and its hook is
 * never called back: we call the hook when the request is freed. (The bindings of persistent operations
 * retain nothing: the request is complete, as every inactive one. Rust does.)
 */
#include "compat.h"

struct cr_request_t {
    ompi_coll_base_nbc_request_t super;
    struct ompi_communicator_t *comm; /* retained */
    void *op_half;                    /* Rust's half */
};
typedef struct cr_request_t cr_request_t;

OBJ_CLASS_DECLARATION(cr_request_t);

static opal_free_list_t cr_requests;

static void reset_status(ompi_request_t *base)
{
    base->req_status.MPI_SOURCE = MPI_ANY_SOURCE;
    base->req_status.MPI_TAG = MPI_ANY_TAG;
    base->req_status.MPI_ERROR = MPI_SUCCESS;
    base->req_status._ucount = 0;
    base->req_status._cancelled = 0;
}

/* Gives everything back, in the thread that frees the request: releasing the communicator may destroy it. */
static void recycle(cr_request_t *request)
{
    ompi_request_t *base = &request->super.super;
    struct ompi_communicator_t *comm = request->comm;

    const ompi_request_complete_fn_t hook = base->req_complete_cb;
    if (NULL != hook) {
        base->req_complete_cb = NULL;
        (void) hook(base);
    }
    OMPI_REQUEST_FINI(base);
    request->op_half = NULL;
    request->comm = NULL;
    base->req_mpi_object.comm = NULL;
    opal_free_list_return(&cr_requests, (opal_free_list_item_t *) request);
    OBJ_RELEASE(comm);
}

static int request_free(struct ompi_request_t **handle)
{
    cr_request_t *request = (cr_request_t *) *handle;
    if (!cr_request_done(*handle)) {
        return MPI_ERR_REQUEST;
    }
    *handle = MPI_REQUEST_NULL;
    cr_op_free(request->op_half);
    recycle(request);
    return MPI_SUCCESS;
}

/* MPI has no cancel for collectives. */
static int request_cancel(struct ompi_request_t *request, int flag)
{
    (void) request;
    (void) flag;
    return MPI_ERR_REQUEST;
}

static int request_start(size_t count, struct ompi_request_t **requests)
{
    for (size_t i = 0; i < count; ++i) {
        ompi_request_t *base = requests[i];
        if (!base->req_persistent || OMPI_REQUEST_INACTIVE != base->req_state) {
            return MPI_ERR_REQUEST;
        }
        const int rc = cr_op_start(((cr_request_t *) base)->op_half);
        if (MPI_SUCCESS != rc) {
            /* Not started after all: inactive again, so that it can be freed. */
            base->req_complete = REQUEST_COMPLETED;
            base->req_state = OMPI_REQUEST_INACTIVE;
            return rc;
        }
    }
    return MPI_SUCCESS;
}

static void construct(cr_request_t *request)
{
    ompi_request_t *base = &request->super.super;
    base->req_type = OMPI_REQUEST_COLL;
    base->req_start = request_start;
    base->req_free = request_free;
    base->req_cancel = request_cancel;
    request->comm = NULL;
    request->op_half = NULL;
}

OBJ_CLASS_INSTANCE(cr_request_t, ompi_coll_base_nbc_request_t, construct, NULL);

int cr_requests_open(void)
{
    OBJ_CONSTRUCT(&cr_requests, opal_free_list_t);
    const int rc = opal_free_list_init(&cr_requests, sizeof(cr_request_t), opal_cache_line_size,
                                       OBJ_CLASS(cr_request_t), 0, 0, 0, -1, 16, NULL, 0, NULL, NULL, NULL);
    if (OMPI_SUCCESS != rc) {
        OBJ_DESTRUCT(&cr_requests);
    }
    return rc;
}

void cr_requests_close(void)
{
    OBJ_DESTRUCT(&cr_requests);
}

/* ---------------------------------------------------------------- services */

struct ompi_request_t *cr_request_new(struct ompi_communicator_t *comm, int persistent, void *op_half)
{
    cr_request_t *request = (cr_request_t *) opal_free_list_get(&cr_requests);
    if (NULL == request) {
        return NULL;
    }
    ompi_request_t *base = &request->super.super;
    OMPI_REQUEST_INIT(base, 0 != persistent);
    base->req_state = persistent ? OMPI_REQUEST_INACTIVE : OMPI_REQUEST_ACTIVE;
    base->req_mpi_object.comm = comm;
    reset_status(base);
    request->super.cb.req_complete_cb = NULL;
    request->super.req_complete_cb_data = NULL;

    OBJ_RETAIN(comm);
    request->comm = comm;
    request->op_half = op_half;
    return base;
}

void cr_request_activate(struct ompi_request_t *request)
{
    reset_status(request);
    request->req_complete = REQUEST_PENDING;
    request->req_state = OMPI_REQUEST_ACTIVE;
}

void cr_request_complete(struct ompi_request_t *request, int error)
{
    request->req_status.MPI_ERROR = error;
    (void) ompi_request_complete(request, true);
}

void cr_request_discard(struct ompi_request_t *request)
{
    recycle((cr_request_t *) request);
}

int cr_request_done(struct ompi_request_t *request)
{
    /* SYNC(what the request's completion published): acquires what ompi_request_complete released. */
    return REQUEST_COMPLETED == __atomic_load_n(&request->req_complete, __ATOMIC_ACQUIRE);
}

int cr_request_finish(struct ompi_request_t *request, size_t *bytes)
{
    const int error = request->req_status.MPI_ERROR;
    if (NULL != bytes) {
        *bytes = request->req_status._ucount;
    }
    const int rc = ompi_request_free(&request);
    return cr_mpi_code(MPI_SUCCESS != error ? error : rc);
}

void cr_request_cancel(struct ompi_request_t *request)
{
    (void) ompi_request_cancel(request);
}

int cr_request_start(struct ompi_request_t *request)
{
    return cr_mpi_code(request->req_start(1, &request));
}

int cr_request_rest(struct ompi_request_t *request)
{
    request->req_state = OMPI_REQUEST_INACTIVE;
    return cr_mpi_code(request->req_status.MPI_ERROR);
}
