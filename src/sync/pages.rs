// SPDX-License-Identifier: BSD-3-Clause
//! Hints to the system about pages that will be needed.

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
use {
    nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap},
    std::num::NonZeroUsize,
    std::ptr::NonNull,
};

/// Maps so many bytes from page boundary `at` on, to be read, or written too: without it the first access to
/// each page is a fault, as its page table has no entry yet. What cannot be mapped now (before Linux 5.14, or
/// as `at` is no boundary) is so when it is accessed.
pub fn map(at: *mut u8, bytes: usize, writable: bool) {
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    if let Some(at) = NonNull::new(at) {
        let how = if writable { MmapAdvise::MADV_POPULATE_WRITE } else { MmapAdvise::MADV_POPULATE_READ };
        // SAFETY: changes no contents; the system refuses what is not mapped memory.
        let _ = unsafe { madvise(at.cast(), bytes, how) };
    }
    #[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
    let _ = (at, bytes, writable);
}

/// Whether the process has all memory that it will map locked (mlockall with MCL_FUTURE): then new memory is
/// there at once.
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub fn are_locked() -> bool {
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    let mut there = 0_u8;
    // SAFETY: a mapping of one byte's page, which nobody else knows; `there` has the one element. (nix has no
    // mincore.)
    unsafe {
        let Ok(page) = mmap_anonymous(None, NonZeroUsize::MIN, access, MapFlags::MAP_PRIVATE) else { return false };
        let known = libc::mincore(page.as_ptr(), 1, &raw mut there) == 0;
        let _ = munmap(page, 1);
        known && there & 1 == 1
    }
}

/// Whether it has; here nobody can.
#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
pub fn are_locked() -> bool {
    false
}
