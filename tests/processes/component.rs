// SPDX-License-Identifier: BSD-3-Clause
//! Components that read other processes' memory, as an MPI library would bring them, made of
//! process_vm_readv. They note what is about, and refuse what a real one would not survive.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use coll_rust::shm::copy::cma;
use coll_rust::shm::copy::smsc::{Component, Endpoint, View};
use coll_rust::shm::group::reading::Ways;

/// What a component does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Copies,
    Maps,
}

#[derive(Debug)]
pub struct Fake {
    what: What,
    /// Views that have not been given back.
    pub about: AtomicIsize,
    /// Refuses to read more than a probe does.
    pub tired: AtomicBool,
    views: Mutex<HashMap<usize, Vec<u8>>>,
}

impl Fake {
    /// One that lasts as long as the process.
    pub fn leaked(what: What) -> &'static Fake {
        let (about, tired, views) = Default::default();
        Box::leak(Box::new(Fake { what, about, tired, views }))
    }
}

/// The endpoint of a process: its number.
pub fn endpoint(ways: Ways, pid: u32) -> Option<Endpoint> {
    let component = ways.smsc?;
    let at = NonNull::new(Box::into_raw(Box::new(pid as i32)).cast())?;
    // SAFETY: made as `release` takes it.
    Some(unsafe { Endpoint::new(component, at) })
}

fn pid(endpoint: NonNull<u8>) -> i32 {
    // SAFETY: made in `endpoint`.
    unsafe { endpoint.cast::<i32>().read() }
}

// SAFETY: views are boxes that last until they are given back.
unsafe impl Component for Fake {
    fn maps(&self) -> bool {
        self.what == What::Maps
    }

    unsafe fn copy(&self, endpoint: NonNull<u8>, from: u64, to: *mut u8, bytes: usize) -> bool {
        assert!(!self.maps(), "a component that maps is not asked to copy");
        // SAFETY: by the caller's promise.
        !(self.tired.load(Ordering::Relaxed) && bytes > cma::SECRET)
            && unsafe { cma::read(pid(endpoint), from, to, bytes) }.is_ok()
    }

    unsafe fn map(&self, endpoint: NonNull<u8>, from: u64, bytes: usize) -> Option<View> {
        if self.tired.load(Ordering::Relaxed) && bytes > cma::SECRET {
            return None;
        }
        let mut room = vec![0; bytes];
        // SAFETY: so long.
        unsafe { cma::read(pid(endpoint), from, room.as_mut_ptr(), bytes) }.ok()?;
        let start = room.as_mut_ptr();
        self.about.fetch_add(1, Ordering::Relaxed);
        assert!(self.views.lock().unwrap().insert(start as usize, room).is_none());
        Some(View { start, context: start })
    }

    unsafe fn unmap(&self, view: View) {
        self.about.fetch_sub(1, Ordering::Relaxed);
        assert!(self.views.lock().unwrap().remove(&(view.context as usize)).is_some(), "a view of ours");
    }

    unsafe fn release(&self, endpoint: NonNull<u8>) {
        // SAFETY: made in `endpoint`.
        drop(unsafe { Box::from_raw(endpoint.as_ptr().cast::<i32>()) });
    }
}
