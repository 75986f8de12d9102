// SPDX-License-Identifier: BSD-3-Clause
//! Where the words of a lock lie. Each begins a cache line of its own, so that no two processes write one.
//!
//! | line | holds |
//! | --- | --- |
//! | 0 | what says that the lock is set up, its kind, and how many readers it has |
//! | 1 | not 0: a writer has begun to write and has not ended |
//! | 2 | the mutex that a writer holds from before it waits until after it has let all readers in |
//! | 3 … | of each reader: the mutex of its slot, then the lines of the kind |

use super::robust::Robust;
use super::{BEHIND, Error, Kind, MOST_READERS};
use crate::sync::segment::{LINE, Segment};
use crate::sync::shared::{Ordering, SharedU64};
use std::sync::Arc;

/// Lines before those of the readers.
const FIRST: usize = 3;
/// In the upper half of line 0; the number of readers is in the lower.
const MARK: u64 = 0x6c6f_636b;

/// The memory of one lock.
#[derive(Clone, Debug)]
pub struct Area {
    segment: Arc<Segment>,
    /// Its first word.
    at: usize,
    readers: usize,
    /// Lines of each reader.
    lines: usize,
}

impl Area {
    /// Words that a lock for so many readers takes.
    pub fn words<K: Kind>(readers: usize) -> usize {
        (FIRST + readers * (1 + K::LINES)) * LINE
    }

    /// Without a look at what is there.
    fn of<K: Kind>(segment: Arc<Segment>, at: usize, readers: usize) -> Result<Area, Error> {
        let end = at.checked_add(Area::words::<K>(readers.min(MOST_READERS)));
        let fits = end.is_some_and(|end| end <= segment.words().len()) && at.is_multiple_of(LINE);
        match (1..=MOST_READERS).contains(&readers) && fits {
            true => Ok(Area { segment, at, readers, lines: 1 + K::LINES }),
            false => Err(Error::Layout),
        }
    }

    /// Sets a lock up in zeroed memory that nobody else looks at yet.
    pub fn create<K: Kind>(segment: Arc<Segment>, at: usize, readers: usize) -> Result<Area, Error> {
        let area = Area::of::<K>(segment, at, readers)?;
        area.writer().set_up()?;
        for reader in 0..readers {
            area.slot(reader).set_up()?;
        }
        K::set_up(&area)?;
        // Who sees the mark sees what was set up.
        area.line(0).store((MARK + K::NUMBER) << 32 | readers as u64, Ordering::Release);
        Ok(area)
    }

    /// A lock that somebody has set up.
    pub fn attach<K: Kind>(segment: Arc<Segment>, at: usize) -> Result<Area, Error> {
        let word = segment.words().get(at).ok_or(Error::Layout)?.load(Ordering::Acquire);
        if word >> 32 != MARK + K::NUMBER {
            return Err(Error::Layout);
        }
        Area::of::<K>(segment, at, word as u32 as usize)
    }

    fn line(&self, line: usize) -> &SharedU64 {
        &self.segment.words()[self.at + line * LINE]
    }

    /// Not 0: a writer has begun to write and has not ended.
    pub fn unfinished(&self) -> &SharedU64 {
        self.line(1)
    }

    /// The mutex of writers.
    pub fn writer(&self) -> Robust<'_> {
        Robust::at(self.line(2))
    }

    /// The mutex that the thread holds whose slot this is, for as long as it has the slot.
    pub fn slot(&self, reader: usize) -> Robust<'_> {
        Robust::at(self.line(FIRST + reader * self.lines))
    }

    /// Not 0: a thread has this slot. Behind its mutex, which others also hold for a moment, to see whether
    /// that thread lives.
    pub fn taken(&self, reader: usize) -> &SharedU64 {
        &self.segment.words()[self.at + (FIRST + reader * self.lines) * LINE + BEHIND]
    }

    /// A line of the kind.
    pub fn word(&self, reader: usize, line: usize) -> &SharedU64 {
        self.line(FIRST + reader * self.lines + 1 + line)
    }

    /// A mutex in a line of the kind.
    pub fn mutex(&self, reader: usize, line: usize) -> Robust<'_> {
        Robust::at(self.word(reader, line))
    }

    /// The numbers of the readers.
    pub fn readers(&self) -> std::ops::Range<usize> {
        0..self.readers
    }

    /// The memory that it lies in.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }
}
