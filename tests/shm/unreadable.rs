// SPDX-License-Identifier: BSD-3-Clause
//! Operations on data that other members cannot read: an error, for which nobody waits.

use super::data::Floats;
use super::world::{Access, Work, World};
use coll_rust::endpoint::{Error, Result, Span};
use coll_rust::shm::op;
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::sim::SimBlocks;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

/// Bytes of a block, more than a short slot has.
const LEN: usize = 8000;

/// The operations whose members read each other's memory.
const OPERATIONS: [&str; 6] = ["bcast", "gather", "scatter", "allgather", "alltoall", "allreduce"];

async fn perform(team: &Team, operation: &str, room: Span) -> Result<()> {
    let turn = team.open(0, 0, true).await?.expect("memory");
    let blocks = SimBlocks::run(&vec![vec![1; LEN]; team.size()]);
    let into = SimBlocks::run(&vec![vec![0; LEN]; team.size()]);
    match (operation, team.me()) {
        ("bcast", _) => op::bcast::bcast(turn, 0, &room, 1).await,
        ("gather", 0) => op::gather::receive(turn, Some(&room), &into, 1).await,
        ("gather", _) => op::gather::send(turn, 0, &room, 1).await,
        ("scatter", 0) => op::scatter::send(turn, &blocks, Some(&room), 1).await,
        ("scatter", _) => op::scatter::receive(turn, 0, &room, 1).await,
        ("allgather", _) => op::allgather::allgather(turn, Some(&room), &into, 1).await,
        ("alltoall", _) => op::alltoall::alltoall(turn, Some(&blocks), &into, 1).await,
        _ => {
            // SAFETY: as many elements as there is room for.
            let elements = unsafe { Span::new(room.ptr(), room.len() / 4, 4) };
            op::allreduce::allreduce(turn, &Floats, elements, elements, 1).await
        }
    }
}

/// How an operation ends whose members cannot read or write what `is_dark`.
fn ends(size: usize, config: Config, operation: &str, is_dark: fn(Access) -> bool) -> Vec<Result<()>> {
    let world = World::watched(size, config, move |access| match is_dark(access) {
        true => Err(Error::Fetch(14)),
        false => Ok(()),
    });
    let mut rooms = vec![vec![0_u8; LEN]; size];
    let ends = Mutex::new(vec![None; size]);
    let mut works: Vec<Option<Work<'_>>> = world
        .teams
        .iter()
        .zip(&mut rooms)
        .map(|(team, room)| {
            // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
            let room = unsafe { Span::new(room.as_mut_ptr(), room.len(), 1) };
            let ends = &ends;
            Some(Box::pin(async move {
                let end = perform(team, operation, room).await;
                if end.is_err() {
                    team.fail();
                }
                ends.lock().unwrap()[team.me()] = Some(end);
            }) as Work<'_>)
        })
        .collect();
    for _ in 0..20_000 {
        for work in &mut works {
            let polled = work.as_mut().map(|work| work.as_mut().poll(&mut Context::from_waker(Waker::noop())));
            if polled == Some(Poll::Ready(())) {
                *work = None;
            }
        }
    }
    drop(works);
    let ends = ends.into_inner().unwrap();
    ends.into_iter()
        .map(|end| end.unwrap_or_else(|| panic!("somebody waits for ever: {operation} of {size}")))
        .collect()
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for (operation, divided_min) in OPERATIONS.into_iter().flat_map(|of| [(of, 1), (of, u32::MAX)]) {
        for size in [2, 3, 5] {
            let config = Config { divided_min, ..Config::default() };
            let ends = ends(size, config, operation, |access| matches!(access, Access::Fetch(1..)));
            let context = format!("{operation} of {size}, divided from {divided_min}: {ends:?}");
            assert!(ends.contains(&Err(Error::Fetch(14))), "{context}: nobody says why");
            // Who was through before is content.
            let known = |end: &Result<()>| matches!(end, Ok(()) | Err(Error::Fetch(14) | Error::Peer));
            assert!(ends.iter().all(known), "{context}");
        }
    }
}

#[test]
fn what_can_be_read_is_none() {
    for operation in OPERATIONS {
        assert!(ends(3, Config::default(), operation, |_| false).iter().all(Result::is_ok), "{operation}");
    }
}
