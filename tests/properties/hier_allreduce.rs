// SPDX-License-Identifier: BSD-3-Clause
//! Allreduce on a communicator.

use super::composition::Found;
use super::data::{Buffers, Op, layouts};
use super::hier_reduce::operation;
use super::job::{Machine, hops, large_machine, levels, machine, one_cluster, part};
use super::random::{Cut, config, cut, parse, spec};
use super::team::traffic;
use coll_rust::algo::reduce::Value;
use coll_rust::endpoint::Endpoint;
use coll_rust::hier::allreduce::{Specs, allreduce, two_trees};
use coll_rust::hier::central::{What, central, middle};
use coll_rust::hier::lanes::segments;
use coll_rust::select::{Allreduce, Bcast, Reduce, Spec};
use coll_rust::sim::{Rng, Stats};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;

/// The parameters.
type Params<'a> = (&'a Spec<Allreduce>, &'a Spec<Reduce>, &'a Spec<Bcast>);

/// Runs an allreduce and checks it; along two trees where there is a second one to go down.
fn run(
    machine: &Machine,
    levels: &LevelSpec,
    down: Option<&LevelSpec>,
    (op, commutes): (Op, bool),
    params: Params,
    cut: &Cut,
    seed: u64,
) -> Stats {
    let mut rng = Rng::new(seed);
    let (groups, size) = (&machine.groups(levels, !commutes, None), machine.size());
    let down = &down.map(|levels| machine.groups(levels, false, None));
    let middle = middle(&machine.placement(0));
    let found = machine.is_central(levels, !commutes, None).then(|| Found::new(machine, levels, false, Some(middle)));
    let found = found.as_ref();
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let inputs: Vec<_> = (0..size).map(|_| op.values(&mut rng, cut.units)).collect();
    // MPI wants all or none in place; the algorithms do not care.
    let chance = rng.below(3);
    let buffers: Vec<_> = inputs.iter().map(|input| Buffers::new(unit, input, rng.below(2) < chance)).collect();
    let buffers_ref = &buffers;
    let world = machine.world(op.world(size, unit), None);
    let stats = world.run_seed(seed, |ep| async move {
        let mine = &buffers_ref[ep.rank() as usize];
        let input = if mine.in_place() { Value::owned(mine.input()) } else { Value::borrowed(mine.input()) };
        let job = part(&ep, groups, cut, commutes);
        let specs = Specs { allreduce: params.0, reduce: params.1, bcast: params.2 };
        if let Some(found) = found {
            let (job, parts) = (found.job(&ep, cut, commutes), &found.parts[ep.rank() as usize]);
            return central(&job, parts, middle, What::Allreduce(params.2), mine.input(), Some(mine.target())).await;
        }
        match down {
            None => allreduce(&job, &specs, input, mine.target()).await,
            Some(down) => two_trees(&job, &down[ep.rank() as usize], params.1, params.2, input, mine.target()).await,
        }
    });
    let stats = stats.unwrap_or_else(|failed| panic!("{failed}"));
    buffers.iter().for_each(|buffer| buffer.check(true));
    assert_eq!(op.exact(&buffers[0].result()), op.exact(&op.fold(&inputs)));
    assert!(buffers.iter().all(|buffer| buffer.result() == buffers[0].result()), "the same bits everywhere");
    stats
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn everybody_gets_the_combination(
        machine in machine(), levels in levels(), op in operation(), params in (spec(), spec(), spec()), cut in cut(), seed: u64,
    ) {
        run(&machine, &levels, None, op, (&params.0, &params.1, &params.2), &cut, seed);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn sums_of_floats_have_the_same_bits(
        machine in machine(), params in (spec(), spec(), spec()), cut in cut(), seed: u64,
    ) {
        run(&machine, &LevelSpec::Auto, None, (Op::Float, true), (&params.0, &params.1, &params.2), &cut, seed);
    }

    #[test]
    fn two_trees_may_differ(
        machine in one_cluster(), levels in (levels(), levels()), op in operation(), params in (spec(), spec()), cut in cut(),
        seed: u64,
    ) {
        run(&machine, &levels.0, Some(&levels.1), op, (&Spec::AUTO, &params.0, &params.1), &cut, seed);
    }

    #[test]
    fn reduce_bcast_goes_up_and_down_once(machine in machine(), cut in cut(), seed: u64) {
        let groups = machine.groups(&LevelSpec::Auto, false, None);
        let trees = (Spec::everywhere(Allreduce::ReduceBcast), parse("knomial/3"), parse("chain"));
        let stats = run(&machine, &LevelSpec::Auto, None, (Op::Sum, true), (&trees.0, &trees.1, &trees.2), &cut, seed);
        for (level, hops) in Level::ALL.into_iter().zip(hops(&groups)) {
            let expected = traffic(2 * hops * segments(cut.units, cut.segment), 2 * hops * cut.units);
            prop_assert_eq!(stats.level(level.index()), expected, "at {}", level.name());
        }
    }

    #[test]
    fn the_top_has_the_traffic_of_its_algorithm(machine in machine(), cut in cut(), seed: u64) {
        let groups = machine.groups(&LevelSpec::Auto, false, None);
        let trees = (Spec::everywhere(Allreduce::Ring), parse("flat"), parse("flat"));
        let stats = run(&machine, &LevelSpec::Auto, None, (Op::Sum, true), (&trees.0, &trees.1, &trees.2), &cut, seed);
        let top = groups.iter().flatten().find(|group| group.top).map(|group| (group.level, group.members.len())).unwrap_or((Level::Cluster, 1));
        for (level, hops) in Level::ALL.into_iter().zip(hops(&groups)) {
            // Every hop carries the vector twice, and the ring of p members is 2 (p - 1) vectors in all.
            prop_assert_eq!(stats.level(level.index()).units, (2 * hops * cut.units) as u64, "at {}", level.name());
            let each = if level == top.0 { 2 * top.1 * (top.1 - 1) } else { 2 * hops };
            let messages = (each * segments(cut.units, cut.segment)) as u64;
            prop_assert_eq!(stats.level(level.index()).messages, messages, "at {}", level.name());
        }
    }
}

#[test]
fn hundreds_of_ranks() {
    let cut = Cut { units: 31, segment: 16, window: 2, bytes: 1 << 20 };
    for (seed, text) in [(0, "auto"), (1, "ring"), (2, "rabenseifner"), (3, "recursive_doubling"), (4, "reduce_bcast")]
    {
        for op in [(Op::Sum, true), (Op::Affine, false)] {
            run(&large_machine(seed), &LevelSpec::Auto, None, op, (&parse(text), &Spec::AUTO, &Spec::AUTO), &cut, seed);
        }
    }
}

#[test]
fn two_trees_alone() {
    for seed in 0..4 {
        let cut = Cut { units: 13, segment: 4, window: 3, bytes: 13 };
        run(
            &Machine::alone(),
            &LevelSpec::Auto,
            Some(&LevelSpec::Auto),
            (Op::Affine, false),
            (&Spec::AUTO, &Spec::AUTO, &Spec::AUTO),
            &cut,
            seed,
        );
    }
}
