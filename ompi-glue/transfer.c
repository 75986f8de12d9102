/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between host memory and a device's that go on while the caller does something else.
 */
#include "compat.h"

int cr_device(const void *at)
{
    return cr_compat_device(at);
}

void *cr_stream(int device)
{
    return cr_compat_stream(device);
}

void *cr_stream_copy(void *stream, int device, void *to, const void *from, size_t bytes, int to_device)
{
    return cr_compat_copy(stream, device, to, from, bytes, to_device);
}

int cr_stream_done(int device, void *copy)
{
    opal_accelerator_event_t *event = copy;
    const int rc = cr_compat_query(device, event);
    if (OPAL_ERR_RESOURCE_BUSY == rc) {
        return 0;
    }
    OBJ_RELEASE(event);
    return OPAL_SUCCESS == rc ? 1 : -1;
}

int cr_host_lock(void *at, size_t bytes)
{
    return OPAL_SUCCESS == cr_compat_lock(at, bytes);
}

void cr_host_unlock(void *at)
{
    (void) cr_compat_unlock(at);
}
