// SPDX-License-Identifier: BSD-3-Clause
//! What stands where in a control block, and how its words count.
//!
//! A *word* counts operations in its upper half, and steps in its lower half above eight bits. Of the `read`
//! word the last two of those are the operation's number: so a later operation differs in both halves, and
//! who sleeps on the lower half does not miss the end of an operation. Of a line they say [in which
//! set](crate::shm::protocol::turn::View::slot) the writer's slots are: it is used again only some operations
//! later, whose numbers end alike. The six bits before them say how long the writer's data are ([`said`]).
//!
//! A word only ever grows, with wrap-around: words are compared by the sign of their difference, which is
//! right while they are less than 2³¹ operations apart. A line that its owner does not use would stay behind
//! that, so each member renews its own from time to time ([`StreamControl::renew`]); the `read` words go on
//! with every operation.

use crate::sync::shared::SharedU64;
use std::cell::UnsafeCell;
use std::mem::offset_of;

/// Bytes that travel in the cache line of their flag.
pub const LINE: usize = 56;
/// Bytes of a short slot. There are [several](crate::shm::config::Config::shorts), before the fragments of a
/// queue (or, where slots rotate, places among those for what does not lie
/// [still](crate::shm::config::Config::still)), so that the owner seldom has to look how far the readers are:
/// each such look costs as much as the message takes.
pub const SHORT: usize = 4096;
/// Lines of a member in a stream. A team uses the first of them, [as many](crate::shm::config::Config::lines)
/// as operations of which a writer may be ahead of the slowest reader, plus one.
pub const LINES: usize = if cfg!(loom) { 8 } else { 32 };
/// Lanes of a slot.
pub const LANES: usize = 8;
/// Slot of blocking operations.
pub const BLOCKING: usize = 0;
/// Slots: one for blocking operations, 4 for nonblocking ones, 8 for persistent ones.
pub const SLOTS: usize = 13;
/// Streams of a team.
pub const STREAMS: usize = SLOTS * LANES;

/// A cache line: contents, and the word that says up to where they are valid.
#[repr(C, align(64))]
pub struct Line {
    payload: UnsafeCell<[u8; LINE]>,
    /// Progress as a writer, or as a reader.
    pub word: SharedU64,
}

impl Line {
    /// The contents, aligned to 64 bytes.
    #[inline(always)]
    pub fn payload(&self) -> *mut u8 {
        self.payload.get().cast()
    }
}

/// What a member writes for one stream.
#[repr(C)]
pub struct StreamControl {
    /// Operation n uses line n % l, of l that the team uses: its word counts the published steps.
    pub lines: [Line; LINES],
    /// Progress as a reader; the contents are what the member says when it is through with an operation, for
    /// those it waits for then.
    pub read: Line,
}

impl StreamControl {
    /// Renews those of one's own lines that are long behind operation `next`, in which nobody waits for them:
    /// nobody can wait for a step of the operation that they then show, either.
    pub fn renew(&self, next: u32) {
        use crate::sync::shared::Ordering::{Relaxed, Release};
        for line in &self.lines {
            if is_old(line.word.load(Relaxed), next) {
                line.word.store(word(next.wrapping_sub(AGE / 2), 0), Release);
            }
        }
    }

    /// Prepares one's own, before anybody else may look at it.
    pub fn start(&self, op: u32) {
        use crate::sync::shared::Ordering::Relaxed;
        for line in self.lines.iter().chain([&self.read]) {
            line.word.store(word(op, 0), Relaxed);
        }
    }
}

/// Shares of lines and short slots are multiples of so many bytes.
pub const SHARE_ALIGN: usize = 8;

/// Bytes for each of the others in a room that all of so many members but one share, a multiple of `align`.
#[inline(always)]
pub fn share(room: usize, members: usize, align: usize) -> usize {
    let each = match members {
        0..=2 => room,
        _ => room / (members - 1),
    };
    each / align * align
}

/// Which line is that of operation `op`, where so many are in use: a power of two.
#[inline(always)]
pub fn line_of(op: u32, lines: u32) -> u32 {
    op & (lines - 1) & (LINES as u32 - 1)
}

/// What of a stream is leased when it is first needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its [`StreamControl`].
    Control = 0,
    /// Its queue.
    Queue = 1,
}

/// A member's control block.
#[repr(C, align(64))]
pub struct Control {
    /// Not 0 while the member may be sleeping, as it is [counted](Sleepers): on what,
    /// src/shm/protocol/team/waking.rs says.
    pub asleep: SharedU64,
    /// Not 0 when an operation of the member has failed.
    pub failed: SharedU64,
    _line: [u64; 6],
    /// For both parts of each stream: [`NOT_YET`], [`REFUSED`], or the page of the lease plus [`PAGES`].
    pub directory: [[SharedU64; 2]; STREAMS],
    /// The control of stream 0.
    pub stream: StreamControl,
}

const _: () = assert!(size_of::<Line>() == 64 && size_of::<Control>() <= 4096);
// See `View::lines`.
const _: () = assert!(offset_of!(StreamControl, lines) == 0 && offset_of!(Line, payload) == 0);

/// What all members of a team may write, and maybe of other teams: the only such memory.
#[repr(C, align(64))]
pub struct Sleepers {
    /// How many of them may be sleeping: each adds one before it sleeps, and takes it back. While it is 0
    /// nobody's [`asleep`](Control::asleep) is looked at. Of one that was killed in its sleep it stays.
    pub count: SharedU64,
    _line: [u64; 7],
}

/// Where, in page 0 of a pool, the owner says that it has [locked](crate::shm::os::lifelock) the file for as
/// long as it lives: 1.
pub(in crate::shm) const LOCKED: usize = 16;
/// Where, in page 0 of a pool, the [`Sleepers`] of teams whose first member has the pool are counted.
pub(in crate::shm) const SLEEPERS: usize = 64;

/// Nothing published.
pub const NOT_YET: u64 = 0;
/// The member got no memory.
pub const REFUSED: u64 = 1;
/// The first value that stands for a page.
pub const PAGES: u64 = 2;

/// Every so many operations of a stream, what is old is renewed.
const ROUND: u32 = 1 << 28;
/// What is so many operations behind is old: a round later, words can still be compared.
const AGE: u32 = 1 << 30;
/// Steps of an operation, at most: they are counted in 24 bits, and some sums are beyond the last step.
pub const STEPS: usize = 1 << 23;

/// Where the steps begin in a word.
const STEP_AT: u32 = 8;
/// Where a line's word says how long the data are.
const SAID_AT: u32 = 2;
/// What a line's word says of data that are longer than a line: their length is [in the line](LENGTH_AT).
pub const LONG: u8 = LINE as u8 + 1;
/// What it says where the end of the line holds a number for each reader.
pub const TABLE: u8 = 62;
/// What it says where it says nothing.
pub const UNSAID: u8 = 63;
/// Where in the contents of a line the length of longer data lies, and how they travel.
pub const LENGTH_AT: usize = LINE - size_of::<u64>();

/// What a line's word says of so many bytes.
#[inline(always)]
pub fn said(len: usize) -> u8 {
    if len > LINE { LONG } else { len as u8 }
}

/// What a line's word says.
pub fn what_says(word: u64) -> u8 {
    (word as u32 >> SAID_AT & 63) as u8
}

/// The word of `step` in operation `op`.
#[inline(always)]
pub fn word(op: u32, step: u32) -> u64 {
    u64::from(op) << 32 | u64::from(step << STEP_AT | op & 3)
}

/// The most sets that the word of a line can tell apart.
pub const MAX_TOLD: u8 = 4;

/// The least word of a line at `step` of operation `op`: to compare others with.
#[inline(always)]
pub fn line_word(op: u32, step: u32) -> u64 {
    u64::from(op) << 32 | u64::from(step << STEP_AT)
}

/// The word of a line whose owner's slots are in `set`, from 0 to 3, and which [says](said) how long the data
/// are.
#[inline(always)]
pub fn telling_word(op: u32, step: u32, said: u8, set: u8) -> u64 {
    line_word(op, step) | u64::from(u32::from(said) << SAID_AT | u32::from(set))
}

/// The step of a word.
pub fn step(word: u64) -> u32 {
    word as u32 >> STEP_AT
}

/// The set that the word of a line tells.
#[inline(always)]
pub fn told_set(word: u64) -> usize {
    word as usize & usize::from(MAX_TOLD - 1)
}

/// Whether it is time to renew what is old, before operation `next`.
#[inline(always)]
pub fn is_round(next: u32) -> bool {
    next.is_multiple_of(ROUND)
}

/// Whether a word is so far behind operation `next` that it must be renewed.
pub fn is_old(seen: u64, next: u32) -> bool {
    !reached(seen, word(next.wrapping_sub(AGE), 0))
}

/// Whether a word has come to `target`.
#[inline(always)]
pub fn reached(seen: u64, target: u64) -> bool {
    seen.wrapping_sub(target) as i64 >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last step that can be counted.
    const MOST: u32 = (1 << 24) - 1;
    use memoffset::span_of;

    #[test]
    fn words_order_across_their_wrap_around() {
        for (before, after) in [
            (word(0, 0), word(0, 1)),
            (word(0, MOST), word(1, 0)),
            (word(u32::MAX, 3), word(0, 0)),
            (word(u32::MAX - 7, 1), word(0, 1)),
            (word(i32::MAX as u32, 9), word(i32::MIN as u32, 0)),
        ] {
            assert!(reached(after, before) && !reached(before, after) && reached(before, before));
        }
    }

    #[test]
    fn later_operations_differ_in_the_lower_half() {
        for op in [0, 5, u32::MAX - 1, u32::MAX] {
            for later in 1..4_u32 {
                for (step, its) in [(0, 0), (1, 0), (1, 1), (7, 1), (STEPS as u32, STEPS as u32), (MOST, MOST)] {
                    assert_ne!(word(op, step) as u32, word(op.wrapping_add(later), its) as u32);
                }
            }
            assert!(reached(word(op, STEPS as u32), word(op, STEPS as u32 - 1)));
            for last in [STEPS as u32, MOST] {
                assert!(reached(word(op.wrapping_add(1), 0), word(op, last)));
                assert_eq!(step(word(op, last)), last);
            }
        }
    }

    #[test]
    fn a_line_tells_its_set_and_compares_alike_whichever_that_is() {
        for (op, last) in [(0, 1), (6, STEPS as u32), (u32::MAX, MOST)] {
            for set in 0..MAX_TOLD {
                for said in [0, 8, LONG, UNSAID] {
                    let now = telling_word(op, last, said, set);
                    assert_eq!((told_set(now), step(now), what_says(now)), (set.into(), last, said));
                    assert!(reached(now, line_word(op, last)) && reached(line_word(op.wrapping_add(8), 0), now));
                    assert!(!reached(telling_word(op, last - 1, said, set), line_word(op, last)));
                }
            }
        }
    }

    /// What stands where. (Here, and not where the build would fail: `span_of!` cannot be in a constant.)
    #[test]
    fn what_is_written_apart_lies_in_cache_lines_apart() {
        assert_eq!((span_of!(Line, payload), span_of!(Line, word)), (0..LINE, LINE..64));
        assert_eq!(span_of!(StreamControl, lines), 0..64 * LINES);
        assert_eq!(span_of!(StreamControl, read..), 64 * LINES..64 * (LINES + 1));
        let directory = 64..64 + 16 * STREAMS;
        assert_eq!(span_of!(Control, ..directory), 0..64);
        assert_eq!((span_of!(Control, directory), span_of!(Control, stream).start % 64), (directory, 0));
        assert!(size_of::<Control>() - span_of!(Control, stream).end < 64);
        assert_eq!((span_of!(Sleepers, count), span_of!(Sleepers, ..)), (0..8, 0..64));
    }
}
