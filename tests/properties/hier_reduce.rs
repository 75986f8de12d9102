// SPDX-License-Identifier: BSD-3-Clause
//! Reduction on a communicator.

use super::composition::Found;
use super::data::{Buffers, Op, layouts};
use super::job::{Machine, crossing, hops, large_machine, levels, machine, one_cluster, part};
use super::random::{Cut, config, cut, parse, spec};
use super::team::traffic;
use coll_rust::algo::reduce::Value;
use coll_rust::endpoint::{Endpoint, Rank};
use coll_rust::hier::central::{What, central};
use coll_rust::hier::lanes::segments;
use coll_rust::hier::reduce::reduce;
use coll_rust::select::{Reduce, Spec};
use coll_rust::sim::{Rng, Stats};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;

/// Runs a reduction, in place where the seed says so, and checks it; an operation that commutes may be said
/// not to.
fn run(
    machine: &Machine,
    levels: &LevelSpec,
    (op, commutes): (Op, bool),
    spec: &Spec<Reduce>,
    cut: &Cut,
    root: Rank,
    seed: u64,
) -> Stats {
    let mut rng = Rng::new(seed);
    let groups = &machine.groups(levels, !commutes, Some(root));
    let found =
        machine.is_central(levels, !commutes, Some(root)).then(|| Found::new(machine, levels, false, Some(root)));
    let found = found.as_ref();
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let in_place = rng.below(2) == 0;
    let inputs: Vec<_> = (0..machine.size()).map(|_| op.values(&mut rng, cut.units)).collect();
    let buffers: Vec<_> =
        (0..).zip(&inputs).map(|(rank, input)| Buffers::new(unit, input, in_place && rank == root)).collect();
    let buffers_ref = &buffers;
    let world = machine.world(op.world(machine.size(), unit), Some(root));
    let stats = world.run_seed(seed, |ep| async move {
        let mine = &buffers_ref[ep.rank() as usize];
        let target = (ep.rank() == root).then(|| mine.target());
        let input = if mine.in_place() { Value::owned(mine.input()) } else { Value::borrowed(mine.input()) };
        match found {
            Some(found) => {
                let (job, parts) = (found.job(&ep, cut, commutes), &found.parts[ep.rank() as usize]);
                central(&job, parts, root, What::Reduce, mine.input(), target).await
            }
            None => reduce(&part(&ep, groups, cut, commutes), spec, input, target).await,
        }
    });
    let stats = stats.unwrap_or_else(|failed| panic!("{failed}"));
    (0..).zip(&buffers).for_each(|(rank, buffer)| buffer.check(rank == root));
    let result = buffers[root as usize].result();
    assert_eq!(op.exact(&result), op.exact(&op.fold(&inputs)), "in place: {in_place}");
    stats
}

/// Operations, and whether they are said to commute.
pub fn operation() -> impl Strategy<Value = (Op, bool)> {
    prop_oneof![4 => Just((Op::Sum, true)), 4 => Just((Op::Affine, false)), 1 => Just((Op::Sum, false))]
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn the_root_gets_the_combination(
        machine in machine(), levels in levels(), op in operation(), spec in spec(), cut in cut(),
        root in any::<prop::sample::Index>(), seed: u64,
    ) {
        run(&machine, &levels, op, &spec, &cut, root.index(machine.size()) as Rank, seed);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn one_copy_leaves_where_it_must(
        machine in one_cluster(), tree in prop_oneof![Just("flat"), Just("chain"), Just("knomial/2"), Just("knomial/3")],
        cut in cut(), seed: u64,
    ) {
        let spec = parse(tree);
        let roots = machine.size().min(11) as Rank;
        for root in 0..roots {
            let stats = run(&machine, &LevelSpec::Auto, (Op::Sum, true), &spec, &cut, root, seed);
            let hops = hops(&machine.groups(&LevelSpec::Auto, false, Some(root)));
            for level in Level::ALL {
                let hops = hops[usize::from(level.index())];
                let expected = traffic(hops * segments(cut.units, cut.segment), hops * cut.units);
                prop_assert_eq!(stats.level(level.index()), expected, "at {}", level.name());
            }
            for layer in 0..=machine.uppers[0].len() {
                let place = |rank: Rank| {
                    let node = machine.hosts[rank as usize];
                    if layer == 0 { node } else { machine.uppers[node as usize][layer - 1] }
                };
                let crossing = crossing(&stats, place);
                for rank in 0..machine.size() as Rank {
                    let (_, leaves) = crossing.get(place(rank) as usize).copied().unwrap_or_default();
                    let expected = if place(rank) == place(root) { 0 } else { cut.units as u64 };
                    prop_assert_eq!(leaves, expected, "layer {} of rank {}", layer, rank);
                }
            }
        }
    }
}

#[test]
fn hundreds_of_ranks() {
    let ops = [(Op::Sum, true), (Op::Affine, false)];
    for (seed, text) in [(0, "auto"), (1, "chain"), (2, "reduce_scatter_gather,node:knomial/4"), (3, "knomial/3")] {
        for op in ops {
            let cut = Cut { units: 31, segment: 16, window: 2, bytes: 1 << 20 };
            let spec = parse(text);
            run(&large_machine(seed), &LevelSpec::Auto, op, &spec, &cut, 63 * seed as Rank, seed);
        }
    }
}

#[test]
fn alone() {
    for seed in 0..8 {
        for units in [0, 1, 13] {
            let cut = Cut { units, segment: 4, window: 3, bytes: units };
            let stats = run(&Machine::alone(), &LevelSpec::Auto, (Op::Affine, false), &Spec::AUTO, &cut, 0, seed);
            assert_eq!(stats.total, traffic(0, 0));
        }
    }
}
