// SPDX-License-Identifier: BSD-3-Clause
//! Programs in which one rank gives another length than the others for the same data, in every algorithm.
//!
//! Nobody waits for ever, nobody has success with wrong data, and memory is used by the rules. What the
//! simulator does then is what Open MPI does: who has too little room gets as much as there is room for.

use coll_rust::algo::allgather::{bruck, linear, neighbor_exchange, recursive_doubling, ring};
use coll_rust::algo::data::Role;
use coll_rust::algo::reduce::{Value, Work};
use coll_rust::algo::scan::Scan;
use coll_rust::algo::{Stage, allreduce, alltoall, bcast, gather, reduce, reduce_scatter, scan, scatter};
use coll_rust::endpoint::{Endpoint, Error, Rank, Result, Tag};
use coll_rust::pattern::lengths::Lengths;
use coll_rust::sim::{Config, SimBlocks, SimEndpoint, SimStream, UnitBuffer, UnitType, World};

/// Ranks that give a length, and one that gives another.
#[derive(Clone, Copy, Debug)]
struct Case {
    size: usize,
    odd: usize,
    len: usize,
    other: usize,
}

impl Case {
    fn len(self, rank: usize) -> usize {
        if rank == self.odd { self.other } else { self.len }
    }

    /// Rank `from`'s data for `to`, as long as `rank` has it.
    fn data(self, rank: usize, from: usize, to: usize) -> Vec<u8> {
        (0..self.len(rank)).map(|i| (from * 31 + to * 7 + i) as u8).collect()
    }

    /// What `rank` has for, or expects from, all others.
    fn blocks(self, rank: usize, pair: impl Fn(usize) -> (usize, usize)) -> Vec<Vec<u8>> {
        (0..self.size).map(|other| self.data(rank, pair(other).0, pair(other).1)).collect()
    }

    fn room(self, rank: usize) -> SimBlocks {
        SimBlocks::run(&vec![vec![0xee; self.len(rank)]; self.size])
    }
}

/// What an operation works on, and what a rank with success must have then; none: nothing.
struct Memory {
    streams: Vec<SimStream>,
    out: Vec<SimBlocks>,
    into: Vec<SimBlocks>,
    values: Vec<UnitBuffer>,
    targets: Vec<UnitBuffer>,
}

impl Memory {
    fn new(case: Case) -> Memory {
        let ranks = || 0..case.size;
        let sum = |rank| UnitBuffer::with(UnitType::BYTE, &vec![rank as u8 + 1; case.len(rank) * case.size]);
        Memory {
            streams: ranks().map(|m| SimStream::direct(&case.data(m, m, 0))).collect(),
            out: ranks().map(|m| SimBlocks::run(&case.blocks(m, |other| (m, other)))).collect(),
            into: ranks().map(|m| case.room(m)).collect(),
            values: ranks().map(sum).collect(),
            targets: ranks().map(|m| UnitBuffer::new(UnitType::BYTE, case.len(m) * case.size)).collect(),
        }
    }
}

type Right<'a> = &'a dyn Fn(&Memory, usize) -> bool;

/// Runs an operation of many schedules; `right`: whether a rank has what it should.
fn judge(name: &str, case: Case, right: Right<'_>, run: impl AsyncFn(&Stage<'_, SimEndpoint>, &Memory) -> Result<()>) {
    let ranks: Vec<Rank> = (0..case.size as Rank).collect();
    let world = World::new(case.size as u32).reduce(|left, right| right[0] = right[0].wrapping_add(left[0]));
    for seed in 0..4 {
        let memory = Memory::new(case);
        let config = match seed {
            0 => Config::eager(),
            1 => Config::rendezvous(),
            _ => Config::from_seed(seed, case.size as u32),
        };
        let (ranks, memory, run) = (&ranks, &memory, &run);
        let ends = world.judge(seed, config, |ep| async move {
            let stage = Stage::new(&ep, ranks, ep.rank() as usize, Tag { lane: 0, phase: 0, level: 0 });
            run(&stage, memory).await
        });
        let ends = ends.unwrap_or_else(|failed| panic!("{name} {case:?}: {failed}"));
        assert!(ends.iter().all(Option::is_some), "{name} {case:?} seed {seed}: somebody waits: {ends:?}");
        assert!(ends.iter().any(|end| *end != Some(Ok(()))), "{name} {case:?} seed {seed}: nobody notices");
        for (rank, end) in ends.iter().enumerate().filter(|(_, end)| **end == Some(Ok(()))) {
            assert!(right(memory, rank), "{name} {case:?} seed {seed}: rank {rank} has success: {end:?}");
        }
        let intact = memory.out.iter().chain(&memory.into).all(SimBlocks::gaps_intact);
        assert!(intact && memory.targets.iter().all(UnitBuffer::gaps_intact), "{name} {case:?}: bytes beyond");
    }
}

fn cases(each: impl Fn(Case)) {
    for size in [2, 3, 4, 5, 8] {
        for odd in [0, 1, size - 1] {
            for (len, other) in [(40, 10), (40, 160), (40, 39), (2, 1)] {
                each(Case { size, odd, len, other });
            }
        }
    }
}

/// All that comes to a rank is as it was sent.
fn all_blocks(case: Case, memory: &Memory, rank: usize, pair: impl Fn(usize) -> (usize, usize)) -> bool {
    (0..case.size).all(|other| memory.into[rank].contents(other) == case.data(rank, pair(other).0, pair(other).1))
}

#[test]
fn nobody_waits_in_gather() {
    cases(|case| {
        let right = |memory: &Memory, rank| rank != 0 || all_blocks(case, memory, 0, |from| (from, 0));
        let known = |rank| Lengths::equal(case.len(rank), case.size);
        for (posts, radix, told) in [(1, 0, false), (16, 0, false), (0, 2, false), (0, 2, true), (0, 4, true)] {
            judge(&format!("gather {posts} {radix} {told}"), case, &right, async |stage, memory| {
                let me = stage.me();
                let own = &memory.streams[me];
                let role =
                    if me == 0 { Role::Root { all: &memory.into[0], own: Some(own) } } else { Role::Other { own } };
                match radix {
                    0 => gather::linear::linear(stage, 0, role, posts).await,
                    _ => gather::knomial::knomial(stage, 0, role, (!told).then(|| known(me)).as_ref(), radix).await,
                }
            });
        }
    });
}

#[test]
fn nobody_waits_in_scatter() {
    cases(|case| {
        let right =
            |memory: &Memory, rank: usize| rank == 0 || memory.streams[rank].contents() == case.data(rank, 0, rank);
        let known = |rank| Lengths::equal(case.len(rank), case.size);
        for (posts, radix, told) in [(1, 0, false), (16, 0, false), (0, 2, false), (0, 2, true), (0, 4, true)] {
            judge(&format!("scatter {posts} {radix} {told}"), case, &right, async |stage, memory| {
                let me = stage.me();
                let own = &memory.streams[me];
                let role =
                    if me == 0 { Role::Root { all: &memory.out[0], own: Some(own) } } else { Role::Other { own } };
                match radix {
                    0 => scatter::linear::linear(stage, 0, role, posts).await,
                    _ => scatter::knomial::knomial(stage, 0, role, (!told).then(|| known(me)).as_ref(), radix).await,
                }
            });
        }
    });
}

#[test]
fn nobody_waits_in_allgather() {
    cases(|case| {
        let right = |memory: &Memory, rank| all_blocks(case, memory, rank, |from| (from, 0));
        for which in 0..6 {
            if (which == 2 && case.size % 2 == 1) || (which == 3 && !case.size.is_power_of_two()) {
                continue;
            }
            judge(&format!("allgather {which}"), case, &right, async |stage, memory| {
                let (own, into) = (Some(&memory.streams[stage.me()]), &memory.into[stage.me()]);
                match which {
                    0 => linear::linear(stage, own, into, 1).await,
                    1 => ring::ring(stage, own, into).await,
                    2 => neighbor_exchange::neighbor_exchange(stage, own, into).await,
                    3 => recursive_doubling::recursive_doubling(stage, own, into).await,
                    4 => bruck::bruck(stage, own, into).await,
                    _ => linear::linear(stage, own, into, 16).await,
                }
            });
        }
    });
}

#[test]
fn nobody_waits_in_alltoall() {
    cases(|case| {
        let right = |memory: &Memory, rank| all_blocks(case, memory, rank, |from| (from, rank));
        for which in 0..6 {
            judge(&format!("alltoall {which}"), case, &right, async |stage, memory| {
                let (out, into) = (Some(&memory.out[stage.me()]), &memory.into[stage.me()]);
                match which {
                    0 => alltoall::linear::linear(stage, out, into, 1).await,
                    1 => alltoall::linear::linear(stage, out, into, 16).await,
                    2 => alltoall::pairwise::pairwise(stage, out, into).await,
                    3 => alltoall::bruck::bruck(stage, out, into, 2).await,
                    4 => alltoall::bruck::bruck(stage, out, into, 4).await,
                    _ => alltoall::linear::linear(stage, None::<&SimBlocks>, into, 2).await,
                }
            });
        }
    });
}

#[test]
fn nobody_waits_in_bcast() {
    cases(|case| {
        let right = |memory: &Memory, rank: usize| {
            rank == 0 || memory.targets[rank].data()[..] == vec![7; case.len(rank) * case.size][..]
        };
        for which in 0..6 {
            judge(&format!("bcast {which}"), case, &right, async |stage, memory| {
                let data = memory.targets[stage.me()].span();
                if stage.me() == 0 {
                    memory.targets[0].fill(7);
                }
                match which {
                    0 => bcast::flat::flat(stage, 0, data).await,
                    1 => bcast::chain::chain(stage, 0, data).await,
                    2 => bcast::knomial::knomial(stage, 0, data, 2).await,
                    3 => bcast::knomial::knomial(stage, 0, data, 4).await,
                    _ => bcast::scatter_allgather::scatter_allgather(stage, 0, data).await,
                }
            });
        }
    });
}

/// Whether a rank has the sum of the first so many ranks.
fn has_sum(memory: &Memory, rank: usize, of: usize, count: usize) -> bool {
    let sum = (1..=of).sum::<usize>() as u8;
    memory.targets[rank].data()[..count].iter().all(|&byte| byte == sum)
}

#[test]
fn nobody_waits_in_reductions_to_a_root() {
    cases(|case| {
        let right = |memory: &Memory, rank| rank != 0 || has_sum(memory, 0, case.size, case.len(0) * case.size);
        for (which, commutative) in [(0, true), (0, false), (1, true), (2, true), (2, false), (3, true), (4, true)] {
            judge(&format!("reduce {which} {commutative}"), case, &right, async |stage, memory| {
                let me = stage.me();
                let (input, target) = (memory.values[me].span(), memory.targets[me].span());
                let mut work = Work::new(stage.ep(), input.len(), commutative, (me == 0).then_some(target));
                let input = Value::borrowed(input);
                let result = match which {
                    0 => reduce::flat::flat(stage, 0, input, &mut work).await?,
                    1 => reduce::knomial::knomial(stage, 0, input, &mut work, 2).await?,
                    2 => reduce::knomial::knomial(stage, 0, input, &mut work, 4).await?,
                    3 => reduce::chain::chain(stage, 0, input, &mut work).await?,
                    _ => reduce::reduce_scatter_gather::reduce_scatter_gather(stage, 0, input, &mut work).await?,
                };
                if let Some(value) = result.filter(|value| value.span.ptr() != target.ptr()) {
                    stage.ep().copy(value.span, target);
                }
                Ok(())
            });
        }
    });
}

#[test]
fn nobody_waits_in_allreduce() {
    cases(|case| {
        let right = |memory: &Memory, rank| has_sum(memory, rank, case.size, case.len(rank) * case.size);
        for which in 0..3 {
            judge(&format!("allreduce {which}"), case, &right, async |stage, memory| {
                let (input, target) = (memory.values[stage.me()].span(), memory.targets[stage.me()].span());
                let mut work = Work::new(stage.ep(), input.len(), true, Some(target));
                let input = Value::borrowed(input);
                let value = match which {
                    0 => allreduce::recursive_doubling::recursive_doubling(stage, input, &mut work).await?,
                    1 => allreduce::rabenseifner::rabenseifner(stage, input, &mut work).await?,
                    _ => allreduce::ring::ring(stage, input, &mut work).await?,
                };
                if value.span.ptr() != target.ptr() {
                    stage.ep().copy(value.span, target);
                }
                Ok(())
            });
        }
    });
}

#[test]
fn nobody_waits_in_reduce_scatter() {
    cases(|case| {
        let right = |memory: &Memory, rank| has_sum(memory, rank, case.size, case.len(rank));
        for which in 0..5 {
            judge(&format!("reduce_scatter {which}"), case, &right, async |stage, memory| {
                let me = stage.me();
                let lengths = &Lengths::equal(case.len(me), case.size);
                let (input, target) = (memory.values[me].span(), memory.targets[me].span().slice(0..case.len(me)));
                match which {
                    0 => reduce_scatter::pairwise::pairwise(stage, input, lengths, target).await,
                    1 => reduce_scatter::ring::ring(stage, input, lengths, target).await,
                    2 => reduce_scatter::recursive_halving::recursive_halving(stage, input, lengths, target).await,
                    3 => reduce_scatter::reduce_scatterv::reduce_scatterv(stage, input, lengths, target, 2).await,
                    _ => reduce_scatter::reduce_scatterv::reduce_scatterv(stage, input, lengths, target, 4).await,
                }
            });
        }
    });
}

#[test]
fn nobody_waits_in_prefix_reductions() {
    cases(|case| {
        for (kind, doubling) in
            [(Scan::Inclusive, false), (Scan::Inclusive, true), (Scan::Exclusive, false), (Scan::Exclusive, true)]
        {
            let of = |rank| if kind == Scan::Inclusive { rank + 1 } else { rank };
            let right = |memory: &Memory, rank: usize| {
                of(rank) == 0 || has_sum(memory, rank, of(rank), case.len(rank) * case.size)
            };
            judge(&format!("scan {kind:?} {doubling}"), case, &right, async |stage, memory| {
                let (input, target) = (memory.values[stage.me()].span(), memory.targets[stage.me()].span());
                match doubling {
                    false => scan::linear::linear(stage, kind, input, target).await,
                    true => scan::recursive_doubling::recursive_doubling(stage, kind, input, target).await,
                }
            });
        }
    });
}

/// Gather or Scatter from rank 0, where rank `bad` has met an error before. `radix`: 0 for the linear ones;
/// `told`: whether only the root knows the lengths.
fn after_an_error(gathers: bool, lens: &[usize], bad: usize, (radix, told): (u32, bool), config: Config) {
    let size = lens.len();
    let blocks: Vec<Vec<u8>> = lens.iter().map(|&len| vec![1; len]).collect();
    let streams: Vec<_> = blocks.iter().map(|block| SimStream::direct(block)).collect();
    let (all, ranks) = (SimBlocks::run(&blocks), (0..size as Rank).collect::<Vec<_>>());
    let each = Lengths::each(lens.iter().copied());
    let (streams, all, ranks, each) = (&streams, &all, &ranks, &each);
    let ends = World::new(size as u32).judge(1, config, |ep| async move {
        let stage = Stage::new(&ep, ranks, ep.rank() as usize, Tag { lane: 0, phase: 0, level: 0 });
        if stage.me() == bad {
            ep.note(Error::Peer);
        }
        let own = &streams[stage.me()];
        let role = if stage.me() == 0 { Role::Root { all, own: Some(own) } } else { Role::Other { own } };
        let lengths = (!told).then_some(each);
        match (gathers, radix) {
            (true, 0) => gather::linear::linear(&stage, 0, role, 16).await,
            (false, 0) => scatter::linear::linear(&stage, 0, role, 16).await,
            (true, _) => gather::knomial::knomial(&stage, 0, role, lengths, radix).await,
            (false, _) => scatter::knomial::knomial(&stage, 0, role, lengths, radix).await,
        }
    });
    let ends = ends.unwrap_or_else(|failed| panic!("{failed}"));
    let waits = ends.iter().any(Option::is_none);
    assert!(!waits, "gathers: {gathers}, {lens:?}, rank {bad}, radix {radix}, told: {told}, {config:?}: {ends:?}");
}

#[test]
fn nobody_waits_for_a_rank_that_met_an_error() {
    let is_empty: [fn(usize, usize) -> bool; 5] =
        [|_, _| false, |m, _| m > 0, |m, size| m >= size / 2, |m, _| m % 2 == 0, |m, _| m % 3 != 2];
    for (size, is_empty) in [4, 5, 8, 13].into_iter().flat_map(|size| is_empty.map(|is_empty| (size, is_empty))) {
        let lens: Vec<usize> = (0..size).map(|m| if is_empty(m, size) { 0 } else { 40 }).collect();
        for (bad, gathers) in (0..size).flat_map(|bad| [(bad, true), (bad, false)]) {
            for how in [(0, false), (2, false), (2, true), (4, true)] {
                after_an_error(gathers, &lens, bad, how, Config::eager());
                after_an_error(gathers, &lens, bad, how, Config::rendezvous());
            }
        }
    }
}
