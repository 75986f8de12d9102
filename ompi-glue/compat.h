/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that differs between Open MPI 4.1, 5.0 and 6 (main). The other files of the shim know no
 * version: a test sees that no #if stands in them.
 *
 * It also includes every Open MPI header that the shim needs, in the order they need, and declares what the
 * files of the shim share among themselves.
 */
#ifndef COLL_RUST_COMPAT_H
#define COLL_RUST_COMPAT_H

#include "ompi_config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/errhandler/errcode-internal.h"
#include "ompi/group/group.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/topo/topo.h"
#include "ompi/op/op.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/class/opal_free_list.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/mca/base/mca_base_vari.h"
#include "opal/mca/hwloc/base/base.h"
#include "opal/mca/installdirs/installdirs.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/show_help.h"

#if 4 == OMPI_MAJOR_VERSION && 1 == OMPI_MINOR_VERSION
#include "opal/mca/pmix/pmix.h"
#if OPAL_CUDA_SUPPORT
#include "opal/datatype/opal_datatype_cuda.h"
#include "opal/runtime/opal_params.h"
#endif
#elif 5 == OMPI_MAJOR_VERSION || 6 == OMPI_MAJOR_VERSION
#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/accelerator/base/base.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/smsc/smsc.h"
#else
#error "coll/rust supports Open MPI 4.1, 5.0 and 6"
#endif

#include "glue.h"

_Static_assert(CR_ERR_REQUEST == MPI_ERR_REQUEST && CR_ERR_OP == MPI_ERR_OP && CR_ERR_ARG == MPI_ERR_ARG
                   && CR_ERR_TRUNCATE == MPI_ERR_TRUNCATE && CR_ERR_OTHER == MPI_ERR_OTHER && CR_ERR_INTERN == MPI_ERR_INTERN
                   && CR_ERR_NO_MEM == MPI_ERR_NO_MEM,
               "glue.h has the error codes of mpi.h");

/* ---------------------------------------------------------------- shared by the files of the shim */

__attribute__((visibility("default"))) extern const mca_coll_base_component_t mca_coll_rust_component;

/* What short calls run stands side by side, with Rust's part of it (src/ffi/entry/exports.rs). */
#define CR_HOT __attribute__((section(".text.hot.coll_rust")))

/* module.c: a new module whose Rust half is state, or NULL when memory is out. */
mca_coll_base_module_t *cr_module_new(void *state);

/* request.c: the free list of requests lives from the component's open to its close. */
int cr_requests_open(void);
void cr_requests_close(void);

/* accelerator.c: of the component's open, whether an accelerator is active; the same again; and whether an
 * address is one of a device's memory. */
int cr_accelerator_open(void);
int cr_accelerates(void);
int cr_is_on_device(const void *at);

/* Memory that is never a device's: the program's data, and from where on the first thread's stack lies. */
struct cr_host_memory {
    uintptr_t data, data_end;
    intptr_t stack;
};
__attribute__((visibility("hidden"))) extern struct cr_host_memory cr_host_memory;

/* Whether an address lies among the program's data. The compiler is not to know the address from this: it
 * would make copies of what follows, and of its arguments, which take a short call longer than the
 * comparison. */
static inline __attribute__((always_inline)) int is_data(const void *buffer)
{
#if defined __x86_64__
    __asm__ goto("cmp %1, %0\n\tjb %l3\n\tcmp %2, %0\n\tjae %l3"
                 :
                 : "r"(buffer), "m"(cr_host_memory.data), "m"(cr_host_memory.data_end)
                 : "cc"
                 : no);
    return 1;
no:
    return 0;
#else
    return (uintptr_t) buffer >= cr_host_memory.data && (uintptr_t) buffer < cr_host_memory.data_end;
#endif
}

/* Open MPI's return codes are negative, or MPI's own: the MPI error code of either. */
static inline int cr_mpi_code(int code)
{
    return OMPI_SUCCESS == code ? MPI_SUCCESS : ompi_errcode_get_mpi_code(code);
}

/* ---------------------------------------------------------------- differences */

#if 4 == OMPI_MAJOR_VERSION

#define CR_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0

/* mpirun of 4.1 frees messages of the help system while it reads them, Open MPI's own as well: about every
 * second one is lost, with "Data unpack would read past end of buffer". */
#define CR_HELP_IS_RELIABLE 0

#define CR_KEY_HOSTNAME OPAL_PMIX_HOSTNAME
#define CR_KEY_LOCAL_PEERS OPAL_PMIX_LOCAL_PEERS
#define CR_KEY_LOCALITY OPAL_PMIX_LOCALITY_STRING
#define CR_PMIX_STRING OPAL_STRING
#define CR_PMIX_GLOBAL OPAL_PMIX_GLOBAL

static inline uint64_t cr_compat_comm_key(struct ompi_communicator_t *comm)
{
    return comm->c_contextid;
}

static inline const char *cr_compat_comm_name(struct ompi_communicator_t *comm)
{
    return comm->c_name;
}

/* The host name in a proc structure, NULL where unknown. */
static inline const char *cr_compat_proc_host(const opal_proc_t *proc)
{
    return proc->proc_hostname;
}

/* Whether an accelerator is active, and whether an address is one of its memory. */
#if OPAL_CUDA_SUPPORT
static inline int cr_compat_accelerates(void)
{
    return opal_cuda_support ? 1 : 0;
}

static inline int cr_compat_is_on_device(const void *at)
{
    return opal_cuda_check_bufs((char *) at, (char *) at) ? 1 : 0;
}
#else
static inline int cr_compat_accelerates(void)
{
    return 0;
}

static inline int cr_compat_is_on_device(const void *at)
{
    (void) at;
    return 0;
}
#endif

/* 4.1 has no copies that go on beside the caller: this stands for a framework without streams. */
typedef struct {
    opal_object_t super;
} cr_no_stream_t, cr_no_event_t;
typedef cr_no_stream_t opal_accelerator_stream_t;
typedef cr_no_event_t opal_accelerator_event_t;

static inline int cr_compat_device(const void *at)
{
    (void) at;
    return -1;
}

static inline opal_accelerator_stream_t *cr_compat_stream(int device)
{
    (void) device;
    return NULL;
}

static inline opal_accelerator_event_t *cr_compat_copy(opal_accelerator_stream_t *stream, int device, void *to, const void *from,
                                                       size_t bytes, int to_device)
{
    (void) stream, (void) device, (void) to, (void) from, (void) bytes, (void) to_device;
    return NULL;
}

static inline int cr_compat_query(int device, opal_accelerator_event_t *event)
{
    (void) device, (void) event;
    return OPAL_ERROR;
}

static inline int cr_compat_lock(void *at, size_t bytes)
{
    (void) at, (void) bytes;
    return OPAL_ERR_NOT_SUPPORTED;
}

static inline int cr_compat_unlock(void *at)
{
    (void) at;
    return OPAL_SUCCESS;
}

static inline void cr_compat_remove_at_end(const char *path)
{
    if (NULL != opal_pmix.register_cleanup) {
        opal_pmix.register_cleanup((char *) path, false, false, false);
    }
}

/* Whether opal_progress gives the core away where its callbacks say that they have found nothing. Later, that
 * depends on its threads, and is not ours to do. */
#define CR_HUSHES 1

/* There is no framework smsc: this stands for a component that is not selected, so nothing here is called. */
typedef struct {
    void *(*get_endpoint)(opal_proc_t *proc);
    void (*return_endpoint)(void *endpoint);
    int (*copy_from)(void *endpoint, void *to, void *from, size_t bytes, void *key);
    void *(*map_peer_region)(void *endpoint, uint64_t flags, void *from, size_t bytes, void **mapping);
    void (*unmap_peer_region)(void *context);
} cr_no_smsc_t;
static const cr_no_smsc_t *const mca_smsc = NULL;
#define MCA_SMSC_CALL(function, ...) mca_smsc->function(__VA_ARGS__)
#define mca_smsc_base_has_feature(feature) 0
#define CR_NO_SMSC (-1)

#else

#define CR_HELP_IS_RELIABLE 1

static inline void cr_compat_remove_at_end(const char *path)
{
    opal_pmix_register_cleanup((char *) path, false, false, false);
}

#define CR_KEY_HOSTNAME PMIX_HOSTNAME
#define CR_KEY_LOCAL_PEERS PMIX_LOCAL_PEERS
#define CR_KEY_LOCALITY PMIX_LOCALITY_STRING
#define CR_PMIX_STRING PMIX_STRING
#define CR_PMIX_GLOBAL PMIX_GLOBAL

/* Unlike c_index, which each process chooses. Bases are few, and what is below one has its high bytes set. */
static inline uint64_t cr_compat_comm_key(struct ompi_communicator_t *comm)
{
    return comm->c_contextid.cid_base * UINT64_C(0x9e3779b97f4a7c15) + comm->c_contextid.cid_sub.u64;
}

static inline const char *cr_compat_comm_name(struct ompi_communicator_t *comm)
{
    return NULL == comm->c_name ? "" : comm->c_name;
}

static inline const char *cr_compat_proc_host(const opal_proc_t *proc)
{
    return opal_get_proc_hostname(proc);
}

/* The component "null" stands for no accelerator. */
static inline int cr_compat_accelerates(void)
{
    const char *const name = opal_accelerator_base_selected_component.base_version.mca_component_name;
    return NULL != opal_accelerator.check_addr && '\0' != name[0] && 0 != strcmp(name, "null");
}

/* An error of the framework counts as no, as in Open MPI itself. */
static inline int cr_compat_is_on_device(const void *at)
{
    int device = MCA_ACCELERATOR_NO_DEVICE_ID;
    uint64_t flags = 0;
    return opal_accelerator.check_addr(at, &device, &flags) > 0;
}

#if 5 == OMPI_MAJOR_VERSION
#define CR_NEW_EVENT(device, event) opal_accelerator.create_event(device, event)
#else
#define CR_NEW_EVENT(device, event) opal_accelerator.create_event(device, event, false)
#endif

/* The device that an address lies in, MCA_ACCELERATOR_NO_DEVICE_ID where it is not told. */
static inline int cr_compat_device(const void *at)
{
    int device = MCA_ACCELERATOR_NO_DEVICE_ID;
    uint64_t flags = 0;
    (void) opal_accelerator.check_addr(at, &device, &flags);
    return device;
}

/* A stream of a device; NULL where the component has none. */
static inline opal_accelerator_stream_t *cr_compat_stream(int device)
{
    opal_accelerator_stream_t *stream = NULL;
    const int complete = NULL != opal_accelerator.create_stream && NULL != opal_accelerator.create_event
                         && NULL != opal_accelerator.record_event && NULL != opal_accelerator.query_event
                         && NULL != opal_accelerator.mem_copy_async;
    return complete && OPAL_SUCCESS == opal_accelerator.create_stream(device, &stream) ? stream : NULL;
}

/* The event after a copy that is put into a stream; NULL on an error. */
static inline opal_accelerator_event_t *cr_compat_copy(opal_accelerator_stream_t *stream, int device, void *to, const void *from,
                                                       size_t bytes, int to_device)
{
    opal_accelerator_event_t *event = NULL;
    const int to_id = to_device ? device : MCA_ACCELERATOR_NO_DEVICE_ID;
    const int from_id = to_device ? MCA_ACCELERATOR_NO_DEVICE_ID : device;
    const opal_accelerator_transfer_type_t type = to_device ? MCA_ACCELERATOR_TRANSFER_HTOD : MCA_ACCELERATOR_TRANSFER_DTOH;
    if (OPAL_SUCCESS != CR_NEW_EVENT(device, &event)) {
        return NULL;
    }
    if (OPAL_SUCCESS != opal_accelerator.mem_copy_async(to_id, from_id, to, from, bytes, stream, type)
        || OPAL_SUCCESS != opal_accelerator.record_event(device, event, stream)) {
        OBJ_RELEASE(event);
        return NULL;
    }
    return event;
}

static inline int cr_compat_query(int device, opal_accelerator_event_t *event)
{
    return opal_accelerator.query_event(device, event);
}

/* Page-locks memory, which makes copies faster, and lets them go on beside the caller. */
static inline int cr_compat_lock(void *at, size_t bytes)
{
    return NULL == opal_accelerator.host_register ? OPAL_ERR_NOT_SUPPORTED
                                                  : opal_accelerator.host_register(MCA_ACCELERATOR_NO_DEVICE_ID, at, bytes);
}

static inline int cr_compat_unlock(void *at)
{
    return NULL == opal_accelerator.host_unregister ? OPAL_ERR_NOT_SUPPORTED
                                                    : opal_accelerator.host_unregister(MCA_ACCELERATOR_NO_DEVICE_ID, at);
}

#define CR_HUSHES 0

/* What cr_smsc_find says where no component is selected. */
#define CR_NO_SMSC 0

#endif

#if 6 > OMPI_MAJOR_VERSION

#if 5 == OMPI_MAJOR_VERSION
#define CR_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#endif

/* Counts and arrays among the arguments of the module's functions, and the fields of a cr_side that they fill
 * in. */
typedef int cr_len;
typedef const cr_count *cr_counts;
typedef const cr_displ *cr_displs;
typedef const cr_wide *cr_wides;
#define CR_COUNTS(array) .counts = (array)
#define CR_ARRAYS(array, where) .counts = (array), .displs = (where)
#define CR_WIDE_ARRAYS(array, where) .counts = (array), .wide = (where)

/* Open MPI itself puts an enabled module's functions into the communicator, and takes them out. */
#define CR_INSTALL(comm, module, slot)
#define CR_RESTORE(comm, module, slot, function, below)

#else

#define CR_COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0

/* An array argument says by itself whether its elements are ints, or of 64 bits. */
typedef size_t cr_len;
typedef ompi_count_array_t cr_counts;
typedef ompi_disp_array_t cr_displs;
typedef ompi_disp_array_t cr_wides;
_Static_assert(sizeof(MPI_Count) == sizeof(cr_big) && sizeof(MPI_Aint) == sizeof(cr_wide), "arrays of 64 bits are as in glue.h");
#define CR_COUNTS(array)                                                                                       \
    .big = ompi_count_array_is_64bit(array) ? CR_BIG_COUNTS : 0, .counts = ompi_count_array_ptr(array)
#define CR_ARRAYS(array, where)                                                                                \
    .big = (ompi_count_array_is_64bit(array) ? CR_BIG_COUNTS : 0)                                              \
           | (ompi_disp_array_is_64bit(where) ? CR_BIG_DISPLS : 0),                                            \
    .counts = ompi_count_array_ptr(array),                                                                     \
    .displs = ompi_disp_array_is_64bit(where) ? NULL : ompi_disp_array_ptr(where),                             \
    .wide = ompi_disp_array_is_64bit(where) ? ompi_disp_array_ptr(where) : NULL
#define CR_WIDE_ARRAYS(array, where) CR_ARRAYS(array, where)

/* A module puts its functions into the communicator itself, and puts back what was there, unless somebody
 * above has not done so. */
#define CR_INSTALL(comm, module, slot) MCA_COLL_INSTALL_API(comm, slot, (module)->coll_##slot, module, "rust")
#define CR_RESTORE(comm, module, slot, function, below)                                                        \
    if ((module) == (comm)->c_coll->coll_##slot##_module) {                                                    \
        MCA_COLL_INSTALL_API(comm, slot, function, below, "rust");                                             \
    }

#endif

/* The job's string under key for a process (or, with the wildcard rank, for the node), from what the process
 * already holds: asks nobody. malloc'd; NULL where there is none. */
static inline char *cr_compat_job_string(const char *key, const opal_process_name_t *name)
{
    int rc;
    char *text = NULL;
    opal_process_name_t proc = *name;
    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, key, &proc, &text, CR_PMIX_STRING);
    return 0 == rc ? text : NULL;
}

/* 0 on success. 4.1 and 5.0 return codes of different families: only 0 means the same. */
static inline int cr_compat_modex_put(const void *data, size_t size)
{
    int rc;
    OPAL_MODEX_SEND(rc, CR_PMIX_GLOBAL, &mca_coll_rust_component.collm_version, (void *) data, size);
    return rc;
}

#if 4 == OMPI_MAJOR_VERSION

static inline int cr_compat_modex_get(const opal_process_name_t *name, void **data, size_t *size)
{
    int rc;
    opal_process_name_t proc = *name;
    uint8_t *bytes = NULL;
    *size = 0;
    OPAL_MODEX_RECV(rc, &mca_coll_rust_component.collm_version, &proc, &bytes, size);
    *data = bytes;
    return rc;
}

#else

/* Seconds that a process may take to put what is asked for. After an exchange that has collected all, it is
 * there or will never be. */
#define CR_MODEX_PATIENCE (opal_pmix_base_async_modex || !opal_pmix_collect_all_data ? 120 : 8)

/* PMIx of 5.0 asks the node of a process that has not put the key, and would wait for ever: it might still
 * come. */
static inline int cr_compat_modex_get(const opal_process_name_t *name, void **data, size_t *size)
{
    int rc, patience = CR_MODEX_PATIENCE;
    pmix_proc_t proc;
    pmix_info_t limit;
    pmix_value_t *value = NULL;
    char *key = mca_base_component_to_string(&mca_coll_rust_component.collm_version);
    *data = NULL;
    *size = 0;
    if (NULL == key) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    OPAL_PMIX_CONVERT_NAME(&proc, name);
    PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &patience, PMIX_INT);
    rc = PMIx_Get(&proc, key, &limit, 1, &value);
    PMIX_INFO_DESTRUCT(&limit);
    free(key);
    if (NULL == value) {
        return PMIX_SUCCESS == rc ? PMIX_ERR_NOT_FOUND : rc;
    }
    if (PMIX_SUCCESS == rc) {
        *data = value->data.bo.bytes;
        *size = value->data.bo.size;
        value->data.bo.bytes = NULL; /* ours now */
        value->data.bo.size = 0;
    }
    PMIX_VALUE_RELEASE(value);
    return rc;
}

#endif

/* hwloc before 1.11 */
#if HWLOC_API_VERSION < 0x00010b00
#define HWLOC_OBJ_PACKAGE HWLOC_OBJ_SOCKET
#define HWLOC_OBJ_NUMANODE HWLOC_OBJ_NODE
#endif

#endif
