// SPDX-License-Identifier: BSD-3-Clause
//! Reproducible mode: the bits of a result depend on the number of ranks and their inputs only.

use super::data::{Buffers, Op, layouts};
use super::job::{Machine, levels, one_cluster, part};
use super::random::{Cut, config, cut, spec};
use coll_rust::algo::reduce::Value;
use coll_rust::endpoint::{Endpoint, Rank};
use coll_rust::hier::{allreduce::two_trees, reduce::reduce};
use coll_rust::select::{Bcast, Reduce, Spec};
use coll_rust::sim::Rng;
use coll_rust::topo::LevelSpec;
use proptest::prelude::*;

/// What the parameters are replaced by.
fn fixed() -> (LevelSpec, Spec<Reduce>) {
    (LevelSpec::List(Vec::new()), Spec::everywhere(Reduce::Knomial(2)))
}

/// The bits that a reduction gives at a root; `down`: where everybody gets them.
fn bits(
    machine: &Machine,
    inputs: &[Vec<u8>],
    op: Op,
    cut: &Cut,
    root: Rank,
    down: Option<(&LevelSpec, &Spec<Bcast>)>,
    seed: u64,
) -> Vec<u8> {
    let (levels, spec) = &fixed();
    let unit = layouts(Op::SIZE)[Rng::new(seed).below(4)];
    let in_place = seed.is_multiple_of(2);
    let buffers: Vec<_> = (0..)
        .zip(inputs)
        .map(|(rank, input)| Buffers::new(unit, input, in_place && (rank == root || down.is_some())))
        .collect();
    let groups = &machine.groups(levels, true, Some(root));
    let down_groups = &down.map(|(levels, spec)| (machine.groups(levels, false, None), spec));
    let buffers_ref = &buffers;
    let run = op.world(machine.size(), unit).run_seed(seed, |ep| async move {
        let mine = &buffers_ref[ep.rank() as usize];
        let input = if mine.in_place() { Value::owned(mine.input()) } else { Value::borrowed(mine.input()) };
        let job = part(&ep, groups, cut, false);
        match down_groups {
            None => reduce(&job, spec, input, (ep.rank() == root).then(|| mine.target())).await,
            Some((down, bcast)) => two_trees(&job, &down[ep.rank() as usize], spec, bcast, input, mine.target()).await,
        }
    });
    run.unwrap_or_else(|failed| panic!("{failed}"));
    let result = buffers[root as usize].result();
    assert!(down.is_none() || buffers.iter().all(|buffer| buffer.result() == result), "the same bits everywhere");
    result
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn one_tree_for_all(
        machine in one_cluster(), levels in levels(), bcast in spec(), cuts in proptest::collection::vec(cut(), 3), seed: u64,
    ) {
        for op in [Op::Float, Op::Sum] {
            let units = cuts[0].units;
            let inputs: Vec<_> = (0..machine.size()).map(|_| seed).zip(1..)
                .map(|(seed, rank)| op.values(&mut Rng::new(seed ^ rank), units)).collect();
            let expected = op.tree(&inputs, 2);
            for (cut, i) in cuts.iter().zip(0..) {
                let cut = Cut { units, segment: cut.segment.max(units / 60), ..*cut };
                for root in 0..machine.size().min(11) as Rank {
                    let bits = bits(&machine, &inputs, op, &cut, root, None, seed ^ i);
                    prop_assert_eq!(&bits, &expected, "{:?} root {} {:?}", op, root, cut);
                }
                let bits = bits(&machine, &inputs, op, &cut, 0, Some((&levels, &bcast)), seed ^ i);
                prop_assert_eq!(&bits, &expected, "two trees {:?} {:?}", op, cut);
            }
        }
    }
}
