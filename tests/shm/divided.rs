// SPDX-License-Identifier: BSD-3-Clause
//! Who copies what in operations that are divided between both sides.

use super::world::{Work, World};
use coll_rust::endpoint::{Result, Span};
use coll_rust::shm::memory::layout::BLOCKING;
use coll_rust::shm::op::barrier::barrier;
use coll_rust::shm::op::bcast::bcast;
use coll_rust::shm::protocol::team::Config;
use std::task::{Context, Poll, Waker};

/// Two members who may divide whatever they like, with this stream in use.
fn begun(slot: usize) -> World {
    let world = World::new(2, Config { divided_min: 1, ..Config::default() });
    let begin = world.teams.iter().map(|team| {
        Box::pin(async move { barrier(team.open(slot, 0, true).await.unwrap().unwrap()).await.unwrap() }) as Work<'_>
    });
    world.run(1, begin.collect());
    world
}

#[test]
fn the_root_of_a_broadcast_copies_a_half() {
    let world = begun(BLOCKING);
    let mut rooms = [vec![7_u8; 4096], vec![0_u8; 4096]];
    // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
    let [all, into] = rooms.each_mut().map(|room| unsafe { Span::new(room.as_mut_ptr(), room.len(), 1) });
    let mut works =
        world.teams.iter().zip([all, into]).map(|(team, data)| {
            Box::pin(async move { bcast(team.turn(BLOCKING, 0, true).unwrap(), 0, &data, 1).await })
        });
    let [mut root, mut other] = std::array::from_fn(|_| works.next().unwrap());
    let mut context = Context::from_waker(Waker::noop());
    assert!(root.as_mut().poll(&mut context).is_pending(), "it waits for the other's address");
    assert!(other.as_mut().poll(&mut context).is_pending(), "it waits for the root's half");
    // SAFETY: the room lives, and nobody writes it now.
    let so_far = unsafe { std::slice::from_raw_parts(into.ptr(), 4096) }.to_vec();
    assert!(so_far[..2048].iter().all(|&b| b == 7) && so_far[2048..].iter().all(|&b| b == 0));
    let done: Poll<Result<()>> = Poll::Ready(Ok(()));
    let mut ended = [false; 2];
    for _ in 0..10 {
        ended[0] = ended[0] || root.as_mut().poll(&mut context) == done;
        ended[1] = ended[1] || other.as_mut().poll(&mut context) == done;
        if ended == [true; 2] {
            break;
        }
    }
    assert_eq!(ended, [true; 2]);
    drop((root, other));
    assert!(rooms[1].iter().all(|&b| b == 7));
}

#[test]
fn who_receives_a_nonblocking_broadcast_needs_nobody() {
    const OTHER: usize = BLOCKING + 1;
    let world = begun(OTHER);
    let mut rooms = [vec![7_u8; 4096], vec![0_u8; 4096]];
    // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
    let [all, into] = rooms.each_mut().map(|room| unsafe { Span::new(room.as_mut_ptr(), room.len(), 1) });
    let mut works = world
        .teams
        .iter()
        .zip([all, into])
        .map(|(team, data)| Box::pin(async move { bcast(team.turn(OTHER, 0, true).unwrap(), 0, &data, 1).await }));
    let [mut root, mut other] = std::array::from_fn(|_| works.next().unwrap());
    let mut context = Context::from_waker(Waker::noop());
    assert!(root.as_mut().poll(&mut context).is_pending(), "it waits until its data have been read");
    assert!(other.as_mut().poll(&mut context).is_ready(), "the root may compute now");
    assert!(root.as_mut().poll(&mut context).is_ready());
    drop((root, other));
    assert!(rooms[1].iter().all(|&b| b == 7));
}

#[test]
fn what_goes_one_way_is_cut_into_quarters() {
    for (crowded, expected) in [(false, [4096, 4096, 8192, 16384]), (true, [16384; 4])] {
        let mut config = Config::default();
        config.waiting.crowded = crowded;
        let world = World::new(2, config);
        let begin = world.teams.iter().map(|team| {
            Box::pin(async move {
                let turn = team.open(0, 0, true).await.unwrap().unwrap();
                assert_eq!([8 << 10, 16 << 10, 32 << 10, 1 << 20].map(|len| turn.piece(len)), expected);
                turn.finish();
            }) as Work<'_>
        });
        world.run(1, begin.collect());
    }
}
