//! Taking slots back.
//!
//! A cache line that others have read is theirs, or theirs too, and its owner has to ask for it before it can
//! write it again. Stores become visible in order, so what is published waits until all lines before it have
//! been given back: for 1 KiB that takes as long as all the rest of a broadcast. So a member keeps a trail of
//! what it has written to its queue. When an operation ends, it asks for those lines in the slots of the next
//! one, if all others are through with them: by the time it writes, they are its own again. Not where none of
//! the latest operations has used queues: the next one is taken not to need them, either.
//!
//! Nor sets whose slots [rotate](super::rotation): there others no longer hold what they have read. But where
//! something short comes round to may have been used so long ago that it is in no cache at all. So who has
//! written something short there asks for what it would write next: the first calls of two ranks on a Zen 4,
//! before it had been everywhere, took 0.73 to 0.83 of the time at 2 KiB, and 0.71 to 0.81 at 4 KiB.
//!
//! Nor where processes take turns on the cores: nobody waits for a writer's lines there, but for its turn,
//! and to ask for them takes time of the core that another could use. Where they [only give cores
//! away](crate::shm::config::Cores::Lent) they do as where they take turns, in this too: what it would gain
//! there has not been measured.

use super::slots::set_of;
use super::{View, rotation};
use crate::shm::layout::{LINES, StreamControl, line_of, reached, word};
use crate::shm::team::{At, Config, Queues, Stream, Team};
use crate::sync::cache;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Cache lines of a short slot that are asked for before they are needed, by who writes them and by who reads
/// them. With the first ones that takes no longer than the line of the flag does, in any case.
pub(super) const SOON: usize = 4;
/// Bytes of a cache line.
const BYTES: usize = 64;
/// Bytes of a set that are taken back, at most: asking for more takes longer than there is time.
const MOST: usize = 32 << 10;

/// Lines at the beginning of what is short and rotates that are asked for, at most: with all 64 of 4 KiB
/// calls took as long.
const ROTATED: usize = 32;

/// Nothing is taken back after so many operations that did not need the queue: the next one is taken not to
/// need it, either.
const WARM: u32 = 64;
const _: () = assert!(LINES as u32 * 2 <= WARM, "short slots and sets come round twice while it is warm");

/// What a member has written to its queue since it was last taken back. Private to the member; atomic only so
/// that it may be shared.
pub(in crate::shm) struct Trail {
    /// Bytes of a short slot.
    short: u32,
    /// Bytes of a fragment.
    fragment: u32,
    /// A bit for each line of each short slot, and of what is short that the operation has written where it
    /// [rotates](super::rotation).
    lines: Box<[AtomicU64]>,
    /// Of each fragment, unless slots rotate, how many bytes from its beginning on.
    fragments: Box<[AtomicU32]>,
    /// The latest operation that used queues.
    latest: AtomicU32,
    /// The latest operation in which anything was noted.
    noted: AtomicU32,
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
        let [short, fragment] = [short, fragment].map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        Trail { short, fragment, lines, fragments, latest: AtomicU32::new(0), noted: AtomicU32::new(0) }
    }

    /// Bytes of a short slot, of all of them, and of a fragment.
    fn sizes(&self) -> [usize; 3] {
        let (short, fragment) = (self.short as usize, self.fragment as usize);
        [short, short * (self.lines.len() - 1), fragment]
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

    /// Whether anything was noted in the latest operations before `next`, in which each slot and set comes
    /// round. (What is left of longer ago, since others were not through with it or nothing used queues,
    /// waits for something new.)
    #[inline(always)]
    fn has_any(&self, next: u32) -> bool {
        next.wrapping_sub(self.noted.load(Ordering::Relaxed)) <= WARM
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

    /// Forgets what is noted of a set: others are not through with it, and to ask them again costs more than
    /// it may save.
    #[inline(never)]
    pub fn forget_set(&self, set: Range<usize>) {
        self.fragments[set].iter().for_each(|fragment| fragment.store(0, Ordering::Relaxed));
    }
}

impl View<'_> {
    /// Asks for what the caller will write in operation `next`, so that it is its own by then.
    #[inline(always)]
    pub(super) fn prepare(&self, next: u32) {
        let &Config { lines, short, .. } = self.team.config();
        cache::own(ptr::from_ref(&self.control(self.me()).lines[line_of(next, lines) as usize]).cast());
        let Some(queues) = self.queues else { return };
        if self.shares_cores() || !queues.trail.is_warm(next) {
            return;
        }
        let shorts = u32::from(self.team.config().shorts);
        let (queue, slot) = (queues.at[self.me()].0, (next & (shorts - 1)) as usize);
        (0..SOON).for_each(|i| cache::own(queue.wrapping_add(slot * short + i * 64)));
        if queues.trail.has_any(next) {
            take_back(self.team, self.stream, self.controls, queues, next);
        }
    }

    /// Notes that the caller writes `len` bytes of its queue, or of its line. Of what rotates only what is
    /// short: other slots that are as short (but, at times, the first piece of something longer) have other
    /// places in the next operation.
    #[inline(always)]
    pub(super) fn note(&self, queues: &Queues, at: *const u8, len: usize) {
        note(self.team, queues, self.op, at, len);
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

/// Asks for what is noted where the caller will write in operation `next` of this stream. Not a part of
/// operations, and without a [`View`], which would lie in memory wherever one is passed on.
#[inline(never)]
fn take_back(team: &Team, stream: &Stream, controls: &[At<StreamControl>], queues: &Queues, next: u32) {
    let &Config { short, shorts, sets, rotates, .. } = team.config();
    let view = View::of(team, stream, controls, Some(queues), next.wrapping_sub(1));
    let (trail, queue, shorts) = (&queues.trail, queues.at[team.me()].0, u32::from(shorts));
    let slot = (next & (shorts - 1)) as usize;
    if trail.has_short(slot) && view.known(word(next.wrapping_sub(shorts - 1), 0)) {
        trail.take_short(slot, queue.wrapping_add(slot * short));
    }
    if rotates && trail.has_short(shorts as usize) {
        // (Whoever may still read what was there before, asks for it again.)
        trail.take_short(shorts as usize, queue.wrapping_add(rotation::short_at(team, next)));
    }
    let depth = team.fragment_mask() as usize + 1;
    let set = set_of(next, sets) * depth;
    if trail.has_set(set) {
        match view.sees(word(next.wrapping_sub(u32::from(sets) - 1), 0)) {
            true => trail.take_set(set..set + depth, queue),
            false => trail.forget_set(set..set + depth),
        }
    }
}

/// As [`View::note`].
#[inline(never)]
fn note(team: &Team, queues: &Queues, op: u32, at: *const u8, len: usize) {
    let at = at.addr().wrapping_sub(queues.at[team.me()].0.addr());
    if !rotation::is_rotated(team, at) {
        queues.trail.note(at, len);
    } else if len <= team.config().short && at == rotation::short_at(team, op) {
        queues.trail.note_rotated(len);
    } else {
        return;
    }
    queues.trail.noted.store(op, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests;
