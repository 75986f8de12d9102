/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component: what Open MPI finds in the DSO. Registers Rust's parameters and counters and forwards the
 * events of the component's life.
 */
#include "compat.h"

#ifndef CR_VERSION_MAJOR
#error "the release of the component is missing: compile with the flags that scripts/version.sh prints"
#endif

/* Release, build and what it was built for: as a parameter that nobody can set. */
static char *version;

static int component_register(void)
{
    /* MCA copies what *value points to, and from here on owns it, until the component is closed. */
    version = (char *) cr_version();
    int index = mca_base_component_var_register(
        &mca_coll_rust_component.collm_version, "version",
        "Release of the component, its build, and the Open MPI that it was built for. All processes of a job must have the same build.",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, MCA_BASE_VAR_FLAG_DEFAULT_ONLY, OPAL_INFO_LVL_1, MCA_BASE_VAR_SCOPE_CONSTANT,
        &version);
    if (index < 0) {
        return index;
    }

    const struct cr_param *param;
    const size_t params = cr_param_table(&param);
    for (size_t i = 0; i < params; ++i, ++param) {
        const int rc = cr_param_register(param);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    cr_params_registered();

    const struct cr_counter *counter;
    const size_t counters = cr_counter_table(&counter);
    for (size_t i = 0; i < counters; ++i, ++counter) {
        index = mca_base_component_pvar_register(
            &mca_coll_rust_component.collm_version, counter->name, counter->help, OPAL_INFO_LVL_4,
            MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL, NULL, counter->value);
        if (index < 0) {
            return index;
        }
    }
    (void) cr_counter_table(NULL); /* MCA has copied the texts */
    return OMPI_SUCCESS;
}

static int opened; /* Open MPI closes what it could not open, too */

/* Rust starts here and not in init_query: MPI_Init opens the components before its exchange of start-up data,
 * to which Rust adds, and queries them after it. ompi_info opens no component. */
static int component_open(void)
{
    _Static_assert(sizeof(unsigned long long) == sizeof(uint64_t), "counters are registered as unsigned long long");
    if (1 != cr_component_check()) {
        return OMPI_ERR_NOT_AVAILABLE; /* Open MPI goes on without a word: Rust has said why */
    }
    opal_output_verbose(10, ompi_coll_base_framework.framework_output, "coll:rust: %s", cr_version());
    (void) cr_accelerator_open();
    cr_help_open();
    const int rc = cr_requests_open();
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (MPI_SUCCESS != cr_component_init(ompi_mpi_thread_multiple)) {
        cr_requests_close();
        return OMPI_ERROR;
    }
    if (MPI_SUCCESS != cr_hush_open()) {
        cr_component_close();
        cr_requests_close();
        return OMPI_ERROR;
    }
    opened = 1;
    return OMPI_SUCCESS;
}

static int component_close(void)
{
    if (opened) {
        opened = 0;
        cr_hush_close();
        cr_component_close();
        cr_requests_close();
    }
    return OMPI_SUCCESS;
}

static int init_query(bool progress_threads, bool thread_multiple)
{
    (void) progress_threads;
    (void) thread_multiple; /* known since the open */
    return OMPI_SUCCESS;
}

static mca_coll_base_module_t *comm_query(struct ompi_communicator_t *comm, int *priority)
{
    void *state = NULL;
    if (1 != cr_comm_query(comm, priority, &state)) {
        return NULL;
    }
    mca_coll_base_module_t *module = cr_module_new(state);
    if (NULL == module) {
        cr_comm_free(state);
    }
    return module;
}

const mca_coll_base_component_t mca_coll_rust_component = {
    .collm_version =
        {
            CR_COLL_VERSION,
            .mca_component_name = "rust",
            MCA_BASE_MAKE_VERSION(component, CR_VERSION_MAJOR, CR_VERSION_MINOR, CR_VERSION_PATCH),
            .mca_open_component = component_open,
            .mca_close_component = component_close,
            .mca_register_component_params = component_register,
        },
    .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = init_query,
    .collm_comm_query = comm_query,
};
