// SPDX-License-Identifier: BSD-3-Clause
//! Allgather within a group.

use super::blocks::{check, contents, filled, no_empty_message, send, sweep, user_blocks};
use super::data::UserStream;
use super::team::{Team, log, traffic};
use coll_rust::algo::Stage;
use coll_rust::algo::allgather::{
    bruck::bruck, linear::linear, neighbor_exchange::neighbor_exchange, recursive_doubling::recursive_doubling,
    ring::ring,
};
use coll_rust::endpoint::{Blocks, Endpoint, Result, Stream};
use coll_rust::pattern::neighbor;
use coll_rust::sim::{Rng, SimBlocks, Stats, World};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allgather {
    Linear { posts: usize },
    Ring,
    NeighborExchange,
    RecursiveDoubling,
    Bruck,
}

impl Allgather {
    /// Runs it.
    pub async fn run<E: Endpoint>(
        self,
        stage: &Stage<'_, E>,
        own: Option<&impl Stream>,
        into: &impl Blocks,
    ) -> Result<()> {
        match self {
            Allgather::Linear { posts } => send(linear(stage, own, into, posts)).await,
            Allgather::Ring => send(ring(stage, own, into)).await,
            Allgather::NeighborExchange => send(neighbor_exchange(stage, own, into)).await,
            Allgather::RecursiveDoubling => send(recursive_doubling(stage, own, into)).await,
            Allgather::Bruck => send(bruck(stage, own, into)).await,
        }
    }
}

/// One run, on a team, layouts and data that follow from the seed; everybody's blocks, and the units lent to
/// them.
fn run(seed: u64, size: usize, lens: &[usize], algorithm: Allgather) -> (Stats, Vec<(SimBlocks, usize)>) {
    let mut rng = Rng::new(seed);
    let team = Team::new(&mut rng, size);
    let data = contents(&mut rng, lens);
    let streams: Vec<_> = data.iter().map(|block| UserStream::new(&mut rng, block)).collect();
    let in_place: Vec<bool> = (0..size).map(|_| rng.below(2) == 0).collect();
    let into: Vec<SimBlocks> = (0..size)
        .map(|m| {
            let mut before = contents(&mut rng, lens);
            if in_place[m] {
                before[m] = data[m].clone();
            }
            user_blocks(&mut rng, &before)
        })
        .collect();
    let (team_ref, streams_ref, into_ref, in_place_ref) = (&team, &streams, &into, &in_place);
    let stats = World::new(team.world as u32).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let me = stage.me();
        let own = (!in_place_ref[me]).then_some(&streams_ref[me]);
        algorithm.run(&stage, own, &into_ref[me]).await
    });
    let context = format!("{algorithm:?} seed {seed} in place {in_place:?} {lens:?} {team:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    into.iter().for_each(|into| check(into, &data, &context));
    streams.iter().zip(&data).for_each(|(stream, data)| stream.check(data));
    no_empty_message(&stats);
    let total: usize = lens.iter().sum();
    assert_eq!(stats.total.units as usize, (size - 1) * total, "every block comes once to every member: {context}");
    let lent = team.members.iter().map(|&rank| stats.temp_peak[rank as usize]);
    let into = into.into_iter().zip(lent).collect();
    (stats, into)
}

/// The longest block that is not direct; copying the own block from one layout to another takes a piece as
/// long as it.
fn staged(into: &SimBlocks, lens: &[usize]) -> usize {
    (0..lens.len()).filter(|&m| into.direct(m..m + 1).is_none()).map(|m| lens[m]).max().unwrap_or(0)
}

#[test]
fn linear_is_one_step() {
    for posts in [1, 4, 1000] {
        sweep(1, |seed, p, lens| {
            let (stats, into) = run(seed, p, lens, Allgather::Linear { posts });
            let messages = (p - 1) * filled(lens.iter().copied());
            assert_eq!(stats.total, traffic(messages, stats.total.units as usize));
            let steps = if posts < p { p - 1 } else { 1 };
            assert!(stats.rounds as usize <= steps);
            for (into, lent) in &into {
                assert!(*lent <= (posts.min(p) + 1) * staged(into, lens), "{lent} units lent");
            }
        });
    }
}

#[test]
fn ring_passes_every_block_round() {
    sweep(1, |seed, p, lens| {
        let (stats, into) = run(seed, p, lens, Allgather::Ring);
        assert_eq!(stats.total.messages as usize, (p - 1) * filled(lens.iter().copied()));
        assert_eq!(stats.rounds as usize, if lens.iter().any(|&len| len > 0) { p - 1 } else { 0 });
        assert!(stats.pairs.len() <= p, "only neighbours");
        into.iter().for_each(|(into, lent)| assert!(*lent <= 2 * staged(into, lens), "{lent} units lent"));
    });
}

#[test]
fn neighbor_exchange_takes_half_the_steps() {
    sweep(2, |seed, p, lens| {
        if p % 2 == 1 {
            return;
        }
        let (stats, into) = run(seed, p, lens, Allgather::NeighborExchange);
        let pairs = (0..p).flat_map(|m| neighbor::steps(m, p)).map(|step| lens[step.pair] + lens[step.pair + 1]);
        let messages = filled(lens.iter().copied()) + filled(pairs);
        assert_eq!(stats.total.messages as usize, messages);
        assert!(stats.rounds as usize <= p / 2);
        if lens.iter().all(|&len| len > 0) {
            assert_eq!((messages, stats.rounds as usize), (p * p / 2, p / 2));
        }
        let longest = (0..p).step_by(2).map(|m| lens[m] + lens[m + 1]).max().unwrap();
        for (into, lent) in &into {
            assert!(*lent <= 2 * longest, "{lent} units lent");
            assert!(into.direct(0..p).is_none() || *lent == 0, "{lent} units lent for one run");
        }
    });
}

#[test]
fn recursive_doubling_is_logarithmic() {
    sweep(1, |seed, p, lens| {
        if !p.is_power_of_two() {
            return;
        }
        let (stats, into) = run(seed, p, lens, Allgather::RecursiveDoubling);
        let widths = || (0..log(p, 2)).map(|i| 1 << i);
        let have = widths().flat_map(|width| (0..p).map(move |m| m & !(width - 1)..(m & !(width - 1)) + width));
        assert_eq!(stats.total.messages as usize, filled(have.map(|blocks| lens[blocks].iter().sum())));
        assert_eq!(stats.rounds, if lens.iter().all(|&len| len == 0) { 0 } else { log(p, 2) });
        for (into, lent) in &into {
            let most = if into.direct(0..p).is_some() { 0 } else { lens.iter().sum() };
            assert!(*lent <= most, "{lent} units lent");
        }
    });
}

#[test]
fn bruck_is_logarithmic_for_any_size() {
    sweep(1, |seed, p, lens| {
        let (stats, into) = run(seed, p, lens, Allgather::Bruck);
        let widths = || (0..log(p, 2)).map(|i| 1 << i);
        let sent = widths().flat_map(|width: usize| {
            (0..p).map(move |m| (0..width.min(p - width)).map(|i| lens[(m + i) % p]).sum::<usize>())
        });
        assert_eq!(stats.total.messages as usize, filled(sent));
        assert!(stats.rounds <= log(p, 2));
        if lens.iter().all(|&len| len > 0) {
            assert_eq!((stats.total.messages, stats.rounds), (p as u64 * u64::from(log(p, 2)), log(p, 2)));
        }
        let total = lens.iter().sum::<usize>();
        assert!(into.iter().all(|&(_, lent)| lent <= total), "more than all blocks lent");
    });
}
