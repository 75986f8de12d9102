// SPDX-License-Identifier: BSD-3-Clause
//! Broadcast on a communicator.

use super::data::{UserStream, bytes};
use super::job::{Machine, crossing, hops, large_machine, levels, machine, one_cluster, part};
use super::random::{Cut, config, cut, parse, spec};
use super::team::traffic;
use coll_rust::endpoint::{Rank, Stream};
use coll_rust::hier::bcast::bcast;
use coll_rust::hier::lanes::segments;
use coll_rust::select::{Bcast, Spec};
use coll_rust::sim::{Rng, Stats, World};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;

fn run(machine: &Machine, levels: &LevelSpec, spec: &Spec<Bcast>, cut: &Cut, root: Rank, seed: u64) -> Stats {
    let mut rng = Rng::new(seed);
    let groups = &machine.groups(levels, false, Some(root));
    let data = bytes(&mut rng, cut.units);
    let noise = bytes(&mut rng, cut.units);
    let streams: Vec<_> = (0..machine.size() as Rank)
        .map(|rank| UserStream::new(&mut rng, if rank == root { &data } else { &noise }))
        .collect();
    let streams_ref = &streams;
    let stats = machine.world(World::new(machine.size() as u32), Some(root)).run_seed(seed, |ep| async move {
        let rank = coll_rust::endpoint::Endpoint::rank(&ep);
        bcast(&part(&ep, groups, cut, true), spec, &streams_ref[rank as usize], rank == root).await
    });
    let stats = stats.unwrap_or_else(|failed| panic!("{failed}"));
    streams.iter().for_each(|stream| stream.check(&data));
    // A window of segments is in flight at once: who packs waits for all of them, in a buffer each, and has
    // no more.
    let window = cut.segment.saturating_mul(cut.window.into()).min(cut.units);
    for (rank, (stream, &lent)) in (0..).zip(streams.iter().zip(&stats.temp_peak)) {
        match stream.direct() {
            Some(_) => assert_eq!(lent, 0, "a direct stream needs no buffer"),
            None if rank == root => assert!(lent <= window, "{lent} units lent at rank {rank}"),
            None => assert_eq!(lent, window, "units lent at rank {rank}"),
        }
    }
    stats
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn everybody_gets_the_data(
        machine in machine(), levels in levels(), spec in spec(), cut in cut(), root in any::<prop::sample::Index>(), seed: u64,
    ) {
        run(&machine, &levels, &spec, &cut, root.index(machine.size()) as Rank, seed);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn one_copy_goes_where_it_must(
        machine in one_cluster(), tree in prop_oneof![Just("flat"), Just("chain"), Just("knomial/2"), Just("knomial/3")],
        cut in cut(), seed: u64,
    ) {
        let spec = parse(tree);
        let roots = machine.size().min(11) as Rank;
        for root in 0..roots {
            let stats = run(&machine, &LevelSpec::Auto, &spec, &cut, root, seed);
            let hops = hops(&machine.groups(&LevelSpec::Auto, false, Some(root)));
            for level in Level::ALL {
                let hops = hops[usize::from(level.index())];
                let expected = traffic(hops * segments(cut.units, cut.segment), hops * cut.units);
                prop_assert_eq!(stats.level(level.index()), expected, "at {}", level.name());
            }
            // Nodes, then every layer of switches: one copy in, but for the root's.
            for layer in 0..=machine.uppers[0].len() {
                let place = |rank: Rank| {
                    let node = machine.hosts[rank as usize];
                    if layer == 0 { node } else { machine.uppers[node as usize][layer - 1] }
                };
                let crossing = crossing(&stats, place);
                for rank in 0..machine.size() as Rank {
                    let (enters, _) = crossing.get(place(rank) as usize).copied().unwrap_or_default();
                    let expected = if place(rank) == place(root) { 0 } else { cut.units as u64 };
                    prop_assert_eq!(enters, expected, "layer {} of rank {}", layer, rank);
                }
            }
        }
    }
}

#[test]
fn hundreds_of_ranks() {
    for (seed, text) in [(0, "auto"), (1, "chain"), (2, "scatter_allgather,node:knomial/4"), (3, "knomial/3")] {
        let cut = Cut { units: 101, segment: 40, window: 2, bytes: 1 << 20 };
        let spec = parse(text);
        run(&large_machine(seed), &LevelSpec::Auto, &spec, &cut, 63 * seed as Rank, seed);
    }
}

#[test]
fn alone() {
    let machine = Machine::alone();
    for units in [0, 1, 13] {
        let cut = Cut { units, segment: 4, window: 3, bytes: units };
        assert_eq!(run(&machine, &LevelSpec::Auto, &Spec::AUTO, &cut, 0, 1).total, traffic(0, 0));
    }
}
