//! Hints to the system about pages that will be needed.

/// Maps so many bytes from page boundary `at` on, to be read, or written too: without it the first access to
/// each page is a fault, as its page table has no entry yet. What cannot be mapped now (before Linux 5.14, or
/// as `at` is no boundary) is so when it is accessed.
pub fn map(at: *mut u8, bytes: usize, writable: bool) {
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    // SAFETY: changes no contents; the system refuses what is not mapped memory.
    unsafe {
        let how = if writable { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
        libc::madvise(at.cast(), bytes, how);
    }
    #[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
    let _ = (at, bytes, writable);
}

/// Whether the process has all memory that it will map locked (mlockall with MCL_FUTURE): then new memory is
/// there at once.
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub fn are_locked() -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mut there = 0_u8;
    // SAFETY: a mapping of one byte's page, which nobody else knows; `there` has the one element.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), 1, access, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return false;
        }
        let known = libc::mincore(page, 1, &raw mut there) == 0;
        libc::munmap(page, 1);
        known && there & 1 == 1
    }
}

/// Whether it has; here nobody can.
#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
pub fn are_locked() -> bool {
    false
}
