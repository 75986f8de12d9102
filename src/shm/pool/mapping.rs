// SPDX-License-Identifier: BSD-3-Clause
//! The file of a pool in a process' address space: all of it has an address, and only what groups use can be
//! accessed.
//!
//! A pool is as long as a process may ever need, and sparse. Its pages are [opened](Mapping::open) when a
//! group first uses them: until then nothing can make the system provide them, be it mlockall(2), a wrong
//! read, or a tool that looks at all that is mapped. Core dumps leave pools out.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mlock, mmap, mprotect, munlock, munmap};

use crate::shm::memory::{PAGE, Page};
use crate::shm::os::system_page;
use crate::shm::pool::alloc::PageSet;
use crate::sync::pages;

/// A shared mapping of a file, from its beginning on.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// What is open can be written, and not only the first page of the system, which always can.
    writable: bool,
    /// The process has its memory locked (mlockall): what is open shall be so too.
    locks: bool,
    /// Pages of the system that are open.
    open: Mutex<PageSet>,
    /// Pages that have been [mapped ahead](Mapping::map_ahead).
    ahead: Mutex<PageSet>,
}

// SAFETY: a mapping is an address; who reads and writes there answers for it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Gives the first `len` bytes of `file` an address. The first page of the system is open.
    pub fn of(file: &File, len: u64, writable: bool) -> io::Result<Mapping> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let all = NonZeroUsize::new(len).ok_or(io::ErrorKind::InvalidInput)?;
        let locks = pages::are_locked();
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { mmap(None, all, ProtFlags::PROT_NONE, MapFlags::MAP_SHARED, file, 0) }?.cast();
        let set = |page: usize| Mutex::new(PageSet::new(u32::try_from(len.div_ceil(page)).unwrap_or(u32::MAX)));
        let map = Mapping { start, len, writable, locks, open: set(unit()), ahead: set(PAGE) };
        // SAFETY: our mapping. That it is not locked as a whole, and not dumped, are wishes.
        unsafe {
            if locks {
                let _ = munlock(start.cast(), len);
            }
            let _ = madvise(start.cast(), len, MmapAdvise::MADV_DONTDUMP);
        }
        map.protect(0, unit().min(len), true)?;
        lock(&map.open).add(0, 1);
        Ok(map)
    }

    /// Lets the caller access pages of the pool, whose owner has reserved them.
    pub fn open(&self, first: Page, count: u32) -> io::Result<()> {
        let (unit, end) = (unit(), (first as usize + count as usize) * PAGE);
        assert!(end <= self.len, "page {first}, {count} pages: outside the pool");
        let first = first as usize * PAGE / unit;
        let count = (end.div_ceil(unit) - first) as u32;
        let mut open = lock(&self.open);
        for run in open.runs(first as u32, count).iter().filter(|run| !run.inside) {
            let (at, bytes) = (run.first as usize * unit, run.count as usize * unit);
            let bytes = bytes.min(self.len - at);
            if self.protect(at, bytes, self.writable).is_err() {
                // The process has as many mappings as it may: all of the pool together needs no more of them.
                self.protect(unit, self.len - unit, self.writable)?;
            }
            if self.locks {
                // SAFETY: changes no contents. A wish: there is a limit.
                let _ = unsafe { mlock(self.at(at), bytes) };
            }
        }
        open.add(first as u32, count);
        Ok(())
    }

    fn protect(&self, at: usize, bytes: usize, writable: bool) -> io::Result<()> {
        let access = if writable { ProtFlags::PROT_READ | ProtFlags::PROT_WRITE } else { ProtFlags::PROT_READ };
        // SAFETY: within the mapping; what can be written already stays so.
        Ok(unsafe { mprotect(self.at(at), bytes, access) }?)
    }

    /// A place within it, for the system.
    fn at(&self, at: usize) -> NonNull<c_void> {
        self.start.map_addr(|start| start.saturating_add(at)).cast()
    }

    /// Opens pages of the pool, and maps those that have not been mapped so before. Again it would change
    /// nothing, but take 50 µs for 2 MiB.
    pub fn map_ahead(&self, first: Page, count: u32) {
        if self.open(first, count).is_err() {
            return;
        }
        let mut ahead = lock(&self.ahead);
        for run in ahead.runs(first, count).iter().filter(|run| !run.inside) {
            let at = self.start().wrapping_add(run.first as usize * PAGE);
            pages::map(at, run.count as usize * PAGE, self.writable);
        }
        ahead.add(first, count);
    }

    /// The owner has given pages back to the system.
    pub fn forget_ahead(&self, first: Page, count: u32) {
        lock(&self.ahead).remove(first, count);
    }

    /// Where it starts: at a page of the system.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nobody holds an address in it any more (`Group` and `Pool` see to
        // it).
        let _ = unsafe { munmap(self.start.cast(), self.len) };
    }
}

/// Bytes that are opened at a time.
fn unit() -> usize {
    PAGE.max(system_page() as usize)
}

fn lock(set: &Mutex<PageSet>) -> std::sync::MutexGuard<'_, PageSet> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}
