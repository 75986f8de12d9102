// SPDX-License-Identifier: BSD-3-Clause
//! Alltoall on a communicator.

use super::blocks::{check, contents, no_empty_message, send, user_blocks};
use super::composition::{Choice, Found, lens, linear, trees};
use super::job::{Machine, levels, machine, one_cluster};
use super::random::{Cut, config};
use coll_rust::endpoint::Endpoint;
use coll_rust::hier::alltoall::{alltoall, spread};
use coll_rust::sim::{Rng, SimBlocks, Stats, World};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;

/// One run and its check. `lens[i][j]`: bytes from rank i to j; symmetric where it is in place. `choice`:
/// none for [`spread`].
fn run(
    machine: &Machine,
    found: &Found,
    choice: Option<&Choice>,
    (lens, equal): (&[Vec<usize>], bool),
    in_place: bool,
    seed: u64,
) -> Stats {
    let (mut rng, size) = (Rng::new(seed), machine.size());
    let data: Vec<Vec<Vec<u8>>> = lens.iter().map(|row| contents(&mut rng, row)).collect();
    let column = |j: usize| -> Vec<Vec<u8>> { (0..size).map(|i| data[i][j].clone()).collect() };
    let out: Vec<SimBlocks> = data.iter().map(|row| user_blocks(&mut rng, row)).collect();
    let into: Vec<SimBlocks> = (0..size)
        .map(|j| {
            let noise: Vec<usize> = column(j).iter().map(Vec::len).collect();
            let before = if in_place { data[j].clone() } else { contents(&mut rng, &noise) };
            user_blocks(&mut rng, &before)
        })
        .collect();
    let bytes = lens.iter().flatten().sum();
    let cut = Cut { units: 0, segment: usize::MAX, window: 1, bytes };
    let (out_ref, into_ref, equal) = (&out, &into, equal.then(|| lens[0][0]));
    let any = linear();
    let choose = &choice.unwrap_or(&any).choose();
    let together = choice.is_some();
    let world = World::new(size as u32);
    let world = if together { machine.world(world, None) } else { world };
    let stats = world.run_seed(seed, |ep| async move {
        let rank = ep.rank() as usize;
        let (out, into) = ((!in_place).then_some(&out_ref[rank]), &into_ref[rank]);
        let (job, parts) = (found.job(&ep, &cut, true), &found.parts[rank]);
        match together {
            true => send(alltoall(&job, parts, choose, equal, out, into)).await,
            false => send(spread(&job, parts, equal, out, into)).await,
        }
    });
    let context = format!("seed {seed} in place {in_place} {lens:?} {choice:?} {machine:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    for rank in 0..size {
        if !in_place {
            check(&out[rank], &data[rank], &context);
        }
        check(&into[rank], &column(rank), &context);
    }
    no_empty_message(&stats);
    stats
}

/// Lengths of the blocks of every pair.
fn table(rng: &mut Rng, size: usize, equal: bool, symmetric: bool) -> Vec<Vec<usize>> {
    let table: Vec<Vec<usize>> = match equal {
        true => vec![vec![[0, 1, 3, 13][rng.below(4)]; size]; size],
        false => (0..size).map(|_| lens(rng, size, false)).collect(),
    };
    let at = |i: usize, j: usize| if symmetric { table[i.max(j)][i.min(j)] } else { table[i][j] };
    (0..size).map(|i| (0..size).map(|j| at(i, j)).collect()).collect()
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn everybody_gets_its_block_of_everybody(
        machine in machine(), levels in levels(), choice in proptest::option::weighted(0.8, trees()), equal: bool, in_place: bool,
        seed: u64,
    ) {
        prop_assume!(machine.size() < 64);
        let lens = table(&mut Rng::new(seed ^ 1), machine.size(), equal, in_place);
        let found = Found::new(&machine, &levels, false, None);
        run(&machine, &found, choice.as_ref(), (&lens, equal), in_place, seed);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn one_message_for_each_pair_of_leaders(
        machine in machine(), choice in trees(), equal: bool, auto: bool, seed: u64,
    ) {
        let size = machine.size();
        prop_assume!(size < 64 || seed % 8 == 0);
        let lens = table(&mut Rng::new(seed ^ 1), size, equal, false);
        let levels = if auto { LevelSpec::Auto } else { LevelSpec::parse("node").unwrap() };
        let found = Found::new(&machine, &levels, false, None);
        let stats = run(&machine, &found, Some(&choice), (&lens, equal), false, seed);
        let ranks: Vec<usize> = (0..size).collect();
        // Up and down a row of each rank below, and before that the lengths.
        let out: Vec<usize> = lens.iter().map(|row| row.iter().sum()).collect();
        let into: Vec<usize> = (0..size).map(|j| lens.iter().map(|row| row[j]).sum()).collect();
        let told = vec![if equal { 0 } else { 16 * size }; size];
        let linear = linear();
        // With different lengths k-nomial trees tell totals too: counted where all are linear.
        let choice = if equal { &choice } else { &linear };
        let stats = if equal { stats } else { run(&machine, &found, Some(&linear), (&lens, equal), false, seed) };
        let ways = [&out, &into, &told].map(|lens| found.rooted(lens, &ranks, choice, false));
        for level in Level::ALL {
            let at = usize::from(level.index());
            let mut messages: u64 = ways.iter().map(|way| way[at].messages).sum();
            let mut units: u64 = ways.iter().map(|way| way[at].units).sum();
            for ((_, _), (_, below)) in found.all.iter().filter(|((l, _), _)| *l == level) {
                if below.iter().map(Vec::len).sum::<usize>() < size {
                    continue;
                }
                for (i, from) in below.iter().enumerate() {
                    for to in below.iter().enumerate().filter(|&(j, _)| j != i).map(|(_, to)| to) {
                        let sum: usize = from.iter().flat_map(|&s| to.iter().map(move |&r| (s, r))).map(|(s, r)| lens[s][r]).sum();
                        messages += u64::from(sum > 0);
                        units += sum as u64;
                    }
                }
            }
            let found = stats.level(level.index());
            prop_assert_eq!((found.messages, found.units), (messages, units), "at {}", level.name());
        }
    }

    #[test]
    fn spread_sends_each_block_once(machine in one_cluster(), seed: u64) {
        prop_assume!(machine.size() < 64);
        let lens = table(&mut Rng::new(seed ^ 1), machine.size(), false, false);
        let found = Found::new(&machine, &LevelSpec::Auto, false, None);
        let stats = run(&machine, &found, None, (&lens, false), false, seed);
        for (i, row) in lens.iter().enumerate() {
            for (j, &len) in row.iter().enumerate().filter(|&(j, &len)| j != i && len > 0) {
                prop_assert_eq!(stats.pairs[&(i as u32, j as u32)], super::team::traffic(1, len));
            }
        }
        let count = lens.iter().enumerate().flat_map(|(i, row)| row.iter().enumerate().filter(move |&(j, &l)| i != j && l > 0));
        prop_assert_eq!(stats.total.messages as usize, count.count());
    }
}
