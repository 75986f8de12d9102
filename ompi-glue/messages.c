/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages: through Open MPI's help system, whose runtime prints one of many alike, and through the verbosity
 * of the framework.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "compat.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define CR_HELP_FILE "help-coll-rust.txt"

/* Whether the help system will find our file. */
static int help_is_there;

static int has_help(const char *folder)
{
    char file[PATH_MAX];
    const int length = snprintf(file, sizeof(file), "%s/%s", folder, CR_HELP_FILE);
    return length > 0 && (size_t) length < sizeof(file) && 0 == access(file, R_OK);
}

/* The help file lies beside the DSO, or where Open MPI's own are. */
void cr_help_open(void)
{
    Dl_info found;
    help_is_there = NULL != opal_install_dirs.opaldatadir && has_help(opal_install_dirs.opaldatadir);
    if (help_is_there || 0 == dladdr(&mca_coll_rust_component, &found) || NULL == found.dli_fname) {
        return;
    }
    /* Where it lies, if it is found by a link. */
    char *folder = realpath(found.dli_fname, NULL), *slash = NULL == folder ? NULL : strrchr(folder, '/');
    if (NULL != slash) {
        *slash = '\0';
        if (has_help(folder)) {
            (void) opal_show_help_add_dir(folder); /* which keeps a copy */
            help_is_there = 1;
        }
    }
    free(folder);
}

int cr_show_help(const char *topic, const char *text)
{
    if (!CR_HELP_IS_RELIABLE || !help_is_there) {
        return 0;
    }
    (void) opal_show_help(CR_HELP_FILE, topic, true, text);
    return 1;
}

int cr_verbosity(void)
{
    return opal_output_get_verbosity(ompi_coll_base_framework.framework_output);
}

void cr_output(const char *text)
{
    opal_output_verbose(CR_VERBOSE, ompi_coll_base_framework.framework_output, "coll:rust: %s", text);
}

void cr_print(const char *text)
{
    (void) fputs(text, stderr); /* in one write, unlike fprintf: the output of several ranks is not mixed within a line */
}
