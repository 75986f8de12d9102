// SPDX-License-Identifier: BSD-3-Clause
//! The locks that take part.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coll_rust::sync::rwlock::{Kind, Lock, Slot};
use coll_rust::sync::segment::Segment;

use crate::error::{Error, Result};

/// A lock under test.
pub trait Guard: Sync {
    /// What one reader has of it.
    type Reader<'a>
    where
        Self: 'a;

    /// For reader number `reader`, in its own process or thread.
    fn reader(&self, reader: usize) -> Result<Self::Reader<'_>>;
    /// Takes the lock to read, reads, and gives it back.
    fn read(reader: &mut Self::Reader<'_>, look: impl Fn());
    /// Takes the lock to write: how long that took.
    fn write(&self, change: impl Fn()) -> Result<Duration>;
}

fn failed(what: &str, error: impl std::fmt::Display) -> Error {
    Error::Measure(format!("{what}: {error}"))
}

/// Memory that children share with the caller.
pub fn memory(words: usize) -> Result<Arc<Segment>> {
    Segment::anonymous(words).map(Arc::new).map_err(|error| failed("shared memory", error))
}

impl<K: Kind> Guard for Lock<K> {
    type Reader<'a>
        = Slot<K>
    where
        Self: 'a;

    fn reader(&self, reader: usize) -> Result<Slot<K>> {
        self.slot(reader).map_err(|error| failed(K::NAME, error))
    }

    #[inline]
    fn read(reader: &mut Slot<K>, look: impl Fn()) {
        // A failure shows in the writer.
        let _ = reader.read(|_| look());
    }

    fn write(&self, change: impl Fn()) -> Result<Duration> {
        let begun = Instant::now();
        let inside = self.write(|_| {
            let inside = Instant::now();
            change();
            inside
        });
        Ok(inside.map_err(|error| failed(K::NAME, error))?.duration_since(begun))
    }
}

/// One of `coll_rust`'s, for so many readers.
pub fn ours<K: Kind>(readers: usize) -> Result<Lock<K>> {
    Lock::create(memory(Lock::<K>::words(readers))?, 0, readers).map_err(|error| failed(K::NAME, error))
}

/// The C library's, shared by processes; writers go first, as with the default ones readers that never pause
/// keep the writer out for ever.
pub struct Posix(Arc<Segment>);

impl Posix {
    /// A new one.
    pub fn new() -> Result<Posix> {
        const _: () = assert!(size_of::<libc::pthread_rwlock_t>() <= 128);
        // One of the settings that libc has no name for: PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP.
        const WRITERS_FIRST: i32 = 2;
        unsafe extern "C" {
            fn pthread_rwlockattr_setkind_np(kind: *mut libc::pthread_rwlockattr_t, which: i32) -> i32;
        }
        let lock = Posix(memory(16)?);
        let mut kind = MaybeUninit::uninit();
        // SAFETY: the attributes are ours; the memory has room for the lock, and nobody else knows it yet.
        let code = unsafe {
            libc::pthread_rwlockattr_init(kind.as_mut_ptr());
            libc::pthread_rwlockattr_setpshared(kind.as_mut_ptr(), libc::PTHREAD_PROCESS_SHARED);
            pthread_rwlockattr_setkind_np(kind.as_mut_ptr(), WRITERS_FIRST);
            libc::pthread_rwlock_init(lock.at(), kind.as_ptr())
        };
        if code == 0 { Ok(lock) } else { Err(failed("pthread_rwlock_init", std::io::Error::from_raw_os_error(code))) }
    }

    fn at(&self) -> *mut libc::pthread_rwlock_t {
        self.0.words()[0].as_ptr().cast()
    }
}

impl Guard for Posix {
    type Reader<'a> = &'a Posix;

    fn reader(&self, _reader: usize) -> Result<&Posix> {
        Ok(self)
    }

    #[inline]
    fn read(reader: &mut &Posix, look: impl Fn()) {
        // SAFETY: it was initialised, and is given back by who took it.
        unsafe { libc::pthread_rwlock_rdlock(reader.at()) };
        look();
        // SAFETY: as above.
        unsafe { libc::pthread_rwlock_unlock(reader.at()) };
    }

    fn write(&self, change: impl Fn()) -> Result<Duration> {
        let begun = Instant::now();
        // SAFETY: as above.
        unsafe { libc::pthread_rwlock_wrlock(self.at()) };
        let waited = begun.elapsed();
        change();
        // SAFETY: as above.
        unsafe { libc::pthread_rwlock_unlock(self.at()) };
        Ok(waited)
    }
}

/// That of the crate `parking_lot`, which keeps its waiters in the process: for threads only.
#[derive(Default)]
pub struct Parking(parking_lot::RwLock<()>);

impl Guard for Parking {
    type Reader<'a> = &'a Parking;

    fn reader(&self, _reader: usize) -> Result<&Parking> {
        Ok(self)
    }

    #[inline]
    fn read(reader: &mut &Parking, look: impl Fn()) {
        let _held = reader.0.read();
        look();
    }

    fn write(&self, change: impl Fn()) -> Result<Duration> {
        let begun = Instant::now();
        let _held = self.0.write();
        let waited = begun.elapsed();
        change();
        Ok(waited)
    }
}
