// SPDX-License-Identifier: BSD-3-Clause
//! One operation on one stream.
//!
//! Operation n of a stream uses each member's line and small slot n % l, short slot n % s and set n % w; or,
//! where processes take turns on the cores, [the last set or the next one](slots). A member may write
//! * its line and its small slot when all others are through with operation n − l: their `read` is at least
//!   (n − l + 1, 0);
//! * its short slot when they are through with operation n − s, those then being free as well, as s ≤ l;
//! * its set (slots, or a message [as a whole](crate::shm::config::Config::whole), or a short one that
//!   [rotates](crate::shm::config::Config::still)) when all others are through with operation n − w: their
//!   `read` is at least (n − w + 1, 0); or, if it has gone on in [other sets](rotation) since, through with
//!   the operation in which it did. As w ≤ s ≤ l, all else is free too.
//!
//! Within the operation each member counts its published steps in its line, and its progress as a reader in
//! its `read` line; what a step is, the operation says.

mod alike;
mod circle;
mod current;
mod ending;
mod lengths;
mod near;
mod opening;
pub(in crate::shm) mod rotation;
mod slots;
mod view;
pub mod waits;

pub use alike::{Alike, AllRooms};
pub use circle::Circle;
pub use current::Current;
pub use lengths::Travel;
pub use near::Near;
pub use view::View;

use crate::shm::memory::layout::StreamControl;
use crate::shm::policy::Way;
use crate::shm::protocol::team::{At, Stream, Team};
use crate::sync::shared::Ordering;
use std::mem;
use std::ops::Deref;

/// The longest fragment made of several.
const WIDE: usize = 64 << 10;

/// Of more members a set may be [one fragment](Turn::widened_for_parts): their queues are short.
const MANY: usize = 32;

/// One operation on one stream, in which a member takes part. Dropped before it is finished, it fails the
/// team: the others would wait for ever.
pub struct Turn<'t> {
    view: View<'t>,
}

impl View<'_> {
    /// The way that a parameter names, if one does.
    #[inline(always)]
    pub fn named(&self) -> Option<Way> {
        self.named
    }
}

impl<'t> Deref for Turn<'t> {
    type Target = View<'t>;

    #[inline(always)]
    fn deref(&self) -> &View<'t> {
        &self.view
    }
}

impl Drop for Turn<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.team.fail();
    }
}

impl<'t> Turn<'t> {
    #[inline(always)]
    pub(in crate::shm) fn new(
        team: &'t Team,
        stream: &'t Stream,
        controls: &'t [At<StreamControl>],
        queues: Option<&'t [At<u8>]>,
        blocking: bool,
    ) -> Turn<'t> {
        assert!(!stream.busy.load(Ordering::Relaxed), "the stream's operation before is not over");
        stream.busy.store(true, Ordering::Relaxed);
        let op = stream.next.load(Ordering::Relaxed);
        Turn { view: View { blocking, ..View::of(team, stream, controls, queues, op) } }
    }

    /// The same operation with fragments of up to 64 KiB, made of several, while four of them are left in a
    /// set: for operations in which a fragment costs more than one hand-over. All members that use slots must
    /// do so, before the first step.
    #[inline(always)]
    pub fn widened(self) -> Turn<'t> {
        self.widened_to(4)
    }

    /// The same, for operations in which each member has its own part of every fragment. Of many members that
    /// is a small one, so that all that there are had better make one fragment: predicted for 96, an Alltoall
    /// of 1 KiB takes 0.25 of the time, and an Allreduce of 64 KiB 0.66. Not where one writes what others
    /// read in turns: it would wait for each before it goes on.
    #[inline(always)]
    pub fn widened_for_parts(self) -> Turn<'t> {
        let least = if self.size() > MANY && !self.shares_cores() { 1 } else { 4 };
        self.widened_to(least)
    }

    #[inline(always)]
    fn widened_to(mut self, least: u32) -> Turn<'t> {
        while self.fragment() * 2 <= WIDE && self.depth() > least {
            self.view.wide += 1;
        }
        self
    }

    /// The same operation with a set as one fragment. As [`widened`](Turn::widened): all members that use
    /// slots must do so.
    #[inline(always)]
    pub fn in_whole_sets(mut self) -> Turn<'t> {
        while self.depth() > 1 {
            self.view.wide += 1;
        }
        self
    }

    /// The same operation with less of a set, [as much as is best](crate::shm::config::Config::window) but
    /// two fragments at least, where members take turns on the cores and are all within the call: where one
    /// or two read what all others have, more would drive each other out of the caches before it is read. As
    /// [`widened`](Turn::widened): all members that use slots must do so.
    #[inline(always)]
    pub fn narrowed(mut self) -> Turn<'t> {
        self.view = self.view.narrowed();
        self
    }

    /// The same operation with what it uses of a set as two fragments, where [that is
    /// best](crate::shm::config::Config::gathers_in_halves) and all members are within the call. As
    /// [`widened`](Turn::widened): all members that use slots must do so.
    #[inline(always)]
    pub fn halved(mut self) -> Turn<'t> {
        self.view = self.view.halved();
        self
    }

    /// The same operation, for which a parameter names a way. Before it begins, on all
    /// members.
    #[inline(always)]
    pub fn by_way(mut self, named: Option<Way>) -> Turn<'t> {
        self.view.named = named;
        self
    }

    /// Ends the operation on the caller's side.
    #[inline(always)]
    pub fn finish(self) {
        self.end(None);
        mem::forget(self);
    }

    /// [Publishes](View::publish) the steps before `step`, after which the caller has nothing more to do, and
    /// ends the operation on its side.
    #[inline(always)]
    pub fn publish_and_finish(self, step: u32) {
        self.end(Some(step));
        mem::forget(self);
    }

    /// The same operation, all of whose data [lie still](Team::lies_still), as far as the caller writes or
    /// reads them: the compiler leaves out what is for others. Nothing, where a parameter names a way.
    #[inline(always)]
    pub fn of_what_lies_still(mut self) -> Self {
        self.view.still = self.view.named.is_none();
        self
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shm::config::Cores;
    use crate::shm::memory::heap::Heap;
    use crate::shm::memory::layout::{LINE, line_of};
    use crate::shm::protocol::team::Config;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn turn(team: &Team) -> Turn<'_> {
        team.turn(0, 0, false).expect("it is open")
    }

    #[test]
    #[should_panic(expected = "a turn with a queue")]
    fn without_a_queue_there_are_no_slots() {
        let heap = Heap::new(1, 0, true);
        let team = Team::new(heap.member(0), Config::default());
        let Poll::Ready(Ok(Some(turn))) = poll(team.open(0, 0, false)) else { panic!("alone, and there is memory") };
        turn.room(0, LINE + 1);
    }

    /// Ends operation `next` − 1 on the caller's side.
    fn pass(team: &Team, next: u32) {
        let mut turn = turn(team);
        turn.view.op = next.wrapping_sub(1);
        turn.view.line = line_of(turn.view.op, team.config().lines);
        turn.finish();
    }

    #[test]
    fn words_that_nobody_has_used_for_long_are_not_taken_for_later_ones() {
        for rounds in [3, 4, 7, 8, 9, 12, 15, 16, 17, 40] {
            for lines in [8, 32] {
                go_on_for(rounds, Config { lines, ..Config::default() });
            }
        }
    }

    /// So many times 2²⁸ operations in which nobody writes; then nothing counts as published, and no line as
    /// free that is not.
    fn go_on_for(rounds: u32, config: Config) {
        let heap = Heap::new(3, 0, true);
        let teams: Vec<_> = (0..3).map(|me| Team::new(heap.member(me), config)).collect();
        for team in &teams {
            match poll(team.open(0, 0, false)) {
                Poll::Ready(turn) => turn.unwrap().unwrap().finish(),
                Poll::Pending => panic!("all members are there"),
            }
        }
        for round in 1..=rounds {
            teams.iter().for_each(|team| pass(team, round.wrapping_mul(1 << 28)));
        }
        let now = rounds.wrapping_mul(1 << 28);
        // One runs ahead: its line is not free when the others have yet to read it.
        (0..config.lines).for_each(|n| pass(&teams[0], now + 1 + n));
        let ahead = turn(&teams[0]);
        assert!(poll(ahead.line_free()).is_pending(), "{now:#x}");
        ahead.finish();
        let turns: Vec<_> = teams[1..].iter().map(turn).collect();
        for turn in &turns {
            assert!(poll(turn.wrote(1, 1)).is_pending() && poll(turn.read(1, 1)).is_pending(), "{now:#x}");
            assert!(poll(turn.line_free()).is_ready(), "{now:#x}");
        }
        turns.into_iter().for_each(Turn::finish);
    }

    #[test]
    fn few_crowded_members_gather_in_halves_of_what_is_in_use() {
        let sizes = |cores: Cores, members, slot| {
            let mut config = Config::built_in(members, cores);
            config.waiting.crowded = cores != Cores::Own;
            let team = Team::new(Heap::new(1, usize::MAX, true).member(0), config);
            [false, true].map(|narrowed| {
                let Poll::Ready(turn) = poll(team.open(slot, 0, true)) else { panic!("alone, it waits for nobody") };
                let turn = turn.unwrap().unwrap();
                let turn = if narrowed { turn.narrowed().halved() } else { turn.halved() };
                let found = (turn.depth(), turn.fragment() >> 10);
                turn.finish();
                found
            })
        };
        assert_eq!(sizes(Cores::Shared, 4, 0), [(2, 256), (2, 128)]);
        assert_eq!(sizes(Cores::Shared, 4, 1), [(16, 32); 2]);
        assert_eq!(sizes(Cores::Own, 4, 0), [(16, 16); 2]);
        assert_eq!(sizes(Cores::Lent, 4, 0), [(16, 16), (8, 16)]);
        assert_eq!(sizes(Cores::Shared, 9, 0), [(16, 16), (8, 16)]);
    }
}
