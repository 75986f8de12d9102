/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The least that a component can be: flags in shared memory, and copies. For measuring, by
 * bench/compare-least.sh, what is left to gain in short calls below MPI's own binding; not for programs. It
 * takes for granted what a component has to look at: that up to 8 processes of one node take part, that all
 * blocks lie in one run of memory and have up to 16 KiB, that nobody passes MPI_IN_PLACE, calls from several
 * threads, waits for messages meanwhile, or dies. All but Barrier, Gather, Scatter, Alltoall, and the vector
 * forms of these comes from components below.
 */
#include "../../ompi-glue/compat.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ompi/mca/coll/base/coll_tags.h"

enum {
    MOST = 8,          /* processes */
    SLOTS = 4,         /* operations of a kind that may be about at a time: with one of exchanges, nobody is further ahead */
    LINE = 56,         /* bytes of the contents of a line */
    SMALL = 512,       /* bytes of a small room for one other process */
    ROOM = 16384 + 64, /* of a long one; processes' rooms do not lie alike in their pages */
    LONGEST = 16384,
    LOOKS = 2,         /* before the core is given away for the first time */
    PROGRESS = 1024,   /* looks from one progress of Open MPI's to the next */
};

/* Contents, published by the number of the operation. Only its owner writes it. */
struct line {
    _Atomic uint64_t number;
    char contents[LINE];
};

/* What a process has in shared memory: a page of lines, and rooms for what is longer. */
struct part {
    struct line exchanged[SLOTS], rooted[SLOTS];
    _Atomic uint64_t done; /* the last rooted operation in which it has read all that it reads */
    char rest[4096 - 2 * SLOTS * sizeof(struct line) - sizeof(uint64_t)];
    char rooms[2][SLOTS][MOST * ROOM]; /* of exchanges, and of rooted operations */
};

struct least {
    mca_coll_base_module_t super;
    struct part *parts;
    int me, size;
    size_t share;               /* bytes of a line for each of the others */
    uint64_t exchanged, rooted; /* operations so far */
    struct {
        uint64_t number;
        int reader; /* -1: all others */
    } last[SLOTS];  /* who reads what was written there last */
    uint64_t known[MOST];
};
OBJ_CLASS_DECLARATION(least_t);
typedef struct least least_t;

/* The blocks of one side of a call: of equal lengths, or by arrays. */
struct side {
    char *at;
    size_t each; /* bytes of an element, or of a block */
    const int *counts, *displs;
};

static inline size_t length(const struct side *side, int of)
{
    return side->counts ? side->counts[of] * side->each : side->each;
}

static inline char *block(const struct side *side, int of)
{
    return side->at + (side->counts ? side->displs[of] : of) * (ptrdiff_t) side->each;
}

static inline void await(_Atomic uint64_t *word, uint64_t number)
{
    for (unsigned looks = 1; atomic_load_explicit(word, memory_order_acquire) < number; ++looks) {
        if (looks >= LOOKS) {
            sched_yield();
        }
        if (0 == looks % PROGRESS) {
            opal_progress();
        }
    }
}

static inline void publish(_Atomic uint64_t *word, uint64_t number)
{
    atomic_store_explicit(word, number, memory_order_release);
}

/* The commonest length needs no call. */
static inline void copy(void *to, const void *from, size_t bytes)
{
    if (8 == bytes) {
        memcpy(to, from, 8);
    } else {
        memcpy(to, from, bytes);
    }
}

/* The others, from the next one on. */
#define EACH_OTHER(self, other)                                                                                \
    for (int step_ = 1, other;                                                                                 \
         step_ < (self)->size && (other = (self)->me + step_, other -= other < (self)->size ? 0 : (self)->size, 1); \
         ++step_)

/* Where `owner` has so many bytes for `reader` alone. */
static inline char *room(least_t *self, int rooted, unsigned slot, int owner, int reader, size_t bytes)
{
    struct part *part = &self->parts[owner];
    if (bytes <= self->share) {
        return (rooted ? part->rooted : part->exchanged)[slot].contents + self->share * (size_t) (reader - (reader > owner));
    }
    return part->rooms[rooted][slot] + (size_t) reader * (bytes <= SMALL ? SMALL : ROOM);
}

/* Where `owner` has its only block, for a root. */
static inline char *only(least_t *self, unsigned slot, int owner, size_t bytes)
{
    struct part *part = &self->parts[owner];
    return bytes <= LINE ? part->rooted[slot].contents : part->rooms[1][slot];
}

static inline void through(least_t *self, int reader, uint64_t number)
{
    if (self->known[reader] < number) {
        await(&self->parts[reader].done, number);
        self->known[reader] = atomic_load_explicit(&self->parts[reader].done, memory_order_acquire);
    }
}

/* Begins a rooted operation in which the caller writes for this reader, when what was in the slot before has
 * been read. */
static inline unsigned begin_rooted(least_t *self, int reader)
{
    const unsigned slot = ++self->rooted % SLOTS;
    if (self->last[slot].number && self->last[slot].reader >= 0) {
        through(self, self->last[slot].reader, self->last[slot].number);
    } else if (self->last[slot].number) {
        EACH_OTHER(self, other) {
            through(self, other, self->last[slot].number);
        }
    }
    self->last[slot].number = self->rooted;
    self->last[slot].reader = reader;
    return slot;
}

/* Shared memory of the processes of a communicator, by its first operation. */
static int meet(least_t *self, struct ompi_communicator_t *comm)
{
    const size_t bytes = sizeof(struct part) * (size_t) self->size;
    char name[] = "/dev/shm/coll_least.XXXXXX", there = 1; /* as mkstemp wants it */
    int file = 0 == self->me ? mkstemp(name) : -1, rc = MPI_SUCCESS;
    const int made = file >= 0 && 0 == ftruncate(file, (off_t) bytes);
    EACH_OTHER(self, other) {
        if (MPI_SUCCESS == rc && (0 == self->me || 0 == other)) {
            rc = 0 == self->me ? MCA_PML_CALL(send(name, sizeof name, MPI_BYTE, other, MCA_COLL_BASE_TAG_BCAST,
                                                   MCA_PML_BASE_SEND_STANDARD, comm))
                               : MCA_PML_CALL(recv(name, sizeof name, MPI_BYTE, 0, MCA_COLL_BASE_TAG_BCAST, comm,
                                                   MPI_STATUS_IGNORE));
        }
    }
    if (0 != self->me && MPI_SUCCESS == rc) {
        file = open(name, O_RDWR);
    }
    void *parts = file < 0 || (0 == self->me && !made) ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) {
        close(file);
    }
    /* Its name goes when all have it. */
    EACH_OTHER(self, other) {
        if (MPI_SUCCESS == rc && (0 == self->me || 0 == other)) {
            rc = 0 == self->me
                     ? MCA_PML_CALL(recv(&there, 1, MPI_BYTE, other, MCA_COLL_BASE_TAG_GATHER, comm, MPI_STATUS_IGNORE))
                     : MCA_PML_CALL(send(&there, 1, MPI_BYTE, 0, MCA_COLL_BASE_TAG_GATHER, MCA_PML_BASE_SEND_STANDARD,
                                         comm));
        }
    }
    if (0 == self->me) {
        unlink(name);
    }
    if (MAP_FAILED == parts) {
        return MPI_ERR_NO_MEM;
    }
    self->parts = parts;
    return rc;
}

#define BEGIN                                                                                                  \
    least_t *self = (least_t *) module;                                                                        \
    if (NULL == self->parts) {                                                                                 \
        const int met = meet(self, comm);                                                                      \
        if (MPI_SUCCESS != met) {                                                                              \
            return met;                                                                                        \
        }                                                                                                      \
    }

/* ---------------------------------------------------------------- operations */

static int barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    BEGIN
    const uint64_t number = ++self->exchanged;
    publish(&self->parts[self->me].exchanged[number % SLOTS].number, number);
    EACH_OTHER(self, other) {
        await(&self->parts[other].exchanged[number % SLOTS].number, number);
    }
    return MPI_SUCCESS;
}

static inline int exchange(least_t *self, struct side out, struct side into)
{
    const uint64_t number = ++self->exchanged;
    const unsigned slot = number % SLOTS;
    const int me = self->me;
    EACH_OTHER(self, other) {
        if (length(&out, other) > LONGEST) {
            return MPI_ERR_COUNT;
        }
        copy(room(self, 0, slot, me, other, length(&out, other)), block(&out, other), length(&out, other));
    }
    publish(&self->parts[me].exchanged[slot].number, number);
    copy(block(&into, me), block(&out, me), length(&out, me));
    EACH_OTHER(self, other) {
        await(&self->parts[other].exchanged[slot].number, number);
        copy(block(&into, other), room(self, 0, slot, other, me, length(&into, other)), length(&into, other));
    }
    return MPI_SUCCESS;
}

static inline int give(least_t *self, const void *from, size_t bytes, int root)
{
    if (bytes > LONGEST) {
        return MPI_ERR_COUNT;
    }
    const unsigned slot = begin_rooted(self, root);
    copy(only(self, slot, self->me, bytes), from, bytes);
    publish(&self->parts[self->me].rooted[slot].number, self->rooted);
    return MPI_SUCCESS;
}

static inline int collect(least_t *self, const void *own, size_t bytes, struct side into)
{
    const uint64_t number = ++self->rooted;
    copy(block(&into, self->me), own, bytes);
    EACH_OTHER(self, other) {
        await(&self->parts[other].rooted[number % SLOTS].number, number);
        copy(block(&into, other), only(self, number % SLOTS, other, length(&into, other)), length(&into, other));
    }
    publish(&self->parts[self->me].done, number);
    return MPI_SUCCESS;
}

static inline int deal(least_t *self, struct side out, void *own)
{
    const unsigned slot = begin_rooted(self, -1);
    EACH_OTHER(self, other) {
        if (length(&out, other) > LONGEST) {
            return MPI_ERR_COUNT;
        }
        copy(room(self, 1, slot, self->me, other, length(&out, other)), block(&out, other), length(&out, other));
    }
    publish(&self->parts[self->me].rooted[slot].number, self->rooted);
    copy(own, block(&out, self->me), length(&out, self->me));
    return MPI_SUCCESS;
}

static inline int take(least_t *self, void *into, size_t bytes, int root)
{
    const uint64_t number = ++self->rooted;
    await(&self->parts[root].rooted[number % SLOTS].number, number);
    copy(into, room(self, 1, number % SLOTS, root, self->me, bytes), bytes);
    publish(&self->parts[self->me].done, number);
    return MPI_SUCCESS;
}

/* ---------------------------------------------------------------- as Open MPI calls them */

#define BYTES(type) ((type)->super.size)
#define EQUAL(at, count, type) ((struct side) {(char *) (at), (size_t) (count) * BYTES(type), NULL, NULL})
#define BY_ARRAYS(at, counts, displs, type) ((struct side) {(char *) (at), BYTES(type), counts, displs})
#define TYPE struct ompi_datatype_t *
#define TAIL struct ompi_communicator_t *comm, mca_coll_base_module_t *module

static int alltoall(const void *from, int n, TYPE out, void *to, int m, TYPE in, TAIL)
{
    BEGIN
    return exchange(self, EQUAL(from, n, out), EQUAL(to, m, in));
}

static int alltoallv(const void *from, const int *n, const int *out_at, TYPE out, void *to, const int *m, const int *in_at,
                     TYPE in, TAIL)
{
    BEGIN
    return exchange(self, BY_ARRAYS(from, n, out_at, out), BY_ARRAYS(to, m, in_at, in));
}

static int gather(const void *from, int n, TYPE out, void *to, int m, TYPE in, int root, TAIL)
{
    BEGIN
    const size_t bytes = (size_t) n * BYTES(out);
    return self->me == root ? collect(self, from, bytes, EQUAL(to, m, in)) : give(self, from, bytes, root);
}

static int gatherv(const void *from, int n, TYPE out, void *to, const int *m, const int *in_at, TYPE in, int root, TAIL)
{
    BEGIN
    const size_t bytes = (size_t) n * BYTES(out);
    return self->me == root ? collect(self, from, bytes, BY_ARRAYS(to, m, in_at, in)) : give(self, from, bytes, root);
}

static int scatter(const void *from, int n, TYPE out, void *to, int m, TYPE in, int root, TAIL)
{
    BEGIN
    return self->me == root ? deal(self, EQUAL(from, n, out), to) : take(self, to, (size_t) m * BYTES(in), root);
}

static int scatterv(const void *from, const int *n, const int *out_at, TYPE out, void *to, int m, TYPE in, int root, TAIL)
{
    BEGIN
    return self->me == root ? deal(self, BY_ARRAYS(from, n, out_at, out), to) : take(self, to, (size_t) m * BYTES(in), root);
}

/* ---------------------------------------------------------------- life */

static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    least_t *self = (least_t *) module;
    self->me = ompi_comm_rank(comm);
    self->size = ompi_comm_size(comm);
    self->share = LINE / (self->size - 1) / 8 * 8;
    return OMPI_SUCCESS;
}

static void construct(least_t *self)
{
    self->parts = NULL;
    self->exchanged = self->rooted = 0;
    memset(self->last, 0, sizeof self->last);
    memset(self->known, 0, sizeof self->known);
    self->super.coll_module_enable = enable;
    self->super.coll_barrier = barrier;
    self->super.coll_alltoall = alltoall;
    self->super.coll_alltoallv = alltoallv;
    self->super.coll_gather = gather;
    self->super.coll_gatherv = gatherv;
    self->super.coll_scatter = scatter;
    self->super.coll_scatterv = scatterv;
}

static void destruct(least_t *self)
{
    if (NULL != self->parts) {
        munmap(self->parts, sizeof(struct part) * (size_t) self->size);
    }
}

OBJ_CLASS_INSTANCE(least_t, mca_coll_base_module_t, construct, destruct);

static int init_query(bool progress_threads, bool thread_multiple)
{
    (void) progress_threads, (void) thread_multiple;
    return OMPI_SUCCESS;
}

/* mpiperf looks for it: whether there is such a component. */
static int priority;

/* Behind all others, so that it takes part only where they are told not to. */
static mca_coll_base_module_t *comm_query(struct ompi_communicator_t *comm, int *of)
{
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2 || ompi_comm_size(comm) > MOST) {
        return NULL;
    }
    least_t *self = OBJ_NEW(least_t);
    *of = priority;
    return NULL == self ? NULL : &self->super;
}

__attribute__((visibility("default"))) extern const mca_coll_base_component_t mca_coll_least_component;

static int component_register(void)
{
    const int index = mca_base_component_var_register(
        &mca_coll_least_component.collm_version, "priority", "Priority: behind all others", MCA_BASE_VAR_TYPE_INT, NULL, 0,
        0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_CONSTANT, &priority);
    return index < 0 ? index : OMPI_SUCCESS;
}

const mca_coll_base_component_t mca_coll_least_component = {
    .collm_version = {CR_COLL_VERSION, .mca_component_name = "least", MCA_BASE_MAKE_VERSION(component, 0, 1, 0),
                      .mca_register_component_params = component_register},
    .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = init_query,
    .collm_comm_query = comm_query,
};
