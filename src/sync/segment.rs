// SPDX-License-Identifier: BSD-3-Clause
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
    use crate::sync::files;
    use nix::fcntl::{FcntlArg, SealFlag, fcntl, posix_fallocate};
    use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
    use std::ffi::c_void;
    use std::fs::File;
    use std::num::NonZeroUsize;

    const ACCESS: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);

    impl Segment {
        /// Zeroed memory that the caller shares with the children that it forks from now on.
        pub fn anonymous(words: usize) -> io::Result<Segment> {
            // SAFETY: a new mapping at an address that the kernel chooses.
            Segment::map(words, |bytes| unsafe { mmap_anonymous(None, bytes, ACCESS, MapFlags::MAP_SHARED) })
        }

        /// Zeroed memory in a file without a name, and the file, by which others [attach](Segment::of). It
        /// can neither shrink nor grow, and its pages are there: no access to it is a bus error.
        pub fn create(words: usize) -> io::Result<(Segment, File)> {
            let bytes = words.checked_mul(8).and_then(|bytes| libc::off_t::try_from(bytes).ok());
            let bytes = bytes.ok_or(io::ErrorKind::OutOfMemory)?;
            let file = files::in_memory(c"coll-rust-store")?;
            if bytes as u64 > files::longest() {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            posix_fallocate(&file, 0, bytes)?;
            let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
            fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
            Ok((Segment::in_file(words, &file)?, file))
        }

        /// What [`create`](Segment::create) made, as its file says; another file is refused.
        pub fn of(file: &File) -> io::Result<Segment> {
            let seals = fcntl(file, FcntlArg::F_GET_SEALS).map_or(SealFlag::empty(), SealFlag::from_bits_retain);
            if !seals.contains(SealFlag::F_SEAL_SHRINK) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let words = usize::try_from(file.metadata()?.len() / 8).map_err(|_| io::ErrorKind::OutOfMemory)?;
            Segment::in_file(words, file)
        }

        fn in_file(words: usize, file: &File) -> io::Result<Segment> {
            // SAFETY: a new mapping at an address that the kernel chooses.
            Segment::map(words, |bytes| unsafe { mmap(None, bytes, ACCESS, MapFlags::MAP_SHARED, file, 0) })
        }

        /// `map` makes a mapping of so many bytes.
        fn map(words: usize, map: impl FnOnce(NonZeroUsize) -> nix::Result<NonNull<c_void>>) -> io::Result<Segment> {
            let bytes = words.checked_mul(8).and_then(NonZeroUsize::new).ok_or(io::ErrorKind::InvalidInput)?;
            Ok(Segment { start: map(bytes)?.cast(), words })
        }
    }

    impl Drop for Segment {
        fn drop(&mut self) {
            // SAFETY: the mapping is ours, and who refers to it borrows it or shares in it.
            let _ = unsafe { munmap(self.start.cast(), self.words * 8) };
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
