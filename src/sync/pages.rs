//! Hints to the system about pages that will be needed.

/// Maps so many bytes from page boundary `at` on, to be read, or written too: without it the first access to each page is a fault, as its page table has no entry yet. What cannot be mapped now (before Linux 5.14, or as `at` is no boundary) is so
/// when it is accessed.
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
