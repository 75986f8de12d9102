//! Memory that the processes of a node share, as words: what the locks and the placement store lie in.
//!
//! Whoever has the words needs no `unsafe`: each is an atomic, and indices are checked.

use crate::sync::shared::SharedU64;
use std::io;
use std::ptr::NonNull;

/// Words of a cache line.
pub const LINE: usize = 8;

/// A shared mapping. It goes with its last owner, so who holds a lock in it shares in it (`Arc`).
#[derive(Debug)]
pub struct Segment {
    start: NonNull<SharedU64>,
    words: usize,
}

// SAFETY: an address of atomics, which live until the segment is dropped.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// All words; the first begins a page.
    pub fn words(&self) -> &[SharedU64] {
        // SAFETY: so many words are mapped for as long as the segment lives; any bits are a value of theirs.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

#[cfg(not(loom))]
mod mapped {
    use super::*;
    use std::ffi::CStr;
    use std::fs::{File, Permissions};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::fs::PermissionsExt;
    use std::ptr;

    impl Segment {
        /// Zeroed memory that the caller shares with the children that it forks from now on.
        pub fn anonymous(words: usize) -> io::Result<Segment> {
            Segment::map(words, -1, libc::MAP_ANONYMOUS)
        }

        /// Zeroed memory in a file without a name, and the file, by which others [attach](Segment::of). It
        /// can neither shrink nor grow, and its pages are there: no access to it is a bus error.
        pub fn create(words: usize) -> io::Result<(Segment, File)> {
            let bytes = words.checked_mul(8).and_then(|bytes| libc::off_t::try_from(bytes).ok());
            let bytes = bytes.ok_or(io::ErrorKind::OutOfMemory)?;
            let file = unnamed()?;
            if beyond_limit(bytes) {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            // SAFETY: both act on the caller's file.
            unsafe {
                match libc::posix_fallocate(file.as_raw_fd(), 0, bytes) {
                    0 => {}
                    code => return Err(io::Error::from_raw_os_error(code)),
                }
                let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
                if libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok((Segment::map(words, file.as_raw_fd(), 0)?, file))
        }

        /// What [`create`](Segment::create) made, as its file says; another file is refused.
        pub fn of(file: &File) -> io::Result<Segment> {
            // SAFETY: asks for the file's seals.
            let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
            if seals == -1 || seals & libc::F_SEAL_SHRINK == 0 {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let words = usize::try_from(file.metadata()?.len() / 8).map_err(|_| io::ErrorKind::OutOfMemory)?;
            Segment::map(words, file.as_raw_fd(), 0)
        }

        fn map(words: usize, file: i32, flags: i32) -> io::Result<Segment> {
            let bytes = words.checked_mul(8).filter(|bytes| *bytes > 0).ok_or(io::ErrorKind::InvalidInput)?;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping at an address that the kernel chooses.
            let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED | flags, file, 0) };
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Segment { start, words })
        }
    }

    /// A file in memory, for this user only.
    fn unnamed() -> io::Result<File> {
        const NAME: &CStr = c"coll-rust-store";
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // Linux before 6.3 knows no MFD_NOEXEC_SEAL, later ones complain in their log where it is missing.
        // SAFETY: a name with a 0 at its end.
        let made = unsafe {
            match libc::memfd_create(NAME.as_ptr(), flags | libc::MFD_NOEXEC_SEAL) {
                -1 => libc::memfd_create(NAME.as_ptr(), flags),
                made => made,
            }
        };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made.
        let mut file = unsafe { OwnedFd::from_raw_fd(made) };
        if made <= libc::STDERR_FILENO {
            // A program that has closed these may go on printing. This is F_DUPFD_CLOEXEC from 3 on.
            file = file.try_clone()?;
        }
        let file = File::from(file);
        // memfd_create gives all users all rights.
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(file)
    }

    /// Whether a file may not be so long: to make it would be a signal (SIGXFSZ), not an error.
    fn beyond_limit(bytes: libc::off_t) -> bool {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: fills `limit`.
        let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
        known && bytes as libc::rlim_t > limit.rlim_cur
    }

    impl Drop for Segment {
        fn drop(&mut self) {
            // SAFETY: the mapping is ours, and who refers to it borrows it or shares in it.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * 8) };
        }
    }
}

#[cfg(loom)]
impl Segment {
    /// Memory of the model: only the first word of each line, and the one behind a mutex, are known to the
    /// checker, and may be used.
    pub fn anonymous(words: usize) -> io::Result<Segment> {
        let memory: &'static mut [u64] = Box::leak(vec![0; words].into_boxed_slice());
        for (_, word) in memory.iter().enumerate().filter(|(at, _)| matches!(at % LINE, 0 | 6)) {
            crate::sync::model::register_word(std::ptr::from_ref(word).cast(), 0);
        }
        let start = NonNull::new(memory.as_mut_ptr().cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Segment { start, words })
    }
}

#[cfg(loom)]
impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: it was leaked by `anonymous`, and nobody refers to it any more.
        unsafe { drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.words))) };
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use crate::sync::shared::Ordering;

    #[test]
    fn two_mappings_are_one_memory() {
        let (one, file) = Segment::create(1000).unwrap();
        let two = Segment::of(&file).unwrap();
        one.words()[999].store(7, Ordering::Relaxed);
        assert_eq!((two.words().len(), two.words()[999].load(Ordering::Relaxed)), (1000, 7));
        assert!(file.set_len(8).is_err(), "it may not shrink");
    }

    #[test]
    fn what_may_shrink_or_is_empty_is_refused() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(Segment::of(&file).is_err());
        assert!(Segment::anonymous(0).is_err());
        assert!(Segment::create(usize::MAX / 8).is_err());
    }
}
