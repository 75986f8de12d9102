// SPDX-License-Identifier: BSD-3-Clause
//! Prefix reductions on a communicator.

use super::blocks::send;
use super::composition::Found;
use super::data::{Buffers, Op, layouts};
use super::job::{Machine, large_machine, levels, machine, one_cluster};
use super::random::{Cut, config, cut};
use super::team::log;
use coll_rust::algo::scan::Scan;
use coll_rust::endpoint::Endpoint;
use coll_rust::hier::central::{What, central, middle};
use coll_rust::hier::lanes::segments;
use coll_rust::hier::scan::{Prefix, scan};
use coll_rust::select::Facts;
use coll_rust::select::Scan::{Linear, RecursiveDoubling};
use coll_rust::sim::{Rng, Stats};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;

/// One run and its check, in place where the seed says so.
fn run(machine: &Machine, levels: &LevelSpec, prefix: Prefix, radix: u32, cut: &Cut, kind: Scan, seed: u64) -> Stats {
    let mut rng = Rng::new(seed);
    let middle = middle(&machine.placement(0));
    let is_central = is_several(machine);
    let found = match is_central {
        true => &Found::new(machine, levels, false, Some(middle)),
        false => &Found::new(machine, levels, true, None),
    };
    let any = if radix.is_multiple_of(2) { Linear } else { RecursiveDoubling };
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let op = if rng.below(4) > 0 { Op::Affine } else { Op::Sum };
    let inputs: Vec<_> = (0..machine.size()).map(|_| op.values(&mut rng, cut.units)).collect();
    let buffers: Vec<_> = inputs.iter().map(|input| Buffers::new(unit, input, rng.below(2) == 0)).collect();
    let (buffers_ref, choose) = (&buffers, &move |_: &Facts| prefix);
    let world = machine.world(op.world(machine.size(), unit), None);
    let stats = world.run_seed(seed, |ep| async move {
        let mine = &buffers_ref[ep.rank() as usize];
        let job = found.job(&ep, cut, false);
        if is_central {
            let parts = &found.parts[ep.rank() as usize];
            return send(central(&job, parts, middle, What::Scan(any, kind), mine.input(), Some(mine.target()))).await;
        }
        send(scan(&job, choose, radix, kind, mine.input(), mine.target())).await
    });
    let context = format!("{kind:?} {prefix:?} {radix} {op:?} {cut:?} seed {seed} {machine:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    let mut before: Option<Vec<u8>> = None;
    for (rank, buffers) in buffers.iter().enumerate() {
        let with = before.take().map_or(inputs[rank].clone(), |sum| op.fold(&[sum, inputs[rank].clone()]));
        let first = kind == Scan::Exclusive && rank == 0;
        buffers.check(!first || buffers.in_place());
        let expected = match (kind, rank) {
            (Scan::Inclusive, _) => Some(with.clone()),
            (Scan::Exclusive, 0) => buffers.in_place().then(|| inputs[0].clone()),
            (Scan::Exclusive, _) => None,
        };
        if let Some(expected) = expected {
            assert_eq!(op.exact(&buffers.result()), op.exact(&expected), "rank {rank}: {context}");
        } else if rank > 0 {
            let result = op.fold(&[buffers.result(), inputs[rank].clone()]);
            assert_eq!(op.exact(&result), op.exact(&with), "rank {rank}: {context}");
        }
        before = Some(with);
    }
    stats
}

fn is_several(machine: &Machine) -> bool {
    machine.placement(0).clusters().is_some()
}

fn kind() -> impl Strategy<Value = Scan> {
    prop_oneof![Just(Scan::Inclusive), Just(Scan::Exclusive)]
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn everybody_gets_what_comes_before(
        machine in machine(), levels in levels(), prefix in prop_oneof![Just(Prefix::Linear), Just(Prefix::RecursiveDoubling)],
        radix in 2..6u32, cut in cut(), kind in kind(), seed: u64,
    ) {
        run(&machine, &levels, prefix, radix, &cut, kind, seed);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn one_vector_up_and_one_down(machine in one_cluster(), linear: bool, cut in cut(), kind in kind(), seed: u64) {
        let found = Found::new(&machine, &LevelSpec::Auto, true, None);
        let prefix = if linear { Prefix::Linear } else { Prefix::RecursiveDoubling };
        let stats = run(&machine, &LevelSpec::Auto, prefix, 3, &cut, kind, seed);
        let mut vectors = [0; Level::COUNT];
        for ((level, members), (_, below)) in &found.all {
            let size = members.len();
            let top = below.iter().map(Vec::len).sum::<usize>() == machine.size();
            let distances = || (0..log(size, 2)).map(|i| 1_usize << i);
            vectors[usize::from(level.index())] += match (top, linear) {
                (false, _) => 2 * (size - 1),
                (true, true) => size - 1,
                (true, false) => distances()
                    .map(|d| (0..size).filter(|m| m & d == 0 && m + d < size).count() + d * ((size - 1) / (2 * d)))
                    .sum(),
            };
        }
        for level in Level::ALL {
            let vectors = vectors[usize::from(level.index())];
            let pieces = if cut.units == 0 { 0 } else { segments(cut.units, cut.segment) };
            let expected = super::team::traffic(vectors * pieces, vectors * cut.units);
            prop_assert_eq!(stats.level(level.index()), expected, "at {}", level.name());
        }
    }
}

#[test]
fn hundreds_of_ranks() {
    for (seed, kind) in [(0, Scan::Inclusive), (1, Scan::Exclusive), (3, Scan::Inclusive)] {
        let machine = large_machine(seed);
        let cut = Cut { units: 5, segment: 3, window: 2, bytes: 80 };
        run(&machine, &LevelSpec::Auto, Prefix::RecursiveDoubling, 2, &cut, kind, seed);
    }
}
