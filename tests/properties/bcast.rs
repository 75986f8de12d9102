// SPDX-License-Identifier: BSD-3-Clause
//! Broadcast within a group.

use super::data::{bytes, layouts};
use super::team::{Team, log, sweep, traffic};
use coll_rust::algo::bcast::{chain::chain, flat::flat, knomial::knomial, scatter_allgather::scatter_allgather};
use coll_rust::pattern::chunks::Chunks;
use coll_rust::select::Bcast;
use coll_rust::sim::{Rng, Stats, UnitBuffer, World};

/// One run, on a team and data that follow from the seed.
fn run(seed: u64, size: usize, root: usize, count: usize, algorithm: Bcast) -> Stats {
    let mut rng = Rng::new(seed);
    let team = Team::new(&mut rng, size);
    let unit = layouts([1, 8][rng.below(2)])[rng.below(4)];
    let (data, noise) = (bytes(&mut rng, count * unit.size), bytes(&mut rng, count * unit.size));
    let at_start = |rank| if team.member(rank) == Some(root) { &data } else { &noise };
    let buffers: Vec<_> = (0..team.world as u32).map(|rank| UnitBuffer::with(unit, at_start(rank))).collect();
    let (team_ref, spans) = (&team, &buffers.iter().map(UnitBuffer::span).collect::<Vec<_>>());
    let stats = World::new(team.world as u32).unit(unit).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let mine = spans[team_ref.members[stage.me()] as usize];
        match algorithm {
            Bcast::Flat => flat(&stage, root, mine).await,
            Bcast::Knomial(radix) => knomial(&stage, root, mine, radix).await,
            Bcast::ScatterAllgather => scatter_allgather(&stage, root, mine).await,
            Bcast::Chain => chain(&stage, root, mine).await,
        }
    });
    let context = format!("{algorithm:?} seed {seed} root {root} of {team:?}, {count} of {unit:?}");
    for (rank, buffer) in (0..).zip(&buffers) {
        let expected = if team.member(rank).is_some() { &data } else { &noise };
        assert_eq!(stats.is_ok().then(|| buffer.data()), stats.is_ok().then(|| expected.clone()), "{rank} {context}");
        assert!(buffer.gaps_intact(), "rank {rank} {context}");
    }
    stats.unwrap_or_else(|failed| panic!("{context}: {failed}"))
}

#[test]
fn flat_is_one_step() {
    sweep(1, 257, |seed, p, root, n| {
        let stats = run(seed, p, root, n, Bcast::Flat);
        assert_eq!(stats.total, traffic(p - 1, (p - 1) * n));
        assert_eq!((stats.rounds, stats.port_rounds), ((p > 1).into(), p as u32 - 1));
    });
}

#[test]
fn chain_passes_along() {
    sweep(1, 257, |seed, p, root, n| {
        let stats = run(seed, p, root, n, Bcast::Chain);
        assert_eq!(stats.total, traffic(p - 1, (p - 1) * n));
        assert_eq!((stats.rounds, stats.port_rounds), (p as u32 - 1, p as u32 - 1));
        assert!(stats.sent.iter().all(|sent| sent.messages <= 1));
    });
}

#[test]
fn knomial_is_logarithmic() {
    for radix in [2, 3, 4, 8, 64] {
        sweep(1, 257, |seed, p, root, n| {
            let stats = run(seed, p, root, n, Bcast::Knomial(radix));
            assert_eq!(stats.total, traffic(p - 1, (p - 1) * n));
            let depth = log(p, radix as usize);
            assert!(stats.rounds <= depth, "{} > {depth}", stats.rounds);
            assert!(stats.port_rounds <= depth * (radix - 1));
            if p == (radix as usize).pow(depth) {
                assert_eq!((stats.rounds, stats.port_rounds), (depth, depth * (radix - 1)));
            }
        });
    }
}

#[test]
fn scatter_allgather_moves_every_chunk_once_round() {
    sweep(1, 257, |seed, p, root, n| {
        let stats = run(seed, p, root, n, Bcast::ScatterAllgather);
        let chunk = |m: usize| Chunks::new(n, p).get(m).len();
        let scatter: usize = (0..p).map(|m| chunk(m) * m.count_ones() as usize).sum();
        let ring = (p - 1) * n - (n - chunk(0));
        assert_eq!(stats.total, traffic(p * (p - 1), scatter + ring));
        assert!(stats.rounds < log(p, 2) + p as u32);
        assert!(stats.sent.iter().all(|sent| sent.units <= 2 * n as u64), "n in the ring, less than n in the scatter");
    });
}
