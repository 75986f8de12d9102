/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The border between the C shim (ompi-glue/) and Rust (src/ffi/).
 *
 * This header names no Open MPI header: bindgen reads it for Rust, and the C files include it after
 * Open MPI's own. Open MPI's types stay opaque on the Rust side. The shim takes no decision: it
 * registers, converts and forwards; Rust decides.
 */
#ifndef COLL_RUST_GLUE_H
#define COLL_RUST_GLUE_H

#include <stddef.h>
#include <stdint.h>

struct ompi_communicator_t;
struct ompi_datatype_t;
struct ompi_op_t;
struct ompi_request_t;
struct mca_base_var_enum_t;

/* ---------------------------------------------------------------- tables that Rust owns */

/* What a parameter is registered as: the type of what its storage holds. */
enum cr_param_kind {
    CR_PARAM_TEXT = 0, /* char * */
    CR_PARAM_BOOL,     /* bool */
    CR_PARAM_INT,      /* int */
    CR_PARAM_SIZE      /* size_t */
};

/* A value that has a name. */
struct cr_param_word {
    int number;
    const char *word;
};

/* A parameter: registered with MCA as coll_rust_<name>. */
struct cr_param {
    const char *name;              /* without the prefix coll_rust_ */
    const char *help;              /* one paragraph for ompi_info */
    const char *const *was;        /* earlier names, NULL behind the last one */
    int kind;                      /* enum cr_param_kind */
    int level;                     /* MPI_T verbosity, 1 to 9 as in OPAL_INFO_LVL_n */
    int unset;                     /* as long as it has its default it is shown as unset */
    const char *default_text;      /* never NULL */
    int64_t default_number;        /* of other kinds than CR_PARAM_TEXT */
    const struct cr_param_word *words; /* CR_PARAM_INT: values that have names */
    size_t word_count;
    void *storage;                 /* where MCA keeps the value: from the registration to the component's close */
    int *index;                    /* MCA's number for it, from the registration on */
    struct mca_base_var_enum_t **enumeration; /* of its words, the shim's */
};

/* A counter: registered as the MPI_T performance variable coll_rust_<name> (class counter, read-only,
 * continuous). MPI_T shows what was added since its handle was made. */
struct cr_counter {
    const char *name;
    const char *help;
    uint64_t *value;
};

/* ---------------------------------------------------------------- calls */

/* The operations. Rust has the same list (Kind). */
enum cr_kind {
    CR_ALLGATHER = 0,
    CR_ALLGATHERV,
    CR_ALLREDUCE,
    CR_ALLTOALL,
    CR_ALLTOALLV,
    CR_ALLTOALLW,
    CR_BARRIER,
    CR_BCAST,
    CR_EXSCAN,
    CR_GATHER,
    CR_GATHERV,
    CR_NEIGHBOR_ALLGATHER,
    CR_NEIGHBOR_ALLGATHERV,
    CR_NEIGHBOR_ALLTOALL,
    CR_NEIGHBOR_ALLTOALLV,
    CR_NEIGHBOR_ALLTOALLW,
    CR_REDUCE,
    CR_REDUCE_SCATTER,
    CR_REDUCE_SCATTER_BLOCK,
    CR_SCAN,
    CR_SCATTER,
    CR_SCATTERV,
    CR_KINDS
};

/* Elements of the arrays of the vector forms: ints as a rule. */
typedef int cr_count;
typedef int cr_displ;
typedef size_t cr_big;
typedef ptrdiff_t cr_wide;

/* Which arrays of a side have elements of 64 bits instead; only Open MPI 6 has such ones, of MPI's functions
 * for large counts. */
enum cr_bigs {
    CR_BIG_COUNTS = 1, /* counts is an array of cr_big */
    CR_BIG_DISPLS = 2  /* wide has what displs has else, which is NULL */
};

/* What a call says about the data that a rank sends, or about those that it receives. As the user gave it:
 * what the operation ignores at this rank (MPI says "significant only at root", or the other buffer is
 * MPI_IN_PLACE) may be anything, an invalid datatype too. Fields that the operation does not have are 0. The
 * arrays are the user's and end with the call; they have an element for each rank, or for each neighbour. */
struct cr_side {
    void *buf;                     /* NULL where it was MPI_IN_PLACE */
    int in_place;                  /* it was */
    int big;                       /* of cr_bigs, together; 0: all arrays are of ints. In the vector forms */
    size_t count;                  /* elements; of each block where there is one per rank */
    struct ompi_datatype_t *dtype; /* NULL in Barrier, Alltoallw and Neighbor_alltoallw */
    const cr_count *counts;        /* vector forms: elements of each block */
    const cr_displ *displs;        /* where it begins: in extents of dtype, in bytes for Alltoallw. NULL where the
                                    * blocks follow each other (Reduce_scatter) */
    const cr_wide *wide;           /* Neighbor_alltoallw: where each block begins, in bytes; and with CR_BIG_DISPLS */
    struct ompi_datatype_t *const *dtypes; /* Alltoallw, Neighbor_alltoallw */
};

/* One collective call as the module received it. Reductions have their count and datatype on both sides,
 * Bcast has its buffer in recv. */
struct cr_call {
    int kind; /* enum cr_kind */
    int root; /* rooted operations; else 0 */
    struct cr_side send, recv;
    struct ompi_op_t *op; /* NULL where nothing is reduced */
};

/* Returned by the exports cr_block_* and cr_call_*: hand the call to the component below. No MPI error code
 * has this value. */
#define CR_PASS (-77777)

/* MPI error codes that Rust returns; the shim asserts that they are those of mpi.h. */
enum cr_mpi_error {
    CR_ERR_REQUEST = 7,
    CR_ERR_OP = 10,
    CR_ERR_ARG = 13,
    CR_ERR_TRUNCATE = 15,
    CR_ERR_OTHER = 16,
    CR_ERR_INTERN = 17,
    CR_ERR_NO_MEM = 39
};

/* ---------------------------------------------------------------- exports of Rust, called by the shim */

size_t cr_param_table(const struct cr_param **table);
/* With NULL: the texts of the table are not needed any more. */
size_t cr_counter_table(const struct cr_counter **table);
/* After all parameters have been registered. */
void cr_params_registered(void);
/* Release, build and what it was built for: a text that stays. */
const char *cr_version(void);
/* From the component's open, before anything of Open MPI's is touched that may lie elsewhere than its headers
 * say. 1: go on; 0: decline (and why has been said). */
int cr_component_check(void);
/* From the component's open: parses the parameters, publishes their text. It precedes the exchange of
 * start-up data of MPI_Init (init_query comes too late for that); cr_self and cr_place of the own process
 * work already. MPI error code. */
int cr_component_init(int thread_multiple);
/* From the component's close: prints the report, if asked for. */
void cr_component_close(void);
/* From comm_query. 1: take part with *priority, *state holds the module's Rust half. 0: decline. */
int cr_comm_query(struct ompi_communicator_t *comm, int *priority, void **state);
/* From the module's destructor. state may be NULL. */
void cr_comm_free(void *state);
/* A blocking collective: a door for each operation, so that all that a short call does is one function. */
#define CR_DOORS(DOOR)                                                                                         \
    DOOR(allgather, CR_ALLGATHER)                                                                              \
    DOOR(allgatherv, CR_ALLGATHERV)                                                                            \
    DOOR(allreduce, CR_ALLREDUCE)                                                                              \
    DOOR(alltoall, CR_ALLTOALL)                                                                                \
    DOOR(alltoallv, CR_ALLTOALLV)                                                                              \
    DOOR(alltoallw, CR_ALLTOALLW)                                                                              \
    DOOR(barrier, CR_BARRIER)                                                                                  \
    DOOR(bcast, CR_BCAST)                                                                                      \
    DOOR(exscan, CR_EXSCAN)                                                                                    \
    DOOR(gather, CR_GATHER)                                                                                    \
    DOOR(gatherv, CR_GATHERV)                                                                                  \
    DOOR(neighbor_allgather, CR_NEIGHBOR_ALLGATHER)                                                            \
    DOOR(neighbor_allgatherv, CR_NEIGHBOR_ALLGATHERV)                                                          \
    DOOR(neighbor_alltoall, CR_NEIGHBOR_ALLTOALL)                                                              \
    DOOR(neighbor_alltoallv, CR_NEIGHBOR_ALLTOALLV)                                                            \
    DOOR(neighbor_alltoallw, CR_NEIGHBOR_ALLTOALLW)                                                            \
    DOOR(reduce, CR_REDUCE)                                                                                    \
    DOOR(reduce_scatter, CR_REDUCE_SCATTER)                                                                    \
    DOOR(reduce_scatter_block, CR_REDUCE_SCATTER_BLOCK)                                                        \
    DOOR(scan, CR_SCAN)                                                                                        \
    DOOR(scatter, CR_SCATTER)                                                                                  \
    DOOR(scatterv, CR_SCATTERV)
#define CR_DOOR(name, kind) int cr_block_##name(void *state, const struct cr_call *call);
CR_DOORS(CR_DOOR)
#undef CR_DOOR
int cr_call_nonblocking(void *state, const struct cr_call *call, struct ompi_request_t **request);
int cr_call_persistent(void *state, const struct cr_call *call, struct ompi_request_t **request);
/* The same of calls some of whose buffers lie in a device's memory: the sum of those. A reduction that they
 * pass gets host memory in place of such buffers: components below combine by the CPU. */
enum cr_device { CR_SEND_ON_DEVICE = 1, CR_RECV_ON_DEVICE = 2 };
struct cr_stand_in {
    void *send, *recv; /* in place of the user's buffers; NULL: these themselves */
    void *half;        /* Rust's, to be given to cr_device_passed; NULL: none */
};
int cr_device_blocking(void *state, const struct cr_call *call, int device, struct cr_stand_in *in);
int cr_device_nonblocking(void *state, const struct cr_call *call, int device, struct ompi_request_t **request,
                          struct cr_stand_in *in);
int cr_device_persistent(void *state, const struct cr_call *call, int device, struct ompi_request_t **request,
                         struct cr_stand_in *in);
/* After the component below has answered such a call with code: what to answer the caller with. request: NULL
 * for a blocking call; else where that component has stored its own, in whose place another one may come. */
int cr_device_passed(void *half, int code, struct ompi_request_t **request);
/* MPI_Start of a persistent request whose Rust half is op: cr_request_activate first, then post. MPI error
 * code; with one, the request counts as not started. */
int cr_op_start(void *op);
/* The request goes back to the free list: its Rust half goes. op may be NULL. */
void cr_op_free(void *op);

/* ---------------------------------------------------------------- services of the shim, called by Rust */

/* The Open MPI that the shim was compiled for, and the one that runs (0.0.0 where it does not tell). At any
 * time. */
struct cr_release {
    unsigned major, minor, patch;
};
void cr_releases(struct cr_release *built, struct cr_release *running);

/* What the headers say that the shim was compiled with, and what the running library has. */
struct cr_difference {
    const char *name; /* never freed */
    uint64_t built, found;
};
#define CR_MOST_DIFFERENCES 4
struct cr_differences {
    size_t count; /* which may exceed CR_MOST_DIFFERENCES: then these are the first */
    struct cr_difference rows[CR_MOST_DIFFERENCES];
};
/* Sizes of structs, and fields where known values stand. At any time. */
void cr_differences(struct cr_differences *differences);
/* Fields of MPI_COMM_WORLD, when it looks for its components. */
void cr_world_differences(struct ompi_communicator_t *world, struct cr_differences *differences);

int cr_comm_rank(struct ompi_communicator_t *comm);
int cr_comm_size(struct ompi_communicator_t *comm);
int cr_comm_is_inter(struct ompi_communicator_t *comm);
int cr_comm_is_world(struct ompi_communicator_t *comm);
/* MPI_Finalize is under way, and the user's callbacks in it are done. */
int cr_is_finalizing(void);
const char *cr_comm_name(struct ompi_communicator_t *comm);
/* A number that no other communicator has that a process of it is in: the same at all of them. */
uint64_t cr_comm_key(struct ompi_communicator_t *comm);

/* The process topology of a communicator, as Open MPI keeps it: its arrays live as long as the communicator.
 * It is attached after the module was made, and before the first neighbourhood operation. */
enum cr_topology_kind { CR_NO_TOPOLOGY = 0, CR_CART, CR_GRAPH, CR_DIST_GRAPH };
struct cr_topology {
    int kind; /* enum cr_topology_kind: the fields of the others are 0 */
    /* CR_CART: lengths, and whether they are periodic, of so many dimensions */
    int dimensions;
    const int *dims, *periods;
    /* CR_GRAPH: where the neighbours of each of so many ranks end in edges */
    int nodes;
    const int *index, *edges;
    /* CR_DIST_GRAPH: of the caller */
    int in_degree, out_degree;
    const int *sources, *destinations;
};
void cr_comm_topology(struct ompi_communicator_t *comm, struct cr_topology *topology);

/* The name of a process: job (namespace) and rank in it. */
struct cr_proc {
    uint32_t job;
    uint32_t rank;
};
void cr_self(struct cr_proc *name);
/* 0, or an MPI error code. Does not create Open MPI's proc structure. */
int cr_comm_proc(struct ompi_communicator_t *comm, int rank, struct cr_proc *name);
/* Where a process of the caller's own job sits. host and locality are NUL-terminated, "" where unknown
 * (unbound, or on another node: a locality string is only given for processes on the caller's node).
 * local: 1 if the process is on the caller's node. 0, or an MPI error code: MPI_ERR_ARG for another job,
 * MPI_ERR_TRUNCATE where a text does not fit. */
int cr_place(const struct cr_proc *name, char *host, size_t host_size, char *locality, size_t locality_size,
             int *local);

/* The caller's number among the processes of its job on its node, how many those are, and the lowest one's
 * rank in the job; 0 of 0 where the runtime does not tell. */
void cr_local(uint32_t *number, uint32_t *count, uint32_t *first);

/* Whether Open MPI gives the core away when it has nothing to do (mpi_yield_when_idle, which it also sets by
 * itself where it is told of more processes than cores). */
int cr_yields(void);

/* Point-to-point over the selected PML, in the collective context. dtype NULL: bytes. tag is negative.
 * 0, or an MPI error code. The send's *request is NULL where the send was complete at once. */
int cr_isend(struct ompi_communicator_t *comm, const void *buf, size_t count, struct ompi_datatype_t *dtype,
             int dest, int tag, struct ompi_request_t **request);
int cr_irecv(struct ompi_communicator_t *comm, void *buf, size_t count, struct ompi_datatype_t *dtype,
             int source, int tag, struct ompi_request_t **request);
/* 1 when complete (with acquire ordering). */
int cr_request_done(struct ompi_request_t *request);
/* Of a complete request: its status's error code, and frees it. *bytes: received bytes; says nothing for a
 * send, whose status Open MPI leaves to the PML. bytes may be NULL. */
int cr_request_finish(struct ompi_request_t *request, size_t *bytes);
/* Cancels a receive; harmless if it is matched already. */
void cr_request_cancel(struct ompi_request_t *request);
/* Starts a persistent request of another component's. 0, or an MPI error code. */
int cr_request_start(struct ompi_request_t *request);
/* Of such a one that is complete: its status's error code. It is inactive then. */
int cr_request_rest(struct ompi_request_t *request);
/* The largest tag of the PML. */
int cr_max_tag(void);

void cr_progress(void); /* opal_progress */
/* The same, but if cr_hushes, it does not give the core away, whatever mpi_yield_when_idle says. */
void cr_progress_hushed(void);
int cr_hushes(void);
/* What that needs while the component is open. */
int cr_hush_open(void);
void cr_hush_close(void);
int cr_progress_register(int (*function)(void));
void cr_progress_unregister(int (*function)(void));

struct cr_dtype_info {
    size_t size;            /* bytes of data in one element */
    ptrdiff_t lb, extent;
    ptrdiff_t true_lb, true_extent;
    int gapless;            /* an element is one run of bytes that starts at true_lb */
    int tiles;              /* any number of elements is */
    int predefined;
};
void cr_dtype_info(struct ompi_datatype_t *dtype, struct cr_dtype_info *info);
/* Bytes of an element, if elements are runs of so many without any gap, at their origin and one after the
 * other; else 0. Quick. */
size_t cr_dtype_plain(struct ompi_datatype_t *dtype);
/* It is no derived one. Quick. */
int cr_dtype_is_predefined(struct ompi_datatype_t *dtype);
/* Packs, or unpacks, bytes [offset, offset + bytes) of the packed stream of count elements at buf, cut
 * anywhere. Unpacking part of a predefined element writes all of it: two threads must not do that to one
 * element at a time. 0 or MPI error. */
int cr_pack(struct ompi_datatype_t *dtype, size_t count, const void *buf, size_t offset, void *out, size_t bytes);
int cr_unpack(struct ompi_datatype_t *dtype, size_t count, void *buf, size_t offset, const void *in, size_t bytes);
int cr_copy(struct ompi_datatype_t *dtype, size_t count, void *to, const void *from);

/* Keep what the user may free while a request needs it. Open MPI's own objects need no keeping: the answer is
 * 0, and there is nothing to release. */
int cr_dtype_retain(struct ompi_datatype_t *dtype);
void cr_dtype_release(struct ompi_datatype_t *dtype);
int cr_op_retain(struct ompi_op_t *op);
void cr_op_release(struct ompi_op_t *op);

struct cr_op_info {
    int commutative;
    int intrinsic;
    int extremum; /* MPI_MAX or MPI_MIN */
    int defined;  /* it can be applied to elements of the datatype */
};
void cr_op_info(struct ompi_op_t *op, struct ompi_datatype_t *dtype, struct cr_op_info *info);
/* It is a predefined one that can be applied to elements of the datatype. */
int cr_op_is_plain(struct ompi_op_t *op, struct ompi_datatype_t *dtype);
/* out = left (op) right, count elements, which may exceed INT_MAX; op is intrinsic. */
void cr_op_reduce_into(struct ompi_op_t *op, const void *left, const void *right, void *out, size_t count,
                       struct ompi_datatype_t *dtype);
/* inout = in (op) inout, count elements; count may exceed INT_MAX. */
void cr_op_reduce(struct ompi_op_t *op, const void *in, void *inout, size_t count, struct ompi_datatype_t *dtype);

/* The request of a nonblocking (persistent = 0) or persistent collective. Retains comm. op_half is handed to
 * cr_op_start and cr_op_free. NULL when memory is out. A nonblocking request is born active, a persistent one
 * inactive. */
struct ompi_request_t *cr_request_new(struct ompi_communicator_t *comm, int persistent, void *op_half);
void cr_request_activate(struct ompi_request_t *request); /* a persistent one, at its start */
/* Last access of Rust to the request: from here the user's thread may free it. */
void cr_request_complete(struct ompi_request_t *request, int error);
/* Frees one that was never handed to the user, without cr_op_free: the Rust half stays with the caller. */
void cr_request_discard(struct ompi_request_t *request);

/* Copies between host memory and a device's that go on beside the caller, in the order of a stream. */
int cr_device(const void *at); /* the number of the device that an address lies in, maybe -1 */
/* A new stream, which stays; NULL where the accelerator has none: then cr_copy copies. */
void *cr_stream(int device);
/* Puts a copy into it; what cr_stream_done is asked about, or NULL on an error. */
void *cr_stream_copy(void *stream, int device, void *to, const void *from, size_t bytes, int to_device);
/* 1: that copy is over, and it is not to be asked about any more; 0: it is not; -1: it has failed. */
int cr_stream_done(int device, void *copy);
/* Page-locks memory for such copies, if it can be. */
int cr_host_lock(void *at, size_t bytes);
void cr_host_unlock(void *at);

/* Reading other processes' memory by the component that Open MPI's framework smsc has selected. Without one,
 * only cr_smsc_find may be called. */
struct cr_smsc {
    int maps;      /* it maps memory: cr_smsc_map */
    int registers; /* it reads only what its owner has registered before */
};
/* 1: there is a component; 0: there is none; -1: this version of Open MPI has no such framework. */
int cr_smsc_find(struct cr_smsc *info);
/* The component's endpoint for a process of the node, to be given back by cr_smsc_release; NULL where it
 * cannot reach it. */
void *cr_smsc_endpoint(struct ompi_communicator_t *comm, int rank);
void cr_smsc_release(void *endpoint);
/* Copies bytes at address from of the endpoint's process. 0, or an error. */
int cr_smsc_copy(void *endpoint, void *to, uint64_t from, size_t bytes);
/* Where bytes at address from of the endpoint's process are to be found here, until cr_smsc_unmap; NULL on an
 * error. */
const void *cr_smsc_map(void *endpoint, uint64_t from, size_t bytes, void **context);
void cr_smsc_unmap(void *context);

/* Registers a parameter. 0, or an error of MCA's. */
int cr_param_register(const struct cr_param *param);
/* The text that a user gave a parameter; NULL where it has its default. In a file: which one, and its line;
 * else NULL, 0. Borrowed from MCA. */
struct cr_given {
    const char *text;
    const char *file;
    int line;
};
void cr_param_given(const struct cr_param *param, struct cr_given *given);
/* Calls each for every setting in the parameter files of this process, known or not. */
typedef void (*cr_setting_fn)(void *to, const char *name, const char *file, int line);
void cr_settings_in_files(cr_setting_fn each, void *to);

/* The job's exchange of start-up data. Put: before the fence of MPI_Init. Get: of a process of the same job;
 * the string is malloc'd, NULL and an MPI error code where there is none. */
int cr_modex_put(const char *text);
/* Has the runtime remove a file when the process ends, where it can. */
void cr_remove_at_end(const char *path);
int cr_modex_get(const struct cr_proc *name, char **text);

void cr_print(const char *text);                           /* to standard error as it is, newline included */
/* Through Open MPI's help system, under a topic of help-coll-rust.txt whose %s is the text. 0: it cannot be
 * relied on, or its file is not there. */
int cr_show_help(const char *topic, const char *text);
/* From the component's open: says where that file is. */
void cr_help_open(void);
/* The verbosity of the framework (coll_base_verbose), and a line for it at verbosity CR_VERBOSE. */
#define CR_VERBOSE 10
int cr_verbosity(void);
void cr_output(const char *text);
void cr_abort(struct ompi_communicator_t *comm, int code); /* does not return */

#endif
