// SPDX-License-Identifier: BSD-3-Clause
//! When to write to a queue past the caches.
//!
//! Who writes a line that another core has read must have it given back, and where the two share no cache
//! that goes line by line, which prefetching for writing does not change. Stores past the caches need no
//! line, wherever it is; the reader then has them from memory (docs/design/long-messages.md).
//!
//! Who is near and who is far is not what topologies say: virtual processors move. So a writer looks how long
//! its writes take. Once they are as slow as far ones it writes past the caches for some time, and then tries
//! again.

use crate::sync::cache::Stores;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Fewer bytes go through the caches in any case.
pub const LEAST: usize = 4 << 10;
/// Shorter writes count together, as one of so many bytes.
const COUNTS: usize = 8 << 10;
const TOGETHER: u64 = 16 << 10;
/// What is slow: so many ticks of the time stamp counter for a cache line, 9 to 17 ns, in the mean of
/// [`SAMPLES`] writes. At 2.6 GHz a near cache takes 18, and up to 30 while both write; a far one 73; and 3
/// what no other core has read, as where some readers share the writer's core; what the writer reads from
/// memory takes 10 to 20.
const SLOW: u64 = 34;
/// The same where processes take turns on the cores. There a part of the lines was read on the writer's own
/// core (with half of them far the mean is 38, with a third 26). Two with cores of their own lost by it.
const CROWDED_SLOW: u64 = 24;
/// A write counts for no more than so many: it may have been interrupted.
const MOST: u64 = 76;
const LINE: u64 = 64;
/// So many lines are still on their way when a write is over, and do not count.
const BUFFERED: u64 = 32;
/// Decides after so many writes. (The first one after others past the caches finds all lines at their
/// reader.)
const SAMPLES: u32 = 4;
/// For so many ticks it then writes past the caches: some 1 ms at first, and twice as long each time that
/// nothing has changed, up to some 50.
const FIRST: u64 = 2 << 20;
const LONGEST: u64 = 128 << 20;

/// Where slots [rotate](crate::shm::config::Config::rotates) it must have found nothing slow so many times in
/// a row before it forgets for how long it decided last: what was written past the caches, and has left those
/// of its reader, comes from memory, and is no slower than what is near. So long as it takes to go once round
/// 2 MiB, and a bit.
const FAST: u32 = 40;

/// Of so many results one is made elsewhere and written, to see how long that takes.
const SAMPLE: u32 = 8;

/// What is known of the latest writes. Hints: threads may be in each other's way.
pub struct Pace {
    stores: AtomicU8,
    /// Whether processes take turns on the cores.
    crowded: AtomicBool,
    /// Whether slots rotate.
    rotates: AtomicBool,
    /// How many times in a row nothing was slow.
    fast: AtomicU32,
    /// So many measure what goes through the caches.
    held: AtomicU32,
    /// Writes since it last decided, and how many ticks each of their lines took, added up.
    samples: AtomicU32,
    sum: AtomicU64,
    /// For how long it last decided.
    term: AtomicU64,
    /// When that is over.
    until: AtomicU64,
    /// What short writes that do not count yet have written, and how long they took.
    bytes: AtomicU64,
    took: AtomicU64,
    /// Results that were made since the process began, while nothing was decided.
    made: AtomicU32,
}

impl Pace {
    /// Nothing is known.
    pub const fn new(stores: Stores) -> Pace {
        Pace {
            stores: AtomicU8::new(stores as u8),
            crowded: AtomicBool::new(false),
            rotates: AtomicBool::new(false),
            fast: AtomicU32::new(0),
            held: AtomicU32::new(0),
            samples: AtomicU32::new(0),
            sum: AtomicU64::new(0),
            term: AtomicU64::new(0),
            until: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            took: AtomicU64::new(0),
            made: AtomicU32::new(0),
        }
    }

    /// Makes it write so from now on.
    pub fn set(&self, stores: Stores) {
        self.stores.store(stores as u8, Relaxed);
    }

    /// Whether it was made to write so.
    pub fn is(&self, stores: Stores) -> bool {
        self.stores.load(Relaxed) == stores as u8
    }

    /// Says that processes take turns on the cores.
    pub fn set_crowded(&self) {
        self.crowded.store(true, Relaxed);
    }

    /// Says that slots rotate.
    pub fn set_rotating(&self) {
        self.rotates.store(true, Relaxed);
    }

    /// Writes through the caches where it would be free to choose, until this has been
    /// [released](Self::release) as often.
    pub fn hold(&self) {
        self.held.fetch_add(1, Relaxed);
    }

    /// See [`hold`](Self::hold).
    pub fn release(&self) {
        self.held.fetch_sub(1, Relaxed);
    }

    /// How to write `len` bytes now, by the time stamp counter.
    #[inline(always)]
    pub fn ask(&self, len: usize, now: u64) -> Way {
        let stores = self.stores.load(Relaxed);
        if len < LEAST || stores == Stores::Cached as u8 {
            Way::Cached
        } else if stores == Stores::Streaming as u8 {
            Way::Past
        } else if self.held.load(Relaxed) > 0 {
            Way::Cached
        } else if (1..=LONGEST).contains(&self.until.load(Relaxed).wrapping_sub(now)) {
            // Not for ever where the counter has been set back.
            Way::Past
        } else {
            Way::Noted(now)
        }
    }

    /// Whether to make `len` bytes elsewhere, and then [write](Self::ask) them, rather than make them where
    /// they go.
    pub fn ask_maker(&self, len: usize, now: u64) -> bool {
        match self.ask(len, now) {
            Way::Past => true,
            Way::Cached => false,
            Way::Noted(_) => {
                let made = self.made.load(Relaxed).wrapping_add(1);
                self.made.store(made, Relaxed);
                made.is_multiple_of(SAMPLE)
            }
        }
    }

    /// Notes that a write of `len` bytes through the caches began and ended then.
    pub fn note(&self, len: usize, began: u64, ended: u64) {
        let (mut bytes, mut took) = (len as u64, ended.saturating_sub(began));
        if len < COUNTS {
            bytes += self.bytes.load(Relaxed);
            took = took.saturating_add(self.took.load(Relaxed));
            let enough = bytes >= TOGETHER;
            self.bytes.store(if enough { 0 } else { bytes }, Relaxed);
            self.took.store(if enough { 0 } else { took }, Relaxed);
            if !enough {
                return;
            }
        }
        let sample = (took / (bytes / LINE).saturating_sub(BUFFERED).max(1)).min(MOST);
        let (samples, sum) = (self.samples.load(Relaxed) + 1, self.sum.load(Relaxed) + sample);
        let enough = samples >= SAMPLES;
        self.samples.store(if enough { 0 } else { samples }, Relaxed);
        self.sum.store(if enough { 0 } else { sum }, Relaxed);
        let slow = if self.crowded.load(Relaxed) { CROWDED_SLOW } else { SLOW };
        if enough && sum > slow * u64::from(samples) {
            let term = (2 * self.term.load(Relaxed)).clamp(FIRST, LONGEST);
            self.term.store(term, Relaxed);
            self.until.store(ended.wrapping_add(term), Relaxed);
            self.fast.store(0, Relaxed);
        } else if enough {
            let fast = self.fast.load(Relaxed).saturating_add(1);
            self.fast.store(fast, Relaxed);
            if fast >= FAST || !self.rotates.load(Relaxed) {
                self.term.store(0, Relaxed);
            }
        }
    }
}

/// How to write something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through the caches.
    Cached,
    /// The same, which began now, to be noted when it is over.
    Noted(u64),
    /// Past them.
    Past,
}

#[cfg(test)]
mod tests;
