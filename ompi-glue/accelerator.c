/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers in a device's memory: whether there may be any, and which they are.
 */
#include "compat.h"

#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

/* Of the process, once an accelerator is active. Addresses that are never a device's need no question to its
 * driver, which may take longer than a short operation: the program's own data with the heap behind them, and
 * the first thread's stack. Their pages are the system's, which places no others there by itself: mappings go
 * between the heap and the stack. */
struct cr_host_memory cr_host_memory = {.stack = INTPTR_MAX};

static int active;

/* Where the first thread's stack may begin, which lies there now: so far does it grow. */
static intptr_t stack_begin(uintptr_t begin, uintptr_t end)
{
    struct rlimit limit;
    const rlim_t most = 8u << 20;
    const rlim_t bytes = 0 == getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < most ? limit.rlim_cur : most;
    return (intptr_t) (end - (uintptr_t) bytes < begin ? end - (uintptr_t) bytes : begin);
}

/* What the system says of the process' memory. Without it nothing is known, and each address asked about. */
static void look_at_memory(void)
{
    char line[512], program[PATH_MAX];
    uintptr_t begin, end;
    FILE *maps = fopen("/proc/self/maps", "re");
    const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (NULL == maps) {
        return;
    }
    program[length > 0 ? length : 0] = '\0';
    while (NULL != fgets(line, sizeof(line), maps)) {
        const char *const name = strchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        if (2 != sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end)) {
            continue;
        }
        if (NULL != strstr(line, "[stack]")) {
            cr_host_memory.stack = stack_begin(begin, end);
        } else if (0 == cr_host_memory.data && length > 0 && NULL != name && 0 == strcmp(name, program)) {
            cr_host_memory.data = begin; /* the lowest comes first */
            cr_host_memory.data_end = end;
        } else if (NULL != strstr(line, "[heap]") && 0 != cr_host_memory.data) {
            cr_host_memory.data_end = end;
        }
    }
    (void) fclose(maps);
}

int cr_accelerator_open(void)
{
    active = cr_compat_accelerates();
    if (active) {
        look_at_memory();
    }
    return active;
}

int cr_accelerates(void)
{
    return active;
}

int cr_is_on_device(const void *at)
{
    if (MPI_IN_PLACE == at || NULL == at) {
        return 0;
    }
    if ((uintptr_t) at >= cr_host_memory.data_end && 0 != cr_host_memory.data) {
        /* The heap may have grown. */
        const uintptr_t end = (uintptr_t) sbrk(0);
        if (UINTPTR_MAX != end && (uintptr_t) at < end) {
            cr_host_memory.data_end = end;
            return 0;
        }
    }
    return cr_compat_is_on_device(at);
}
