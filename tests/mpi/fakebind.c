/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets processes believe that they are bound to cores which this machine does not have: for runs on a
 * synthetic topology (HWLOC_SYNTHETIC, HWLOC_THISSYSTEM=1). Preload it into mpiexec, which binds.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *mask)
{
    syscall(SYS_sched_setaffinity, pid, size, mask); /* where the cores exist */
    return 0;
}
