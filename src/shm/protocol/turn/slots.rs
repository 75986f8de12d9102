// SPDX-License-Identifier: BSD-3-Clause
//! Where a member's slots are, and when they are free.
//!
//! Where each member has a core for itself, the slots of operation n are in set n % w. Where they take turns
//! on the cores the writer chooses, [before](View::room_taken) it writes or publishes anything that is in a
//! set: it stays in the set that it was in last, if all others are known to be through with that, for it is
//! still in the caches; else it goes on to the next one, so that it may be ahead of the slowest reader by as
//! many operations as there are sets. It says which with every step that it publishes. For less than
//! [`WORTH`] it does not look how far the others are, but stays only if it knows that already.
//!
//! Where each has a core slots may [rotate](super::rotation). What this gains: docs/design/oversubscribed.md.

use super::{View, rotation};
use crate::endpoint::{Result, mismatch};
use crate::shm::memory::Member;
use crate::shm::memory::layout::{LINE, line_of, told_set, word};
use crate::shm::protocol::team::At;
use crate::sync::cache;
use crate::sync::shared::Ordering;
use std::ptr;

/// Bytes for which it is worth to ask how far the others are, in order to stay in a set: below, that takes
/// longer than it saves.
const WORTH: usize = if cfg!(loom) { 128 } else { 32 << 10 };

/// Cache lines of a short slot that are prefetched, by who writes them and by who reads them. With the first
/// ones that takes no longer than the line of the flag does, in any case.
pub(super) const PREFETCHED: usize = 4;

/// The set of operation `op`, of `sets`, where those are taken in turn.
#[inline(always)]
pub(super) fn set_of(op: u32, sets: u8) -> usize {
    op as usize & (usize::from(sets) - 1)
}

impl<'t> View<'t> {
    /// All members' queues.
    #[inline(always)]
    pub(super) fn queues(&self) -> &'t [At<u8>] {
        self.queues.unwrap_or_else(|| mismatch("what is longer than a line takes a turn with a queue"))
    }

    /// A member's queue, with its short slots and sets.
    #[inline(always)]
    pub fn queue(&self, member: Member) -> *mut u8 {
        self.queues()[member].0
    }

    /// Slot of `step` in a member's set: of the caller once that is [free](View::set_free), of another when
    /// it has published what is there.
    #[inline(always)]
    pub fn slot(&self, member: Member, step: u32) -> *mut u8 {
        self.slot_of(member, step, self.fragment())
    }

    /// The same where all steps of the member's in this operation have `bytes` at most, up to a fragment:
    /// then slots that [rotate](super::rotation) lie side by side, or fill fragments.
    #[inline(always)]
    pub fn slot_of(&self, member: Member, step: u32, bytes: usize) -> *mut u8 {
        let (config, depth) = (self.team.config(), self.depth() as usize);
        let at = if config.rotates {
            self.rotated(member, step as usize, bytes)
        } else {
            (((self.set(member) * depth) << self.narrow) + (step as usize & (depth - 1))) * self.fragment()
        };
        self.queue(member).wrapping_add(config.sets_at() + at)
    }

    /// Which of a member's sets is in use, under the same terms.
    #[inline(always)]
    pub(super) fn set(&self, member: Member) -> usize {
        let sets = self.team.config().sets;
        if !self.shares_cores() {
            set_of(self.op, sets)
        } else if member == self.me() {
            self.stream.set.load(Ordering::Relaxed).into()
        } else {
            // What is published was acquired already, with this word; what is not is only hinted at, and then
            // this is any set.
            told_set(self.line(member).word.load(Ordering::Relaxed)) & (usize::from(sets) - 1)
        }
    }

    /// Where `len` bytes of a member's lie that are published with step 1: up to 56 in its line, more in its
    /// small or its short slot, or, where short ones do not lie [still](crate::shm::config::Config::still) or
    /// it travels [as a whole](crate::shm::config::Config::whole), in its set.
    #[inline(always)]
    pub fn room(&self, member: Member, len: usize) -> *mut u8 {
        match len {
            ..=LINE => self.payload(member),
            _ if len <= usize::from(self.team.config().small) => self.small(member),
            _ if self.still || len <= self.team.config().still as usize => self.short(member),
            _ if len <= self.team.config().short => self.rotated_slots().of(member),
            _ => self.slot(member, 0),
        }
    }

    /// How many rooms for so many bytes there are, and whether they are sets.
    #[inline(always)]
    pub(super) fn rooms_for(&self, len: usize) -> (u32, bool) {
        let config = self.team.config();
        match len {
            _ if len <= LINE.max(usize::from(config.small)) => (config.lines, false),
            _ if self.still || len <= config.still as usize => (config.shorts.into(), false),
            _ => (config.sets.into(), true),
        }
    }

    /// `None` where the caller's room for so many bytes is known to be free, else the wait. If that is a set,
    /// it is [chosen](self) when this gives `None`, or when the wait is over; asked again in the same
    /// operation, it is the same one.
    #[inline(always)]
    pub fn room_taken(&self, len: usize) -> Option<impl Future<Output = Result<()>> + use<'_>> {
        let config = self.team.config();
        let (rooms, wants_set) = self.rooms_for(len);
        let target = word(self.op.wrapping_sub(rooms - 1), 0);
        let target = if wants_set && config.rotates {
            rotation::after_others(self.stream, self.op, config.sets, target)
        } else {
            target
        };
        let chooses = wants_set && self.shares_cores();
        let is_free = self.known(target) && (!chooses || self.chooses_set(len < WORTH));
        let view = *self;
        (!is_free).then_some(async move {
            view.ask_others(target).await?;
            if chooses {
                view.chooses_set(true);
            }
            Ok(())
        })
    }

    /// Chooses a set, if the operation has not done so: the last one, if all others are known to be through
    /// with that; else the next one, if the caller `may_go_on`, as all others are known to be through with
    /// operation op − w. (That was left for others at least w − 1 times since, each time in another
    /// operation: so it was last used in op − w, or before.) False: neither, yet.
    #[inline(always)]
    fn chooses_set(&self, may_go_on: bool) -> bool {
        let stream = self.stream;
        let last = stream.chosen.load(Ordering::Relaxed);
        if last != self.op {
            if !self.known(word(last.wrapping_add(1), 0)) {
                if !may_go_on {
                    return false;
                }
                let next = stream.set.load(Ordering::Relaxed).wrapping_add(1) & (self.team.config().sets - 1);
                stream.set.store(next, Ordering::Relaxed);
            }
            stream.chosen.store(self.op, Ordering::Relaxed);
        }
        true
    }

    /// Waits until the caller's room for so many bytes is free.
    #[inline(always)]
    pub async fn room_free(&self, len: usize) -> Result<()> {
        match self.room_taken(len) {
            None => Ok(()),
            Some(wait) => wait.await,
        }
    }

    /// A member's small slot, which is free when its line is.
    #[inline(always)]
    pub fn small(&self, member: Member) -> *mut u8 {
        self.queue(member).wrapping_add(self.small_at())
    }

    /// Where in its queue that begins.
    #[inline(always)]
    pub fn small_at(&self) -> usize {
        self.line as usize * usize::from(self.team.config().small)
    }

    /// A member's short slot. When it is free the line is, too.
    #[inline(always)]
    pub fn short(&self, member: Member) -> *mut u8 {
        self.queue(member).wrapping_add(self.short_at())
    }

    /// Where in its queue that begins.
    #[inline(always)]
    pub fn short_at(&self) -> usize {
        let config = self.team.config();
        config.shorts_at() + (self.op & (u32::from(config.shorts) - 1)) as usize * config.short
    }

    /// Prefetches for writing what the caller writes first in operation `next`: a line that others have read
    /// comes back slowly, and so meanwhile. Beyond the flag's line only where this operation may have used a
    /// queue; not where processes take turns on the cores, for nobody waits for a writer's lines there.
    #[inline(always)]
    pub(super) fn prefetch(&self, next: u32) {
        let config = self.team.config();
        cache::own(ptr::from_ref(&self.control(self.me()).lines[line_of(next, config.lines) as usize]).cast());
        if let Some(queues) = self.queues
            && !self.shares_cores()
        {
            let slot = config.shorts_at() + (next & (u32::from(config.shorts) - 1)) as usize * config.short;
            let at = queues[self.me()].0.wrapping_add(slot);
            (0..PREFETCHED).for_each(|i| cache::own(at.wrapping_add(i * 64)));
        }
    }

    /// Waits until the caller's set is free, and with it the line and the other slots.
    #[inline(always)]
    pub async fn set_free(&self) -> Result<()> {
        self.room_free(usize::MAX).await
    }

    /// Waits until all others are through with what the slot of `step` held before, where a reader counts one
    /// step per slot. For the first time: until the set is free.
    #[inline(always)]
    pub async fn slot_free(&self, step: u32) -> Result<()> {
        match step.checked_sub(self.depth()) {
            None if step == 0 => self.set_free().await,
            None => Ok(()),
            Some(before) => self.all_past(word(self.op, before + 1)).await,
        }
    }
}

#[cfg(all(test, not(loom)))]
pub(super) mod tests {
    use super::*;
    use crate::shm::memory::heap::Heap;
    use crate::shm::memory::layout::SHORT;
    use crate::shm::protocol::team::{Config, Team};
    use crate::shm::protocol::turn::Turn;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// So many members, after their first operation.
    pub fn opened(count: usize, config: Config) -> Vec<Team> {
        let heap = Heap::new(count, 8, true);
        let teams: Vec<_> = (0..count).map(|me| Team::new(heap.member(me), config)).collect();
        let mut left: Vec<_> = teams.iter().collect();
        for _ in 0..2 * count {
            left.retain(|team| match poll(team.open(0, 0, true)) {
                Poll::Pending => true,
                Poll::Ready(turn) => {
                    turn.unwrap().unwrap().finish();
                    false
                }
            });
        }
        assert!(left.is_empty());
        teams
    }

    /// Two members with two sets each, after their first operation.
    fn pair(crowded: bool) -> Vec<Team> {
        let mut config = Config { fragments: 2, sets: 2, ..Config::default() };
        config.waiting.crowded = crowded;
        opened(2, config)
    }

    fn turn(team: &Team) -> Turn<'_> {
        team.turn(0, 0, true).expect("it is open")
    }

    /// Where member 0 writes `len` bytes in its next operation, and says so; `None`: it would have to wait,
    /// and does not write.
    fn write(teams: &[Team], len: usize) -> Option<*mut u8> {
        let turn = turn(&teams[0]);
        let at = poll(turn.room_free(len)).is_ready().then(|| turn.slot(0, 0));
        // Asked again it says the same.
        assert!(at.is_none() || (poll(turn.room_free(len)).is_ready() && at == Some(turn.slot(0, 0))));
        turn.publish_and_finish(1);
        at
    }

    /// Where member 1 finds what member 0 has written in the next operation, which it ends.
    fn find(teams: &[Team]) -> *mut u8 {
        let turn = turn(&teams[1]);
        assert!(poll(turn.wrote(0, 1)).is_ready());
        let at = turn.slot(0, 0);
        turn.finish();
        at
    }

    #[test]
    fn rooms_of_all_are_those_of_each() {
        for (crowded, rotates, still) in
            [(true, false, 9999), (false, true, 1024), (false, true, 0), (false, false, 9999)]
        {
            let mut config = Config { rotates, still, whole: 9999, ..Config::default() };
            config.waiting.crowded = crowded;
            let teams = opened(3, config);
            for len in [0, 1, LINE, LINE + 1, 511, 512, 513, 1024, 1025, SHORT, SHORT + 1] {
                let turn = turn(&teams[0]);
                let at = |member| (turn.rooms(len).of(member), turn.room(member, len));
                assert!((0..3).all(|member| at(member).0 == at(member).1), "{len}, {still}, crowded: {crowded}");
                let still = teams[0].lies_still(len).then(|| turn.room(2, len));
                let turn = turn.of_what_lies_still();
                assert!(still.is_none_or(|room| (room, room) == (turn.room(2, len), turn.rooms(len).of(2))), "{len}");
                turn.finish();
            }
        }
    }

    #[test]
    fn who_has_used_a_queue_prefetches_the_next_slot() {
        use crate::sync::cache::ASKED;
        for (crowded, queue) in [(false, true), (false, false), (true, true)] {
            let teams = pair(crowded);
            let turn = teams[0].turn(0, 0, queue).expect("it is open");
            ASKED.set(Some(Vec::new()));
            turn.finish();
            let asked = ASKED.take().unwrap();
            let next = self::turn(&teams[0]);
            let [line, slot] = [next.payload(0), next.short(0)].map(|at| at.addr());
            let more = if queue && !crowded { PREFETCHED } else { 0 };
            let wanted: Vec<_> = [line].into_iter().chain((0..more).map(|i| slot + i * 64)).collect();
            assert_eq!(asked, wanted, "crowded: {crowded}, queue: {queue}");
            next.finish();
        }
    }

    #[test]
    fn a_set_is_kept_while_others_are_through_with_it() {
        let teams = pair(true);
        let first = write(&teams, WORTH).unwrap();
        let second = write(&teams, WORTH).unwrap();
        assert_ne!(first, second, "nobody has read the first one");
        assert_eq!(find(&teams), first);
        assert_eq!(write(&teams, WORTH), Some(first), "the second one is still there");
        assert_eq!([find(&teams), find(&teams)], [second, first]);
        for _ in 0..3 {
            assert_eq!(write(&teams, WORTH), Some(first), "all is read");
            assert_eq!(find(&teams), first);
        }
        // What is short does not ask whether it may stay.
        let other = write(&teams, WORTH - 1).unwrap();
        assert_ne!(other, first);
        assert_eq!(find(&teams), other);
    }

    #[test]
    fn no_set_is_taken_that_is_being_read() {
        let teams = pair(true);
        assert!(write(&teams, WORTH).is_some() && write(&teams, WORTH).is_some());
        assert_eq!(write(&teams, WORTH), None, "two are ahead of their reader");
    }

    #[test]
    fn lines_are_awaited_also_where_the_set_is_free() {
        let teams = pair(true);
        let first = write(&teams, WORTH).unwrap();
        assert_eq!(find(&teams), first);
        // The last of these asks how far the reader is, which is through with the set and not with what came
        // since.
        for _ in 0..teams[0].config().lines {
            assert!(write(&teams, LINE).is_some());
        }
        assert_eq!(write(&teams, WORTH), None, "its line has not been read");
    }

    #[test]
    fn sets_are_taken_in_turn_where_each_member_has_a_core() {
        let teams = pair(false);
        let all: Vec<_> = (0..4)
            .map(|_| {
                let at = write(&teams, WORTH).unwrap();
                assert_eq!(find(&teams), at);
                at
            })
            .collect();
        assert_ne!(all[0], all[1]);
        assert_eq!(all[..2], all[2..]);
    }
}
