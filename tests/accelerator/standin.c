/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for an accelerator: a component of Open MPI 5.0's framework `accelerator` whose "device memory"
 * is memory that the CPU may not access where programs have it (PROT_NONE: a plain load or store is a
 * SIGSEGV, and no other process reads it), and that the component reaches by a second mapping. So any copy
 * that does not go by the accelerator is seen at once.
 *
 * Copies in a stream are late: until somebody has asked for their event some times, the target has other
 * bytes. What goes to the device are the bytes that the source had when the copy was begun. So who does not
 * wait for an operand, or lets a result go too early, or gives memory back too early, computes something
 * wrong.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "opal_config.h"

#include "opal/constants.h"
#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/base/base.h"
#include "opal/mca/mca.h"

#include "standin.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What standin6.c has besides. */
#ifndef MORE_OF_CREATE_EVENT
#define MORE_OF_CREATE_EVENT
#define MORE_FUNCTIONS
#endif

static _Atomic size_t taken; /* from the end, by mem_alloc */

static int on_device(const void *at)
{
    return (uintptr_t) at - STANDIN_DEVICE < STANDIN_BYTES;
}

/* Where the CPU finds it. */
static void *reachable(const void *at)
{
    return on_device(at) ? (char *) at + (STANDIN_HOST - STANDIN_DEVICE) : (void *) at;
}

static int check_addr(const void *addr, int *dev_id, uint64_t *flags)
{
    *flags = 0;
    if (!on_device(addr)) {
        return 0;
    }
    *dev_id = 0;
    return 1;
}

static int mem_copy(int to_device, int from_device, void *to, const void *from, size_t size,
                    opal_accelerator_transfer_type_t type)
{
    (void) to_device, (void) from_device, (void) type;
    ++STANDIN->at_once;
    memcpy(reachable(to), reachable(from), size);
    return OPAL_SUCCESS;
}

static int mem_move(int to_device, int from_device, void *to, const void *from, size_t size,
                    opal_accelerator_transfer_type_t type)
{
    (void) to_device, (void) from_device, (void) type;
    memmove(reachable(to), reachable(from), size);
    return OPAL_SUCCESS;
}

/* ---------------------------------------------------------------- streams */

/* Questions that a copy takes. */
enum { QUESTIONS = 5, OTHER_BYTES = 0xa5 };

struct copy {
    struct copy *next;
    unsigned long number; /* in its stream, from 1 */
    void *to;
    char *from; /* a copy of the bytes, or where they are in the device's memory */
    size_t size;
    int out;
};

typedef struct {
    opal_accelerator_stream_t super;
    struct copy *first, *last;
    unsigned long begun;
} stream_t;

typedef struct {
    opal_accelerator_event_t super;
    stream_t *stream;
    unsigned long number; /* the last copy before it */
    int questions;
} event_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void finish_until(stream_t *stream, unsigned long number)
{
    while (NULL != stream->first && stream->first->number <= number) {
        struct copy *copy = stream->first;
        memcpy(reachable(copy->to), reachable(copy->from), copy->size);
        stream->first = copy->next;
        if (copy->out) {
            free(copy->from);
        }
        free(copy);
        --STANDIN->under_way;
    }
    if (NULL == stream->first) {
        stream->last = NULL;
    }
}

static void stream_construct(stream_t *stream)
{
    stream->first = stream->last = NULL;
    stream->begun = 0;
}

static void stream_destruct(stream_t *stream)
{
    pthread_mutex_lock(&lock);
    finish_until(stream, stream->begun);
    pthread_mutex_unlock(&lock);
}

static void event_construct(event_t *event)
{
    event->stream = NULL;
    event->questions = 0;
}

static OBJ_CLASS_INSTANCE(stream_t, opal_accelerator_stream_t, stream_construct, stream_destruct);
static OBJ_CLASS_INSTANCE(event_t, opal_accelerator_event_t, event_construct, NULL);

static int mem_copy_async(int to_device, int from_device, void *to, const void *from, size_t size,
                          opal_accelerator_stream_t *base, opal_accelerator_transfer_type_t type)
{
    (void) to_device, (void) from_device, (void) type;
    stream_t *const stream = (stream_t *) base;
    struct copy *const copy = calloc(1, sizeof(*copy));
    const int out = !on_device(from);
    char *const kept = out ? malloc(size) : (char *) from;
    if (NULL == copy || NULL == kept) {
        abort();
    }
    if (out) {
        memcpy(kept, from, size);
    }
    memset(reachable(to), OTHER_BYTES, size);
    pthread_mutex_lock(&lock);
    *copy = (struct copy){.number = ++stream->begun, .to = to, .from = kept, .size = size, .out = out};
    *(NULL == stream->last ? &stream->first : &stream->last->next) = copy;
    stream->last = copy;
    ++STANDIN->under_way;
    const unsigned long number = 1 + STANDIN->into + STANDIN->out;
    if (out) {
        STANDIN->first_out = 0 == STANDIN->out++ ? number : STANDIN->first_out;
        STANDIN->bytes_out += size;
    } else {
        ++STANDIN->into;
        STANDIN->last_into = number;
        STANDIN->bytes_into += size;
    }
    pthread_mutex_unlock(&lock);
    return OPAL_SUCCESS;
}

static int create_stream(int device, opal_accelerator_stream_t **stream)
{
    (void) device;
    *stream = (opal_accelerator_stream_t *) OBJ_NEW(stream_t);
    return NULL == *stream ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

static int create_event(int device, opal_accelerator_event_t **event MORE_OF_CREATE_EVENT)
{
    (void) device;
    *event = (opal_accelerator_event_t *) OBJ_NEW(event_t);
    return NULL == *event ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

static int record_event(int device, opal_accelerator_event_t *base, opal_accelerator_stream_t *stream)
{
    (void) device;
    event_t *const event = (event_t *) base;
    pthread_mutex_lock(&lock);
    event->stream = (stream_t *) stream;
    event->number = event->stream->begun;
    event->questions = 0;
    pthread_mutex_unlock(&lock);
    return OPAL_SUCCESS;
}

static int query_event(int device, opal_accelerator_event_t *base)
{
    (void) device;
    event_t *const event = (event_t *) base;
    if (NULL == event->stream) {
        return OPAL_SUCCESS; /* never recorded */
    }
    pthread_mutex_lock(&lock);
    const int over = ++event->questions > QUESTIONS;
    if (over) {
        finish_until(event->stream, event->number);
    }
    pthread_mutex_unlock(&lock);
    return over ? OPAL_SUCCESS : OPAL_ERR_RESOURCE_BUSY;
}

/* ---------------------------------------------------------------- memory */

static int mem_alloc(int device, void **at, size_t size)
{
    (void) device;
    const size_t end = atomic_fetch_add(&taken, (size + 4095) / 4096 * 4096) + (size + 4095) / 4096 * 4096;
    if (end > STANDIN_BYTES / 2) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *at = (void *) (STANDIN_DEVICE + STANDIN_BYTES - end);
    return OPAL_SUCCESS;
}

static int mem_release(int device, void *at)
{
    (void) device, (void) at;
    return OPAL_SUCCESS;
}

static int get_address_range(int device, const void *at, void **base, size_t *size)
{
    (void) device, (void) at;
    *base = (void *) STANDIN_DEVICE;
    *size = STANDIN_BYTES;
    return OPAL_SUCCESS;
}

static int host_register(int device, void *at, size_t size)
{
    (void) device, (void) at, (void) size;
    ++STANDIN->locked;
    return OPAL_SUCCESS;
}

static int host_unregister(int device, void *at)
{
    (void) device, (void) at;
    --STANDIN->locked;
    return OPAL_SUCCESS;
}

static int get_device(int *device)
{
    *device = 0;
    return OPAL_SUCCESS;
}

static int get_device_pci_attr(int device, opal_accelerator_pci_attr_t *attributes)
{
    (void) device, (void) attributes;
    return OPAL_ERR_NOT_SUPPORTED;
}

static int device_can_access_peer(int *access, int one, int other)
{
    *access = one == other;
    return OPAL_SUCCESS;
}

static int get_buffer_id(int device, const void *at, opal_accelerator_buffer_id_t *id)
{
    (void) device, (void) at;
    *id = 0;
    return OPAL_SUCCESS;
}

static opal_accelerator_base_module_t module = {
    .check_addr = check_addr,
    .create_stream = create_stream,
    .create_event = create_event,
    .record_event = record_event,
    .query_event = query_event,
    .mem_copy_async = mem_copy_async,
    .mem_copy = mem_copy,
    .mem_move = mem_move,
    .mem_alloc = mem_alloc,
    .mem_release = mem_release,
    .get_address_range = get_address_range,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .get_device = get_device,
    .get_device_pci_attr = get_device_pci_attr,
    .device_can_access_peer = device_can_access_peer,
    .get_buffer_id = get_buffer_id,
    MORE_FUNCTIONS
};

static opal_accelerator_base_module_t *init(void)
{
    const int file = memfd_create("standin", MFD_CLOEXEC);
    if (file < 0 || 0 != ftruncate(file, STANDIN_BYTES)) {
        return NULL;
    }
    void *const device = mmap((void *) STANDIN_DEVICE, STANDIN_BYTES, PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
    void *const host =
        mmap((void *) STANDIN_HOST, STANDIN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
    close(file);
    void *const counts = mmap((void *) STANDIN_COUNTS, sizeof(struct standin_counts), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    const int mapped = (void *) STANDIN_DEVICE == device && (void *) STANDIN_HOST == host && (void *) STANDIN_COUNTS == counts;
    return mapped ? &module : NULL;
}

static void finalize(opal_accelerator_base_module_t *unused)
{
    (void) unused;
}

__attribute__((visibility("default"))) opal_accelerator_base_component_t mca_accelerator_standin_component = {
    .base_version =
        {
            OPAL_ACCELERATOR_BASE_VERSION_1_0_0,
            .mca_component_name = "standin",
            MCA_BASE_MAKE_VERSION(component, OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION, OPAL_RELEASE_VERSION),
        },
    .base_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .accelerator_init = init,
    .accelerator_finalize = finalize,
};
