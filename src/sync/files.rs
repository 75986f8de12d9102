// SPDX-License-Identifier: BSD-3-Clause
//! Files that processes of a node share: how one in memory is made, and how long one may be.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use std::ffi::CStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

/// A file in memory, for this user only, that can be sealed. `name` is what /proc shows.
pub fn in_memory(name: &CStr) -> io::Result<File> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    // Linux before 6.3 knows no MFD_NOEXEC_SEAL (nor does nix); later ones complain in their log where it is
    // missing.
    let no_programs = MFdFlags::from_bits_retain(libc::MFD_NOEXEC_SEAL);
    let made = memfd_create(name, flags | no_programs).or_else(|_| memfd_create(name, flags))?;
    let file = File::from(beyond_standard(made)?);
    // memfd_create gives all users all rights.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// What was just opened, by a descriptor of 3 or more, which no program takes for its standard input, output
/// or error.
///
/// A program may have closed these, before MPI starts or later, and may go on printing, or open something
/// else in their place. What the component keeps open must not lie there: what is printed would be written
/// into it, and what takes its place would be taken for it.
pub fn beyond_standard(opened: OwnedFd) -> io::Result<OwnedFd> {
    match opened.as_raw_fd() {
        // `try_clone` is F_DUPFD_CLOEXEC from 3 on.
        ..=libc::STDERR_FILENO => opened.try_clone(),
        _ => Ok(opened),
    }
}

/// How long a file may be (ulimit -f). To make one longer would be a signal (SIGXFSZ), not an error.
pub fn longest() -> u64 {
    getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(limit, _)| limit)
}
