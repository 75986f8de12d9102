/*
 * Buffers in a device's memory: whether there may be any, and which they are.
 */
#include "compat.h"

#include <sys/resource.h>
#include <unistd.h>

/* Of the process, once an accelerator is active. Addresses that are never a device's need no question to its
 * driver, which may take longer than a short operation: the program's own data with the heap that ends at the
 * break, and the first thread's stack. Their pages are the system's, and the system puts no others there by
 * itself: it places mappings between the heap and the stack. */
struct cr_host_memory cr_host_memory = {.low = UINTPTR_MAX, .end = 0, .stack = UINTPTR_MAX};

static int active;

/* Where the stack of the first thread may begin: so far below its end does it grow, and nothing else is put
 * there. */
static uintptr_t stack_begin(void)
{
    struct rlimit limit;
    uintptr_t begin = UINTPTR_MAX, low, high;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    if (NULL == maps) {
        return begin;
    }
    while (NULL != fgets(line, sizeof(line), maps)) {
        if (NULL != strstr(line, "[stack]") && 2 == sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &low, &high)) {
            const rlim_t most = 8u << 20;
            const rlim_t room = 0 == getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < most ? limit.rlim_cur : most;
            begin = high - (uintptr_t) room < low ? high - (uintptr_t) room : low;
        }
    }
    (void) fclose(maps);
    return begin;
}

int cr_accelerator_open(void)
{
    extern char data_start __attribute__((weak)); /* the first of the program's data that may be written */
    active = cr_compat_accelerates();
    if (active) {
        void *const end = sbrk(0);
        if ((void *) -1 != end && NULL != &data_start && (uintptr_t) &data_start < (uintptr_t) end) {
            cr_host_memory.low = (uintptr_t) &data_start;
            cr_host_memory.end = (uintptr_t) end;
        }
        cr_host_memory.stack = stack_begin();
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
    if ((uintptr_t) at >= cr_host_memory.end && (uintptr_t) at >= cr_host_memory.low) {
        /* The heap may have grown. */
        const uintptr_t end = (uintptr_t) sbrk(0);
        if ((uintptr_t) at < end && UINTPTR_MAX != end) {
            cr_host_memory.end = end;
            return 0;
        }
    }
    return cr_compat_is_on_device(at);
}
