// SPDX-License-Identifier: BSD-3-Clause
//! Reading another process' private memory by a component that somebody else provides: with Open MPI, what
//! its framework smsc has selected (XPMEM, cross memory attach).
//!
//! Components come in two kinds: those that map the other's memory, which is then copied from like one's own,
//! and those that copy. (Those that read only what its owner has registered before, as KNEM does, do not
//! serve.)

use crate::shm::copy;
use crate::shm::copy::cma;
use crate::shm::os::failure::Failure;
use std::fmt::Debug;
use std::ptr::NonNull;

/// Private memory of another process that a component has mapped.
pub struct View {
    /// Where it is in the caller's address space.
    pub start: *const u8,
    /// What the component wants to know when it is to forget it.
    pub context: *mut u8,
}

/// A component. All of it may be called by several threads at once.
///
/// # Safety
/// What a function has said it did is done: an endpoint and a view last until they are given back.
pub unsafe trait Component: Debug + Send + Sync {
    /// Whether it maps.
    fn maps(&self) -> bool;

    /// Copies `bytes` at address `from` of the endpoint's process to `to`; false: it cannot, and some of `to`
    /// may have been written.
    ///
    /// # Safety
    /// `endpoint` is one of this component's, and `to` holds so many bytes.
    unsafe fn copy(&self, endpoint: NonNull<u8>, from: u64, to: *mut u8, bytes: usize) -> bool;

    /// Maps `bytes` at address `from` of the endpoint's process. Only where it [`maps`](Component::maps).
    ///
    /// # Safety
    /// `endpoint` is one of this component's; the other process has memory there as long as the view is used.
    unsafe fn map(&self, endpoint: NonNull<u8>, from: u64, bytes: usize) -> Option<View>;

    /// Forgets a view.
    ///
    /// # Safety
    /// A view of this component's that is not used any more.
    unsafe fn unmap(&self, view: View);

    /// Gives an endpoint back.
    ///
    /// # Safety
    /// An endpoint of this component's that is not used any more.
    unsafe fn release(&self, endpoint: NonNull<u8>);
}

/// Another process, as a component knows it.
#[derive(Debug)]
pub struct Endpoint {
    component: &'static dyn Component,
    at: NonNull<u8>,
}

// SAFETY: a component may be called by any thread.
unsafe impl Send for Endpoint {}
// SAFETY: and by several at once.
unsafe impl Sync for Endpoint {}

impl Endpoint {
    /// Takes over an endpoint of the component's.
    ///
    /// # Safety
    /// It is one, and nobody else gives it back.
    pub unsafe fn new(component: &'static dyn Component, at: NonNull<u8>) -> Endpoint {
        Endpoint { component, at }
    }

    /// Copies `bytes` at address `from` of the process to `to`: all of them, or false.
    ///
    /// # Safety
    /// `to` holds so many bytes; the process has memory at `from` and keeps it until the call returns.
    pub unsafe fn read(&self, from: u64, to: *mut u8, bytes: usize) -> bool {
        if self.component.maps() {
            // SAFETY: by the caller's promise.
            let Some(view) = (unsafe { self.component.map(self.at, from, bytes) }) else { return false };
            // SAFETY: mapped so far, and two processes' buffers are apart.
            unsafe {
                copy::bytes(view.start, to, bytes);
                self.component.unmap(view);
            }
            return true;
        }
        // SAFETY: by the caller's promise.
        unsafe { self.component.copy(self.at, from, to, bytes) }
    }

    /// Whether the private memory of the process can be read: reads its number at `address`, and compares, as
    /// [`cma::probe`] does.
    pub fn probe(&self, address: u64, secret: [u8; cma::SECRET]) -> Result<(), Failure> {
        let mut got = [0; cma::SECRET];
        // SAFETY: `got` is so long, and its owner has said that the number is there, for good.
        if !unsafe { self.read(address, got.as_mut_ptr(), got.len()) } {
            return Err(Failure::new("smsc: the component cannot read the process' memory"));
        }
        match got == secret {
            true => Ok(()),
            false => Err(Failure::new("smsc: the component has read the memory of another process")),
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // SAFETY: taken over from its maker; this was the last use.
        unsafe { self.component.release(self.at) };
    }
}
