//! What stands where in a control block, and how its words count.
//!
//! A *word* is `operation << 32 | step` and only ever grows, with wrap-around: words are compared by the sign of their difference,
//! which is right while two members are less than 2³¹ operations apart.

use crate::sync::shared::SharedU64;
use std::cell::UnsafeCell;

/// Bytes that travel in the cache line of their flag.
pub const LINE: usize = 56;
/// Lines of a member in a stream: so many operations may a writer be ahead of the slowest reader, plus one.
pub const LINES: usize = 8;
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
    /// Operation n uses line n % 8: its word counts the published steps.
    pub lines: [Line; LINES],
    /// Progress as a reader.
    pub read: Line,
}

impl StreamControl {
    /// The line of operation `op`.
    #[inline(always)]
    pub fn line(&self, op: u32) -> &Line {
        &self.lines[op as usize % LINES]
    }

    /// Prepares one's own, before anybody else may look at it.
    pub fn start(&self, op: u32) {
        use crate::sync::shared::Ordering::Relaxed;
        for line in self.lines.iter().chain([&self.read]) {
            line.word.store(word(op, 0), Relaxed);
        }
    }
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
    /// Not 0 while the member may be sleeping.
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

/// Nothing published.
pub const NOT_YET: u64 = 0;
/// The member got no memory.
pub const REFUSED: u64 = 1;
/// The first value that stands for a page.
pub const PAGES: u64 = 2;

/// The word of `step` in operation `op`.
#[inline(always)]
pub fn word(op: u32, step: u32) -> u64 {
    u64::from(op) << 32 | u64::from(step)
}

/// Whether a word has come to `target`.
#[inline(always)]
pub fn reached(seen: u64, target: u64) -> bool {
    seen.wrapping_sub(target) as i64 >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_order_across_their_wrap_around() {
        for (before, after) in [
            (word(0, 0), word(0, 1)),
            (word(0, u32::MAX), word(1, 0)),
            (word(u32::MAX, 3), word(0, 0)),
            (word(u32::MAX - 7, 1), word(0, 1)),
            (word(i32::MAX as u32, 9), word(i32::MIN as u32, 0)),
        ] {
            assert!(reached(after, before) && !reached(before, after) && reached(before, before));
        }
    }

    #[test]
    fn own_lines_do_not_share_a_cache_line_with_others() {
        assert_eq!(std::mem::offset_of!(Control, stream) % 64, 0);
        assert_eq!(std::mem::offset_of!(Control, directory) % 64, 0);
        assert_eq!(size_of::<StreamControl>(), 64 * (LINES + 1));
    }
}
