// SPDX-License-Identifier: BSD-3-Clause
//! Divided operations where not all memory can be written to, or not so much of it.

use super::data::span;
use super::threads::block_on;
use super::world::{Access, Work, World};
use coll_rust::endpoint::{Blocks, Error, Result, Span, Stream};
use coll_rust::shm::op::barrier::barrier;
use coll_rust::shm::op::bcast::bcast;
use coll_rust::shm::op::{gather, scatter};
use coll_rust::shm::protocol::team::{Config, Team};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

/// One member's buffer: a block for each member, of the length that `len` says, in places of equal size; as a
/// stream, the first `len(0)` bytes.
#[derive(Clone, Copy)]
struct Rows {
    start: Span,
    place: usize,
    len: fn(usize) -> usize,
}

impl Blocks for Rows {
    fn len(&self, member: usize) -> usize {
        (self.len)(member)
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        let at = members.start * self.place;
        (members.len() == 1).then(|| self.start.slice(at..at + (self.len)(members.start)))
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("in one run")
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("in one run")
    }
}

struct Row(Span);

impl Stream for Row {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn direct(&self) -> Option<Span> {
        Some(self.0)
    }

    fn pack(&self, _: usize, _: Span) -> Result<()> {
        unreachable!("in one run")
    }

    fn unpack(&self, _: usize, _: Span) -> Result<()> {
        unreachable!("in one run")
    }
}

fn byte(of: usize, to: usize, at: usize) -> u8 {
    (of * 89 + to * 31 + at * 7 + at / 251) as u8
}

async fn meet(team: &Team) {
    barrier(team.open(0, 0, true).await.unwrap().unwrap()).await.unwrap();
}

const MEMBERS: usize = 3;

/// Bcast, Gather and Scatter with each root, with blocks of these lengths, read directly from `limit` bytes
/// on. Refused is what would be written to the memory of member `odd`.
fn operate(config: Config, odd: usize, len: fn(usize) -> usize, limit: usize) {
    let place = (0..MEMBERS).map(len).max().unwrap();
    let mut rooms: Vec<Vec<u8>> = vec![vec![0; MEMBERS * place]; MEMBERS];
    let spans: Vec<Span> = rooms.iter_mut().map(|room| span(room)).collect();
    let unwritable = {
        let start = spans[odd].ptr() as u64;
        start..start + (MEMBERS * place) as u64
    };
    let refused = Arc::new(AtomicUsize::new(0));
    let counter = refused.clone();
    let world = World::watched(MEMBERS, Config { divided_min: 1, ..config }, move |access| match access {
        Access::Store(to) if unwritable.contains(&to) => {
            counter.fetch_add(1, Ordering::Relaxed);
            Err(Error::Fetch(14))
        }
        _ => Ok(()),
    });
    let works = world.teams.iter().map(|team| {
        let (me, spans) = (team.me(), &spans);
        Box::pin(async move {
            meet(team).await;
            let rows = Rows { start: spans[me], place, len };
            let fill = |of: usize, to: usize, part: Span| {
                // SAFETY: the member's own, which nobody else looks at now.
                (0..part.len()).for_each(|i| unsafe { *part.ptr().add(i) = byte(of, to, i) });
            };
            let check = |what: &str, of: usize, to: usize, part: Span| {
                // SAFETY: as above.
                let right = (0..part.len()).all(|i| unsafe { *part.ptr().add(i) } == byte(of, to, i));
                assert!(right, "{what}: {of} to {to}, {odd} is odd");
            };
            for root in 0..MEMBERS {
                let data = spans[me].slice(0..place);
                fill(root, if me == root { 7 } else { 8 }, data);
                let turn = team.turn(0, 0, true).unwrap();
                bcast(turn, root, &Row(data), limit).await.unwrap();
                check("bcast", root, 7, data);
                meet(team).await;

                let own = Row(spans[me].slice(0..len(me)));
                if me == root {
                    let turn = team.turn(0, 0, true).unwrap();
                    gather::receive(turn, None::<&Row>, &rows, limit).await.unwrap();
                    let others = (0..MEMBERS).filter(|&m| m != me);
                    others.for_each(|m| check("gather", m, me, rows.direct(m..m + 1).unwrap()));
                } else {
                    fill(me, root, own.0);
                    gather::send(team.turn(0, 0, true).unwrap(), root, &own, limit).await.unwrap();
                }
                meet(team).await;

                if me == root {
                    (0..MEMBERS).for_each(|m| fill(me, m, rows.direct(m..m + 1).unwrap()));
                    let turn = team.turn(0, 0, true).unwrap();
                    scatter::send(turn, &rows, None::<&Row>, limit).await.unwrap();
                } else {
                    scatter::receive(team.turn(0, 0, true).unwrap(), root, &own, limit).await.unwrap();
                    check("scatter", root, me, own.0);
                }
                meet(team).await;
            }
        }) as Work<'_>
    });
    world.run(odd as u64, works.collect());
    // By the roots of two broadcasts and two scatters at most, and by the others where it is the root of a
    // gather.
    assert!(refused.load(Ordering::Relaxed) > 2, "{} were refused", refused.load(Ordering::Relaxed));
}

#[test]
fn what_cannot_be_written_is_read() {
    for odd in 0..MEMBERS {
        operate(Config::default(), odd, |_| 5000, 1);
    }
}

/// While some blocks are divided, others go through few slots, the first of which is used again.
#[test]
fn divided_blocks_keep_no_slots() {
    let config = Config { fragment: 512, fragments: 2, sets: 1, ..Config::default() };
    for odd in 0..MEMBERS {
        operate(config, odd, |member| 6000 - 2000 * usize::from(member == 1), 5000);
    }
}

/// Of an error of the program: the two sides give different lengths.
#[test]
fn nobody_writes_more_than_there_is() {
    const SHORT: usize = 4096;
    for kind in ["bcast", "gather", "scatter"] {
        let world = World::new(2, Config { divided_min: 1, ..Config::default() });
        let mut rooms = [vec![1_u8; 4 * SHORT], vec![2_u8; 4 * SHORT]];
        let spans = rooms.each_mut().map(|room| span(room));
        // Who sends has a longer block.
        let sender = usize::from(kind == "gather");
        let works = world.teams.iter().map(|team| {
            let (me, spans) = (team.me(), &spans);
            Box::pin(async move {
                meet(team).await;
                let turn = team.turn(0, 0, true).unwrap();
                let each = if me == sender { 2 * SHORT } else { SHORT };
                let own = Row(spans[me].slice(0..each));
                let len: fn(usize) -> usize = if me == sender { |_| 2 * SHORT } else { |_| SHORT };
                let rows = Rows { start: spans[me], place: 0, len };
                let ended = match (kind, me) {
                    ("bcast", _) => bcast(turn, 0, &own, 1).await,
                    ("gather", 0) => gather::receive(turn, None::<&Row>, &rows, 1).await,
                    ("gather", _) => gather::send(turn, 0, &own, 1).await,
                    (_, 0) => scatter::send(turn, &rows, None::<&Row>, 1).await,
                    _ => scatter::receive(turn, 0, &own, 1).await,
                };
                // Who receives learns that there is more than it has room for, and takes that; but of a long
                // block of a scatter nothing.
                let others = if kind == "scatter" { Err(Error::Peer) } else { Ok(()) };
                assert_eq!(ended, if me == sender { others } else { Err(Error::Lengths) }, "{kind}: member {me}");
            }) as Work<'_>
        });
        world.run(1, works.collect());
        let (to, by) = if sender == 0 { (1, 1) } else { (0, 2) };
        let by = if kind == "scatter" { 3 - by } else { by };
        assert!(rooms[to][..SHORT].iter().all(|&b| b == by), "{kind}");
        assert!(rooms[to][SHORT..].iter().all(|&b| b == if to == 0 { 1 } else { 2 }), "{kind}: written behind the end");
    }
}

/// A thread of member 1 reads member 0's memory when another one fails.
#[test]
fn a_failure_is_told_when_nothing_is_read_any_more() {
    let reading = Arc::new(Barrier::new(2));
    let waits = reading.clone();
    let world = World::watched(2, Config { divided_min: u32::MAX, ..Config::default() }, move |_| {
        waits.wait();
        waits.wait();
        Ok(())
    });
    let mut rooms = [vec![1_u8; 5000], vec![2_u8; 5000]];
    let spans = rooms.each_mut().map(|room| span(room));
    // A control block has 512 words.
    let told = || world.heap.words()[512 + 1] != 0;
    std::thread::scope(|scope| {
        for (team, data) in world.teams.iter().zip(spans) {
            scope.spawn(move || {
                block_on(team, async {
                    meet(team).await;
                    let _ = bcast(team.turn(0, 0, true).unwrap(), 0, &Row(data), 1).await;
                });
            });
        }
        reading.wait();
        world.teams[1].fail();
        let early = told();
        reading.wait();
        assert!(!early, "member 0 does not wait any more");
    });
    assert!(told());
}
