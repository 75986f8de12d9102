//! One of three members has another length than the others, on the side where it receives.

use crate::endpoint::{self, Error, Result, Span};
use crate::shm::config::Cores;
use crate::shm::heap::Heap;
use crate::shm::op::{Combine, allgather, allreduce, bcast, gather, reduce, scan};
use crate::shm::team::{Config, Team};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

const MEMBERS: usize = 3;
/// The odd one, which is no root of what others receive.
const ODD: usize = 2;
/// What lies in receive buffers, and behind them.
const FILL: u8 = 0xa5;
const MARGIN: usize = 100_000;

/// A member's part in an operation.
type Work<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// Blocks of one length, one after the other.
struct Row {
    all: Span,
    each: usize,
    /// One that lies elsewhere.
    own: Option<(usize, Span)>,
}

impl endpoint::Blocks for Row {
    fn len(&self, member: usize) -> usize {
        self.own.filter(|own| own.0 == member).map_or(self.each, |own| own.1.len())
    }

    fn each(&self) -> Option<usize> {
        self.own.is_none().then_some(self.each)
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        let own = self.own.filter(|own| members == (own.0..own.0 + 1)).map(|own| own.1);
        own.or(Some(self.all.slice(members.start * self.each..members.end * self.each)))
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("`direct` says where")
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("`direct` says where")
    }
}

/// Adds bytes.
struct Sum;

impl Combine for Sum {
    fn size(&self) -> usize {
        1
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        (0..count).for_each(|i| unsafe { *right.add(i) = (*right.add(i)).wrapping_add(*left.add(i)) });
    }
}

/// Byte `i` of what a member sends.
fn byte(member: usize, i: usize) -> u8 {
    (i.wrapping_mul(7) / 5 + 31 * member) as u8
}

/// A member's buffers: what it sends, of blocks of `gives`, and what it receives, of blocks of `takes`.
struct Buffers {
    out: Vec<u8>,
    into: Vec<u8>,
    takes: usize,
    blocks: usize,
}

impl Buffers {
    fn new(me: usize, gives: usize, takes: usize, blocks: usize) -> Buffers {
        let out = (0..MEMBERS * gives).map(|i| byte(me, i % gives)).collect();
        Buffers { out, into: vec![FILL; blocks * takes + MARGIN], takes, blocks }
    }

    /// Whether block `block` has the beginning of what `member` has sent, and nothing beyond.
    fn has(&self, block: usize, member: usize, sent: usize) -> bool {
        let found = &self.into[block * self.takes..(block + 1) * self.takes];
        found.iter().enumerate().all(|(i, &found)| found == if i < sent { byte(member, i) } else { FILL })
    }

    fn margin(&self) -> bool {
        self.into[self.blocks * self.takes..].iter().all(|&byte| byte == FILL)
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    operation: &'static str,
    /// Bytes that all send, and have room for, but the odd one.
    len: usize,
    odd: usize,
    zero_copy: usize,
    cores: Cores,
}

impl Case {
    /// Who has the other length.
    fn odd(self) -> usize {
        if self.operation == "gather" { 0 } else { ODD }
    }

    fn reduces(self) -> bool {
        ["reduce", "allreduce", "scan"].contains(&self.operation)
    }

    fn buffers(self, me: usize) -> Buffers {
        let takes = if me == self.odd() { self.odd } else { self.len };
        let gives = if self.reduces() { takes } else { self.len };
        let blocks = if ["gather", "allgather", "neighbor_allgather"].contains(&self.operation) { MEMBERS } else { 1 };
        Buffers::new(me, gives, takes, blocks)
    }

    async fn run(self, team: &Team, out: Span, into: Span, takes: usize, slot: usize) -> Result<()> {
        let turn = team.open(slot, 0, true).await?.expect("there is memory");
        let (me, zero_copy) = (team.me(), self.zero_copy);
        let own = out.slice(0..out.len() / MEMBERS);
        let sends = (self.operation == "neighbor_allgather").then_some((me, own));
        let all = Row { all: into, each: takes, own: sends };
        match (self.operation, me) {
            ("bcast", 0) => bcast::bcast(turn, 0, &own, zero_copy).await,
            ("bcast", _) => bcast::bcast(turn, 0, &into, zero_copy).await,
            ("gather", 0) => gather::receive(turn, None::<&Span>, &all, zero_copy).await,
            ("gather", _) => gather::send(turn, 0, &own, zero_copy).await,
            // What it sends lies in place, and is as long as what it has room for.
            ("allgather", ODD) => allgather::allgather(turn, None::<&Span>, &all, zero_copy).await,
            ("allgather", _) => allgather::allgather(turn, Some(&own), &all, zero_copy).await,
            ("neighbor_allgather", _) => allgather::allgather(turn, None::<&Span>, &all, zero_copy).await,
            ("reduce", _) => reduce::reduce(turn, 0, &Sum, own, into).await,
            ("allreduce", _) => allreduce::allreduce(turn, &Sum, own, into, zero_copy).await,
            ("scan", _) => scan::scan(turn, false, &Sum, own, into).await,
            _ => unreachable!("no such operation"),
        }
    }

    /// Runs it among all members, which must not wait for each other for ever.
    fn outcome(self, slot: usize) -> (Vec<Result<()>>, Vec<Buffers>) {
        let mut config = Config::built_in(MEMBERS, self.cores);
        config.waiting.crowded = self.cores != Cores::Own;
        let heap = Heap::new(MEMBERS, usize::MAX, true);
        let teams: Vec<_> = (0..MEMBERS).map(|me| Team::new(heap.member(me), config)).collect();
        let mut buffers: Vec<_> = (0..MEMBERS).map(|me| self.buffers(me)).collect();
        let mut works: Vec<Option<Work<'_>>> = Vec::new();
        for (team, buffers) in teams.iter().zip(&mut buffers) {
            // SAFETY: the buffers outlive the operation; each is one member's.
            let out = unsafe { Span::new(buffers.out.as_mut_ptr(), buffers.out.len(), 1) };
            // SAFETY: as above.
            let into = unsafe { Span::new(buffers.into.as_mut_ptr(), buffers.blocks * buffers.takes, 1) };
            works.push(Some(Box::pin(self.run(team, out, into, buffers.takes, slot))));
        }
        let mut results = vec![Ok(()); MEMBERS];
        let start = Instant::now();
        while works.iter().any(Option::is_some) {
            for (work, result) in works.iter_mut().zip(&mut results) {
                let polled = work.as_mut().map(|work| work.as_mut().poll(&mut Context::from_waker(Waker::noop())));
                if let Some(Poll::Ready(ended)) = polled {
                    (*work, *result) = (None, ended);
                }
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{self:?} hangs");
        }
        drop(works);
        (results, buffers)
    }

    /// Whom block `block` of a member comes from; `None`: it is no such block.
    fn source(self, me: usize, block: usize) -> Option<usize> {
        match self.operation {
            "bcast" => (me != 0).then_some(0),
            "gather" => (me == 0 && block != 0).then_some(block),
            "neighbor_allgather" => (block != me).then_some(block),
            "allgather" => (block != me && block != ODD).then_some(block),
            _ => (block != me).then_some(block),
        }
    }

    fn check(self, slot: usize) {
        let (results, buffers) = self.outcome(slot);
        for (me, (result, buffers)) in results.iter().zip(&buffers).enumerate() {
            assert!(buffers.margin(), "{self:?}: member {me} has written beyond its buffer");
            let short = me == self.odd() && self.odd < self.len;
            match result {
                // Who only sends is through before anybody compares.
                Ok(()) if self.operation == "reduce" && me != 0 => {}
                Ok(()) if self.reduces() => {
                    // Who has found its own operand only, or none at all of another length.
                    assert!(me != self.odd() && me < self.odd(), "{self:?}: member {me} has no error");
                }
                Ok(()) => {
                    let receives = (0..buffers.blocks).any(|block| self.source(me, block).is_some());
                    assert!(!(short && receives), "{self:?}: member {me} has no error");
                    for block in 0..buffers.blocks {
                        if let Some(from) = self.source(me, block) {
                            assert!(buffers.has(block, from, self.len), "{self:?}: block {block} of member {me}");
                        }
                    }
                }
                Err(error) => assert!(matches!(error, Error::Lengths | Error::Peer), "{self:?}: {error:?}"),
            }
            if short && !self.operation.ends_with("allgather") && !self.reduces() {
                assert_eq!(*result, Err(Error::Lengths), "{self:?}: member {me}");
            }
            if !short && ["bcast", "gather"].contains(&self.operation) && self.len < 100_000 {
                assert_eq!(*result, Ok(()), "{self:?}: member {me}");
            }
        }
    }
}

fn check(operations: &[&'static str]) {
    const LENGTHS: [usize; 5] = [8, 40, 500, 5000, 200_000];
    for &operation in operations {
        for (len, odd) in LENGTHS.iter().flat_map(|&len| LENGTHS.map(|odd| (len, odd))).filter(|(len, odd)| len != odd)
        {
            // Shorter ones are not lent, whatever the threshold.
            let thresholds = if len.max(odd) >= 10_000 { &[usize::MAX, 10_000][..] } else { &[usize::MAX] };
            for (cores, slot) in [(Cores::Own, 0), (Cores::Shared, 0), (Cores::Own, 1)] {
                for &zero_copy in thresholds {
                    Case { operation, len, odd, zero_copy, cores }.check(slot);
                }
            }
        }
    }
}

#[test]
fn who_receives_from_one_gets_what_it_has_room_for() {
    check(&["bcast", "gather"]);
}

#[test]
fn who_gathers_from_all_or_reduces_learns_that_others_have_other_lengths() {
    check(&["allgather", "neighbor_allgather", "reduce", "allreduce", "scan"]);
}
