// SPDX-License-Identifier: BSD-3-Clause
//! How a suspended operation goes on.

use super::rooted::Barrier;
use super::*;
use crate::shm::memory::heap::Heap;
use crate::shm::protocol::team::{Config, Team};
use std::pin::pin;
use std::sync::Mutex;
use std::task::Waker;

/// An exchange of nothing that writes down what it does.
struct Noted<'n>(&'n Mutex<String>);

impl Noted<'_> {
    fn note(&self, what: impl std::fmt::Display) -> Result<()> {
        *self.0.lock().unwrap() += &what.to_string();
        Ok(())
    }
}

impl Short for Noted<'_> {
    fn fits(&self, _: &Turn<'_>) -> bool {
        true
    }
    fn room(&self, _: &Turn<'_>) -> Option<usize> {
        Some(0)
    }
    unsafe fn write(&self, _: &Turn<'_>) -> Result<()> {
        self.note('w')
    }
    fn keep(&self, _: Member) -> Result<()> {
        self.note('k')
    }
    fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
        turn.others()
    }
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        Some((0, turn.payload(source)))
    }
    unsafe fn read(&self, _: &Turn<'_>, source: Member) -> Result<()> {
        self.note(source)
    }
    unsafe fn end(&self, _: &Turn<'_>) -> Result<()> {
        self.note('e')
    }
}

#[test]
fn what_is_suspended_goes_on_where_it_was() {
    let context = &mut Context::from_waker(Waker::noop());
    let heap = Heap::new(3, usize::MAX, true);
    let teams = [0, 1, 2].map(|me| Team::new(heap.member(me), Config::default()));
    let mut opening: Vec<_> = teams.iter().map(|team| Box::pin(team.open(0, 0, false))).collect();
    let mut turns = [None, None, None];
    while turns.iter().any(Option::is_none) {
        for (open, turn) in opening.iter_mut().zip(&mut turns).filter(|(_, turn)| turn.is_none()) {
            if let Poll::Ready(opened) = open.as_mut().poll(context) {
                *turn = opened.unwrap();
            }
        }
    }
    let mut turn = |me: usize| turns[me].take().expect("it is open");
    let log = Mutex::default();
    let mut noted = pin!(run(turn(0), Noted(&log)));
    let mut others = [1, 2].map(|me| Box::pin(run(turn(me), Barrier)));
    // The first one to come waits for the other one, the second one for nobody.
    assert!(others[0].as_mut().poll(context).is_pending());
    assert_eq!(*log.lock().unwrap(), "");
    for (comes, so_far) in [(false, "wk1"), (false, "wk1"), (true, "wk12e")] {
        if comes {
            assert!(others[1].as_mut().poll(context).is_ready());
        }
        assert_eq!(noted.as_mut().poll(context).is_ready(), comes);
        assert_eq!(*log.lock().unwrap(), so_far);
    }
    assert!(others[0].as_mut().poll(context).is_ready());
}
