// SPDX-License-Identifier: BSD-3-Clause
//! What the shim calls where buffers lie in a device's memory.

use crate::ffi::base::error::PASS;
use crate::ffi::base::glue::{cr_call, cr_stand_in, ompi_request_t};
use crate::ffi::base::guard::guard;
use crate::ffi::base::kind::Mode;
use crate::ffi::call::device::Device;
use crate::ffi::comm::state::Comm;
use crate::ffi::entry::exports::with_comm;
use crate::ffi::exec::below::{Answer, Passed};
use crate::ffi::exec::{blocking, engine, persistent};
use std::ffi::c_void;
use std::sync::Arc;

/// Runs a call, which gets host memory in place of its buffers if it is to be passed.
///
/// # Safety
/// `state` is a live module's; `call` holds live handles and the user's buffers; `stand_in` may be written.
unsafe fn on_device(
    state: *mut c_void,
    call: *const cr_call,
    device: i32,
    mode: Mode,
    stand_in: *mut cr_stand_in,
    run: impl FnOnce(&Arc<Comm>, &cr_call, Device) -> i32,
) -> i32 {
    let device = Device::from(device);
    // SAFETY: by the caller's promise.
    unsafe {
        with_comm(state, |comm| match run(comm, &*call, device) {
            PASS => Passed::stand_in(comm, &*call, device, mode, &mut *stand_in),
            code => code,
        })
    }
}

/// A blocking collective with buffers in a device's memory.
///
/// # Safety
/// As for [`cr_block_bcast`](crate::ffi::entry::exports::cr_block_bcast); `stand_in` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_device_blocking(
    state: *mut c_void,
    call: *const cr_call,
    device: i32,
    stand_in: *mut cr_stand_in,
) -> i32 {
    // SAFETY: by the caller's promise.
    let run = |comm: &Arc<Comm>, call: &cr_call, device| unsafe { blocking::block_on_any(comm, call, device) };
    // SAFETY: as above.
    unsafe { on_device(state, call, device, Mode::Blocking, stand_in, run) }
}

/// A nonblocking collective with buffers in a device's memory.
///
/// # Safety
/// As for [`cr_call_nonblocking`](crate::ffi::entry::exports::cr_call_nonblocking); `stand_in` may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_device_nonblocking(
    state: *mut c_void,
    call: *const cr_call,
    device: i32,
    request: *mut *mut ompi_request_t,
    stand_in: *mut cr_stand_in,
) -> i32 {
    // SAFETY: by the caller's promise.
    let run = |comm: &Arc<Comm>, call: &cr_call, device| unsafe { engine::start_any(comm, call, device, request) };
    // SAFETY: as above.
    unsafe { on_device(state, call, device, Mode::Nonblocking, stand_in, run) }
}

/// A persistent collective with buffers in a device's memory is initialised.
///
/// # Safety
/// As for [`cr_call_persistent`](crate::ffi::entry::exports::cr_call_persistent); `stand_in` may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_device_persistent(
    state: *mut c_void,
    call: *const cr_call,
    device: i32,
    request: *mut *mut ompi_request_t,
    stand_in: *mut cr_stand_in,
) -> i32 {
    // SAFETY: by the caller's promise.
    let run = |comm: &Arc<Comm>, call: &cr_call, device| unsafe { persistent::init(comm, call, device, request) };
    // SAFETY: as above.
    unsafe { on_device(state, call, device, Mode::Persistent, stand_in, run) }
}

/// The component below has answered a call whose buffers were replaced.
///
/// # Safety
/// `half` came by a `cr_stand_in` of that call, and is not used again; `request` is null for a blocking call,
/// else it holds that component's request, and may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cr_device_passed(half: *mut c_void, code: i32, request: *mut *mut ompi_request_t) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise; made in `stand_in`.
        match unsafe { Box::from_raw(half.cast::<Passed>()).answered(code, request) } {
            Answer::Code(code) => code,
            // SAFETY: by the caller's promise.
            Answer::Keep(comm, below) => unsafe { persistent::keep(&comm, below, request) },
        }
    })
}
