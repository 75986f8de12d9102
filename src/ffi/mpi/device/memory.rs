// SPDX-License-Identifier: BSD-3-Clause
//! Host memory that stands in for a device's.
//!
//! An accelerator copies beside the program only to and from memory whose pages are locked. To lock them
//! takes about as long as to copy them, so memory of some size is kept, with its pages locked, for the next
//! operation.

use crate::endpoint::{Error, Result};
use crate::ffi::base::glue;
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Alignment: a page.
const ALIGN: usize = 4096;

/// Memory of a multiple of so many bytes is locked and kept; what is shorter is not.
const UNIT: usize = 1 << 20;

/// So many bytes are kept in all, and no longer memory is locked.
const KEPT: usize = 64 << 20;

/// What is kept.
static SPARE: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// Memory of an operation. It is not given back when it is dropped: after an error, messages may still touch
/// it.
pub struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    locked: bool,
}

// SAFETY: it owns its memory.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// So many bytes at least.
    pub fn of(bytes: usize) -> Result<Memory> {
        let lockable = (UNIT..=KEPT).contains(&bytes);
        let size = if lockable { bytes.next_multiple_of(UNIT) } else { bytes.max(1) };
        if lockable {
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |i: &usize| (size..=2 * size).contains(&spare[*i].layout.size());
            if let Some(found) = (0..spare.len()).filter(fits).min_by_key(|&i| spare[i].layout.size()) {
                return Ok(spare.swap_remove(found));
            }
        }
        let layout = Layout::from_size_align(size, ALIGN).map_err(|_| Error::NoMemory(bytes))?;
        // SAFETY: the size is at least 1.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(Error::NoMemory(bytes))?;
        // SAFETY: it is ours, and unlocked before it is given back.
        let locked = lockable && unsafe { glue::cr_host_lock(start.as_ptr().cast(), size) } != 0;
        Ok(Memory { start, layout, locked })
    }

    /// Where it begins.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Gives it back, or keeps it. Nobody uses it any more.
    pub fn free(self) {
        if self.locked {
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.iter().map(|memory| memory.layout.size()).sum::<usize>() + self.layout.size() <= KEPT {
                return spare.push(self);
            }
            // SAFETY: locked in `of`.
            unsafe { glue::cr_host_unlock(self.start.as_ptr().cast()) };
        }
        // SAFETY: allocated in `of` with this layout; nobody uses it any more.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
