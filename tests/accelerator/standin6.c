/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stand-in for Open MPI 6, whose framework has one more argument, and functions that Open MPI calls
 * without asking whether they are there.
 */
#define _GNU_SOURCE
#include "opal_config.h"

#include "opal/mca/accelerator/accelerator.h"

#define MORE_OF_CREATE_EVENT , bool enable_ipc __attribute__((unused))
#define MORE_FUNCTIONS .is_ipc_enabled = is_ipc_enabled, .get_memkind = get_memkind,

/* Nobody maps its memory into another process. */
static bool is_ipc_enabled(void)
{
    return false;
}

static void get_memkind(ompi_memkind_t *memkind)
{
    *memkind = (ompi_memkind_t){0};
}

#include "standin.c"
