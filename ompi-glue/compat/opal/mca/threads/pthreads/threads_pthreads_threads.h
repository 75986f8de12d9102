/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stand-in for a header that Open MPI 5.0 includes but that packages do not install: the yield of the
 * threads/pthreads component. It lies behind every other folder of the search path (-idirafter): a real one
 * wins.
 */
#ifndef COLL_RUST_COMPAT_THREADS_PTHREADS_THREADS_H
#define COLL_RUST_COMPAT_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "opal/mca/threads/threads.h"

#define OPAL_THREAD_YIELD_WHEN_IDLE_DEFAULT false

static inline void opal_thread_yield(void)
{
    (void) sched_yield();
}

#endif
