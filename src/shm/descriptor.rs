//! Descriptors that no program takes for its standard input, output or error.
//!
//! A program may have closed these, before MPI starts or later, and may go on printing, or open something
//! else in their place. What the component keeps open must not lie there: what is printed would be written
//! into it, and what takes its place would be taken for it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// What was just opened, by a descriptor of 3 or more.
pub fn beyond_standard(opened: OwnedFd) -> io::Result<OwnedFd> {
    match opened.as_raw_fd() {
        // `try_clone` is F_DUPFD_CLOEXEC from 3 on.
        ..=libc::STDERR_FILENO => opened.try_clone(),
        _ => Ok(opened),
    }
}
