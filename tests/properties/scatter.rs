// SPDX-License-Identifier: BSD-3-Clause
//! Scatter within a group.

use super::blocks::{check, contents, digits, filled, known, no_empty_message, send, sweep_roots, user_blocks};
use super::data::{UserStream, bytes};
use super::team::{Team, log, traffic};
use coll_rust::algo::data::Role;
use coll_rust::algo::scatter::{knomial::knomial, linear::linear};
use coll_rust::endpoint::Blocks;
use coll_rust::pattern::knomial::Knomial;
use coll_rust::pattern::{absolute, relative};
use coll_rust::sim::{Rng, SimBlocks, Stats, World};

#[derive(Clone, Copy, Debug)]
enum Scatter {
    Linear { posts: usize },
    Knomial { radix: u32, told: bool },
}

/// One run, on a team, layouts and data that follow from the seed; the root's blocks, and the lent units by
/// member.
fn run(seed: u64, size: usize, root: usize, lens: &[usize], algorithm: Scatter) -> (Stats, SimBlocks, Vec<usize>) {
    let mut rng = Rng::new(seed);
    let team = Team::new(&mut rng, size);
    let data = contents(&mut rng, lens);
    let in_place = rng.below(2) == 0;
    let noise: Vec<Vec<u8>> = lens.iter().map(|&len| bytes(&mut rng, len)).collect();
    let streams: Vec<_> = noise.iter().map(|block| UserStream::new(&mut rng, block)).collect();
    let (all, known) = (user_blocks(&mut rng, &data), known(&mut rng, lens));
    let (team_ref, streams_ref, all_ref, known) = (&team, &streams, &all, &known);
    let stats = World::new(team.world as u32).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let own = &streams_ref[stage.me()];
        let role = match stage.me() == root {
            true => Role::Root { all: all_ref, own: (!in_place).then_some(own) },
            false => Role::Other { own },
        };
        match algorithm {
            Scatter::Linear { posts } => send(linear(&stage, root, role, posts)).await,
            Scatter::Knomial { radix, told } => {
                send(knomial(&stage, root, role, (!told).then_some(known), radix)).await
            }
        }
    });
    let context = format!("{algorithm:?} seed {seed} root {root} in place {in_place} {lens:?} {team:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    check(&all, &data, &context);
    for (m, stream) in streams.iter().enumerate() {
        stream.check(if in_place && m == root { &noise[m] } else { &data[m] });
    }
    no_empty_message(&stats);
    let lent = team.members.iter().map(|&rank| stats.temp_peak[rank as usize]).collect();
    (stats, all, lent)
}

#[test]
fn linear_is_one_step() {
    for posts in [1, 3, 1000] {
        sweep_roots(|seed, p, root, lens| {
            let (stats, all, lent) = run(seed, p, root, lens, Scatter::Linear { posts });
            let others = || (0..p).filter(|&m| m != root).map(|m| lens[m]);
            assert_eq!(stats.total, traffic(filled(others()), others().sum()));
            assert_eq!(stats.rounds, u32::from(others().sum::<usize>() > 0));
            let staged = (0..p).filter(|&m| all.direct(m..m + 1).is_none());
            let (largest, count) = (staged.clone().map(|m| lens[m]).max().unwrap_or(0), staged.count());
            assert!(lent[root] <= posts.min(count) * largest + lens[root], "{} units lent", lent[root]);
            assert!((0..p).all(|m| m == root || lent[m] <= lens[m]), "one's own block: {lent:?} for {lens:?}");
        });
    }
}

#[test]
fn knomial_is_logarithmic() {
    for radix in [2, 3, 4, 16] {
        for told in [false, true] {
            sweep_roots(|seed, p, root, lens| {
                let (stats, _, lent) = run(seed, p, root, lens, Scatter::Knomial { radix, told });
                let tree = Knomial::new(p, radix);
                let number = |m: usize| relative(m, root, p);
                let below = |m: usize| tree.subtree_end(number(m)) - number(m) - 1;
                let subtree = |m: usize| (0..=below(m)).map(|i| lens[absolute(number(m) + i, root, p)]).sum::<usize>();
                let others = || (0..p).filter(|&m| m != root);
                let units: usize = others().map(|m| lens[m] * digits(number(m), radix as usize)).sum();
                let (told, numbers) = match told {
                    true => (filled(others().map(below)), others().map(below).sum()),
                    false => (0, 0),
                };
                assert_eq!(stats.total, traffic(filled(others().map(subtree)) + told, units + 8 * numbers));
                assert!(stats.rounds <= log(p, radix as usize));
                for m in others() {
                    let piece = if below(m) == 0 { 0 } else { lens[m] + 16 * below(m) };
                    assert!(lent[m] <= subtree(m) + piece, "{} units lent: {lens:?}", lent[m]);
                }
            });
        }
    }
}
