// SPDX-License-Identifier: BSD-3-Clause
//! Operations on data that other members cannot read.

use super::data::{Floats, config, elements, hash, seeds};
use super::operations::{Call, KINDS, Kind, run};
use super::threads::{block_on, settings};
use super::world::{Access, Work, World};
use coll_rust::endpoint::{Error, Result, Span};
use coll_rust::shm::op;
use coll_rust::shm::op::barrier::barrier;
use coll_rust::shm::team::{Config, Team};
use coll_rust::sim::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

/// Where memory cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dark {
    /// Everywhere.
    All,
    /// Here and there, in runs of 64 bytes: at the beginning, in the middle or at the end of a buffer.
    Some,
}

/// A world whose members cannot read what is dark, and how often they have found out.
fn world(size: usize, config: Config, dark: Dark) -> (World, Arc<AtomicUsize>) {
    let refused = Arc::new(AtomicUsize::new(0));
    let counter = refused.clone();
    let is_dark = move |line: u64| dark == Dark::All || hash(&[line as usize, 3]).is_multiple_of(4);
    let world = World::watched(size, config, move |access| match access {
        Access::Fetch(from, bytes) if bytes > 0 && (from / 64..=(from + bytes as u64 - 1) / 64).any(is_dark) => {
            counter.fetch_add(1, Ordering::Relaxed);
            Err(Error::Fetch(14))
        }
        _ => Ok(()),
    });
    (world, refused)
}

/// Those whose members read each other's memory.
fn reads(kind: Kind) -> bool {
    !matches!(kind, Kind::Barrier | Kind::Reduce | Kind::ReduceScatter | Kind::Scan)
}

async fn sequence(team: &Team, slot: usize, calls: &[Call]) {
    for &call in calls {
        run(team, slot, 0, call).await;
    }
}

#[test]
fn what_cannot_be_read_comes_through_the_queue() {
    for (kind, dark) in KINDS.into_iter().flat_map(|kind| [(kind, Dark::All), (kind, Dark::Some)]) {
        let mut told = 0;
        for seed in 0..seeds(30) {
            let mut rng = Rng::new(hash(&[seed as usize, kind as usize, 11]));
            let size = [2, 3, 2, 3, 4, 5, 9][seed as usize % 7];
            let (world, refused) = world(size, config(&mut rng), dark);
            let length = 1 + rng.below(if cfg!(miri) { 4 } else { 20 });
            let calls: Vec<_> = (0..length).map(|n| Call { kind, id: rng.below(1 << 30) << 8 | n }).collect();
            let slot = seed as usize % 2;
            let works = world.teams.iter().map(|team| Box::pin(sequence(team, slot, &calls)) as Work<'_>).collect();
            world.run(seed, works);
            told += refused.load(Ordering::Relaxed);
        }
        assert_eq!(told > 0, reads(kind), "{kind:?}, {dark:?}: {told} were refused");
    }
}

#[test]
fn mixed_on_two_streams() {
    for seed in 0..seeds(150) {
        let mut rng = Rng::new(hash(&[seed as usize, 12]));
        let size = 2 + rng.below(4);
        let dark = if rng.chance(128) { Dark::All } else { Dark::Some };
        let (world, _) = world(size, config(&mut rng), dark);
        let length = 1 + rng.below(if cfg!(miri) { 3 } else { 16 });
        let mut any = || Call { kind: KINDS[rng.below(KINDS.len())], id: rng.below(1 << 30) };
        let streams: [Vec<Call>; 2] = [(); 2].map(|()| (0..length).map(|_| any()).collect());
        let works = streams.iter().enumerate().flat_map(|(slot, calls)| {
            world.teams.iter().map(move |team| Box::pin(sequence(team, slot, calls)) as Work<'_>)
        });
        world.run(seed, works.collect());
    }
}

#[test]
fn threads_ask_each_other() {
    for seed in 0..seeds(30) {
        let mut rng = Rng::new(hash(&[seed as usize, 13]));
        let size = 2 + rng.below(2);
        let dark = if rng.chance(128) { Dark::All } else { Dark::Some };
        let (world, _) = world(size, settings(size, &mut rng), dark);
        let kinds = KINDS.into_iter().filter(|&kind| reads(kind));
        let calls: Vec<_> = kinds.map(|kind| Call { kind, id: rng.below(1 << 30) }).collect();
        let rounds = if cfg!(miri) { 1 } else { 3 };
        std::thread::scope(|scope| {
            for team in &world.teams {
                let calls = &calls;
                scope.spawn(move || (0..rounds).for_each(|_| block_on(team, sequence(team, 0, calls))));
            }
        });
    }
}

fn value(member: usize, at: usize) -> f32 {
    (hash(&[member, at]) % 1_000_003) as f32
}

/// One page of the operand of one member, among many that are combined already when it comes to it.
#[test]
#[cfg_attr(miri, ignore = "a quarter of a megabyte")]
fn long_operands_with_a_page_that_cannot_be_read() {
    const COUNT: usize = 60_000;
    for (size, in_place, odd) in [(2, false, 0), (2, true, 1), (3, false, 1), (3, true, 0), (3, true, 2)] {
        // A page of the first member's part, of the last one's, or of both operand and result.
        for page in [2, 56] {
            let mut inputs: Vec<Vec<u8>> =
                (0..size).map(|m| (0..COUNT).flat_map(|i| value(m, i).to_ne_bytes()).collect()).collect();
            let mut outputs = vec![vec![0_u8; 4 * COUNT]; size];
            let dark = [&inputs[odd], &outputs[odd]].map(|room| {
                let start = room.as_ptr() as u64 + 4096 * page;
                start..start + 4096
            });
            let refused = Arc::new(AtomicUsize::new(0));
            let counter = refused.clone();
            let world = World::watched(size, Config::default(), move |access| match access {
                Access::Fetch(from, bytes) if dark.iter().any(|d| from < d.end && d.start < from + bytes as u64) => {
                    counter.fetch_add(1, Ordering::Relaxed);
                    Err(Error::Fetch(14))
                }
                _ => Ok(()),
            });
            let fold = |i| (0..size - 1).rev().fold(value(size - 1, i), |right, m| value(m, i) + right);
            let expected: Vec<u8> = (0..COUNT).flat_map(|i| fold(i).to_ne_bytes()).collect();
            let spans: Vec<(Span, Span)> = inputs
                .iter_mut()
                .zip(&mut outputs)
                .map(|(input, output)| {
                    let from = elements(input, 4);
                    (from, if in_place { from } else { elements(output, 4) })
                })
                .collect();
            let works = world.teams.iter().zip(&spans).map(|(team, &(from, to))| {
                Box::pin(async move {
                    let turn = team.open(0, 0, true).await.unwrap().unwrap();
                    op::allreduce::allreduce(turn, &Floats, from, to, 0).await.unwrap();
                }) as Work<'_>
            });
            world.run(size as u64, works.collect());
            assert!(refused.load(Ordering::Relaxed) > 0);
            let results = if in_place { &inputs } else { &outputs };
            assert!(results.iter().all(|result| *result == expected), "{size}, {in_place}, {odd}, {page}");
        }
    }
}

/// One member ends or fails while another waits for its data, or for it to take them.
#[test]
fn nobody_waits_for_an_answer_that_never_comes() {
    for (gone, dies) in [(0, true), (0, false), (1, true), (1, false)] {
        let (world, refused) = world(3, Config { divided_min: u32::MAX, ..Config::default() }, Dark::All);
        let mut rooms = vec![vec![1_u8; 5000]; 3];
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        let spans: Vec<Span> =
            rooms.iter_mut().map(|room| unsafe { Span::new(room.as_mut_ptr(), room.len(), 1) }).collect();
        let mut works: Vec<Option<Work<'_>>> = world
            .teams
            .iter()
            .zip(&spans)
            .map(|(team, data)| {
                let (me, size) = (team.me(), team.size());
                Some(Box::pin(async move {
                    barrier(team.open(0, 0, true).await.unwrap().unwrap()).await.unwrap();
                    let ended: Result<()> = op::bcast::bcast(team.turn(0, 0, true).unwrap(), 0, data, 1).await;
                    assert_eq!(ended, Err(Error::Peer), "{me} of {size}");
                }) as Work<'_>)
            })
            .collect();
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |works: &mut [Option<Work<'_>>], member: usize| {
            let over = works[member].as_mut().is_some_and(|work| work.as_mut().poll(&mut context) != Poll::Pending);
            if over {
                works[member] = None;
            }
        };
        // Reader 1 has asked the root, whom reader 2 keeps from answering: it has not come yet.
        while refused.load(Ordering::Relaxed) == 0 {
            poll(&mut works, 1);
            poll(&mut works, 0);
            if works[2].is_some() && refused.load(Ordering::Relaxed) == 0 {
                poll(&mut works, 2);
            }
        }
        works[gone] = None;
        if dies {
            world.heap.kill(gone);
        }
        for _ in 0..20_000 {
            (0..3).for_each(|member| poll(&mut works, member));
        }
        let waiting: Vec<_> = (0..3).filter(|&member| works[member].is_some()).collect();
        assert!(waiting.is_empty(), "{waiting:?} wait for ever when {gone} is gone, dead: {dies}");
    }
}

/// Of an error of the program: the sender gives less.
#[test]
fn nobody_gets_more_than_there_is() {
    let (world, _) = world(2, Config { divided_min: u32::MAX, ..Config::default() }, Dark::All);
    let mut rooms = [vec![1_u8; 8192], vec![2_u8; 8192]];
    // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
    let spans = rooms.each_mut().map(|room| unsafe { Span::new(room.as_mut_ptr(), room.len(), 1) });
    let works = world.teams.iter().zip(spans).map(|(team, room)| {
        Box::pin(async move {
            let data = room.slice(0..if team.me() == 0 { 5000 } else { 8192 });
            let ended = op::bcast::bcast(team.open(0, 0, true).await.unwrap().unwrap(), 0, &data, 1).await;
            assert_eq!(ended, Err(if team.me() == 0 { Error::Peer } else { Error::Lengths }));
        }) as Work<'_>
    });
    world.run(1, works.collect());
    assert!(rooms[1].iter().all(|&byte| byte == 2));
}
