/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which Open MPI this file was compiled for, which one runs, and what tells whether their structs are alike.
 *
 * A release of the same series may move fields: 5.0.7 put one before a communicator's functions. What is
 * compiled here knows sizes and offsets of the headers. Of the running library, these can be seen:
 *   - the size of every class of objects;
 *   - the sizes of variables that it exports, in its table of symbols;
 *   - where its own code and its constants put values that are known.
 */
#include "compat.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#define CR_TEXT_OF(x) #x
#define CR_TEXT(x) CR_TEXT_OF(x)

/* Text, so that a launcher and a test can find it in the file. */
static const char built_for[] =
    "coll/rust built for Open MPI " CR_TEXT(OMPI_MAJOR_VERSION) "." CR_TEXT(OMPI_MINOR_VERSION) "." CR_TEXT(
        OMPI_RELEASE_VERSION) ";";

static struct cr_release release_of(const char *text, const char *format)
{
    struct cr_release release = {0};
    if (3 != sscanf(text, format, &release.major, &release.minor, &release.patch)) {
        memset(&release, 0, sizeof(release));
    }
    return release;
}

void cr_releases(struct cr_release *built, struct cr_release *running)
{
    *built = release_of(built_for, "coll/rust built for Open MPI %u.%u.%u");
    /* Open MPI and MPI allow this call at any time. PMPI: no tool needs to know of it. */
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    (void) PMPI_Get_library_version(text, &length);
    *running = release_of(text, "Open MPI v%u.%u.%u");
}

/* ---------------------------------------------------------------- what the running library has */

/* The size of a variable that a library exports; 0 where its table of symbols does not say. */
static uint64_t symbol_size(const void *variable)
{
    Dl_info info;
    void *entry = NULL;
    if (0 == dladdr1(variable, &info, &entry, RTLD_DL_SYMENT) || NULL == entry || info.dli_saddr != variable) {
        return 0;
    }
    return ((const ElfW(Sym) *) entry)->st_size;
}

/* One of the library's objects, in memory that is larger than any of them and was full of these bytes before.
 * */
#define CR_UNTOUCHED 0xa5
union subject {
    ompi_coll_base_nbc_request_t request;
    opal_convertor_t convertor;
    char memory[4096];
};

/* False where the class's objects would not fit. */
static int construct(union subject *subject, opal_class_t *class)
{
    if (class->cls_sizeof > sizeof(*subject)) {
        return 0;
    }
    memset(subject, CR_UNTOUCHED, sizeof(*subject));
    if (opal_class_init_epoch != class->cls_initialized) {
        opal_class_initialize(class);
    }
    opal_object_t *object = (opal_object_t *) subject;
    object->obj_class = class;
    object->obj_reference_count = 1;
    opal_obj_run_constructors(object);
    return 1;
}

/* ---------------------------------------------------------------- the table */

#define CR_CLASSES(CLASS)                                                                                      \
    CLASS(opal_object_t)                                                                                       \
    CLASS(ompi_communicator_t)                                                                                 \
    CLASS(ompi_group_t)                                                                                        \
    CLASS(ompi_proc_t)                                                                                         \
    CLASS(opal_proc_t)                                                                                         \
    CLASS(ompi_request_t)                                                                                      \
    CLASS(ompi_coll_base_nbc_request_t)                                                                        \
    CLASS(mca_coll_base_module_t)                                                                              \
    CLASS(mca_topo_base_module_t)                                                                              \
    CLASS(mca_topo_base_comm_cart_2_2_0_t)                                                                     \
    CLASS(mca_topo_base_comm_graph_2_2_0_t)                                                                    \
    CLASS(mca_topo_base_comm_dist_graph_2_2_0_t)                                                               \
    CLASS(ompi_datatype_t)                                                                                     \
    CLASS(opal_datatype_t)                                                                                     \
    CLASS(opal_convertor_t)                                                                                    \
    CLASS(ompi_op_t)                                                                                           \
    CLASS(opal_free_list_t)                                                                                    \
    CLASS(opal_free_list_item_t)

#define CR_VARIABLES(VARIABLE)                                                                                 \
    VARIABLE(mca_pml)                                                                                          \
    VARIABLE(opal_process_info)                                                                                \
    VARIABLE(ompi_coll_base_framework)

/* The headers' side of the sizes: an array behind a mark, so that a test can change a number in the file. */
enum {
#define CR_NUMBER(type) SIZE_##type,
    CR_CLASSES(CR_NUMBER) CR_VARIABLES(CR_NUMBER) SIZES
#undef CR_NUMBER
};
static const volatile struct {
    char mark[24]; /* "coll/rust sizes follow:" */
    uint64_t sizes[SIZES];
} headers = {
    "coll/rust sizes follow:",
    {
#define CR_SIZE(type) [SIZE_##type] = sizeof(type),
        CR_CLASSES(CR_SIZE) CR_VARIABLES(CR_SIZE)
#undef CR_SIZE
    },
};

static void compare(struct cr_differences *differences, const char *name, uint64_t built, uint64_t found)
{
    if (built != found) {
        if (differences->count < CR_MOST_DIFFERENCES) {
            differences->rows[differences->count] = (struct cr_difference) {name, built, found};
        }
        ++differences->count;
    }
}

#define CR_COMPARE(name, known, value) compare(differences, name, (uint64_t) (known), (uint64_t) (value))

/* Fields of a constant: one of the library's own datatypes. */
static void compare_datatype(struct cr_differences *differences)
{
    const ompi_datatype_t *type = &ompi_mpi_int64_t.dt;
    CR_COMPARE("opal_datatype_t.size of MPI_INT64_T", 8, type->super.size);
    CR_COMPARE("opal_datatype_t.lb of MPI_INT64_T", 0, type->super.lb);
    CR_COMPARE("opal_datatype_t.ub of MPI_INT64_T", 8, type->super.ub);
    CR_COMPARE("opal_datatype_t.true_lb of MPI_INT64_T", 0, type->super.true_lb);
    CR_COMPARE("opal_datatype_t.true_ub of MPI_INT64_T", 8, type->super.true_ub);
    const uint32_t flags = OPAL_DATATYPE_FLAG_NO_GAPS | OPAL_DATATYPE_FLAG_PREDEFINED;
    CR_COMPARE("opal_datatype_t.flags of MPI_INT64_T", flags, type->super.flags & flags);
}

/* Fields that the library's code has set in a request. */
static void compare_request(union subject *subject, struct cr_differences *differences)
{
    if (!construct(subject, OBJ_CLASS(ompi_coll_base_nbc_request_t))) {
        return; /* of another size, which is a difference already */
    }
    const ompi_request_t *base = &subject->request.super;
    CR_COMPARE("ompi_request_t.req_state of a new one", (uint32_t) OMPI_REQUEST_INVALID, (uint32_t) base->req_state);
    CR_COMPARE("ompi_request_t.req_complete of a new one", (uintptr_t) REQUEST_COMPLETED, (uintptr_t) base->req_complete);
    CR_COMPARE("ompi_request_t.req_persistent of a new one", 0, *(const unsigned char *) &base->req_persistent);
    CR_COMPARE("ompi_request_t.req_f_to_c_index of a new one", (uint32_t) MPI_UNDEFINED, (uint32_t) base->req_f_to_c_index);
    CR_COMPARE("ompi_request_t.req_start of a new one", 0, (uintptr_t) base->req_start);
    CR_COMPARE("ompi_request_t.req_free of a new one", 0, (uintptr_t) base->req_free);
    CR_COMPARE("ompi_request_t.req_cancel of a new one", 0, (uintptr_t) base->req_cancel);
    CR_COMPARE("ompi_request_t.req_complete_cb of a new one", 0, (uintptr_t) base->req_complete_cb);
    CR_COMPARE("ompi_request_t.req_mpi_object of a new one", 0, (uintptr_t) base->req_mpi_object.comm);
}

static void compare_convertor(union subject *subject, struct cr_differences *differences)
{
    if (!construct(subject, OBJ_CLASS(opal_convertor_t))) {
        return;
    }
    const opal_convertor_t *convertor = &subject->convertor;
    CR_COMPARE("opal_convertor_t.static_stack's place", (uintptr_t) convertor->static_stack - (uintptr_t) convertor,
               (uintptr_t) convertor->pStack - (uintptr_t) convertor);
    CR_COMPARE("opal_convertor_t.stack_size of a new one", DT_STATIC_STACK_SIZE, convertor->stack_size);
    CR_COMPARE("opal_convertor_t.flags of a new one", OPAL_DATATYPE_FLAG_NO_GAPS | CONVERTOR_COMPLETED, convertor->flags);
    CR_COMPARE("opal_convertor_t.partial_length of a new one", 0, convertor->partial_length);
}

void cr_differences(struct cr_differences *differences)
{
    differences->count = 0;
#define CR_CLASS(type) CR_COMPARE("sizeof(" #type ")", headers.sizes[SIZE_##type], OBJ_CLASS(type)->cls_sizeof);
    CR_CLASSES(CR_CLASS)
#undef CR_CLASS
#define CR_VARIABLE(variable)                                                                                  \
    const uint64_t variable##_size = symbol_size(&variable);                                                   \
    CR_COMPARE("sizeof(" #variable ")", headers.sizes[SIZE_##variable],                                        \
               0 == variable##_size ? headers.sizes[SIZE_##variable] : variable##_size);
    CR_VARIABLES(CR_VARIABLE)
#undef CR_VARIABLE
    compare_datatype(differences);
    if (0 == differences->count) {
        union subject subject;
        compare_request(&subject, differences);
        compare_convertor(&subject, differences);
    }
}

/* Components that are asked before they are enabled find MPI_COMM_WORLD's table of functions empty. */
void cr_world_differences(struct ompi_communicator_t *world, struct cr_differences *differences)
{
    const opal_process_name_t self = OPAL_PROC_MY_NAME;
    const ompi_group_t *group = world->c_local_group;
    differences->count = 0;
    CR_COMPARE("ompi_communicator_t.c_my_rank of MPI_COMM_WORLD", self.vpid, (uint32_t) world->c_my_rank);
    CR_COMPARE("ompi_communicator_t.c_flags of MPI_COMM_WORLD", OMPI_COMM_INTRINSIC,
               world->c_flags & (OMPI_COMM_INTRINSIC | OMPI_COMM_INTER));
    CR_COMPARE("ompi_communicator_t.c_topo of MPI_COMM_WORLD", 0, (uintptr_t) world->c_topo);
    CR_COMPARE("ompi_communicator_t.c_local_group of MPI_COMM_WORLD", (uintptr_t) world->c_remote_group, (uintptr_t) group);
    CR_COMPARE("ompi_communicator_t.c_coll of MPI_COMM_WORLD", 1, NULL != world->c_coll);
    if (0 == differences->count) {
        CR_COMPARE("ompi_group_t.grp_my_rank of MPI_COMM_WORLD", self.vpid, (uint32_t) group->grp_my_rank);
        CR_COMPARE("coll_barrier of MPI_COMM_WORLD", 0, (uintptr_t) world->c_coll->coll_barrier);
    }
}
