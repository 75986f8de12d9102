// SPDX-License-Identifier: BSD-3-Clause
//! Lengths from which on a team reads members' memory, and up to which that is out of the question.

use super::Team;
#[cfg(doc)]
use crate::shm::config::Config;
use crate::shm::memory::Memory;
use crate::shm::memory::layout::LINE;
use crate::shm::policy::Access;
use crate::shm::thresholds::{ByMode, Thresholds};
use crate::sync::shared::Ordering;

/// What members can do with each other's memory.
pub(super) fn reading(memory: &dyn Memory) -> Access {
    match memory.zero_copy() {
        false => Access::Nobody,
        true if memory.stores() => Access::Writes,
        true => Access::Reads,
    }
}

impl Team {
    /// From how many bytes on to read other members' memory directly; never, unless it was said. `late`: the
    /// operation was called when that [had been learned](Team::has_learned).
    #[inline(always)]
    pub fn thresholds(&self, late: bool, blocking: bool) -> &Thresholds {
        const NEVER: Thresholds = Thresholds::all(usize::MAX);
        let [first, learned] = &self.thresholds;
        let learned = if late { learned.get() } else { None };
        learned.or(first.get()).map_or(&NEVER, |modes| if blocking { &modes.blocking } else { &modes.others })
    }

    /// Says so, before the first operation that asks; the same for all members. Nothing, where they cannot
    /// read each other's memory.
    pub fn set_thresholds(&self, thresholds: ByMode) {
        if self.memory.zero_copy() {
            self.keep_still(&thresholds);
            let _ = self.thresholds[0].set(thresholds);
        }
    }

    /// Says so for operations that are called from now on; all members do it between the same two calls.
    pub fn learn(&self, thresholds: ByMode) {
        self.keep_still(&thresholds);
        let _ = self.thresholds[1].set(thresholds);
    }

    /// Whether there was something to [`learn`](Team::learn) already.
    pub fn has_learned(&self) -> bool {
        self.thresholds[1].get().is_some()
    }

    /// Whether a message of `len` bytes, of a blocking operation, is short, lies [still](Config::still), and
    /// is not read elsewhere, whatever the [thresholds](Team::thresholds): never so of one that another way
    /// of an operation would take for something else, since members may come to the same operation by
    /// different ways.
    #[inline(always)]
    pub fn lies_still(&self, len: usize) -> bool {
        len <= usize::from(self.still.load(Ordering::Relaxed))
    }

    /// The same of a block that travels in its member's share of a line or slot.
    #[inline(always)]
    pub fn share_lies_still(&self, len: usize) -> bool {
        let still = self.still.load(Ordering::Relaxed);
        // Where that is a line, what has room there and not in a share may be longer than is read elsewhere.
        let most = if usize::from(still) > LINE { self.short_share.min(still) } else { self.line_share.into() };
        len <= usize::from(most)
    }

    /// Leaves out what these thresholds, which have yet to be set, are for.
    fn keep_still(&self, thresholds: &ByMode) {
        let before = usize::from(self.still.load(Ordering::Relaxed));
        let still = thresholds.blocking.least().saturating_sub(1).clamp(LINE, before);
        self.still.store(still as u16, Ordering::Relaxed);
    }
}
