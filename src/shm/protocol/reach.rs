// SPDX-License-Identifier: BSD-3-Clause
//! Waiting for a member's progress.

use crate::endpoint::{Error, Result};
use crate::shm::memory::Member;
use crate::shm::memory::layout::reached;
use crate::shm::protocol::team::{LOOKS_FOR_A_TURN, Stream, Team};
use crate::sync::cache;
use crate::sync::clock::{COUNTED, Vain};
use crate::sync::shared::{Ordering, SharedU64, awaits};
use crate::sync::wait::Patience;
use std::pin::Pin;
use std::task::{Context, Poll};

/// So many first looks of each blocking poll that brings no contents come without a pause between them: with
/// pauses (25 ns) a Bcast of 8 to 64 B between two cores took 4 to 8 % longer.
const HURRIED: u32 = 40;

/// A caller that does not block and has looked on in vain so often looks once at a time again: the member
/// does something else meanwhile.
const LOOKS_ON: u32 = 16;

/// Before a caller that does not block gives up its first poll it looks so often again (0.25 µs; not where
/// processes take turns on the cores): members that start an operation together are through with it before
/// Open MPI's progress has looked after all else once. Twice as many looks changed nothing
/// (docs/design/nonblocking.md).
const LOOKS_AT_FIRST: u32 = 10;

const _: () = assert!(LOOKS_FOR_A_TURN <= HURRIED, "who looks for a turn pauses after each look");
const _: () = assert!(LOOKS_ON <= COUNTED, "so many are counted");

/// How often a caller that does not block looks again before it gives up its first poll.
pub(in crate::shm) fn looks_at_first(team: &Team) -> u32 {
    if team.config().waiting.crowded { 0 } else { team.looks().min(LOOKS_AT_FIRST) }
}

/// Waits until a word has come to a target; then tells what it has come to.
pub struct Reach<'t> {
    team: &'t Team,
    word: &'t SharedU64,
    target: u64,
    member: Member,
    /// What will be needed with it.
    first: *const u8,
    lines: u32,
    looks: u32,
    vain: Vain,
    /// It has been looked already, in vain.
    looked: bool,
    blocking: bool,
    /// The failure of a third member does not matter.
    alone: bool,
    /// The word belongs to the caller's operation on that stream.
    of: Option<&'t Stream>,
}

// SAFETY: an address that only hints are given about.
unsafe impl Send for Reach<'_> {}

impl<'t> Reach<'t> {
    #[inline(always)]
    pub(in crate::shm) fn new(
        team: &'t Team,
        word: &'t SharedU64,
        target: u64,
        member: Member,
        blocking: bool,
    ) -> Reach<'t> {
        let looks = if blocking { team.looks() } else { 1 };
        Reach {
            team,
            word,
            target,
            member,
            first: std::ptr::null(),
            lines: 0,
            looks,
            vain: Vain::NONE,
            looked: false,
            blocking,
            alone: false,
            of: None,
        }
    }

    /// The member is in the middle of a message: so a caller that does not block looks on for a while, too,
    /// about as long as a piece takes. Else it comes back for each piece when all else has been looked after.
    /// Not where processes take turns on the cores. (docs/design/nonblocking.md)
    #[inline(never)]
    pub(in crate::shm) fn soon(self) -> Reach<'t> {
        match self.team.config().waiting.crowded {
            true => self,
            false => Reach { looks: self.team.looks().min(LOOKS_FOR_A_TURN), ..self },
        }
    }

    /// How often a poll looks.
    #[cfg(test)]
    pub(in crate::shm) fn looks(&self) -> u32 {
        self.looks
    }

    /// Brings these bytes to the cache while it looks.
    #[inline(always)]
    pub(in crate::shm) fn bringing(self, first: *const u8, bytes: usize) -> Reach<'t> {
        Reach { first, lines: bytes.div_ceil(64) as u32, ..self }
    }

    /// The failure of a third member shall not end it.
    pub(in crate::shm) fn alone(self) -> Reach<'t> {
        Reach { alone: true, ..self }
    }

    /// For a caller that blocks, and has looked in vain: [gives way](Team::gives_way) for a while. Whether
    /// the word has come.
    #[inline(always)]
    pub fn gives_way(&self, patience: &mut Patience, yield_now: impl FnMut()) -> bool {
        self.team.note(self.member, self.word, self.target, true);
        let has_come = self.team.gives_way(patience, yield_now);
        // Who goes on with this wait notes it again: it is one, not two.
        self.team.forget_awaited();
        has_come
    }

    /// The word belongs to the caller's operation on that stream: it is not waited for when the member is
    /// through with that.
    #[inline(always)]
    pub(in crate::shm) fn of(self, stream: &'t Stream) -> Reach<'t> {
        Reach { of: Some(stream), ..self }
    }

    /// Looks at once: `None` where the word has come so far, else what is left of the wait. As a rule nothing
    /// is, and then there is nothing to be kept between two polls.
    #[inline(always)]
    pub fn late(self) -> Option<Reach<'t>> {
        match self.look() {
            Some(_) => None,
            None => Some(Reach { looked: true, ..self }),
        }
    }

    /// One look: what the word has come to, if it has.
    #[inline(always)]
    fn come(&self) -> Option<u64> {
        // SYNC(wrote), SYNC(read): acquires what the owner did before it published.
        let seen = self.word.load(Ordering::Acquire);
        reached(seen, self.target).then_some(seen)
    }

    /// Spins for a while: what the word has come to, if it has.
    #[inline(always)]
    pub(in crate::shm) fn look(&self) -> Option<u64> {
        let mut left = self.looks;
        // In the beginning a short pause would be too long; whoever looks only a few times, or takes lines
        // away from their writer, pauses.
        let hurried = if self.looks > HURRIED && self.lines == 0 { self.looks - HURRIED } else { u32::MAX };
        loop {
            if self.lines > 0 {
                (0..self.lines).for_each(|i| cache::bring(self.first.wrapping_add(i as usize * 64)));
            }
            if let Some(seen) = self.come() {
                return Some(seen);
            }
            left -= 1;
            if left == 0 {
                return None;
            }
            if left < hurried {
                std::hint::spin_loop();
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn vain(&mut self) -> Poll<Result<u64>> {
        let slowly = self.vain.more();
        let polls = self.vain.polls();
        if self.blocking {
            self.team.note(self.member, self.word, self.target, polls == Some(1));
        } else if polls == Some(1) && self.looks == 1 {
            // Here and not in `look`, which is a part of operations: a Gatherv would become two functions.
            for _ in 0..looks_at_first(self.team) {
                std::hint::spin_loop();
                if let Some(seen) = self.look() {
                    return Poll::Ready(Ok(seen));
                }
            }
        } else if polls == Some(LOOKS_ON) {
            self.looks = 1;
        }
        let trouble = self.team.trouble(self.member, slowly, self.alone);
        let is_over = |stream| self.team.goes_on_without(stream, self.member);
        let trouble = trouble.or_else(|| (slowly && self.of.is_some_and(is_over)).then_some(Error::Lengths));
        match trouble {
            // The member may have published before it failed.
            Some(error) => Poll::Ready(self.look().ok_or(error)),
            None => {
                awaits(self.word);
                Poll::Pending
            }
        }
    }
}

impl Future for Reach<'_> {
    type Output = Result<u64>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<u64>> {
        if std::mem::take(&mut self.looked) {
            return self.vain();
        }
        match self.look() {
            Some(seen) => Poll::Ready(Ok(seen)),
            None => self.vain(),
        }
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use crate::shm::memory::heap::Heap;
    use crate::shm::protocol::team::Config;
    use std::task::Waker;
    use std::time::{Duration, Instant};

    /// As on a machine where each poll that gives the core away takes many others' turns.
    #[test]
    fn a_death_is_noticed_however_slow_polls_are() {
        for blocking in [true, false] {
            let heap = Heap::new(2, usize::MAX, true);
            let team = Team::new(heap.member(0), Config::default());
            heap.kill(1);
            let word = SharedU64::new(5);
            let mut reach = Reach::new(&team, &word, 6, 1, blocking);
            let start = Instant::now();
            loop {
                match Pin::new(&mut reach).poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(found) => break assert!(found.is_err()),
                    Poll::Pending => std::thread::sleep(Duration::from_millis(30)),
                }
                assert!(start.elapsed() < Duration::from_secs(4), "not noticed, blocking: {blocking}");
            }
        }
    }
}
