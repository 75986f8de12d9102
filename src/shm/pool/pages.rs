// SPDX-License-Identifier: BSD-3-Clause
//! How the pages of a pool come from the system, and go back.
//!
//! What readers must find zeroed is reserved before anybody touches it. So are queues in a folder, which may
//! be full. Queues in a memfd come by being touched, unless the system counts memory before it is used: a
//! communicator that hardly works has leased a whole queue, and takes the pages that it writes. Pages of
//! groups that have ended stay for the next ones, up to [`WARM`]; what is more goes back.

use std::ptr;

use super::{Pool, State};
use crate::shm::memory::PAGE;
use crate::shm::memory::{Contents, Page};
use crate::shm::os::failure::Failure;
use crate::shm::pool::alloc::Run;

/// While so small a part of the budget is in use, queues that are written all over soon are reserved and
/// mapped beforehand: one part of so many.
const EARLY: u64 = 8;
/// Bytes of pages that no group has, at most, and one part in so many of the budget.
const WARM: (u64, u64) = (4 << 20, 8);

fn bytes(pages: u32) -> u64 {
    u64::from(pages) * PAGE as u64
}

impl Pool {
    /// Whether so little is in use that pages may come before they are touched, where that is faster.
    pub(in crate::shm) fn is_generous(&self) -> bool {
        self.budget.left() >= self.budget.bytes() / EARLY * (EARLY - 1)
    }

    /// Maps pages of the caller's own, so that to use them takes no faults.
    pub(in crate::shm) fn map(&self, first: Page, count: u32) {
        self.store.map.map_ahead(first, count);
    }

    /// Pages that are reserved, with these contents.
    pub(super) fn take(&self, state: &mut State, count: u32, contents: Contents) -> Result<Page, Failure> {
        let taken = self.try_take(state, count, contents);
        if taken.is_err() && self.bury(state) { self.try_take(state, count, contents) } else { taken }
    }

    fn try_take(&self, state: &mut State, count: u32, contents: Contents) -> Result<Page, Failure> {
        let first = state.pages.take(count).ok_or_else(|| {
            let left = bytes(state.pages.left());
            Failure::new(format!("no {} bytes in a row are left in the pool, {left} in all", bytes(count)))
        })?;
        self.ready(state, first, count, contents).inspect_err(|_| state.pages.give(first, count))?;
        Ok(first)
    }

    /// Reserves and opens those of the pages that are not, and zeroes those that were reserved, where zeros
    /// are wanted.
    fn ready(&self, state: &mut State, first: Page, count: u32, contents: Contents) -> Result<(), Failure> {
        let runs = state.reserved.runs(first, count);
        self.reserve(state, &runs, contents)?;
        self.store.map.open(first, count).map_err(|e| Failure::of("cannot map pages of a pool", e))?;
        for run in runs.iter().filter(|run| run.inside && contents == Contents::Zeros) {
            // SAFETY: reserved pages of our own pool, which no member of a group reads any more.
            unsafe { ptr::write_bytes(self.address(run.first), 0, bytes(run.count) as usize) };
        }
        Ok(())
    }

    /// Reserves those of the runs that are not.
    fn reserve(&self, state: &mut State, runs: &[Run], contents: Contents) -> Result<(), Failure> {
        let fresh = || runs.iter().filter(|run| !run.inside);
        let total = bytes(fresh().map(|run| run.count).sum());
        self.budget.take(total)?;
        let by_touch = match contents {
            Contents::Zeros => false,
            Contents::Anything => self.store.comes_by_touch(),
            Contents::Soon => self.store.comes_by_touch() && !self.is_generous(),
        };
        for (index, run) in fresh().enumerate().filter(|_| !by_touch) {
            if let Err(failure) = self.store.reserve(bytes(run.first), bytes(run.count)) {
                let mut kept = 0;
                for run in fresh().take(index) {
                    if !self.store.unreserve(bytes(run.first), bytes(run.count)) {
                        state.hold(run.first, run.count);
                        kept += bytes(run.count);
                    }
                }
                self.budget.give(total - kept);
                return Err(failure);
            }
        }
        fresh().for_each(|run| state.hold(run.first, run.count));
        Ok(())
    }

    /// Gives the system back what no group has, but for some pages that the next ones will want: the lowest.
    pub(super) fn give_back(&self, state: &mut State) {
        let warm = WARM.0.min(self.budget.bytes() / WARM.1) / PAGE as u64;
        let mut excess = state.idle().saturating_sub(warm as u32);
        if excess == 0 {
            return;
        }
        let free: Vec<(Page, u32)> = state.pages.runs().collect();
        for (first, count) in free.into_iter().rev() {
            for run in state.reserved.runs(first, count).iter().rev().filter(|run| run.inside) {
                let count = run.count.min(excess);
                let first = run.first + run.count - count;
                if self.store.unreserve(bytes(first), bytes(count)) {
                    self.store.map.forget_ahead(first, count);
                    state.let_go(first, count);
                    self.budget.give(bytes(count));
                }
                excess -= count;
                if excess == 0 {
                    return;
                }
            }
        }
    }
}

impl State {
    /// Pages, none of which is reserved, are so now.
    fn hold(&mut self, first: Page, count: u32) {
        self.reserved.add(first, count);
        self.held += count;
    }

    fn let_go(&mut self, first: Page, count: u32) {
        self.reserved.remove(first, count);
        self.held -= count;
    }

    /// Number of reserved pages that no group has.
    fn idle(&self) -> u32 {
        self.held.saturating_sub(self.end - self.pages.left())
    }
}
