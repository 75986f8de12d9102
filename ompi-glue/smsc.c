/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading other processes' memory by Open MPI's framework smsc (shared memory, single copy), which 5.0
 * brought. MPI_Init selects its component before communicators select those of coll. (For 4.1, compat.h has a
 * stand-in of which nothing is selected.)
 */
#include "compat.h"

int cr_smsc_find(struct cr_smsc *info)
{
    memset(info, 0, sizeof(*info));
    if (NULL == mca_smsc) {
        return CR_NO_SMSC;
    }
    info->maps = mca_smsc_base_has_feature(MCA_SMSC_FEATURE_CAN_MAP);
    info->registers = mca_smsc_base_has_feature(MCA_SMSC_FEATURE_REQUIRE_REGISTRATION);
    return 1;
}

void *cr_smsc_endpoint(struct ompi_communicator_t *comm, int rank)
{
    ompi_proc_t *proc = ompi_group_peer_lookup(comm->c_local_group, rank);
    return NULL == proc ? NULL : MCA_SMSC_CALL(get_endpoint, &proc->super);
}

void cr_smsc_release(void *endpoint)
{
    MCA_SMSC_CALL(return_endpoint, endpoint);
}

int cr_smsc_copy(void *endpoint, void *to, uint64_t from, size_t bytes)
{
    const int rc = MCA_SMSC_CALL(copy_from, endpoint, to, (void *) (uintptr_t) from, bytes, NULL);
    return OPAL_SUCCESS == rc ? MPI_SUCCESS : MPI_ERR_INTERN;
}

/* An error is known by the mapping that is left unset: a component may do without a context. */
const void *cr_smsc_map(void *endpoint, uint64_t from, size_t bytes, void **context)
{
    void *mapping = NULL;
    *context = MCA_SMSC_CALL(map_peer_region, endpoint, 0, (void *) (uintptr_t) from, bytes, &mapping);
    return mapping;
}

void cr_smsc_unmap(void *context)
{
    if (NULL != context) {
        MCA_SMSC_CALL(unmap_peer_region, context);
    }
}
