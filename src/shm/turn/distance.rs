//! Whether the others' caches are near after all, for a writer whose slots [rotate](super::rotation) and who [takes them for far](crate::shm::copy::pace).
//!
//! Writes are slow for other reasons, too: pages and contents that nobody has used for long. Where slots rotate all that is soon over while caches are near, but what was decided would last: up to 50 ms in which each message takes up to twice as long.
//! So a writer that goes past the caches looks now and then how long a line takes that another member has just written: how far that has come as a reader. On a Zen 4 of 2.6 GHz that takes 104 to 130 ticks where caches are near, and 338 to 416 where they are far. A quick one proves that they are near; a slow one nothing, as the
//! line, or the table of its page, may have left the caches.

use super::View;
use crate::shm::copy;
use crate::sync::cache;
use crate::sync::shared::Ordering;
use std::ops::Range;

/// Ticks of a line from a near cache. What takes less is in one's own: it has not changed since one looked last.
const NEAR: Range<u64> = 60..220;
/// It is looked at in one operation of so many.
const SELDOM: u32 = 4;

impl View<'_> {
    /// Before the caller writes to its set.
    pub(super) fn see_who_is_near(&self) {
        if self.op.is_multiple_of(SELDOM) && copy::takes_for_far() && self.others().all(|member| self.is_near(member)) {
            copy::found_near();
        }
    }

    #[cold]
    fn is_near(&self, member: usize) -> bool {
        // What it says does not matter.
        let (_, took) = cache::timed(|| self.control(member).read.word.load(Ordering::Relaxed));
        took.is_some_and(|ticks| NEAR.contains(&ticks))
    }
}
