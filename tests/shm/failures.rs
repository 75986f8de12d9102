// SPDX-License-Identifier: BSD-3-Clause
//! What goes wrong for one member must not make the others hang, or decide differently.

use super::data::span;
use super::operations::{Call, Kind, run};
use super::waits::Until;
use super::world::{Work, World};
use coll_rust::endpoint::{Blocks, Error, Result, Span, Stream};
use coll_rust::pattern::neighborhood::Neighbors;
use coll_rust::shm::op::allgather::allgather;
use coll_rust::shm::op::alltoall::alltoall;
use coll_rust::shm::op::barrier::barrier;
use coll_rust::shm::op::bcast::bcast;
use coll_rust::shm::op::neighbor::{self, Edges};
use coll_rust::shm::op::peers::Everybody;
use coll_rust::shm::op::short::rooted::{Bcast, Collect, Give};
use coll_rust::shm::op::short::{self, Short};
use coll_rust::shm::op::{self, gather, scatter};
use coll_rust::shm::protocol::team::Config;
use coll_rust::shm::protocol::turn::Turn;
use coll_rust::shm::protocol::turn::waits::Runs;
use coll_rust::sim::{SimBlocks, SimStream};
use std::ops::Range;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

fn drive(world: &World, works: Vec<Work<'_>>) {
    world.run(1, works);
}

#[test]
fn all_do_without_a_stream_that_one_could_not_lease() {
    for size in 2..6 {
        for poor in 0..size {
            for leases in 0..2 {
                let world = World::new(size, Config::default());
                world.heap.limit(poor, leases);
                let works = world.teams.iter().map(|team| {
                    Box::pin(async move {
                        for _ in 0..3 {
                            // With one lease the control is there, but no queue.
                            let small = team.open(2, 1, false).await.unwrap();
                            assert_eq!(small.is_some(), leases == 1);
                            if let Some(turn) = small {
                                barrier(turn).await.unwrap();
                            }
                            assert!(team.open(2, 1, true).await.unwrap().is_none());
                            // Stream 0 needs no lease.
                            barrier(team.open(0, 0, false).await.unwrap().unwrap()).await.unwrap();
                        }
                    }) as Work<'_>
                });
                drive(&world, works.collect());
            }
        }
    }
}

#[test]
fn a_dropped_operation_fails_the_others() {
    for size in 2..6 {
        let world = World::new(size, Config::default());
        let works = world.teams.iter().map(|team| {
            Box::pin(async move {
                run(team, 0, 0, Call { kind: Kind::Allreduce, id: 5 }).await;
                let turn = team.open(0, 0, true).await.unwrap().unwrap();
                if team.me() == size - 1 {
                    drop(turn);
                } else {
                    assert_eq!(barrier(turn).await, Err(Error::Peer));
                }
                // Nothing works from now on, on any stream.
                for slot in [0, 0, 3] {
                    assert!(team.turn(slot, 0, false).is_none());
                    assert!(matches!(team.open(slot, 0, false).await, Err(Error::Peer)));
                }
            }) as Work<'_>
        });
        let mut works: Vec<_> = works.collect();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..10_000 {
            works.retain_mut(|work| work.as_mut().poll(&mut context).is_pending());
        }
        assert!(works.is_empty(), "{} members wait for ever", works.len());
    }
}

#[test]
fn a_dead_member_ends_the_wait() {
    let world = World::new(3, Config::default());
    world.heap.kill(2);
    let mut works: Vec<Work<'_>> = world.teams[..2]
        .iter()
        .map(|team| {
            Box::pin(async move {
                let turn = team.open(0, 0, false).await.unwrap().unwrap();
                assert_eq!(barrier(turn).await, Err(Error::Peer));
            }) as Work<'_>
        })
        .collect();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..10_000 {
        works.retain_mut(|work| work.as_mut().poll(&mut context).is_pending());
    }
    assert!(works.is_empty());
}

#[test]
fn a_failed_reader_does_not_end_the_wait_for_the_others() {
    let world = World::new(3, Config::default());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut turns = world.teams.iter().map(|team| {
        let mut opening = std::pin::pin!(team.open(0, 0, false));
        match opening.as_mut().poll(&mut context) {
            Poll::Ready(turn) => turn.unwrap().unwrap(),
            Poll::Pending => panic!("all members are there"),
        }
    });
    let [writer, failing, slow] = std::array::from_fn(|_| turns.next().unwrap());
    writer.publish(1);
    let mut together = Box::pin(writer.finish_together());
    drop(failing);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..10_000 {
        // The slow one may be reading the writer's memory.
        assert!(together.as_mut().poll(&mut context).is_pending());
    }
    slow.finish();
    assert_eq!(together.as_mut().poll(&mut context), Poll::Ready(Err(Error::Peer)));
}

/// Blocks of 4096 bytes, and the first of them: where they are, or such as nothing can be written to.
struct Some4k(Option<Span>);

impl Blocks for Some4k {
    fn len(&self, _: usize) -> usize {
        4096
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        self.0.map(|all| all.slice(members.start * 4096..members.end * 4096))
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Err(Error::NoMemory(1))
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Err(Error::NoMemory(2))
    }
}

impl Stream for Some4k {
    fn len(&self) -> usize {
        4096
    }

    fn direct(&self) -> Option<Span> {
        Blocks::direct(self, 0..1)
    }

    fn pack(&self, _: usize, _: Span) -> Result<()> {
        Err(Error::NoMemory(1))
    }

    fn unpack(&self, _: usize, _: Span) -> Result<()> {
        Err(Error::NoMemory(2))
    }
}

#[test]
fn who_fails_waits_until_nobody_reads_its_memory() {
    for gathers in [false, true] {
        let world = World::new(3, Config::default());
        let mut rooms: Vec<_> = (0..6).map(|_| vec![0_u8; 3 * 4096]).collect();
        let spans: Vec<_> = rooms.iter_mut().map(|room| span(room)).collect();
        let mut works = world.teams.iter().map(|team| {
            let (me, spans) = (team.me(), &spans);
            Box::pin(async move {
                let turn = team.open(0, 0, true).await.unwrap().unwrap();
                let into = Some4k((me != 1).then_some(spans[me]));
                let own = Some4k(Some(spans[3 + me]));
                match gathers {
                    true => allgather(turn, Some(&own), &into, 1).await,
                    false => alltoall(turn, Some(&own), &into, 1).await,
                }
            })
        });
        let [mut first, mut failing, mut last] = std::array::from_fn(|_| works.next().unwrap());
        let mut context = Context::from_waker(Waker::noop());
        // Each needs the others to open the stream; nobody gets further than its first wait for data before
        // all have.
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(failing.as_mut().poll(&mut context).is_pending());
        assert!(last.as_mut().poll(&mut context).is_pending());
        for _ in 0..10 {
            assert!(failing.as_mut().poll(&mut context).is_pending(), "the others may be reading");
        }
        let mut ends = [None; 3];
        for _ in 0..10_000 {
            for (end, work) in ends.iter_mut().zip([&mut first, &mut failing, &mut last]) {
                if end.is_none()
                    && let Poll::Ready(result) = work.as_mut().poll(&mut context)
                {
                    *end = Some(result);
                }
            }
        }
        assert_eq!(ends, [Err(Error::Peer), Err(Error::NoMemory(2)), Err(Error::Peer)].map(Some));
    }
}

/// Member 2 has failed; one of the others gives up, and then the third comes, which would write there.
#[test]
fn nobody_writes_to_who_has_given_up() {
    for (kind, early) in [("bcast", 1), ("scatter", 1), ("gather", 0), ("gather", 1)] {
        let world = World::new(3, Config { divided_min: 1, ..Config::default() });
        let begin = world.teams.iter().map(|team| {
            Box::pin(async move { barrier(team.open(0, 0, true).await.unwrap().unwrap()).await.unwrap() }) as Work<'_>
        });
        drive(&world, begin.collect());
        drop(world.teams[2].turn(0, 0, true).unwrap());
        let mut rooms: Vec<_> = (0..2).map(|i| vec![i as u8 + 1; 3 * 4096]).collect();
        let spans: Vec<_> = rooms.iter_mut().map(|room| span(room)).collect();
        let mut works: Vec<_> = world.teams[..2]
            .iter()
            .map(|team| {
                let data = Some4k(Some(spans[team.me()]));
                Some(Box::pin(async move {
                    let turn = team.turn(0, 0, true).unwrap();
                    match (kind, team.me()) {
                        ("bcast", _) => bcast(turn, 0, &data, 1).await,
                        ("scatter", 0) => scatter::send(turn, &data, None::<&Some4k>, 1).await,
                        ("scatter", _) => scatter::receive(turn, 0, &data, 1).await,
                        (_, 0) => gather::receive(turn, None::<&Some4k>, &data, 1).await,
                        _ => gather::send(turn, 0, &data, 1).await,
                    }
                }))
            })
            .collect();
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |member: usize| match works[member].as_mut().map(|work| work.as_mut().poll(&mut context)) {
            Some(Poll::Ready(result)) => {
                assert_eq!(result, Err(Error::Peer), "{kind}: member {member}");
                works[member] = None;
                true
            }
            Some(Poll::Pending) => false,
            None => true,
        };
        // Whom others may be writing to has to wait for them.
        let gave_up = (0..10_000).any(|_| poll(early));
        assert_eq!(gave_up, kind != "gather", "{kind}");
        assert!((0..10_000).any(|_| poll(1 - early)), "{kind}: the other one waits for ever");
        assert!((0..10_000).any(|_| poll(early)), "{kind}: the early one waits for ever");
        drop(works);
        let untouched = rooms[early].iter().all(|&b| b == early as u8 + 1);
        assert!(untouched || !gave_up, "{kind}: something was written to member {early}");
    }
}

/// Members 0 and 1 exchange, 2 has no edges, and 3 does not come: nobody waits for it, even where memory is
/// read directly, until memory is full of what it might still have to read.
#[test]
fn neighbours_wait_for_neighbours_only() {
    for same in [false, true] {
        let world = World::new(4, Config::default());
        let begin = world.teams.iter().map(|team| {
            Box::pin(async move { barrier(team.open(0, 0, true).await.unwrap().unwrap()).await.unwrap() }) as Work<'_>
        });
        drive(&world, begin.collect());
        let mut rooms: Vec<_> = (0..6).map(|i| vec![i as u8; 4096]).collect();
        let spans: Vec<_> = rooms.iter_mut().map(|room| span(room)).collect();
        let mut works: Vec<_> = world.teams[..3]
            .iter()
            .map(|team| {
                let (me, spans) = (team.me(), &spans);
                Box::pin(async move {
                    let peers = [&[1][..], &[0], &[]][me];
                    let edges = Edges::new(me, 4, &Neighbors::listed(me, 4, peers, peers));
                    let (own, into) = (Some4k(Some(spans[me])), Some4k(Some(spans[3 + me])));
                    for _ in 0..2 {
                        let turn = team.open(0, 0, true).await.unwrap().unwrap();
                        match same {
                            true => neighbor::spread(turn, &edges, &own, &into, 1).await.unwrap(),
                            false => neighbor::exchange(turn, &edges, &own, &into, 1).await.unwrap(),
                        }
                    }
                })
            })
            .collect();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            works.retain_mut(|work| work.as_mut().poll(&mut context).is_pending());
        }
        assert!(works.is_empty(), "{} members wait", works.len());
        drop(works);
        assert!(
            rooms[3].iter().all(|&b| b == 1) && rooms[4].iter().all(|&b| b == 0) && rooms[5].iter().all(|&b| b == 5)
        );
    }
}

/// A program that says less on one side than on the other: an error at every member, and no memory but its
/// own is touched.
#[test]
fn what_is_sent_is_as_long_as_its_block() {
    for (own, block) in [(0, 1), (1, 4), (4, 8), (100, 200), (8, 4), (200, 100), (9000, 3)] {
        let world = World::new(2, Config::default());
        let works = world.teams.iter().map(|team| {
            Box::pin(async move {
                let turn = team.open(0, 0, true).await.unwrap().unwrap();
                let data = SimStream::direct(&vec![1 + team.me() as u8; own]);
                let into = SimBlocks::run(&vec![vec![0_u8; block]; 2]);
                let ended = allgather(turn, Some(&data), &into, usize::MAX).await;
                assert_eq!(ended, Err(Error::Lengths), "{own} of {block}");
                (0..2).for_each(|member| assert!(into.contents(member).iter().all(|&byte| byte == 0)));
            }) as Work<'_>
        });
        drive(&world, works.collect());
    }
}

/// Blocks of 4096 bytes, of which that of one member cannot be copied.
struct AllBut(Span, usize);

impl Blocks for AllBut {
    fn len(&self, _: usize) -> usize {
        4096
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        (!members.contains(&self.1)).then(|| self.0.slice(members.start * 4096..members.end * 4096))
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Err(Error::NoMemory(1))
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Err(Error::NoMemory(2))
    }
}

/// By the function that is never suspended.
fn at_once(turn: Turn<'_>, end: Until, operation: impl Short) -> Result<()> {
    assert!(operation.fits(&turn), "blocks of 4 KiB between two are short");
    short::now(turn, end, &operation)
}

/// A short blocking call; `fails`: its data cannot be copied.
fn short_call(turn: Turn<'_>, kind: &str, fails: bool, end: Until) -> Result<()> {
    let (me, size) = (turn.me(), turn.size());
    let mut room = vec![7_u8; size * 4096];
    let room = span(&mut room);
    let data = Some4k((!fails).then_some(room));
    let blocks = AllBut(room, if fails { 1 - me } else { size });
    let peers = Everybody::of(turn.team());
    let whole = AllBut(room, size);
    match kind {
        "bcast" => at_once(turn, end, Bcast { root: 0, data: &data, zero_copy: usize::MAX, divide: true }),
        "alltoall" => at_once(turn, end, op::alltoall::among(peers, Some(&blocks), &whole, usize::MAX.into())),
        "alltoall into" => at_once(turn, end, op::alltoall::among(peers, Some(&whole), &blocks, usize::MAX.into())),
        _ if me == 0 => at_once(turn, end, Collect { own: None::<&Some4k>, all: &data, zero_copy: usize::MAX }),
        _ => at_once(turn, end, Give { root: 0, own: &data, zero_copy: usize::MAX }),
    }
}

#[test]
fn a_short_call_that_fails_for_one_of_those_that_block_leaves_nobody_waiting() {
    let kinds = ["bcast", "gather", "alltoall", "alltoall into"];
    for (kind, failing) in kinds.into_iter().flat_map(|kind| [(kind, 0), (kind, 1)]) {
        let world = World::new(2, Config::default());
        let end = Until(Instant::now() + Duration::from_secs(60));
        let ends: Vec<_> = std::thread::scope(|scope| {
            let members = world.teams.iter().map(|team| {
                scope.spawn(move || {
                    let open = || end.run(|| team.open(0, 0, true)).map(|turn| turn.expect("there is memory"));
                    end.run(|| barrier(open().unwrap())).unwrap();
                    let called = short_call(open().unwrap(), kind, team.me() == failing, end);
                    let next = open().and_then(|turn| end.run(|| barrier(turn)));
                    (called, next)
                })
            });
            let members: Vec<_> = members.collect();
            members.into_iter().map(|member| member.join().unwrap()).collect()
        });
        let packs = !matches!((kind, failing), ("bcast", 1) | ("gather", 0) | ("alltoall into", _));
        assert_eq!(ends[failing].0, Err(Error::NoMemory(if packs { 1 } else { 2 })), "{kind}, {failing}");
        assert_eq!(ends[1 - failing].0, if packs { Err(Error::Peer) } else { Ok(()) }, "{kind}, {failing}");
        assert_eq!([ends[0].1, ends[1].1], [Err(Error::Peer); 2], "{kind}, {failing}");
    }
}
