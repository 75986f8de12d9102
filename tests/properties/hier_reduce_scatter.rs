// SPDX-License-Identifier: BSD-3-Clause
//! Reduce_scatter on a communicator.

use super::composition::{Choice, Found, lens, linear, trees};
use super::data::{Buffers, Op, layouts};
use super::hier_reduce::operation;
use super::job::{Machine, large_machine, levels, machine, one_cluster};
use super::random::{Cut, config, parse, spec};
use coll_rust::endpoint::{Endpoint, Span};
use coll_rust::hier::central::{What, central, middle};
use coll_rust::hier::lanes::segments;
use coll_rust::hier::reduce_scatter::{Halves, Specs, reduce_scatter};
use coll_rust::pattern::lengths::Lengths;
use coll_rust::select::{Facts, Reduce, ReduceScatter, Spec};
use coll_rust::sim::{Rng, Stats};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;

/// The algorithms of a run.
type Algorithms<'a> = (&'a Spec<Reduce>, Halves, &'a Choice);

/// One run and its check, in place where the seed says so.
fn run(
    machine: &Machine,
    levels: &LevelSpec,
    (op, commutes): (Op, bool),
    (reduce, halves, choice): Algorithms<'_>,
    (segment, window): (usize, u8),
    lens: &[usize],
    seed: u64,
) -> Stats {
    let mut rng = Rng::new(seed);
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let middle = middle(&machine.placement(0));
    let is_central = machine.is_central(levels, !commutes, None);
    let found = match is_central {
        true => &Found::new(machine, levels, false, Some(middle)),
        false => &Found::new(machine, levels, !commutes, None),
    };
    let any = algorithm(halves, commutes);
    let count: usize = lens.iter().sum();
    let lengths = &Lengths::each(lens.iter().copied());
    let inputs: Vec<_> = lens.iter().map(|_| op.values(&mut rng, count)).collect();
    let in_place: Vec<bool> = lens.iter().map(|_| rng.below(2) == 0).collect();
    let buffers: Vec<_> = inputs.iter().zip(&in_place).map(|(input, &here)| Buffers::new(unit, input, here)).collect();
    let cut = Cut { units: count, segment, window, bytes: count * Op::SIZE };
    let halves_of = |_: &Facts| halves;
    let specs = &Specs { reduce, halves: &halves_of, trees: &choice.choose() };
    let buffers_ref = &buffers;
    let world = machine.world(op.world(machine.size(), unit), None);
    let stats = world.run_seed(seed, |ep| async move {
        let rank = ep.rank() as usize;
        let mine = &buffers_ref[rank];
        let target: Span = mine.target().slice(0..lengths.len(rank));
        let (job, parts) = (found.job(&ep, &cut, commutes), &found.parts[rank]);
        match is_central {
            true => central(&job, parts, middle, What::ReduceScatter(any, lengths), mine.input(), Some(target)).await,
            false => reduce_scatter(&job, parts, specs, mine.input(), lengths, target).await,
        }
    });
    let context = format!("{op:?} {commutes} {halves:?} seed {seed} {lens:?} {in_place:?} {machine:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    let sum = op.fold(&inputs);
    for (rank, buffer) in buffers.iter().enumerate() {
        buffer.check(true);
        let own = lengths.get(rank);
        let expected = &sum[own.start * Op::SIZE..own.end * Op::SIZE];
        let result = buffer.result();
        assert_eq!(op.exact(&result[..expected.len()]), op.exact(expected), "rank {rank}: {context}");
    }
    stats
}

/// The algorithm that runs over all ranks.
fn algorithm(halves: Halves, commutes: bool) -> ReduceScatter {
    match halves {
        Halves::RecursiveHalving if commutes => ReduceScatter::RecursiveHalving,
        Halves::Ring if commutes => ReduceScatter::Ring,
        Halves::ReduceScatterv => ReduceScatter::ReduceScatterv(3),
        _ => ReduceScatter::Pairwise,
    }
}

fn halves() -> impl Strategy<Value = Halves> {
    use Halves::{Pairwise, RecursiveHalving, ReduceScatterv, Ring};
    proptest::sample::select(&[Pairwise, ReduceScatterv, RecursiveHalving, Ring][..])
}

/// Few units for many ranks.
fn few(seed: u64, size: usize, equal: bool) -> Vec<usize> {
    let lens = lens(&mut Rng::new(seed), size, equal);
    if size > 16 { lens.iter().map(|&len| len.min(2)).collect() } else { lens.iter().map(|&len| len.min(9)).collect() }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn everybody_gets_its_block_of_the_sum(
        machine in machine(), levels in levels(), op in operation(), reduce in spec(), halves in halves(), choice in trees(),
        segment in prop_oneof![1..30usize, Just(usize::MAX)], window in 1..=8u8, equal: bool, seed: u64,
    ) {
        let lens = few(seed ^ 1, machine.size(), equal);
        run(&machine, &levels, op, (&reduce, halves, &choice), (segment, window), &lens, seed);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_vector_goes_up_and_blocks_come_down(machine in one_cluster(), op in operation(), seed: u64) {
        let lens = few(seed ^ 1, machine.size(), seed % 2 == 0);
        let found = Found::new(&machine, &LevelSpec::Auto, !op.1, None);
        let count: usize = lens.iter().sum();
        let segment = 7.max(count / 10);
        let choice = linear();
        let specs = (&parse("knomial/3"), Halves::Pairwise, &choice);
        let stats = run(&machine, &LevelSpec::Auto, op, specs, (segment, 3), &lens, seed);
        let ranks: Vec<usize> = (0..machine.size()).collect();
        let mut expected = found.rooted(&lens, &ranks, &choice, false);
        for ((level, members), (_, below)) in found.all.iter().filter(|_| count > 0) {
            let of: Vec<usize> = below.iter().map(|part| part.iter().map(|&rank| lens[rank]).sum()).collect();
            let expected = &mut expected[usize::from(level.index())];
            let hops = members.len() - 1;
            if below.iter().map(Vec::len).sum::<usize>() == machine.size() {
                // Pairwise: everybody sends all blocks but its own.
                expected.messages += (hops * of.iter().filter(|&&len| len > 0).count()) as u64;
            } else {
                expected.messages += (hops * segments(count, segment)) as u64;
            }
            expected.units += (hops * count) as u64;
        }
        for level in Level::ALL {
            prop_assert_eq!(stats.level(level.index()), expected[usize::from(level.index())], "at {}", level.name());
        }
    }
}

#[test]
fn hundreds_of_ranks() {
    for (seed, op) in [(0, (Op::Sum, true)), (1, (Op::Affine, false))] {
        let machine = large_machine(3 * seed);
        let lens: Vec<usize> = (0..machine.size()).map(|rank| rank % 3 / 2).collect();
        let specs = (&Spec::AUTO, Halves::RecursiveHalving, &linear());
        run(&machine, &LevelSpec::Auto, op, specs, (50, 2), &lens, seed);
    }
}
