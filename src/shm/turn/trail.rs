//! Taking slots back.
//!
//! A cache line that others have read is theirs, or theirs too, and its owner has to ask for it before it can write it again. Stores become visible in
//! order, so what is published waits until all lines before it have been given back: for 1 KiB that takes as long as all the rest of a broadcast. So a
//! member keeps a trail of what it has written to its queue. When an operation ends, it asks for those lines in the slots of the next one, if all others are
//! through with them: by the time it writes, they are its own again. Not where none of the latest operations has used queues: the next one is taken not to need them, either.
//!
//! Nor sets whose slots [rotate](super::rotation): there others no longer hold what they have read. But where something short comes round to may have been used so long ago that it is in no cache at all. So who has written something short there asks for what it would write next: the first calls of two ranks on a Zen 4, before it
//! had been everywhere, took 0.73 to 0.83 of the time at 2 KiB, and 0.71 to 0.81 at 4 KiB.
//!
//! Nor where processes take turns on the cores: nobody waits for a writer's lines there, but for its turn, and to ask for them takes time of the core that another could use.
//! Where they [only give cores away](crate::shm::config::Cores::Lent) they do as where they take turns, in this too: what it would gain there has not been measured.

use super::View;
use super::slots::set_of;
use crate::shm::layout::{line_of, reached, word};
use crate::shm::team::Config;
use crate::sync::cache;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Cache lines of a short slot that are asked for before they are needed, by who writes them and by who reads them. With the first ones that
/// takes no longer than the line of the flag does, in any case.
pub(super) const SOON: usize = 4;
/// Bytes of a cache line.
const BYTES: usize = 64;
/// Bytes of a set that are taken back, at most: asking for more takes longer than there is time.
const MOST: usize = 32 << 10;

/// Lines at the beginning of what is short and rotates that are asked for, at most: with all 64 of 4 KiB calls took as long.
const ROTATED: usize = 32;

/// Nothing is taken back after so many operations that did not need the queue: the next one is taken not to need it, either.
const WARM: u32 = 64;

/// What a member has written to its queue since it was last taken back. Private to the member; atomic only so that it may be shared.
pub(in crate::shm) struct Trail {
    /// Bytes of a short slot.
    short: u32,
    /// Bytes of all short slots.
    shorts: u32,
    /// Bytes of a fragment.
    fragment: u32,
    /// A bit for each line of each short slot, and of what is short that the operation has written where it [rotates](super::rotation).
    lines: Box<[AtomicU64]>,
    /// Of each fragment, unless slots rotate, how many bytes from its beginning on.
    fragments: Box<[AtomicU32]>,
    /// The latest operation that used queues.
    latest: AtomicU32,
}

impl Trail {
    /// Of a queue of these sizes.
    pub fn new(config: &Config) -> Trail {
        let &Config { short, fragment, fragments, rotates, .. } = config;
        let fragments = if rotates { 0 } else { fragments };
        let shorts = usize::from(config.shorts);
        let fragments = (0..fragments).map(|_| AtomicU32::new(0)).collect();
        let lines = (0..=shorts).map(|_| AtomicU64::new(0)).collect();
        // Fragments have 16 MiB at most; were one longer, it would ask for other lines.
        let [short, shorts, fragment] =
            [short, shorts * short, fragment].map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        Trail { short, shorts, fragment, lines, fragments, latest: AtomicU32::new(0) }
    }

    /// Bytes of a short slot, of all of them, and of a fragment.
    fn sizes(&self) -> [usize; 3] {
        [self.short, self.shorts, self.fragment].map(|bytes| bytes as usize)
    }

    /// Notes that operation `op` uses queues.
    #[inline(always)]
    pub fn touch(&self, op: u32) {
        self.latest.store(op, Ordering::Relaxed);
    }

    /// Whether one of the latest operations before `next` used queues.
    #[inline(always)]
    fn is_warm(&self, next: u32) -> bool {
        next.wrapping_sub(self.latest.load(Ordering::Relaxed)) <= WARM
    }

    /// Notes that `len` bytes from byte `at` of the queue on are written; nothing, where that is elsewhere.
    #[inline(never)]
    pub fn note(&self, at: usize, len: usize) {
        let [short, shorts, fragment_bytes] = self.sizes();
        match at.checked_sub(shorts) {
            None => {
                let (slot, from) = (&self.lines[at / short], at % short / BYTES);
                let to = (at % short + len).div_ceil(BYTES).min(64);
                let bits = u64::MAX >> (64 - (to - from)) << from;
                slot.store(slot.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
            }
            Some(at) => {
                let mut end = at % fragment_bytes + len;
                for fragment in self.fragments.iter().skip(at / fragment_bytes) {
                    let here = end.min(fragment_bytes) as u32;
                    fragment.store(fragment.load(Ordering::Relaxed).max(here), Ordering::Relaxed);
                    end -= here as usize;
                    if end == 0 {
                        break;
                    }
                }
            }
        }
    }

    /// Notes that `len` bytes of what is short are written where slots [rotate](super::rotation).
    #[inline(always)]
    pub fn note_rotated(&self, len: usize) {
        if let Some(lines) = self.lines.last() {
            lines.store(u64::MAX >> (64 - len.div_ceil(BYTES).clamp(1, ROTATED)), Ordering::Relaxed);
        }
    }

    /// Whether anything is noted of a short slot.
    #[inline(always)]
    pub fn has_short(&self, slot: usize) -> bool {
        self.lines[slot].load(Ordering::Relaxed) != 0
    }

    /// Whether anything is noted of the first fragment of a set.
    #[inline(always)]
    pub fn has_set(&self, first: usize) -> bool {
        self.fragments.get(first).is_some_and(|bytes| bytes.load(Ordering::Relaxed) != 0)
    }

    /// Asks for what is noted of a short slot, in the one at `at`, and forgets it.
    #[inline(never)]
    pub fn take_short(&self, slot: usize, at: *const u8) {
        let mut lines = self.lines[slot].load(Ordering::Relaxed);
        self.lines[slot].store(0, Ordering::Relaxed);
        while lines != 0 {
            cache::own(at.wrapping_add(lines.trailing_zeros() as usize * BYTES));
            lines &= lines - 1;
        }
    }

    /// The same of a set of fragments.
    #[inline(never)]
    pub fn take_set(&self, set: Range<usize>, queue: *const u8) {
        let mut left = MOST;
        let [_, shorts, fragment_bytes] = self.sizes();
        for fragment in set {
            let len = self.fragments[fragment].load(Ordering::Relaxed) as usize;
            self.fragments[fragment].store(0, Ordering::Relaxed);
            let first = queue.wrapping_add(shorts + fragment * fragment_bytes);
            (0..len.min(left)).step_by(BYTES).for_each(|at| cache::own(first.wrapping_add(at)));
            left -= len.min(left);
        }
    }

    /// Forgets what is noted of a set: others are not through with it, and to ask them again costs more than it may save.
    #[inline(never)]
    pub fn forget_set(&self, set: Range<usize>) {
        self.fragments[set].iter().for_each(|fragment| fragment.store(0, Ordering::Relaxed));
    }
}

impl View<'_> {
    /// Asks for what the caller will write in operation `next`, so that it is its own by then.
    #[inline(always)]
    pub(super) fn prepare(&self, next: u32) {
        let &Config { lines, short, sets, .. } = self.team.config();
        cache::own(ptr::from_ref(&self.control(self.me()).lines[line_of(next, lines) as usize]).cast());
        let Some(queues) = self.queues else { return };
        if self.shares_cores() || !queues.trail.is_warm(next) {
            return;
        }
        let shorts = u32::from(self.team.config().shorts);
        let (queue, slot) = (queues.at[self.me()].0, (next & (shorts - 1)) as usize);
        (0..SOON).for_each(|i| cache::own(queue.wrapping_add(slot * short + i * 64)));
        if queues.trail.has_short(slot) && self.known(word(next.wrapping_sub(shorts - 1), 0)) {
            queues.trail.take_short(slot, queue.wrapping_add(slot * short));
        }
        if self.team.config().rotates && queues.trail.has_short(shorts as usize) {
            self.take_rotated(next);
        }
        let depth = self.team.fragment_mask() as usize + 1;
        let set = set_of(next, sets) * depth;
        if queues.trail.has_set(set) {
            match self.sees(word(next.wrapping_sub(u32::from(sets) - 1), 0)) {
                true => queues.trail.take_set(set..set + depth, queue),
                false => queues.trail.forget_set(set..set + depth),
            }
        }
    }

    /// Notes that the caller writes `len` bytes of its queue, or of its line. Of what rotates only what is short: other slots that are as short (but, at times, the first piece of something longer) have other places in the next operation.
    #[inline(never)]
    pub(super) fn note(&self, at: *const u8, len: usize) {
        let Some(queues) = self.queues else { return };
        let at = at.addr().wrapping_sub(queues.at[self.me()].0.addr());
        if !self.is_rotated(at) {
            queues.trail.note(at, len);
        } else if len <= self.team.config().short && at == self.rotated_short_at(self.op) {
            queues.trail.note_rotated(len);
        }
    }

    /// Asks for what it would write there in operation `next`. (Whoever may still read what was there before, asks for it again.)
    #[inline(never)]
    fn take_rotated(&self, next: u32) {
        let Some(queues) = self.queues else { return };
        let at = queues.at[self.me()].0.wrapping_add(self.rotated_short_at(next));
        queues.trail.take_short(usize::from(self.team.config().shorts), at);
    }

    /// Whether all others are so far, as far as one can see at once.
    fn sees(self, target: u64) -> bool {
        if !self.known(target) {
            self.stream.behind.store(self.least_read(), Ordering::Relaxed);
        }
        self.known(target)
    }

    /// How far all others are known to be as readers.
    pub(super) fn least_read(self) -> u64 {
        // SYNC(read): as in `Reach::look`.
        let seen = self.others().map(|m| self.control(m).read.word.load(Ordering::Acquire));
        seen.reduce(|a, b| if reached(a, b) { b } else { a }).unwrap_or(word(self.op.wrapping_add(1), 0))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
