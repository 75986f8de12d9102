// SPDX-License-Identifier: BSD-3-Clause
//! Scatter on a communicator.

use super::blocks::{check, contents, no_empty_message, send, user_blocks};
use super::composition::{Choice, Found, lens, linear, trees};
use super::data::UserStream;
use super::job::{Machine, large_machine, levels, machine};
use super::random::{Cut, config};
use super::team::traffic;
use coll_rust::algo::data::Role;
use coll_rust::endpoint::{Endpoint, Rank};
use coll_rust::hier::gather::Tree;
use coll_rust::hier::scatter::scatter;
use coll_rust::sim::{Rng, Stats, World};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;

/// One run and its check. `segment`: in ranks.
fn run(
    machine: &Machine,
    found: &Found,
    choice: &Choice,
    (segment, window): (usize, u8),
    (lens, equal): (&[usize], bool),
    root: Rank,
    seed: u64,
) -> Stats {
    let mut rng = Rng::new(seed);
    let data = contents(&mut rng, lens);
    let noise = contents(&mut rng, lens);
    let streams: Vec<_> = noise.iter().map(|block| UserStream::new(&mut rng, block)).collect();
    let in_place = rng.below(2) == 0;
    let all = user_blocks(&mut rng, &data);
    let equal = equal.then(|| lens[0]);
    let cut = Cut { units: 0, segment: segment * equal.unwrap_or(1).max(1), window, bytes: lens.iter().sum() };
    let (streams_ref, all_ref, choose) = (&streams, &all, &choice.choose());
    let stats = machine.world(World::new(machine.size() as u32), Some(root)).run_seed(seed, |ep| async move {
        let own = &streams_ref[ep.rank() as usize];
        let role = match ep.rank() == root {
            true => Role::Root { all: all_ref, own: (!in_place).then_some(own) },
            false => Role::Other { own },
        };
        let parts = &found.parts[ep.rank() as usize];
        send(scatter(&found.job(&ep, &cut, true), parts, choose, equal, &role)).await
    });
    let context = format!("seed {seed} root {root} in place {in_place} {lens:?} {choice:?} {machine:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    check(&all, &data, &context);
    for (rank, stream) in streams.iter().enumerate() {
        stream.check(if in_place && rank == root as usize { &noise[rank] } else { &data[rank] });
    }
    no_empty_message(&stats);
    stats
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn everybody_gets_its_block(
        machine in machine(), levels in levels(), choice in trees(), segment in prop_oneof![1..9usize, Just(1000)],
        window in 1..=8u8, equal: bool, root in any::<prop::sample::Index>(), seed: u64,
    ) {
        let root = root.index(machine.size()) as Rank;
        let lens = lens(&mut Rng::new(seed ^ 1), machine.size(), equal);
        let found = Found::new(&machine, &levels, false, Some(root));
        run(&machine, &found, &choice, (segment, window), (&lens, equal), root, seed);
    }

    #[test]
    fn one_message_for_each_group(
        machine in machine(), choice in prop_oneof![1 => Just(linear()), 2 => trees()], segment in prop_oneof![1..9usize, Just(1000)],
        root in any::<prop::sample::Index>(), seed: u64,
    ) {
        let root = root.index(machine.size()) as Rank;
        let lens = lens(&mut Rng::new(seed ^ 1), machine.size(), true);
        let found = Found::new(&machine, &LevelSpec::Auto, false, Some(root));
        let stats = run(&machine, &found, &choice, (segment, 3), (&lens, true), root, seed);
        let ranks: Vec<usize> = (0..machine.size()).collect();
        for level in Level::ALL {
            let mut expected = traffic(0, 0);
            for chunk in ranks.chunks(segment) {
                let of = found.rooted(&lens, chunk, &choice, true)[usize::from(level.index())];
                expected.messages += of.messages;
                expected.units += of.units;
            }
            prop_assert_eq!(stats.level(level.index()), expected, "at {}", level.name());
        }
        // Who leads nobody and passes nothing on needs no more than its own block packed.
        let linear = choice.0.iter().all(|&tree| tree == Tree::Linear);
        for (rank, &lent) in stats.temp_peak.iter().enumerate().filter(|_| linear) {
            let leads = rank == root as usize || found.parts[rank].own().len() > 1;
            prop_assert!(leads || lent <= lens[rank], "{} units lent to {}", lent, rank);
        }
    }

    #[test]
    fn lengths_are_told_to_leaders(machine in machine(), root in any::<prop::sample::Index>(), seed: u64) {
        let root = root.index(machine.size()) as Rank;
        let lens = lens(&mut Rng::new(seed ^ 1), machine.size(), false);
        let found = Found::new(&machine, &LevelSpec::Auto, false, Some(root));
        let choice = linear();
        let stats = run(&machine, &found, &choice, (1, 1), (&lens, false), root, seed);
        let ranks: Vec<usize> = (0..machine.size()).collect();
        let mut expected = found.rooted(&lens, &ranks, &choice, true);
        for ((level, members), (leader, below)) in &found.all {
            for m in (0..members.len()).filter(|m| m != leader && below[*m].len() > 1) {
                expected[usize::from(level.index())].messages += 1;
                expected[usize::from(level.index())].units += 8 * below[m].len() as u64;
            }
        }
        for level in Level::ALL {
            prop_assert_eq!(stats.level(level.index()), expected[usize::from(level.index())], "at {}", level.name());
        }
    }
}

#[test]
fn hundreds_of_ranks() {
    for seed in 0..4 {
        let machine = large_machine(seed);
        let (root, equal) = (63 * seed as Rank, seed % 2 == 0);
        let lens = lens(&mut Rng::new(seed), machine.size(), equal);
        let found = Found::new(&machine, &LevelSpec::Auto, false, Some(root));
        let tree = [Tree::Linear, Tree::Knomial(2 + seed as u32)][(seed / 2) as usize];
        run(&machine, &found, &Choice(vec![tree; Level::COUNT]), (100, 2), (&lens, equal), root, seed);
    }
}
