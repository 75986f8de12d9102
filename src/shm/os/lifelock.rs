// SPDX-License-Identifier: BSD-3-Clause
//! Whether a process lives that no pidfd shows, such as one in another container: by a lock on its pool's
//! file.
//!
//! The owner locks the file through its own open file description (F_OFD_SETLK, fcntl(2)), and never unlocks
//! it. The kernel does when that description goes: the last descriptor of it, and the last mapping made
//! through it. So it does when the process dies, however it dies. Who has opened the same file anew has
//! another description, and can ask whether the lock is there (F_OFD_GETLK), from any name space that the
//! file is seen in.
//!
//! A robust mutex in the pool would tell of the death of the thread that has locked it, not of the process: a
//! program may make a communicator in a thread that ends, and would be taken for dead. A lock of the whole
//! process (F_SETLK) goes as soon as the program closes any descriptor of the file. This one errs the other
//! way only: a child that was forked, and has not called exec, keeps it; and who cannot tell says that the
//! process lives.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::fcntl::{FcntlArg, fcntl};

/// All of a file, for writing.
fn all() -> libc::flock {
    // For this kind of lock l_pid must be 0.
    libc::flock { l_type: libc::F_WRLCK as _, l_whence: libc::SEEK_SET as _, l_start: 0, l_len: 0, l_pid: 0 }
}

/// Locks the caller's file for as long as its process lives: whether that worked.
pub fn take(file: &File) -> bool {
    fcntl(file, FcntlArg::F_OFD_SETLK(&all())).is_ok()
}

/// Another process' file, which its owner has [locked](take).
#[derive(Debug)]
pub struct Lifelock {
    file: File,
    /// Device and number: a program may close descriptors that it does not know, and get the same number for
    /// something else.
    identity: (u64, u64),
}

impl Lifelock {
    /// To watch the owner of `file`, which the caller has opened itself.
    pub fn of(file: File) -> io::Result<Lifelock> {
        let data = file.metadata()?;
        Ok(Lifelock { identity: (data.dev(), data.ino()), file })
    }

    /// Whether the lock is known to be gone.
    pub fn is_gone(&self) -> bool {
        let mut lock = all();
        fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut lock)).is_ok()
            && lock.l_type == libc::F_UNLCK as libc::c_short
            && self.file.metadata().is_ok_and(|data| (data.dev(), data.ino()) == self.identity)
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    /// A file of the caller's, and the same opened anew.
    fn two() -> (File, File) {
        let file = crate::sync::files::in_memory(c"lifelock").unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let again = OpenOptions::new().read(true).write(true).open(path).unwrap();
        (file, again)
    }

    #[test]
    fn the_lock_goes_with_the_last_descriptor_of_its_owner() {
        let (file, again) = two();
        assert!(take(&file));
        let watch = Lifelock::of(again).unwrap();
        assert!(!watch.is_gone());
        let kept = file.try_clone().unwrap();
        drop(file);
        assert!(!watch.is_gone(), "the same description");
        drop(kept);
        assert!(watch.is_gone());
    }

    #[test]
    fn another_file_of_the_same_number_tells_nothing() {
        let (file, again) = two();
        let mut watch = Lifelock::of(again).unwrap();
        assert!(watch.is_gone(), "never locked");
        watch.identity.1 += 1;
        assert!(!watch.is_gone());
        drop(file);
    }
}
