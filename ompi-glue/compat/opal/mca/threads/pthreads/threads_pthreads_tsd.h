/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stand-in for a header that Open MPI 5.0 includes but that packages do not install: thread-specific data of
 * the threads/pthreads component, which is the POSIX one. It lies behind every other folder of the search
 * path (-idirafter): a real one wins.
 */
#ifndef COLL_RUST_COMPAT_THREADS_PTHREADS_TSD_H
#define COLL_RUST_COMPAT_THREADS_PTHREADS_TSD_H

#include <pthread.h>
#include <signal.h>

#include "opal/constants.h"

typedef pthread_key_t opal_tsd_key_t;

static inline int opal_tsd_key_delete(opal_tsd_key_t key)
{
    return 0 == pthread_key_delete(key) ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
}

static inline int opal_tsd_set(opal_tsd_key_t key, void *value)
{
    return 0 == pthread_setspecific(key, value) ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
}

static inline int opal_tsd_get(opal_tsd_key_t key, void **value)
{
    *value = pthread_getspecific(key);
    return OPAL_SUCCESS;
}

#endif
