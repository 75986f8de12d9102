// SPDX-License-Identifier: BSD-3-Clause
//! The placement store: a small key-value store in memory that the processes of a node share. One process of
//! the node writes it, all read it without a system call.
//!
//! * [`image`]: what a state of the store looks like: a directory and values, with a checksum;
//! * [`sequence`]: lists of numbers as runs and cycles, where they are regular;
//! * [`placement`]: what is stored of a job, and the groups that follow from it.
//!
//! There is room for two images. A reader reads the active one under a reader–writer lock. A writer, which
//! the lock keeps alone, makes the next image in the other room and then makes that the active one, by one
//! store. So a writer that dies at any of its steps leaves the image that was active before, whole; the
//! lock is there for a reader that is slower than two writers. Once an image is active nobody changes it,
//! so a reader checks its sum once.
//!
//! Of what is read nothing is trusted: offsets, lengths and counts are checked against what is there, and a
//! wrong one is an [`Error`].
#![forbid(unsafe_code)]

pub mod image;
pub mod placement;
pub mod sequence;

use crate::sync::rwlock::{self, Kind, Lock, Mcs, Slot};
use crate::sync::segment::{LINE, Segment};
use crate::sync::shared::{Ordering, SharedU64};
use image::{Image, Key};
use std::fmt;
use std::sync::Arc;

/// The first word of a store: a mark, and the number of the layout of all this, to be raised with any change.
const FORMAT: u64 = 0x636f_6c6c_7374 << 16 | 1;
/// Lines before the lock: the format, the number of words of each room, and which image is active.
const LINES: usize = 3;

/// Why a store cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is none in this memory, or one of another version.
    Format,
    /// The lock.
    Lock(rwlock::Error),
    /// What it holds contradicts itself.
    Corrupt,
    /// There is no room for it.
    Full,
    /// There is nothing under this key.
    Missing,
    /// What is to be put contradicts itself.
    Unsound,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Format => f.write_str("no placement store of this version"),
            Error::Lock(error) => error.fmt(f),
            Error::Corrupt => f.write_str("the placement store contradicts itself"),
            Error::Full => f.write_str("the placement store is full"),
            Error::Unsound => f.write_str("a job that contradicts itself is not stored"),
            Error::Missing => f.write_str("the placement store does not know this job"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rwlock::Error> for Error {
    fn from(error: rwlock::Error) -> Error {
        Error::Lock(error)
    }
}

/// What is put: a key, and its value; `None` removes.
pub type Change = (Key, Option<Vec<u64>>);

/// A store, as one process sees it. By default under the lock whose readers are the fastest.
pub struct Store<K: Kind = Mcs> {
    segment: Arc<Segment>,
    lock: Lock<K>,
    /// The first word of the first room, and words of each.
    rooms: usize,
    room: usize,
}

impl<K: Kind> Store<K> {
    /// Words of memory for a store with images of so many words, which so many threads read at a time.
    pub fn words(room: usize, readers: usize) -> usize {
        let room = room.checked_next_multiple_of(LINE).unwrap_or(usize::MAX);
        Store::<K>::rooms(readers).saturating_add(room.saturating_mul(2))
    }

    fn rooms(readers: usize) -> usize {
        LINES * LINE + Lock::<K>::words(readers.min(rwlock::MOST_READERS))
    }

    /// Makes an empty one in zeroed memory that nobody else looks at yet.
    pub fn create(segment: Arc<Segment>, room: usize, readers: usize) -> Result<Store<K>, Error> {
        let rounded = room.checked_next_multiple_of(LINE).filter(|room| u32::try_from(*room).is_ok());
        let room = rounded.ok_or(Error::Full)?;
        let lock = Lock::create(segment.clone(), LINES * LINE, readers)?;
        if segment.words().len() < Store::<K>::words(room, readers) {
            return Err(Error::Full);
        }
        let word = |line: usize| &segment.words()[line * LINE];
        word(1).store((room as u64) << 32 | readers as u64, Ordering::Relaxed);
        // Who sees the format sees the rest.
        word(0).store(FORMAT, Ordering::Release);
        Ok(Store { rooms: Store::<K>::rooms(readers), room, lock, segment })
    }

    /// The one that somebody has made.
    pub fn attach(segment: Arc<Segment>) -> Result<Store<K>, Error> {
        let word = |line: usize| segment.words().get(line * LINE).ok_or(Error::Format);
        if word(0)?.load(Ordering::Acquire) != FORMAT {
            return Err(Error::Format);
        }
        let sizes = word(1)?.load(Ordering::Relaxed);
        let (room, readers) = ((sizes >> 32) as usize, sizes as u32 as usize);
        let fits = segment.words().len() >= Store::<K>::words(room, readers) && room.is_multiple_of(LINE);
        if !fits {
            return Err(Error::Corrupt);
        }
        let lock = Lock::attach(segment.clone(), LINES * LINE)?;
        Ok(Store { rooms: Store::<K>::rooms(readers), room, lock, segment })
    }

    /// How many images there have been; the last one is in the room of its parity.
    fn active(&self) -> &SharedU64 {
        &self.segment.words()[2 * LINE]
    }

    fn room(&self, number: u64) -> &[SharedU64] {
        let at = self.rooms + (number as usize & 1) * self.room;
        self.segment.words().get(at..at + self.room).unwrap_or_default()
    }

    /// Puts values under keys, all at once: others see the state before, or the one after. `None` removes.
    /// The number of the new image.
    pub fn put(&self, changes: &[Change]) -> Result<u64, Error> {
        self.put_by(|_| (), changes)
    }

    /// The same; `step` is called before each store to memory that others see, with its number.
    pub fn put_by(&self, step: impl Fn(usize), changes: &[Change]) -> Result<u64, Error> {
        self.lock.write(|_| {
            // Whatever the last writer left in the other room is overwritten.
            let number = self.active().load(Ordering::Relaxed);
            let next = number.wrapping_add(1);
            let values = if number == 0 { Vec::new() } else { Image::checked(self.room(number))?.values() };
            let written = image::write(self.room(next), values, changes, &step)?;
            step(written);
            // Release: who sees the number sees the image.
            self.active().store(next, Ordering::Release);
            Ok(next)
        })?
    }

    /// The memory that it lies in.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Reads for the calling thread: by its slot of the lock, `wanted` if that is free.
    pub fn reader(&self, wanted: usize) -> Result<Reader<'_, K>, Error> {
        Ok(Reader { store: self, slot: self.lock.slot(wanted)?, checked: 0 })
    }
}

/// A thread's way to read a store.
pub struct Reader<'a, K: Kind = Mcs> {
    store: &'a Store<K>,
    slot: Slot<K>,
    /// The image whose sum this reader has checked.
    checked: u64,
}

impl<K: Kind> Reader<'_, K> {
    /// Looks at the active image. No writer changes anything meanwhile, so it should not be for long.
    #[inline]
    pub fn look<R>(&mut self, look: impl FnOnce(Image<'_>) -> Result<R, Error>) -> Result<R, Error> {
        let (store, checked) = (self.store, &mut self.checked);
        self.slot.read(|_| {
            let number = store.active().load(Ordering::Acquire);
            let room = store.room(number);
            if number == 0 {
                return Err(Error::Missing);
            }
            let image = if *checked == number { Image::unchecked(room)? } else { Image::checked(room)? };
            *checked = number;
            look(image)
        })?
    }

    /// A copy of the value under a key.
    pub fn get(&mut self, key: Key) -> Result<Vec<u64>, Error> {
        self.look(|image| Ok(image.get(key)?.to_vec()))
    }
}
