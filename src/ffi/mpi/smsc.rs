// SPDX-License-Identifier: BSD-3-Clause
//! Open MPI's framework smsc as a component that reads other processes' memory.

use crate::ffi::base::glue::{self, cr_smsc};
use crate::ffi::base::messages;
use crate::params::Topic;
use crate::shm::copy::smsc::{Component, View};
use std::ptr::{self, NonNull};
use std::sync::{Once, OnceLock};

/// The message where the parameter asks for it and Open MPI has none.
pub const UNSUPPORTED: &str = "coll_rust_shm_zero_copy = \"smsc\": this Open MPI has no framework smsc, which 5.0 brought. Accepted here: auto, cma, off.";

/// What Open MPI has selected.
#[derive(Debug)]
struct Selected {
    maps: bool,
}

/// The message where the parameter asks for a component that does not serve.
const REGISTERS: &str = "coll_rust_shm_zero_copy = \"smsc\": the component that Open MPI's framework smsc has selected reads only memory that was registered before, as KNEM does. coll/rust does not use such a component any more: no process reads another's memory. Take coll_rust_shm_zero_copy = cma, or have another component selected (--mca smsc).";

fn find() -> (i32, cr_smsc) {
    let mut info = cr_smsc::default();
    // SAFETY: fills in ours.
    let found = unsafe { glue::cr_smsc_find(&mut info) };
    (found, info)
}

/// Whether Open MPI has the framework.
pub fn is_supported() -> bool {
    find().0 >= 0
}

/// Tells the user, who has asked for a component, why there is [none](component).
pub fn tell_why_none() {
    static TOLD: Once = Once::new();
    let (found, info) = find();
    match found == 1 && info.registers != 0 {
        true => TOLD.call_once(|| messages::show(Topic::Warning, REGISTERS)),
        false => messages::remark(
            "shared memory: Open MPI has selected no component of smsc that could read other processes' memory",
        ),
    }
}

/// The component that Open MPI has selected; `None` where there is none that can be used. Not before MPI_Init
/// has selected it.
pub fn component() -> Option<&'static dyn Component> {
    static SELECTED: OnceLock<Option<Selected>> = OnceLock::new();
    let selected = SELECTED.get_or_init(|| {
        let (found, info) = find();
        (found == 1 && info.registers == 0).then_some(Selected { maps: info.maps != 0 })
    });
    selected.as_ref().map(|selected| selected as &dyn Component)
}

// SAFETY: each function forwards to Open MPI's of the same meaning, which may be called by as many threads as
// MPI was initialised for.
unsafe impl Component for Selected {
    fn maps(&self) -> bool {
        self.maps
    }

    unsafe fn copy(&self, endpoint: NonNull<u8>, from: u64, to: *mut u8, bytes: usize) -> bool {
        // SAFETY: by the caller's promise.
        unsafe { glue::cr_smsc_copy(endpoint.as_ptr().cast(), to.cast(), from, bytes) == 0 }
    }

    unsafe fn map(&self, endpoint: NonNull<u8>, from: u64, bytes: usize) -> Option<View> {
        let mut context = ptr::null_mut();
        // SAFETY: by the caller's promise; fills in ours.
        let start = unsafe { glue::cr_smsc_map(endpoint.as_ptr().cast(), from, bytes, &mut context) };
        (!start.is_null()).then(|| View { start: start.cast(), context: context.cast() })
    }

    unsafe fn unmap(&self, view: View) {
        // SAFETY: by the caller's promise.
        unsafe { glue::cr_smsc_unmap(view.context.cast()) };
    }

    unsafe fn release(&self, endpoint: NonNull<u8>) {
        // SAFETY: by the caller's promise.
        unsafe { glue::cr_smsc_release(endpoint.as_ptr().cast()) };
    }
}
