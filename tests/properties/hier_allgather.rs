// SPDX-License-Identifier: BSD-3-Clause
//! Allgather on a communicator.

use super::blocks::{check, contents, filled, no_empty_message, user_blocks};
use super::composition::{Choice, Found, lens, linear, trees};
use super::data::UserStream;
use super::job::{Machine, large_machine, levels, machine};
use super::random::{Cut, config, parse, spec};
use coll_rust::endpoint::{Endpoint, Rank, Tag};
use coll_rust::hier::allgather::{Exchange, Specs, allgather, side_by_side};
use coll_rust::hier::gather::Tree;
use coll_rust::hier::lanes::segments;
use coll_rust::select::{Bcast, Facts, Spec};
use coll_rust::sim::{Rng, Stats, World};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;

/// One run and its check. `segment`: of the way down, in bytes.
fn run(
    machine: &Machine,
    found: &Found,
    (choice, exchange, bcast, order): (&Choice, Exchange, &Spec<Bcast>, &[Rank]),
    (segment, window): (usize, u8),
    lens: &[usize],
    seed: u64,
) -> Stats {
    let mut rng = Rng::new(seed);
    let data = contents(&mut rng, lens);
    let streams: Vec<_> = data.iter().map(|block| UserStream::new(&mut rng, block)).collect();
    let in_place: Vec<bool> = data.iter().map(|_| rng.below(2) == 0).collect();
    let into: Vec<_> = (0..machine.size())
        .map(|rank| {
            let mut before = contents(&mut rng, lens);
            if in_place[rank] {
                before[rank] = data[rank].clone();
            }
            user_blocks(&mut rng, &before)
        })
        .collect();
    let cut = Cut { units: 0, segment, window, bytes: lens.iter().sum() };
    let exchange = |_: &Facts| exchange;
    let specs = &Specs { trees: &choice.choose(), exchange: &exchange, bcast, order };
    let (streams_ref, into_ref, in_place_ref) = (&streams, &into, &in_place);
    let stats = machine.world(World::new(machine.size() as u32), None).run_seed(seed, |ep| async move {
        let rank = ep.rank() as usize;
        let own = (!in_place_ref[rank]).then_some(&streams_ref[rank]);
        allgather(&found.job(&ep, &cut, true), &found.parts[rank], specs, own, &into_ref[rank]).await
    });
    let context = format!("seed {seed} in place {in_place:?} {lens:?} {choice:?} {machine:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    into.iter().for_each(|into| check(into, &data, &context));
    streams.iter().zip(&data).for_each(|(stream, data)| stream.check(data));
    stats
}

fn exchange() -> impl Strategy<Value = Exchange> {
    use Exchange::{Bruck, Linear, NeighborExchange, RecursiveDoubling, Ring};
    proptest::sample::select(&[Linear, Ring, NeighborExchange, RecursiveDoubling, Bruck][..])
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn everybody_gets_every_block(
        machine in machine(), levels in levels(), choice in trees(), exchange in exchange(), bcast in spec(),
        segment in prop_oneof![1..300usize, Just(usize::MAX)], window in 1..=8u8, equal: bool, seed: u64,
    ) {
        let lens = lens(&mut Rng::new(seed ^ 1), machine.size(), equal);
        let segment = segment.max(lens.iter().sum::<usize>() / 20);
        let found = Found::new(&machine, &levels, false, None);
        run(&machine, &found, (&choice, exchange, &bcast, &[]), (segment, window), &lens, seed);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_leader_speaks_for_its_ranks(machine in machine(), choice in prop_oneof![Just(linear()), trees()], seed: u64) {
        let lens = lens(&mut Rng::new(seed ^ 1), machine.size(), seed % 2 == 0);
        let found = Found::new(&machine, &LevelSpec::Auto, false, None);
        let total: usize = lens.iter().sum();
        let segment = [9.max(total / 30), usize::MAX / 2][(seed / 2 % 2) as usize];
        let stats = run(&machine, &found, (&choice, Exchange::Ring, &parse("knomial/3"), &[]), (segment, 3), &lens, seed);
        let ranks: Vec<usize> = (0..machine.size()).collect();
        let mut expected = found.rooted(&lens, &ranks, &choice, false);
        let mut add = |level: Level, messages: usize, units: usize| {
            let at = &mut expected[usize::from(level.index())];
            at.messages += messages as u64;
            at.units += units as u64;
        };
        let top = &found.parts[0].top();
        let sum = |part: &[usize], lens: &[usize]| part.iter().map(|&rank| lens[rank]).sum::<usize>();
        let longest = top.iter().map(|part| sum(part, &lens)).max().unwrap_or(0);
        let pieces = segments(longest, segment);
        for s in 0..pieces {
            // What this segment has of each rank.
            let mut lens_of = vec![0; machine.size()];
            for part in top.iter() {
                let mut start = 0;
                for &rank in part {
                    let (low, high) = (start.max(s * segment), (start + lens[rank]).min((s + 1) * segment));
                    lens_of[rank] = high.saturating_sub(low);
                    start += lens[rank];
                }
            }
            let total: usize = lens_of.iter().sum();
            for ((level, members), (_, below)) in &found.all {
                let hops = members.len() - 1;
                let of = |parts: &[Vec<usize>]| filled(parts.iter().map(|part| sum(part, &lens_of)));
                // A ring on top: every member's part comes once to every other one. Below: a broadcast of
                // all.
                let messages = match below.iter().map(Vec::len).sum::<usize>() == machine.size() {
                    true => of(below),
                    false if pieces == 1 => usize::from(total > 0),
                    false => of(top),
                };
                add(*level, hops * messages, hops * total);
            }
        }
        for level in Level::ALL {
            prop_assert_eq!(stats.level(level.index()), expected[usize::from(level.index())], "at {}", level.name());
        }
        no_empty_message(&stats);
    }
}

#[test]
fn hundreds_of_ranks() {
    for (seed, exchange) in [(0, Exchange::Bruck), (1, Exchange::Ring)] {
        let machine = large_machine(seed);
        let lens = lens(&mut Rng::new(seed), machine.size(), seed % 2 == 0);
        let found = Found::new(&machine, &LevelSpec::Auto, false, None);
        let choice = Choice(vec![Tree::Knomial(3); Level::COUNT]);
        run(&machine, &found, (&choice, exchange, &Spec::AUTO, &[]), (500, 2), &lens, seed);
    }
}

proptest! {
    #![proptest_config(config(60))]

    /// Every rank has a message for each step, and each block crosses the topmost group once in each
    /// direction of a pair of members.
    #[test]
    fn side_by_side_goes_from_the_top_down(
        (parts, nodes, each) in (0..=2u32, 0..=2u32, 0..=2u32), seed: u64,
    ) {
        let (parts, nodes, each) = (1 << parts, 1 << nodes, 1 << each);
        prop_assume!(parts * nodes > 1);
        let mut rng = Rng::new(seed);
        let machine = Machine::even(&mut rng, parts, nodes, each);
        let found = Found::new(&machine, &LevelSpec::Auto, false, None);
        let lens: Vec<usize> = (0..machine.size()).map(|_| 1 + rng.below(40)).collect();
        let data = contents(&mut rng, &lens);
        let streams: Vec<_> = data.iter().map(|block| UserStream::new(&mut rng, block)).collect();
        let into: Vec<_> = data.iter().map(|_| user_blocks(&mut rng, &contents(&mut Rng::new(seed ^ 1), &lens))).collect();
        let (streams_ref, into_ref, found_ref) = (&streams, &into, &found);
        let stats = World::new(machine.size() as u32).run_seed(seed, |ep| async move {
            let rank = ep.rank() as usize;
            let tag = Tag { lane: 0, phase: 0, level: Level::Cluster.index() };
            side_by_side(&ep, &found_ref.parts[rank], tag, Some(&streams_ref[rank]), &into_ref[rank]).await
        });
        let stats = stats.unwrap_or_else(|failed| panic!("{failed} {machine:?}"));
        into.iter().for_each(|into| check(into, &data, &format!("{machine:?}")));
        let steps = machine.size().ilog2() as usize;
        prop_assert_eq!(stats.total.messages as usize, machine.size() * steps);
        let part = |rank: usize| found.parts[0].top().iter().position(|part| part.contains(&rank));
        let crossed = stats.pairs.iter().filter(|&(&(from, to), _)| part(from as usize) != part(to as usize));
        let units: u64 = crossed.map(|(_, traffic)| traffic.units).sum();
        let members = found.parts[0].top().len();
        prop_assert_eq!(units as usize, lens.iter().sum::<usize>() * (members - 1));
    }
}

proptest! {
    #![proptest_config(config(60))]

    /// Every leader has a message for each step between nodes, and each block crosses the topmost group once
    /// in each direction of a pair of members, however many ranks the nodes have.
    #[test]
    fn leaders_go_from_the_top_down((parts, nodes) in (0..=2u32, 0..=2u32), choice in trees(), bcast in spec(), seed: u64) {
        let (parts, nodes) = (1 << parts, 1 << nodes);
        prop_assume!(parts * nodes > 1);
        let mut rng = Rng::new(seed);
        let counts: Vec<usize> = (0..parts * nodes).map(|_| 1 + rng.below(4)).collect();
        let machine = Machine::on_switches(&mut rng, parts, &counts);
        prop_assume!(counts.iter().any(|&count| count > 1));
        let all = Found::new(&machine, &LevelSpec::Auto, false, None);
        let order = all.parts[0].leaders();
        prop_assert!(all.parts.iter().all(|parts| parts.leaders() == order));
        let found = Found::new(&machine, &LevelSpec::parse("node").unwrap(), false, None);
        let lens: Vec<usize> = (0..machine.size()).map(|_| 1 + rng.below(40)).collect();
        let specs = (&choice, Exchange::RecursiveDoubling, &bcast, order);
        let stats = run(&machine, &found, specs, (usize::MAX, 1), &lens, seed);
        let leaders = parts * nodes;
        prop_assert_eq!(stats.level(Level::Cluster.index()).messages as usize, leaders * leaders.ilog2() as usize);
        let part = |rank: Rank| machine.hosts[rank as usize] as usize % parts;
        let crossed = stats.pairs.iter().filter(|&(&(from, to), _)| part(from) != part(to));
        let units: u64 = crossed.map(|(_, traffic)| traffic.units).sum();
        prop_assert_eq!(units as usize, lens.iter().sum::<usize>() * (parts - 1));
    }
}

#[test]
fn only_even_nodes_have_an_order_of_leaders() {
    let mut rng = Rng::new(7);
    let mut order = |parts: usize, counts: &[usize], levels: &str| {
        let machine = Machine::on_switches(&mut rng, parts, counts);
        let found = machine.hierarchies(&LevelSpec::parse(levels).unwrap(), false);
        let order = found[0].leaders_across();
        assert!(found.iter().all(|other| other.leaders_across() == order));
        assert!(found.iter().all(|other| other.shape().even_nodes != order.is_empty()));
        order.len()
    };
    assert_eq!(order(2, &[3, 2, 1, 2], "auto"), 4);
    assert_eq!(order(1, &[3, 2], "auto"), 2);
    assert_eq!(order(2, &[3, 2, 1, 2], "none"), 0, "nodes do not count");
    assert_eq!([order(2, &[1, 2, 3], "auto"), order(3, &[2; 6], "auto"), order(1, &[4], "auto")], [0; 3]);
}

#[test]
fn only_even_machines_have_an_order_across() {
    let mut rng = Rng::new(7);
    let is_even = |machine: &Machine, levels: &str| {
        let found = machine.hierarchies(&LevelSpec::parse(levels).unwrap(), false);
        let order = found[0].across();
        assert!(found.iter().all(|other| other.across() == order && other.shape().even != order.is_empty()));
        !order.is_empty()
    };
    assert!(is_even(&Machine::even(&mut rng, 2, 2, 2), "auto"));
    assert!(is_even(&Machine::even(&mut rng, 4, 1, 8), "node"));
    assert!(!is_even(&Machine::even(&mut rng, 2, 2, 2), "none"), "nodes do not count");
    for (parts, nodes, each) in [(1, 1, 4), (3, 2, 2), (2, 3, 2), (2, 2, 3)] {
        assert!(!is_even(&Machine::even(&mut rng, parts, nodes, each), "auto"));
    }
}
