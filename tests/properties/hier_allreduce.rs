//! Allreduce on a communicator.

use super::data::{Buffers, Op, layouts};
use super::hier_reduce::operation;
use super::job::{Machine, hops, large_machine, levels, machine, part};
use super::random::{Cut, config, cut, parse, spec};
use super::team::traffic;
use coll_rust::algo::reduce::Value;
use coll_rust::endpoint::Endpoint;
use coll_rust::hier::allreduce::{Specs, allreduce, two_trees};
use coll_rust::hier::lanes::segments;
use coll_rust::select::{Allreduce, Bcast, Reduce, Spec};
use coll_rust::sim::{Rng, Stats};
use coll_rust::topo::{Group, Level, LevelSpec};
use proptest::prelude::*;

/// The parameters.
type Params<'a> = (&'a Spec<Allreduce>, &'a Spec<Reduce>, &'a Spec<Bcast>);

/// Runs an allreduce and checks it; along two trees where there is a second one to go down.
fn run(
    groups: &[Vec<Group>],
    down: Option<&[Vec<Group>]>,
    (op, commutes): (Op, bool),
    params: Params,
    cut: &Cut,
    seed: u64,
) -> Stats {
    let mut rng = Rng::new(seed);
    let size = groups.len();
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let inputs: Vec<_> = (0..size).map(|_| op.values(&mut rng, cut.units)).collect();
    // MPI wants all or none in place; the algorithms do not care.
    let chance = rng.below(3);
    let buffers: Vec<_> = inputs.iter().map(|input| Buffers::new(unit, input, rng.below(2) < chance)).collect();
    let buffers_ref = &buffers;
    let stats = op.world(size, unit).run_seed(seed, |ep| async move {
        let mine = &buffers_ref[ep.rank() as usize];
        let input = if mine.in_place() { Value::owned(mine.input()) } else { Value::borrowed(mine.input()) };
        let job = part(&ep, groups, cut, commutes);
        let specs = Specs { allreduce: params.0, reduce: params.1, bcast: params.2 };
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
        let groups = machine.groups(&levels, !op.1, None);
        run(&groups, None, op, (&params.0, &params.1, &params.2), &cut, seed);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn sums_of_floats_have_the_same_bits(
        machine in machine(), params in (spec(), spec(), spec()), cut in cut(), seed: u64,
    ) {
        let groups = machine.groups(&LevelSpec::Auto, false, None);
        run(&groups, None, (Op::Float, true), (&params.0, &params.1, &params.2), &cut, seed);
    }

    #[test]
    fn two_trees_may_differ(
        machine in machine(), levels in (levels(), levels()), op in operation(), params in (spec(), spec()), cut in cut(),
        seed: u64,
    ) {
        let (up, down) = (machine.groups(&levels.0, !op.1, None), machine.groups(&levels.1, false, None));
        run(&up, Some(&down), op, (&Spec::AUTO, &params.0, &params.1), &cut, seed);
    }

    #[test]
    fn reduce_bcast_goes_up_and_down_once(machine in machine(), cut in cut(), seed: u64) {
        let groups = machine.groups(&LevelSpec::Auto, false, None);
        let trees = (Spec::everywhere(Allreduce::ReduceBcast), parse("knomial/3"), parse("chain"));
        let stats = run(&groups, None, (Op::Sum, true), (&trees.0, &trees.1, &trees.2), &cut, seed);
        for (level, hops) in Level::ALL.into_iter().zip(hops(&groups)) {
            let expected = traffic(2 * hops * segments(cut.units, cut.segment), 2 * hops * cut.units);
            prop_assert_eq!(stats.level(level.index()), expected, "at {}", level.name());
        }
    }

    #[test]
    fn the_top_has_the_traffic_of_its_algorithm(machine in machine(), cut in cut(), seed: u64) {
        let groups = machine.groups(&LevelSpec::Auto, false, None);
        let trees = (Spec::everywhere(Allreduce::Ring), parse("flat"), parse("flat"));
        let stats = run(&groups, None, (Op::Sum, true), (&trees.0, &trees.1, &trees.2), &cut, seed);
        let top = groups[0].last().map(|group| (group.level, group.members.len())).unwrap_or((Level::Cluster, 1));
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
            let groups = large_machine(seed).groups(&LevelSpec::Auto, !op.1, None);
            run(&groups, None, op, (&parse(text), &Spec::AUTO, &Spec::AUTO), &cut, seed);
        }
    }
}

#[test]
fn two_trees_alone() {
    let groups = Machine::alone().groups(&LevelSpec::Auto, true, None);
    for seed in 0..4 {
        let cut = Cut { units: 13, segment: 4, window: 3, bytes: 13 };
        run(&groups, Some(&groups), (Op::Affine, false), (&Spec::AUTO, &Spec::AUTO, &Spec::AUTO), &cut, seed);
    }
}
