// SPDX-License-Identifier: BSD-3-Clause
//! Gather within a group.

use super::blocks::{check, contents, digits, filled, known, no_empty_message, send, sweep_roots, user_blocks};
use super::data::UserStream;
use super::team::{Team, log, traffic};
use coll_rust::algo::data::Role;
use coll_rust::algo::gather::{knomial::knomial, linear::linear};
use coll_rust::endpoint::{Blocks, Stream};
use coll_rust::pattern::knomial::Knomial;
use coll_rust::pattern::{absolute, relative};
use coll_rust::sim::{Rng, SimBlocks, Stats, World};

#[derive(Clone, Copy, Debug)]
enum Gather {
    Linear { posts: usize },
    Knomial { radix: u32, told: bool },
}

/// One run, on a team, layouts and data that follow from the seed; the root's blocks afterwards.
fn run(seed: u64, size: usize, root: usize, lens: &[usize], algorithm: Gather) -> (Stats, SimBlocks) {
    let mut rng = Rng::new(seed);
    let team = Team::new(&mut rng, size);
    let data = contents(&mut rng, lens);
    let streams: Vec<_> = data.iter().map(|block| UserStream::new(&mut rng, block)).collect();
    let in_place = rng.below(2) == 0;
    let mut before = contents(&mut rng, lens);
    if in_place {
        before[root] = data[root].clone();
    }
    let (all, known) = (user_blocks(&mut rng, &before), known(&mut rng, lens));
    let (team_ref, streams_ref, all_ref, known) = (&team, &streams, &all, &known);
    let stats = World::new(team.world as u32).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let own = &streams_ref[stage.me()];
        let role = match stage.me() == root {
            true => Role::Root { all: all_ref, own: (!in_place).then_some(own) },
            false => Role::Other { own },
        };
        match algorithm {
            Gather::Linear { posts } => send(linear(&stage, root, role, posts)).await,
            Gather::Knomial { radix, told } => send(knomial(&stage, root, role, (!told).then_some(known), radix)).await,
        }
    });
    let context = format!("{algorithm:?} seed {seed} root {root} in place {in_place} {lens:?} {team:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    check(&all, &data, &context);
    streams.iter().zip(&data).for_each(|(stream, data)| stream.check(data));
    no_empty_message(&stats);
    for (m, &rank) in team.members.iter().enumerate().filter(|&(m, _)| m != root) {
        let (lent, subtree) = (stats.temp_peak[rank as usize], subtree(size, root, m, lens, algorithm));
        let staging = if streams[m].direct().is_some() && subtree == lens[m] { 0 } else { subtree };
        // Copying between two layouts takes a piece; telling takes a number for each child, and one.
        let more = if subtree == lens[m] { 0 } else { lens[m] } + 8 * (1 + size);
        assert!(lent <= staging + more, "{lent} units lent: {context}");
    }
    (stats, all)
}

/// Units that pass through a member.
fn subtree(size: usize, root: usize, member: usize, lens: &[usize], algorithm: Gather) -> usize {
    let Gather::Knomial { radix, .. } = algorithm else { return lens[member] };
    let me = relative(member, root, size);
    (me..Knomial::new(size, radix).subtree_end(me)).map(|m| lens[absolute(m, root, size)]).sum()
}

#[test]
fn linear_is_one_step() {
    for posts in [1, 3, 1000] {
        sweep_roots(|seed, p, root, lens| {
            let (stats, all) = run(seed, p, root, lens, Gather::Linear { posts });
            let others = || (0..p).filter(|&m| m != root).map(|m| lens[m]);
            assert_eq!(stats.total, traffic(filled(others()), others().sum()));
            assert_eq!(stats.rounds, u32::from(others().sum::<usize>() > 0));
            let staged = (0..p).filter(|&m| all.direct(m..m + 1).is_none());
            let (largest, count) = (staged.clone().map(|m| lens[m]).max().unwrap_or(0), staged.count());
            let most = stats.temp_peak.iter().max().copied().unwrap_or(0);
            let own = *lens.iter().max().unwrap();
            assert!(most <= posts.min(count) * largest + own, "{most} units lent for {posts} posts of {largest}");
        });
    }
}

#[test]
fn knomial_is_logarithmic() {
    for radix in [2, 3, 4, 16] {
        for told in [false, true] {
            sweep_roots(|seed, p, root, lens| {
                let (stats, _) = run(seed, p, root, lens, Gather::Knomial { radix, told });
                let (algorithm, tree) = (Gather::Knomial { radix, told }, Knomial::new(p, radix));
                let others = || (0..p).filter(|&m| m != root);
                let data = filled(others().map(|m| subtree(p, root, m, lens, algorithm)));
                let number = |m: usize| relative(m, root, p);
                let units: usize = others().map(|m| lens[m] * digits(number(m), radix as usize)).sum();
                let below = others().filter(|&m| tree.parent(number(m)) != Some(0)).count();
                let told = if told { below } else { 0 };
                assert_eq!(stats.total, traffic(data + told, units + 8 * told));
                let depth = log(p, radix as usize);
                assert!(stats.rounds <= if told > 0 { 2 * depth - 1 } else { depth });
            });
        }
    }
}
