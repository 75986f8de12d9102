// SPDX-License-Identifier: BSD-3-Clause
//! Which copies out of the queues bypass the cache, among four members.

use super::tree::{Rung, Tree};
use super::{allgather, alltoall, bcast, gather, scatter, tree};
use crate::endpoint::{self, Result, Span};
use crate::shm::config::Cores;
use crate::shm::copy::{BYPASSED, WRITTEN_PAST};
use crate::shm::memory::heap::Heap;
use crate::shm::protocol::team::{Config, Team};
use crate::shm::thresholds::Reads;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Waker};

const MEMBERS: usize = 4;

/// Blocks of these lengths, one after the other.
struct Row(Span, [usize; MEMBERS]);

impl endpoint::Blocks for Row {
    fn len(&self, member: usize) -> usize {
        self.1[member]
    }

    fn each(&self) -> Option<usize> {
        (self.1 == [self.1[0]; MEMBERS]).then_some(self.1[0])
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        let [start, end] = [members.start, members.end].map(|member| self.1[..member].iter().sum());
        Some(self.0.slice(start..end))
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("`direct` says where")
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        unreachable!("`direct` says where")
    }
}

/// An operation in which member i has a block of `lengths[i]` bytes, for everybody else or for, or from,
/// member 0.
#[derive(Clone, Copy)]
struct Case {
    operation: &'static str,
    lengths: [usize; MEMBERS],
    /// From so many bytes on blocks may be read directly.
    zero_copy: usize,
}

impl Case {
    async fn of(self, team: &Team) -> Result<()> {
        let Case { operation, lengths, zero_copy } = self;
        let turn = team.open(0, 0, true).await?.expect("there is memory");
        let me = team.me();
        let (own, out) = (lengths[me], [lengths[me]; MEMBERS]);
        let [mut first, mut second, mut third] =
            [own, out.iter().sum(), lengths.iter().sum()].map(|bytes| vec![0_u8; bytes]);
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        let [own, out_room, all_room] =
            [&mut first, &mut second, &mut third].map(|room| unsafe { Span::new(room.as_mut_ptr(), room.len(), 1) });
        let (out, all) = (Row(out_room, out), Row(all_room, lengths));
        match (operation, me) {
            ("bcast", _) => bcast::bcast(turn, 0, &own, zero_copy).await,
            ("tree", _) => {
                let rung = Rung { members: (0..MEMBERS).collect(), me, leader: 0 };
                tree::bcast(turn, &Tree::new(0, vec![rung]), &own).await
            }
            ("scatter", 0) => scatter::send(turn, &all, Some(&own), zero_copy).await,
            ("scatter", _) => scatter::receive(turn, 0, &own, zero_copy).await,
            ("gather", 0) => gather::receive(turn, Some(&own), &all, zero_copy).await,
            ("gather", _) => gather::send(turn, 0, &own, zero_copy).await,
            ("allgather", _) => allgather::allgather(turn, Some(&own), &all, zero_copy).await,
            ("alltoall", _) => alltoall::alltoall(turn, Some(&out), &all, zero_copy).await,
            ("alltoall, the longest queued", _) => {
                alltoall::alltoall(turn, Some(&out), &all, Reads { from: zero_copy, end: 2_000_000 }).await
            }
            // The other way: what is for member i has `lengths[i]` bytes.
            ("alltoall to", _) => alltoall::alltoall(turn, Some(&all), &out, zero_copy).await,
            _ => unreachable!("no such operation"),
        }
    }

    /// How many bytes all members together copy past the cache, where they have cores in this way, and do so
    /// from `bypass_min` bytes on; `readable`: they can read each other's memory.
    fn bypassed(self, cores: Cores, bypass_min: usize, readable: bool) -> usize {
        self.copied(Config { bypass_min, ..Config::built_in(MEMBERS, cores) }, cores, readable).0
    }

    /// The same of any sizes; and how many bytes they write past the caches.
    fn copied(self, mut config: Config, cores: Cores, readable: bool) -> (usize, usize) {
        config.waiting.crowded = cores != Cores::Own;
        let heap = Heap::new(MEMBERS, usize::MAX, readable);
        let teams: Vec<_> = (0..MEMBERS).map(|me| Team::new(heap.member(me), config)).collect();
        let mut works: Vec<Pin<Box<dyn Future<Output = _>>>> = Vec::new();
        teams.iter().for_each(|team| works.push(Box::pin(self.of(team))));
        BYPASSED.set(0);
        WRITTEN_PAST.set(0);
        for _ in 0..100_000 {
            let mut context = Context::from_waker(Waker::noop());
            works.retain_mut(|work| work.as_mut().poll(&mut context).map(Result::unwrap).is_pending());
            if works.is_empty() {
                return (BYPASSED.get(), WRITTEN_PAST.get());
            }
        }
        panic!("{} hangs", self.operation);
    }
}

/// Where all blocks are of so many bytes, and none is read directly.
fn bypassed(operation: &'static str, len: usize, cores: Cores, bypass_min: usize) -> usize {
    Case { operation, lengths: [len; MEMBERS], zero_copy: usize::MAX }.bypassed(cores, bypass_min, true)
}

#[test]
fn what_all_copy_together_decides_whether_copies_bypass_the_cache() {
    const LEAST: usize = 8 << 20;
    for cores in [Cores::Own, Cores::Shared] {
        for (operation, copies, least) in [
            ("bcast", 3, LEAST),
            ("tree", 3, LEAST),
            ("scatter", 3, LEAST),
            ("gather", 3, LEAST),
            ("allgather", 12, LEAST),
            ("alltoall", 12, LEAST / 4 * 3),
        ] {
            let len = least.div_ceil(copies);
            let found = [len - 1, len].map(|len| bypassed(operation, len, cores, LEAST));
            assert_eq!(found, [0, copies * len], "{operation}, {cores:?}");
        }
    }
    // In one portion.
    assert_eq!([99_999, 100_000].map(|len| bypassed("scatter", len, Cores::Shared, 300_000)), [0, 300_000]);
}

#[test]
fn what_all_write_together_decides_whether_it_goes_past_the_caches() {
    const BYPASS: usize = 400_000;
    // A gather from 300,000 bytes of three writers on, a scatter from half as many of its root's.
    for (operation, least) in [("gather", 100_000), ("scatter", 50_000)] {
        for (past, len, found) in
            [(true, least - 1, 0), (true, least, 3 * least), (true, 2 * least, 6 * least), (false, least, 0)]
        {
            let case = Case { operation, lengths: [len; MEMBERS], zero_copy: usize::MAX };
            // In portions, or fragments, of 16 KiB.
            let config =
                Config { bypass_min: BYPASS, past, fragment: 16 << 10, fragments: 4, sets: 2, ..Config::default() };
            assert_eq!(case.copied(config, Cores::Shared, true).1, found, "{operation}, {len}");
        }
    }
}

#[test]
fn only_blocks_count_that_go_through_queues() {
    let lengths = [900_000, 700_000, 2_000_000, 2_000_000];
    for cores in [Cores::Own, Cores::Shared] {
        for (operation, least, all) in [
            ("gather", 1_500_000, 4_700_000),
            ("allgather", 7_000_000, 16_800_000),
            ("alltoall", 9_000_000, 16_800_000),
        ] {
            let case = Case { operation, lengths, zero_copy: 1_000_000 };
            let found = [true, false].map(|readable| case.bypassed(cores, least, readable));
            assert_eq!(found, [0, all], "{operation}, {cores:?}");
        }
    }
}

#[test]
fn blocks_of_an_alltoall_that_are_too_long_to_be_read_go_through_queues() {
    let case = Case {
        operation: "alltoall, the longest queued",
        lengths: [900_000, 1_000_000, 1_999_999, 2_000_000],
        zero_copy: 1_000_000,
    };
    let found = [true, false].map(|readable| case.bypassed(Cores::Own, 1_000_000, readable));
    assert_eq!(found, [3 * 2_900_000, 3 * 5_899_999]);
}

#[test]
fn what_travels_at_once_does_not_bypass_the_cache_up_to_a_length() {
    for (operation, longest) in
        [("bcast", 64 << 10), ("tree", 64 << 10), ("gather", 256 << 10), ("allgather", 64 << 10)]
    {
        assert_eq!(bypassed(operation, longest, Cores::Shared, 1), 0, "{operation}");
        assert_ne!(bypassed(operation, longest + 1, Cores::Shared, 1), 0, "{operation}");
    }
    assert_eq!(bypassed("alltoall", 100_000, Cores::Shared, 1), 0);
    assert_ne!(bypassed("alltoall", 200_000, Cores::Shared, 1), 0);
    // Wholes of an allgather, beyond that length: as if all were as long.
    const LEN: usize = 100_000;
    for (least, lengths, found) in [
        (12 * LEN, [LEN; MEMBERS], 12 * LEN),
        (12 * LEN + 1, [LEN; MEMBERS], 0),
        // With a longer block among them: the sum of those that are longer than 64 KiB.
        (4 * 2 * LEN, [LEN, LEN, 300 << 10, 60_000], 6 * LEN + 3 * (300 << 10)),
    ] {
        let case = Case { operation: "allgather", lengths, zero_copy: usize::MAX };
        assert_eq!(case.bypassed(Cores::Shared, least, true), found, "{least}, {lengths:?}");
    }
}
