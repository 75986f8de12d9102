// SPDX-License-Identifier: BSD-3-Clause
//! Temporary buffers of processes whose accesses are under the clock.

use crate::endpoint::Rank;
use rustc_hash::FxHashMap;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;

/// Where buffers begin: nothing depends on where the allocator happens to put them.
const ALIGN: usize = 4096;

/// A process gets what it has given back, which is in its caches.
#[derive(Default)]
pub struct Pool {
    free: RefCell<FxHashMap<(Rank, usize), Vec<*mut u8>>>,
    all: RefCell<Vec<(*mut u8, Layout)>>,
}

impl Pool {
    /// So many bytes for a process.
    pub fn lend(&self, rank: Rank, bytes: usize) -> *mut u8 {
        if let Some(at) = self.free.borrow_mut().get_mut(&(rank, bytes)).and_then(Vec::pop) {
            return at;
        }
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).expect("a size");
        // SAFETY: not of size 0.
        let at = unsafe { alloc_zeroed(layout) };
        if at.is_null() {
            handle_alloc_error(layout);
        }
        self.all.borrow_mut().push((at, layout));
        at
    }

    /// It gives them back.
    pub fn give_back(&self, rank: Rank, at: *mut u8, bytes: usize) {
        self.free.borrow_mut().entry((rank, bytes)).or_default().push(at);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (at, layout) in self.all.get_mut().drain(..) {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(at, layout) };
        }
    }
}
