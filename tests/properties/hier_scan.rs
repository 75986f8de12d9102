//! Prefix reductions on a communicator.

use super::blocks::send;
use super::composition::Found;
use super::data::{Buffers, Op, layouts};
use super::job::{Machine, large_machine, levels, machine};
use super::random::{Cut, config, cut};
use super::team::log;
use coll_rust::algo::scan::Scan;
use coll_rust::endpoint::Endpoint;
use coll_rust::hier::lanes::segments;
use coll_rust::hier::scan::{Prefix, scan};
use coll_rust::select::Facts;
use coll_rust::sim::{Rng, Stats};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;

/// One run and its check, in place where the seed says so.
fn run(machine: &Machine, found: &Found, prefix: Prefix, radix: u32, cut: &Cut, kind: Scan, seed: u64) -> Stats {
    let mut rng = Rng::new(seed);
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let op = if rng.below(4) > 0 { Op::Affine } else { Op::Sum };
    let inputs: Vec<_> = (0..machine.size()).map(|_| op.values(&mut rng, cut.units)).collect();
    let buffers: Vec<_> = inputs.iter().map(|input| Buffers::new(unit, input, rng.below(2) == 0)).collect();
    let (buffers_ref, choose) = (&buffers, &move |_: &Facts| prefix);
    let stats = op.world(machine.size(), unit).run_seed(seed, |ep| async move {
        let mine = &buffers_ref[ep.rank() as usize];
        send(scan(&found.job(&ep, cut, false), choose, radix, kind, mine.input(), mine.target())).await
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
        let found = Found::new(&machine, &levels, true, None);
        run(&machine, &found, prefix, radix, &cut, kind, seed);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn one_vector_up_and_one_down(machine in machine(), linear: bool, cut in cut(), kind in kind(), seed: u64) {
        let found = Found::new(&machine, &LevelSpec::Auto, true, None);
        let prefix = if linear { Prefix::Linear } else { Prefix::RecursiveDoubling };
        let stats = run(&machine, &found, prefix, 3, &cut, kind, seed);
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
        let found = Found::new(&machine, &LevelSpec::Auto, true, None);
        let cut = Cut { units: 5, segment: 3, window: 2, bytes: 80 };
        run(&machine, &found, Prefix::RecursiveDoubling, 2, &cut, kind, seed);
    }
}
