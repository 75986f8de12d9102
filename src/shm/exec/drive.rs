// SPDX-License-Identifier: BSD-3-Clause
//! Blocking operations: a future runs to its end on the caller's stack.
//!
//! Between two vain polls the caller may make progress elsewhere, give the core away, or sleep. The order
//! matters to one who waits for messages: progress brings them, so they are looked at next, and the core is
//! given away before. The other way round the message would lie there while all others have their turn.

use crate::shm::protocol::team::Team;
use crate::sync::wait::{self, Patience};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// What is around a blocking operation.
pub trait Around {
    /// Makes progress elsewhere, which may bring messages and poll other operations. Nothing that those may
    /// reach is borrowed or locked when it is called.
    fn progress(&mut self);

    /// The same for a caller that gives the core away itself, so that progress does not, as it would, with
    /// `mpi_yield_when_idle`, also when it has just read a message. Unless the
    /// [team](crate::sync::wait::Waiting::yields) says that it does.
    fn progress_hushed(&mut self);

    /// Whether any operation has looked for a message in vain since this was last asked.
    fn take_awaited(&mut self) -> bool;

    /// Gives the core away.
    #[inline(always)]
    fn yield_now(&mut self) {
        wait::yield_now();
    }
}

/// Runs a future to its end. `team`: the one that the future may wait in; `patience`: that of its operation
/// so far.
#[inline(always)]
pub fn drive<'t, T>(
    mut future: Pin<&mut impl Future<Output = T>>,
    team: impl Fn() -> Option<&'t Team>,
    mut around: impl Around,
    patience: &mut Patience,
) -> T {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        let Some(team) = team() else {
            around.progress();
            continue;
        };
        note_messages(team, &mut around);
        if !team.waits_for_one_word() {
            // Progress may bring a message, which is looked at before the core goes to others.
            pause(team, patience, &mut around);
            progress(team, &mut around);
            // What operations that were polled meanwhile wait for is no matter of the next poll's.
            around.take_awaited();
            continue;
        }
        if team.gives_way(patience, || around.yield_now()) {
            continue;
        }
        if team.is_progress_due(patience) {
            progress(team, &mut around);
            // Of operations that were polled meanwhile.
            note_messages(team, &mut around);
        }
        pause(team, patience, &mut around);
    }
}

/// Progress beside pauses of the team.
#[inline(always)]
fn progress(team: &Team, around: &mut impl Around) {
    match team.config().waiting.gives_core_away() {
        true => around.progress_hushed(),
        false => around.progress(),
    }
}

#[inline(always)]
fn note_messages(team: &Team, around: &mut impl Around) {
    if around.take_awaited() {
        team.note_messages();
    }
}

fn pause(team: &Team, patience: &mut Patience, around: &mut impl Around) {
    if team.pause(patience) {
        around.yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::memory::heap::Heap;
    use crate::shm::protocol::reach::Reach;
    use crate::shm::protocol::team::Config;
    use crate::sync::shared::SharedU64;
    use crate::sync::wait::{Mode, Waiting};
    use std::cell::{Cell, RefCell};
    use std::pin::pin;

    const CROWDED: Waiting = Waiting { mode: Mode::Auto, crowded: true, yields: false, spin: 1 };

    /// What the future waits for.
    #[derive(Clone, Copy)]
    enum For {
        Message,
        Words(usize),
    }

    /// Writes down what happens, a letter each: a look (of the future), progress, also hushed, and giving the
    /// core away.
    #[derive(Default)]
    struct Record {
        letters: RefCell<String>,
        /// A message is awaited.
        awaited: Cell<bool>,
        /// Progress polls another operation, which waits for a message.
        others: bool,
    }

    impl Record {
        fn note(&self, letter: char) {
            self.letters.borrow_mut().push(letter);
        }
    }

    impl Around for &Record {
        fn progress(&mut self) {
            self.note('p');
            self.awaited.set(self.awaited.get() || self.others);
        }

        fn progress_hushed(&mut self) {
            self.note('h');
            self.awaited.set(self.awaited.get() || self.others);
        }

        fn take_awaited(&mut self) -> bool {
            self.awaited.replace(false)
        }

        fn yield_now(&mut self) {
            self.note('y');
        }
    }

    /// What happens between vain polls, one after the other, that wait for these things.
    fn between(waiting: Waiting, team: bool, others: bool, polls: &[For]) -> Vec<String> {
        let config = Config { waiting, ..Config::default() };
        // The other member never comes.
        let heap = Heap::new(2, usize::MAX, true);
        let alone = Team::new(heap.member(0), config);
        let record = Record { others, ..Record::default() };
        let mut polls = polls.iter();
        let future = std::future::poll_fn(|context| {
            record.note(' ');
            match polls.next() {
                None => return Poll::Ready(()),
                Some(For::Message) => record.awaited.set(true),
                Some(For::Words(count)) => (0..*count).for_each(|_| {
                    assert!(pin!(alone.open(0, 0, false)).poll(context).is_pending());
                }),
            }
            Poll::Pending
        });
        drive(pin!(future), || team.then_some(&alone), &record, &mut Patience::default());
        let letters = record.letters.into_inner();
        letters.split(' ').skip(1).filter(|between| !between.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn progress_comes_right_before_the_look_for_messages() {
        for waits in [For::Message, For::Words(2), For::Words(0)] {
            for mode in [Mode::Auto, Mode::Yield] {
                let waiting = Waiting { mode, ..CROWDED };
                assert_eq!(between(waiting, true, false, &[waits; 20]), ["yh"; 20]);
                // Progress gives the core away itself, and cannot be hushed.
                assert_eq!(between(Waiting { yields: true, ..waiting }, true, false, &[waits; 20]), ["h"; 20]);
            }
            assert_eq!(between(Waiting { crowded: false, ..CROWDED }, true, false, &[waits; 20]), ["p"; 20]);
            assert_eq!(between(Waiting { mode: Mode::Spin, ..CROWDED }, true, false, &[waits; 20]), ["p"; 20]);
            assert_eq!(between(CROWDED, false, false, &[waits; 20]), ["p"; 20]);
        }
    }

    #[test]
    fn who_waits_for_one_word_makes_progress_now_and_then() {
        let waits = [For::Words(1); 16];
        assert_eq!(between(CROWDED, true, false, &waits), ["yyyyyyyhy"; 16]);
        assert_eq!(between(Waiting { crowded: false, ..CROWDED }, true, false, &waits), ["p"; 16]);
    }

    /// A team of two whose member 0 waits in vain, so far, for a word of the other one to come to `target`.
    fn waiting(heap: &Heap, config: Config, word: &SharedU64, target: u64) -> Team {
        let team = Team::new(heap.member(0), config);
        team.note(1, word, target, true);
        team
    }

    #[test]
    fn who_waits_for_one_word_only_gives_way_at_first() {
        for (waits, expected) in [
            (CROWDED, "yyyyyyy"),
            (Waiting { mode: Mode::Yield, ..CROWDED }, "yyyyyyy"),
            (Waiting { mode: Mode::Block, ..CROWDED }, ""),
            (Waiting { mode: Mode::Spin, ..CROWDED }, ""),
            (Waiting { crowded: false, ..CROWDED }, ""),
        ] {
            let (heap, config) = (Heap::new(2, usize::MAX, true), Config { waiting: waits, ..Config::default() });
            let (word, record, mut patience) = (SharedU64::new(5), Record::default(), Patience::default());
            let team = waiting(&heap, config, &word, 6);
            assert!(!team.gives_way(&mut patience, || record.note('y')));
            assert_eq!(*record.letters.borrow(), expected, "{waits:?}");
            // The next poll is one that makes progress.
            assert!(patience.is_progress_due(&waits) || expected.is_empty(), "{waits:?}");
            let team = waiting(&heap, config, &word, 5);
            assert_eq!(team.gives_way(&mut Patience::default(), || {}), !expected.is_empty());
            assert_eq!(team.waits_for_one_word(), expected.is_empty(), "what has come is not awaited");
            // Where it has not come, the wait that goes on is the only one.
            let late = Reach::new(&team, &word, 6, 1, true);
            assert!(!late.gives_way(&mut Patience::default(), || {}));
            assert!(pin!(late).poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(team.waits_for_one_word(), "{waits:?}");
        }
    }

    #[test]
    fn what_others_wait_for_is_no_matter_of_the_next_poll() {
        assert_eq!(
            between(CROWDED, true, true, &[For::Message, For::Words(1), For::Message]),
            ["yh", "yyyyyyhy", "yh"]
        );
        // But of this one's: as if it waited for messages itself, it leaves the core to progress, and would
        // not sleep.
        let waiting = Waiting { yields: true, ..CROWDED };
        assert_eq!(between(waiting, true, true, &[For::Words(1); 8]), ["yyyyyyyh"; 8]);
    }
}
