// SPDX-License-Identifier: BSD-3-Clause
//! One of three or more members has another length than the others, on the side where it receives.

use crate::endpoint::{self, Error, Result, Span};
use crate::shm::config::Cores;
use crate::shm::memory::heap::Heap;
use crate::shm::op::{Combine, allgather, allreduce, alltoall, bcast, gather, reduce, scan, scatter, told};
use crate::shm::protocol::team::{Config, Team};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// So many at most.
const MEMBERS: usize = 8;
/// The most bytes of a block.
const MOST: usize = 200_000;
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
    /// Whose is empty.
    without: Option<usize>,
}

impl endpoint::Blocks for Row {
    fn len(&self, member: usize) -> usize {
        match self.own {
            Some((own, data)) if own == member => data.len(),
            _ if self.without == Some(member) => 0,
            _ => self.each,
        }
    }

    fn each(&self) -> Option<usize> {
        (self.own.is_none() && self.without.is_none()).then_some(self.each)
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

/// What a member sends, and what buffers are filled with: whole slices are compared, which takes no time.
fn bytes(member: Option<usize>, len: usize) -> &'static [u8] {
    static ALL: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let member = |member| (0..MOST).map(|i| (i * 7 / 5 + 31 * member) as u8).collect();
        (0..MEMBERS).map(member).chain([vec![FILL; MOST]]).collect()
    });
    &all[member.unwrap_or(MEMBERS)][..len]
}

/// A member's buffers: what it sends, of blocks of `gives`, and what it receives, of blocks of `takes`.
struct Buffers {
    out: Vec<u8>,
    into: Vec<u8>,
    takes: usize,
    blocks: usize,
}

impl Buffers {
    fn new(me: usize, [gives, takes]: [usize; 2], blocks: usize, members: usize) -> Buffers {
        let out = bytes(Some(me), gives).repeat(members);
        Buffers { out, into: vec![FILL; blocks * takes + MARGIN], takes, blocks }
    }

    /// Whether block `block` has the beginning of what `member` has sent, and nothing beyond.
    fn has(&self, block: usize, member: usize, sent: usize) -> bool {
        let found = &self.into[block * self.takes..(block + 1) * self.takes];
        let (has, left) = found.split_at(sent.min(self.takes));
        has == bytes(Some(member), has.len()) && left == bytes(None, left.len())
    }

    fn margin(&self) -> bool {
        self.into[self.blocks * self.takes..] == *bytes(None, MARGIN)
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
    members: usize,
}

impl Case {
    /// Who has the other length.
    fn odd(self) -> usize {
        if self.operation == "gather" { 0 } else { ODD }
    }

    fn reduces(self) -> bool {
        ["reduce", "allreduce", "scan"].contains(&self.operation)
    }

    /// Without what some have behind it: all blocks are as long and do not say so, and there is no queue.
    fn name(self) -> &'static str {
        self.operation.trim_end_matches(UNSAID)
    }

    fn exchanges(self) -> bool {
        ["allgather", "neighbor_allgather", "alltoall", "alltoallv"].contains(&self.name())
    }

    fn buffers(self, me: usize) -> Buffers {
        let takes = if me == self.odd() { self.odd } else { self.len };
        let gives = if self.reduces() { takes } else { self.len };
        let blocks = if self.operation == "gather" || self.exchanges() { self.members } else { 1 };
        Buffers::new(me, [gives, takes], blocks, self.members)
    }

    async fn run(self, team: &Team, out: Span, into: Span, takes: usize, slot: usize) -> Result<()> {
        let turn = team.open(slot, 0, self.name() == self.operation).await?.expect("there is memory");
        let (me, zero_copy) = (team.me(), self.zero_copy);
        let own = out.slice(0..out.len() / self.members);
        let sends = (self.operation == "neighbor_allgather").then_some((me, own));
        let without = match self.operation.ends_with('v') {
            true => Some(me),
            false => self.operation.ends_with(UNSAID).then_some(self.members),
        };
        let all = Row { all: into, each: takes, own: sends, without };
        let given = Row { all: out, each: self.len, own: None, without };
        match (self.name(), me) {
            ("bcast", 0) => bcast::bcast(turn, 0, &own, zero_copy).await,
            ("bcast", _) => bcast::bcast(turn, 0, &into, zero_copy).await,
            ("gather", 0) => gather::receive(turn, None::<&Span>, &all, zero_copy).await,
            ("gather", _) => gather::send(turn, 0, &own, zero_copy).await,
            // What it sends lies in place, and is as long as what it has room for.
            ("allgather", ODD) => allgather::allgather(turn, None::<&Span>, &all, zero_copy).await,
            ("allgather", _) => allgather::allgather(turn, Some(&own), &all, zero_copy).await,
            ("neighbor_allgather", _) => allgather::allgather(turn, None::<&Span>, &all, zero_copy).await,
            ("scatter" | "scatterv", 0) => scatter::send(turn, &given, None::<&Span>, zero_copy).await,
            ("scatter" | "scatterv", _) => scatter::receive(turn, 0, &into, zero_copy).await,
            ("alltoall" | "alltoallv", _) => alltoall::alltoall(turn, Some(&given), &all, zero_copy).await,
            ("reduce", _) => reduce::reduce(turn, 0, &Sum, own, into).await,
            ("allreduce", _) => allreduce::allreduce(turn, &Sum, own, into, zero_copy).await,
            ("scan", _) => scan::scan(turn, false, &Sum, own, into).await,
            _ => unreachable!("no such operation"),
        }
    }

    /// Runs it among all members, which must not wait for each other for ever.
    fn outcome(self, slot: usize) -> (Vec<Result<()>>, Vec<Buffers>) {
        let members = self.members;
        let mut config = Config::built_in(members, self.cores);
        config.waiting.crowded = self.cores != Cores::Own;
        let heap = Heap::new(members, usize::MAX, true);
        let teams: Vec<_> = (0..members).map(|me| Team::new(heap.member(me), config)).collect();
        let mut buffers: Vec<_> = (0..members).map(|me| self.buffers(me)).collect();
        let mut works: Vec<Option<Work<'_>>> = Vec::new();
        for (team, buffers) in teams.iter().zip(&mut buffers) {
            // SAFETY: the buffers outlive the operation; each is one member's.
            let out = unsafe { Span::new(buffers.out.as_mut_ptr(), buffers.out.len(), 1) };
            // SAFETY: as above.
            let into = unsafe { Span::new(buffers.into.as_mut_ptr(), buffers.blocks * buffers.takes, 1) };
            works.push(Some(Box::pin(self.run(team, out, into, buffers.takes, slot))));
        }
        let mut results = vec![Ok(()); members];
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
        match self.name() {
            "bcast" | "scatter" | "scatterv" => (me != 0).then_some(0),
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
            if short && !self.exchanges() && !self.reduces() {
                assert_eq!(*result, Err(Error::Lengths), "{self:?}: member {me}");
            }
            if !short && ["bcast", "gather"].contains(&self.operation) && self.len < 100_000 {
                assert_eq!(*result, Ok(()), "{self:?}: member {me}");
            }
        }
    }
}

/// All pairs of these lengths, among so many members.
fn check(operations: &[&'static str], lengths: &[usize], members: usize) {
    for &operation in operations {
        for (len, odd) in lengths.iter().flat_map(|&len| lengths.iter().map(move |&odd| (len, odd))) {
            if len == odd {
                continue;
            }
            // Shorter ones are not lent, whatever the threshold.
            let thresholds = if len.max(odd) >= 10_000 { &[usize::MAX, 10_000][..] } else { &[usize::MAX] };
            for (cores, slot) in [(Cores::Own, 0), (Cores::Shared, 0), (Cores::Own, 1)] {
                for &zero_copy in thresholds {
                    Case { operation, len, odd, zero_copy, cores, members }.check(slot);
                }
            }
        }
    }
}

/// See [`Case::name`].
const UNSAID: &str = " unsaid";
const LENGTHS: [usize; 5] = [8, 40, 500, 5000, MOST];

#[test]
fn who_receives_from_one_gets_what_it_has_room_for() {
    check(&["bcast", "gather"], &LENGTHS, 3);
}

#[test]
fn who_has_a_block_of_its_own_learns_that_it_is_longer_or_shorter() {
    check(&["scatter", "scatterv", "alltoall", "alltoallv"], &LENGTHS, 3);
}

#[test]
fn so_it_does_where_lines_have_no_place_for_numbers() {
    for members in [7, 8] {
        check(&["scatterv", "alltoallv"], &[4, 8, 40, 5000, 40_000], members);
        check(&["scatter unsaid", "alltoall unsaid"], &[4, 8], members);
    }
}

#[test]
fn so_it_does_where_two_lengths_have_the_same_number() {
    let number = |len| told::number(len, false);
    let len = 50_000;
    let odd = (len + 1..MOST).find(|&odd| number(odd) == number(len)).expect("there are fewer numbers than lengths");
    // Of blocks of others a member says nothing where all are alike; here not all are. Where members take
    // turns, the block is dealt, and its length is in its note.
    check(&["scatterv", "alltoallv"], &[len, odd], 4);
}

#[test]
fn who_gathers_from_all_or_reduces_learns_that_others_have_other_lengths() {
    check(&["allgather", "neighbor_allgather", "reduce", "allreduce", "scan"], &LENGTHS, 3);
}
