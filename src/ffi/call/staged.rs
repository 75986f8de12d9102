// SPDX-License-Identifier: BSD-3-Clause
//! Elements whose memory may stand for a device's.

use crate::endpoint::Result;
use crate::ffi::call::arguments::Call;
use crate::ffi::mpi::device::Staging;
use crate::ffi::mpi::elements::Elements;
use crate::shm::op::Combine;

/// Those of a call. Of a type of its own: the quick ways know nothing of it.
pub struct Staged<'c> {
    elements: Elements,
    staging: Option<&'c Staging>,
    /// What is combined is the call's result, not a part of what goes on to other nodes.
    last: bool,
}

impl Staged<'_> {
    /// Those of a call.
    pub fn of<'a>(call: &'a Call<'a>, last: bool) -> Staged<'a> {
        Staged { elements: elements_of(call), staging: call.staging.as_deref(), last }
    }
}

impl Combine for Staged<'_> {
    fn size(&self) -> usize {
        self.elements.size()
    }

    fn needs(&self, at: *const u8, bytes: usize) -> Result<()> {
        match self.staging {
            None => Ok(()),
            Some(staging) => staging.needs(at, bytes),
        }
    }

    fn made(&self, at: *const u8, bytes: usize) {
        if let Some(staging) = self.staging.filter(|_| self.last) {
            staging.made(at, bytes);
        }
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        unsafe { self.elements.reduce(left, right, count) };
    }

    unsafe fn reduce_into(&self, left: *const u8, right: *const u8, out: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        unsafe { self.elements.reduce_into(left, right, out, count) };
    }
}

/// What a call reduces.
pub fn elements_of(call: &Call<'_>) -> Elements {
    let dtype = call.units();
    Elements { dtype: dtype.handle, op: call.op, size: dtype.info.extent as usize }
}
