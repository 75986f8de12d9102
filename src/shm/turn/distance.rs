//! Whether the other one's caches are near after all, for a writer whose slots [rotate](super::rotation), and
//! whose writes [were slow](crate::shm::copy::pace).
//!
//! Writes are slow for other reasons, too: pages and contents that nobody has used for long. Where slots
//! rotate all that is soon over while caches are near, but what was decided would last: up to 50 ms in which
//! each message takes up to twice as long. So between two members a writer that goes past the caches looks
//! now and then how long it takes to read how far the other has come as a reader. Where that has changed
//! since, the line comes from the other's cache: on a Zen 4 of 2.6 GHz in 104 to 130 ticks of the time stamp
//! counter where caches are near, and in 338 to 416 where they are far. Only quick ones tell, as a slow one
//! may have left the caches, or its page the tables; and only two in a row. Among more members a line may
//! come from one that has read it before.

use super::View;
use crate::shm::copy;
use crate::shm::layout::reached;
use crate::shm::team::{Queues, Stream};
use crate::sync::cache;
use crate::sync::shared::{Ordering, SharedU64};
use std::hint::black_box;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Ticks of a line from a near cache, as measured on that Zen 4 alone. What takes less was in one's own.
const NEAR: Range<u64> = 60..220;
/// It looks no sooner than so many operations after it looked last.
const SELDOM: u32 = 2;
/// So many quick ones in a row tell.
const IN_A_ROW: u8 = 2;

/// What a member has found. Private to it, and hints only; atomic so that it may be shared.
#[derive(Default)]
pub(in crate::shm) struct Nearness {
    /// In which operation it looked last.
    looked: AtomicU32,
    /// How far the other one was.
    seen: AtomicU64,
    quick: AtomicU8,
}

impl Nearness {
    /// Whether the other one has turned out to be near, now that operation `op` writes. A look says how far
    /// it is, and how long it took to read that; `is_known`: not for the first time.
    fn ask(&self, op: u32, look: impl FnOnce() -> (u64, Option<u64>), is_known: impl FnOnce(u64) -> bool) -> bool {
        if op.wrapping_sub(self.looked.load(Relaxed)) < SELDOM {
            return false;
        }
        self.looked.store(op, Relaxed);
        let (now, took) = look();
        let has_come = now != self.seen.load(Relaxed) && !is_known(now);
        self.seen.store(now, Relaxed);
        let is_quick = has_come && took.is_some_and(|ticks| NEAR.contains(&ticks));
        let quick = if is_quick { self.quick.load(Relaxed) + 1 } else { 0 };
        self.quick.store(quick % IN_A_ROW, Relaxed);
        quick == IN_A_ROW
    }
}

impl View<'_> {
    /// Before the caller writes what may go past the caches.
    #[inline(always)]
    pub(super) fn see_whether_near(&self) {
        copy::writes(ptr::from_ref(self.stream).addr());
        if self.team.config().rotates
            && self.size() == 2
            && let Some(queues) = self.queues
        {
            see_whether_other_is_near(self.stream, queues, &self.control(1 - self.me()).read.word, self.op);
        }
    }
}

/// Looks, now that operation `op` writes, how far the other one has come as a reader. (Not a part of
/// operations.)
#[inline(never)]
fn see_whether_other_is_near(stream: &Stream, queues: &Queues, word: &SharedU64, op: u32) {
    if cfg!(loom) || !copy::takes_for_far(ptr::from_ref(stream).addr()) {
        return;
    }
    let look = || cache::timed(|| black_box(word.load(Ordering::Relaxed)));
    // What is known was read when it was waited for.
    if queues.nearness.ask(op, look, |now| reached(stream.behind.load(Ordering::Relaxed), now)) {
        copy::found_near();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_quick_ones_in_a_row_tell() {
        let nearness = Nearness::default();
        let looks = [(1, 390), (2, 130), (3, 390), (4, 110), (5, 130), (6, 130), (7, 20), (8, 219), (8, 130)];
        let looks =
            looks.into_iter().chain([(9, 60), (10, 219), (11, 220), (12, 100), (13, 100), (14, 100), (15, 100)]);
        let mut near = Vec::new();
        let mut op = u32::MAX - 9;
        for look in looks {
            op = op.wrapping_add(SELDOM);
            if nearness.ask(op, || (look.0, Some(look.1)), |now| now == 13) {
                near.push(look.0);
            }
            for soon in [op, op.wrapping_add(SELDOM - 1)] {
                assert!(!nearness.ask(soon, || unreachable!("it has just looked"), |_| false));
            }
        }
        // Not where it has not come on (8 twice), nor from its own cache (20 ticks), nor what was known (13).
        assert_eq!(near, [5, 10, 15]);
    }

    #[test]
    fn without_a_counter_nobody_is_near() {
        let nearness = Nearness::default();
        assert!(!(1..100).any(|now| nearness.ask(2 * now, || (now.into(), None), |_| false)));
    }
}
