/*
 * The module of one communicator: hands each call to Rust, and on CR_PASS to the component that would have served it
 * without us.
 */
#include "compat.h"

/* Every function that the module offers, and whether enable insists on one below. */
#define CR_SLOTS(SLOT)                                                                                         \
    SLOT(bcast, 1) SLOT(ibcast, 0) SLOT(bcast_init, 0)                                                         \
    SLOT(reduce, 1) SLOT(ireduce, 0) SLOT(reduce_init, 0)                                                      \
    SLOT(allreduce, 1) SLOT(iallreduce, 0) SLOT(allreduce_init, 0)                                             \
    SLOT(barrier, 1) SLOT(ibarrier, 0) SLOT(barrier_init, 0)

struct cr_module_t {
    mca_coll_base_module_t super;
    void *state; /* Rust's half */
    /* What the components below offered for each slot; the modules are retained. */
#define SLOT(name, needed)                                                                                     \
    mca_coll_base_module_##name##_fn_t name;                                                                   \
    mca_coll_base_module_t *name##_module;
    CR_SLOTS(SLOT)
#undef SLOT
};
typedef struct cr_module_t cr_module_t;

OBJ_CLASS_DECLARATION(cr_module_t);

/* ---------------------------------------------------------------- thunks */

/* Hands the arguments as they came to the component below. */
#define CR_BELOW(name, ...)                                                                                    \
    (NULL == self->name ? MPI_ERR_UNSUPPORTED_OPERATION : self->name(__VA_ARGS__, self->name##_module))

static struct cr_call bcast_call(void *buf, int count, struct ompi_datatype_t *dtype, int root)
{
    return (struct cr_call) {.kind = CR_BCAST, .root = root, .rbuf = buf, .count = (size_t) count, .dtype = dtype};
}

static struct cr_call reduction_call(int kind, const void *sbuf, void *rbuf, int count,
                                     struct ompi_datatype_t *dtype, struct ompi_op_t *op, int root)
{
    struct cr_call call = {
        .kind = kind, .root = root, .sbuf = sbuf, .rbuf = rbuf, .count = (size_t) count, .dtype = dtype, .op = op};
    if (MPI_IN_PLACE == sbuf) {
        call.sbuf = NULL;
        call.in_place = 1;
    }
    if (MPI_IN_PLACE == rbuf) {
        call.rbuf = NULL;
        call.in_place = 1;
    }
    return call;
}

static struct cr_call barrier_call(void)
{
    return (struct cr_call) {.kind = CR_BARRIER};
}

static int bcast(void *buf, int count, struct ompi_datatype_t *dtype, int root, struct ompi_communicator_t *comm,
                 mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = bcast_call(buf, count, dtype, root);
    const int rc = cr_call_blocking(self->state, &call);
    return CR_PASS != rc ? rc : CR_BELOW(bcast, buf, count, dtype, root, comm);
}

static int ibcast(void *buf, int count, struct ompi_datatype_t *dtype, int root, struct ompi_communicator_t *comm,
                  ompi_request_t **request, mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = bcast_call(buf, count, dtype, root);
    const int rc = cr_call_nonblocking(self->state, &call, request);
    return CR_PASS != rc ? rc : CR_BELOW(ibcast, buf, count, dtype, root, comm, request);
}

static int bcast_init(void *buf, int count, struct ompi_datatype_t *dtype, int root,
                      struct ompi_communicator_t *comm, struct ompi_info_t *info, ompi_request_t **request,
                      mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = bcast_call(buf, count, dtype, root);
    const int rc = cr_call_persistent(self->state, &call, request);
    return CR_PASS != rc ? rc : CR_BELOW(bcast_init, buf, count, dtype, root, comm, info, request);
}

static int reduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                  int root, struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = reduction_call(CR_REDUCE, sbuf, rbuf, count, dtype, op, root);
    const int rc = cr_call_blocking(self->state, &call);
    return CR_PASS != rc ? rc : CR_BELOW(reduce, sbuf, rbuf, count, dtype, op, root, comm);
}

static int ireduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                   int root, struct ompi_communicator_t *comm, ompi_request_t **request,
                   mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = reduction_call(CR_REDUCE, sbuf, rbuf, count, dtype, op, root);
    const int rc = cr_call_nonblocking(self->state, &call, request);
    return CR_PASS != rc ? rc : CR_BELOW(ireduce, sbuf, rbuf, count, dtype, op, root, comm, request);
}

static int reduce_init(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype,
                       struct ompi_op_t *op, int root, struct ompi_communicator_t *comm, struct ompi_info_t *info,
                       ompi_request_t **request, mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = reduction_call(CR_REDUCE, sbuf, rbuf, count, dtype, op, root);
    const int rc = cr_call_persistent(self->state, &call, request);
    return CR_PASS != rc ? rc : CR_BELOW(reduce_init, sbuf, rbuf, count, dtype, op, root, comm, info, request);
}

static int allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                     struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = reduction_call(CR_ALLREDUCE, sbuf, rbuf, count, dtype, op, 0);
    const int rc = cr_call_blocking(self->state, &call);
    return CR_PASS != rc ? rc : CR_BELOW(allreduce, sbuf, rbuf, count, dtype, op, comm);
}

static int iallreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                      struct ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = reduction_call(CR_ALLREDUCE, sbuf, rbuf, count, dtype, op, 0);
    const int rc = cr_call_nonblocking(self->state, &call, request);
    return CR_PASS != rc ? rc : CR_BELOW(iallreduce, sbuf, rbuf, count, dtype, op, comm, request);
}

static int allreduce_init(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype,
                          struct ompi_op_t *op, struct ompi_communicator_t *comm, struct ompi_info_t *info,
                          ompi_request_t **request, mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = reduction_call(CR_ALLREDUCE, sbuf, rbuf, count, dtype, op, 0);
    const int rc = cr_call_persistent(self->state, &call, request);
    return CR_PASS != rc ? rc : CR_BELOW(allreduce_init, sbuf, rbuf, count, dtype, op, comm, info, request);
}

static int barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = barrier_call();
    const int rc = cr_call_blocking(self->state, &call);
    return CR_PASS != rc ? rc : CR_BELOW(barrier, comm);
}

static int ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = barrier_call();
    const int rc = cr_call_nonblocking(self->state, &call, request);
    return CR_PASS != rc ? rc : CR_BELOW(ibarrier, comm, request);
}

static int barrier_init(struct ompi_communicator_t *comm, struct ompi_info_t *info, ompi_request_t **request,
                        mca_coll_base_module_t *module)
{
    cr_module_t *self = (cr_module_t *) module;
    const struct cr_call call = barrier_call();
    const int rc = cr_call_persistent(self->state, &call, request);
    return CR_PASS != rc ? rc : CR_BELOW(barrier_init, comm, info, request);
}

/* ---------------------------------------------------------------- life */

/* Called in the order of priority, lowest first: what the communicator holds now is what is below us. A failure
 * drops the module, and its destructor releases what was saved. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    cr_module_t *self = (cr_module_t *) module;
#define SLOT(name, needed)                                                                                     \
    if (NULL != comm->c_coll->coll_##name && NULL != comm->c_coll->coll_##name##_module) {                     \
        self->name = comm->c_coll->coll_##name;                                                                \
        self->name##_module = comm->c_coll->coll_##name##_module;                                              \
        OBJ_RETAIN(self->name##_module);                                                                       \
    } else if (needed) {                                                                                       \
        return OMPI_ERR_NOT_FOUND;                                                                             \
    }
    CR_SLOTS(SLOT)
#undef SLOT
    return OMPI_SUCCESS;
}

/* Open MPI calls this once per slot, as a rule: there is nothing to undo before the destructor. */
static int disable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    (void) module;
    (void) comm;
    return OMPI_SUCCESS;
}

static void construct(cr_module_t *self)
{
    self->state = NULL;
#define SLOT(slot, needed)                                                                                     \
    self->slot = NULL;                                                                                         \
    self->slot##_module = NULL;                                                                                \
    self->super.coll_##slot = slot;
    CR_SLOTS(SLOT)
#undef SLOT
    self->super.coll_module_enable = enable;
    self->super.coll_module_disable = disable;
}

static void destruct(cr_module_t *self)
{
#define SLOT(name, needed)                                                                                     \
    if (NULL != self->name##_module) {                                                                         \
        OBJ_RELEASE(self->name##_module);                                                                      \
        self->name##_module = NULL;                                                                            \
    }
    CR_SLOTS(SLOT)
#undef SLOT
    cr_comm_free(self->state);
    self->state = NULL;
}

OBJ_CLASS_INSTANCE(cr_module_t, mca_coll_base_module_t, construct, destruct);

mca_coll_base_module_t *cr_module_new(void *state)
{
    cr_module_t *self = OBJ_NEW(cr_module_t);
    if (NULL == self) {
        return NULL;
    }
    self->state = state;
    return &self->super;
}
