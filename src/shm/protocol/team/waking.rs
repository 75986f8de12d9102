// SPDX-License-Identifier: BSD-3-Clause
//! Publishing with waking, and sleeping.

use super::Team;
use crate::shm::memory::Member;
use crate::shm::memory::PAGE;
use crate::shm::memory::layout::{Line, StreamControl, line_of, reached};
use crate::sync::cache;
use crate::sync::futex::{self, Half};
use crate::sync::shared::{Ordering, SharedU64, fence};
use crate::sync::wait::{LONGEST_SLEEP_NS, Patience, Pause};
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

/// Looks, with a pause after each, that take about as long as to give the core away and to get it back (1
/// µs).
pub(in crate::shm) const LOOKS_FOR_A_TURN: u32 = 40;

/// Cache lines of a [`Team`] that every blocking operation reads.
const HEAD_LINES: usize = 6;
#[cfg(all(target_pointer_width = "64", not(loom)))]
const _: () = assert!(offset_of!(Team, awaited) + size_of::<Awaited>() <= HEAD_LINES * 64);

/// What the latest wait of a blocking operation that found nothing waits for.
#[derive(Default)]
pub(super) struct Awaited {
    /// Whose word it is.
    member: AtomicUsize,
    word: AtomicPtr<SharedU64>,
    target: AtomicU64,
    /// Waits that found nothing since the last pause.
    count: AtomicU32,
    /// It is another wait than that of the pause before.
    begins: AtomicBool,
}

impl Team {
    /// Where processes take turns on the cores, little of what a blocking operation touches is in this core's
    /// cache: brings what every one touches, all at the same time.
    #[inline(always)]
    pub fn bring(&self) {
        if !self.may_sleep {
            return;
        }
        let own = ptr::from_ref(self).cast::<u8>();
        (1..HEAD_LINES).for_each(|i| cache::bring(own.wrapping_add(i * 64)));
        cache::bring(self.sleepers.0.cast());
        let control = self.controls[self.me()].0;
        let next = line_of(self.first.next.load(Ordering::Relaxed), self.config.lines) as usize;
        cache::own(control.cast::<u8>().wrapping_add(next * size_of::<Line>()));
        cache::own(control.cast::<u8>().wrapping_add(offset_of!(StreamControl, read)));
    }

    /// Publishes `next` in a word of the caller's that held `before`, and wakes who sleeps on it.
    #[inline(always)]
    pub(in crate::shm) fn post(&self, word: &SharedU64, before: u64, next: u64) {
        word.store(next, Ordering::Release);
        self.wake(|| [(word, before, next)]);
    }

    /// Wakes who sleeps on any of these words of the caller's, each of which it has stored already: from one
    /// value to another.
    #[inline(always)]
    pub(in crate::shm) fn wake<'w, const WORDS: usize>(
        &self,
        posted: impl FnOnce() -> [(&'w SharedU64, u64, u64); WORDS],
    ) {
        if self.may_sleep && self.is_any_asleep() {
            self.wake_on(&posted());
        }
    }

    /// Whether anybody says that it sleeps, or will not before it has seen what the caller has published.
    #[inline(always)]
    fn is_any_asleep(&self) -> bool {
        // SYNC(asleep): either the sleeper's second look finds what was published before this fence, or we
        // find it asleep.
        fence(Ordering::SeqCst);
        self.sleepers().load(Ordering::Relaxed) != 0
    }

    /// How many say so, of this team and of others.
    #[inline(always)]
    fn sleepers(&self) -> &SharedU64 {
        // SAFETY: of the team's memory, and only accessed through shared words.
        &unsafe { &*self.sleepers.0 }.count
    }

    /// Wakes those of the team that are asleep on any of these words.
    #[cold]
    #[inline(never)]
    fn wake_on(&self, posted: &[(&SharedU64, u64, u64)]) {
        posted.iter().for_each(|&(word, before, next)| self.wake_on_one(word, before, next));
    }

    fn wake_on_one(&self, word: &SharedU64, before: u64, next: u64) {
        let (low, high) = (place(self.me(), word, Half::Low), place(self.me(), word, Half::High));
        let (mut on_low, mut on_high) = (false, false);
        for member in (0..self.size()).filter(|&m| m != self.me()) {
            let at = self.control(member).asleep.load(Ordering::Relaxed);
            on_low |= at == low;
            on_high |= at == high;
        }
        // One who waits within the operation sleeps on the step, one who waits for a later operation on its
        // number; but the former may wait in vain for a step when the owner goes on to the next operation.
        if on_low {
            futex::wake(word, Half::Low);
        }
        if on_high && Half::High.of(before) != Half::High.of(next) {
            futex::wake(word, Half::High);
        }
    }

    /// Notes that a wait of a blocking operation for a word of `member` has found nothing; `begins`: for the
    /// first time.
    pub(in crate::shm) fn note(&self, member: Member, word: &SharedU64, target: u64, begins: bool) {
        self.awaited.member.store(member, Ordering::Relaxed);
        self.awaited.word.store(ptr::from_ref(word).cast_mut(), Ordering::Relaxed);
        self.awaited.target.store(target, Ordering::Relaxed);
        if begins {
            self.awaited.begins.store(true, Ordering::Relaxed);
        }
        let count = self.awaited.count.load(Ordering::Relaxed);
        self.awaited.count.store(count.saturating_add(1), Ordering::Relaxed);
    }

    /// Notes that messages are awaited too: whoever waits for both does not sleep.
    pub fn note_messages(&self) {
        let count = self.awaited.count.load(Ordering::Relaxed);
        self.awaited.count.store(count.saturating_add(2), Ordering::Relaxed);
    }

    /// Whether what was polled since the last pause, in vain, waits for exactly one word and no messages. If
    /// not, the executor of a blocking operation makes progress after each [pause](Team::pause): who waits
    /// for messages gets them no other way.
    pub fn waits_for_one_word(&self) -> bool {
        self.awaited.count.load(Ordering::Relaxed) == 1
    }

    /// One who waits for one word, and has looked at it in vain, gives the core away, and looks again, until
    /// the word has come: true; or until more than that is due: progress, as after every eighth vain look, or
    /// a sleep. Until then nobody looks whether members have failed, or whether messages are awaited.
    pub fn gives_way(&self, patience: &mut Patience, mut yield_now: impl FnMut()) -> bool {
        if self.awaited.begins.load(Ordering::Relaxed) {
            self.awaited.begins.store(false, Ordering::Relaxed);
            patience.begin();
        }
        let (at, target) = (self.awaited.word.load(Ordering::Relaxed), self.awaited.target.load(Ordering::Relaxed));
        // SAFETY: a word of the team's memory, noted by a wait on this team.
        let word = unsafe { &*at };
        // SYNC(wrote), SYNC(read): acquires what the owner did before it published.
        let has_come = || reached(word.load(Ordering::Acquire), target);
        let most = patience.only_yields(&self.config.waiting);
        for polls in 0..=most {
            if polls > 0 && has_come() {
                patience.gave_way(polls);
                self.forget_awaited();
                return true;
            }
            if polls < most {
                yield_now();
            }
        }
        patience.gave_way(most);
        false
    }

    /// What has been awaited is awaited no more.
    pub(in crate::shm) fn forget_awaited(&self) {
        self.awaited.count.store(0, Ordering::Relaxed);
    }

    /// Whether one who waits for one word has to make progress elsewhere before it [pauses](Team::pause).
    pub fn is_progress_due(&self, patience: &Patience) -> bool {
        patience.is_progress_due(&self.config.waiting)
    }

    /// For the executor of a blocking operation, after each poll that found nothing: whether to give the core
    /// away now. Or it sleeps, for at most 1 ms, but only if exactly one wait was polled since the last call:
    /// an operation with several lanes waits for whichever comes first, and one that waits for a message not
    /// at all.
    #[must_use = "the core is not given away here"]
    pub fn pause(&self, patience: &mut Patience) -> bool {
        let count = self.awaited.count.load(Ordering::Relaxed);
        self.awaited.count.store(0, Ordering::Relaxed);
        let waiting = &self.config.waiting;
        let pause = if count == 1 { patience.next(waiting) } else { patience.next_before_progress(waiting) };
        if pause == Pause::Sleep {
            self.sleep();
        }
        pause == Pause::Yield
    }

    /// Sleeps until the awaited word changes, unless it has come.
    fn sleep(&self) {
        let (at, target) = (self.awaited.word.load(Ordering::Relaxed), self.awaited.target.load(Ordering::Relaxed));
        let member = self.awaited.member.load(Ordering::Relaxed);
        // SAFETY: a word of the team's memory, noted by a wait on this team.
        let word = unsafe { &*at };
        // The half that the publication will change: a later operation may well stop at the same step.
        let half_after = |seen| if Half::High.of(seen) == Half::High.of(target) { Half::Low } else { Half::High };
        let half = half_after(word.load(Ordering::Relaxed));
        let asleep = &self.control(self.me()).asleep;
        asleep.store(place(member, word, half), Ordering::Relaxed);
        self.sleepers().fetch_add(1, Ordering::Relaxed);
        // SYNC(asleep): see `is_any_asleep`. Who must find us counted finds where we sleep, too.
        fence(Ordering::SeqCst);
        let seen = word.load(Ordering::Relaxed);
        // Writers wake who has said that it sleeps on that half.
        if !reached(seen, target) && half_after(seen) == half {
            futex::wait(word, half, seen, LONGEST_SLEEP_NS);
        }
        self.sleepers().fetch_sub(1, Ordering::Relaxed);
        asleep.store(0, Ordering::Relaxed);
    }
}

/// What one says that sleeps on half of a word of `member`: never 0. The word is told by where it lies in its
/// page, as every process maps pages elsewhere; others that lie there in other pages cost a vain call.
fn place(member: Member, word: &SharedU64, half: Half) -> u64 {
    let in_page = ptr::from_ref(word).addr() as u64 % PAGE as u64;
    (member as u64 + 1) << 16 | in_page << 1 | u64::from(half == Half::High)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shm::memory::heap::Heap;
    use crate::shm::protocol::team::Config;

    #[test]
    fn lines_are_looked_at_only_while_somebody_is_counted() {
        let heap = Heap::new(2, 0, true);
        let teams = [0, 1].map(|me| Team::new(heap.member(me), Config::default()));
        teams[1].control(1).asleep.store(1, Ordering::Relaxed);
        assert!(!teams[0].is_any_asleep(), "nobody is counted");
        teams[1].sleepers().fetch_add(1, Ordering::Relaxed);
        assert!(teams[0].is_any_asleep(), "all count in one word");
    }
}
