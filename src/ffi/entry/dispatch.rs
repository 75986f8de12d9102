// SPDX-License-Identifier: BSD-3-Clause
//! Calls go by a short way where they may, else by the way of all calls.

use crate::ffi::base::glue::{cr_call, ompi_request_t};
use crate::ffi::base::kind::Kind;
use crate::ffi::call::device::Device;
use crate::ffi::comm::state::Comm;
use crate::ffi::entry::edges;
use crate::ffi::entry::quick::{self, At};
use crate::ffi::exec::{blocking, engine};
use std::sync::Arc;

/// Runs a blocking operation of this kind to its end, by the short `way` if it may go there.
///
/// # Safety
/// As for [`Call::new`](crate::ffi::call::arguments::Call::new). The call and the way are of that kind.
#[inline(always)]
pub unsafe fn block_on(
    comm: &Arc<Comm>,
    kind: Kind,
    call: &cr_call,
    way: impl FnOnce(At<'_, true>, &cr_call) -> Option<i32>,
) -> i32 {
    debug_assert_eq!(kind as i32, call.kind);
    if let Some(at) = quick::at(comm, kind)
        && let Some(code) = way(at, call)
    {
        return code;
    }
    // SAFETY: by the caller's promise.
    unsafe { otherwise(comm, call) }
}

/// As [`block_on`], of whatever does not go by a short way. Cold, so that the compiler takes the short way
/// for the likely one.
///
/// # Safety
/// As for [`Call::new`](crate::ffi::call::arguments::Call::new).
#[cold]
#[inline(never)]
unsafe fn otherwise(comm: &Arc<Comm>, call: &cr_call) -> i32 {
    // SAFETY: by the caller's promise.
    if let Some(code) = unsafe { edges::quick(comm, call) } {
        return code;
    }
    // SAFETY: as above.
    unsafe { blocking::block_on_any(comm, call, Device::NONE) }
}

/// Starts a nonblocking operation; stores its request.
///
/// # Safety
/// As for [`start_any`](engine::start_any).
pub unsafe fn start(comm: &Arc<Comm>, call: &cr_call, request: *mut *mut ompi_request_t) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { quick::start(comm, call, request) } {
        Some(code) => code,
        // SAFETY: as above.
        None => unsafe { engine::start_any(comm, call, Device::NONE, request) },
    }
}
