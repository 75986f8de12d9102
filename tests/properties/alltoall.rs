// SPDX-License-Identifier: BSD-3-Clause
//! Alltoall within a group.

use super::blocks::{SIZES, check, contents, digits, filled, no_empty_message, send, user_blocks};
use super::team::{Team, log, traffic};
use coll_rust::algo::alltoall::{bruck::bruck, linear::linear, pairwise::pairwise};
use coll_rust::endpoint::Blocks;
use coll_rust::sim::{Rng, SimBlocks, Stats, World};

#[derive(Clone, Copy, Debug)]
enum Alltoall {
    Linear { posts: usize },
    Pairwise,
    Bruck { radix: u32 },
}

/// One run, on a team, layouts and data that follow from the seed. `lens[i][j]`: bytes from member i to j;
/// they are symmetric where it is in place.
fn run(seed: u64, lens: &[Vec<usize>], in_place: bool, algorithm: Alltoall) -> Stats {
    let (mut rng, size) = (Rng::new(seed), lens.len());
    let team = Team::new(&mut rng, size);
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
    let (team_ref, out_ref, into_ref) = (&team, &out, &into);
    let stats = World::new(team.world as u32).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let (out, into) = ((!in_place).then_some(&out_ref[stage.me()]), &into_ref[stage.me()]);
        match algorithm {
            Alltoall::Linear { posts } => send(linear(&stage, out, into, posts)).await,
            Alltoall::Pairwise => send(pairwise(&stage, out, into)).await,
            Alltoall::Bruck { radix } => send(bruck(&stage, out, into, radix)).await,
        }
    });
    let context = format!("{algorithm:?} seed {seed} in place {in_place} {lens:?} {team:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    for m in 0..size {
        check(&out[m], &data[m], &context);
        check(&into[m], &column(m), &context);
        let lent = stats.temp_peak[team.members[m] as usize];
        let most = memory(algorithm, in_place, &out[m], &into[m], m, size);
        assert!(lent <= most, "member {m}: {lent} units lent, not {most}: {context}");
    }
    no_empty_message(&stats);
    stats
}

/// The most units that a member may borrow: what the headers say, and a piece for its own block.
fn memory(algorithm: Alltoall, in_place: bool, out: &SimBlocks, into: &SimBlocks, me: usize, size: usize) -> usize {
    let longest = |blocks: &SimBlocks, all: bool| {
        let staged = |&m: &usize| m != me && (all || blocks.direct(m..m + 1).is_none());
        (0..size).filter(staged).map(|m| blocks.len(m)).max().unwrap_or(0)
    };
    let posts = match algorithm {
        Alltoall::Linear { posts } => posts.min(size),
        Alltoall::Pairwise => 1,
        Alltoall::Bruck { radix } => {
            let copy = if in_place { size * into.len(me) } else { 0 };
            let moving = if radix == 2 { size / 2 } else { size - 1 };
            return copy + (2 * moving).max(1) * into.len(me);
        }
    };
    let leaving = if in_place { longest(into, true) } else { longest(out, false) };
    posts * (leaving + longest(into, false)) + into.len(me)
}

/// Calls `each` with a seed and lengths: equal ones, and others, symmetric or not.
fn sweep(equal: bool, mut each: impl FnMut(u64, &[Vec<usize>], bool)) {
    let mut rng = Rng::new(23);
    for size in SIZES {
        let lens: &[usize] = if size > 16 { &[13] } else { &[0, 1, 13, 101] };
        for &len in lens {
            for in_place in [false, true] {
                each(rng.bits(), &vec![vec![len; size]; size], in_place);
            }
        }
        if equal {
            continue;
        }
        for bound in [2, 60] {
            let mut lens = vec![vec![0; size]; size];
            lens.iter_mut().flatten().for_each(|len| *len = rng.below(bound) * rng.below(2));
            each(rng.bits(), &lens, false);
            let symmetric: Vec<Vec<usize>> =
                (0..size).map(|i| (0..size).map(|j| lens[i.min(j)][i.max(j)]).collect()).collect();
            each(rng.bits(), &symmetric, true);
        }
    }
}

/// Messages and bytes of an exchange where every block travels once.
fn once(lens: &[Vec<usize>]) -> (usize, usize) {
    let others = || (0..lens.len()).flat_map(|i| (0..lens.len()).filter(move |&j| j != i).map(move |j| lens[i][j]));
    (filled(others()), others().sum())
}

#[test]
fn linear_is_one_step() {
    for posts in [1, 4, 1000] {
        sweep(false, |seed, lens, in_place| {
            let stats = run(seed, lens, in_place, Alltoall::Linear { posts });
            let (messages, units) = once(lens);
            assert_eq!(stats.total, traffic(messages, units));
            assert!(posts < lens.len() || stats.rounds <= 1);
        });
    }
}

#[test]
fn pairwise_is_one_message_per_step() {
    sweep(false, |seed, lens, in_place| {
        let (stats, p) = (run(seed, lens, in_place, Alltoall::Pairwise), lens.len());
        let (messages, units) = once(lens);
        assert_eq!(stats.total, traffic(messages, units));
        let steps = if in_place && p > 1 { p - 1 + p % 2 } else { p - 1 };
        assert!(stats.rounds as usize <= steps, "{} steps", stats.rounds);
        if messages == p * (p - 1) && !in_place {
            assert_eq!(stats.rounds as usize, p - 1);
        }
    });
}

#[test]
fn bruck_is_logarithmic() {
    for radix in [2, 3, 4, 8, 100] {
        sweep(true, |seed, lens, in_place| {
            let stats = run(seed, lens, in_place, Alltoall::Bruck { radix });
            let (p, len, k) = (lens.len(), lens[0][0], (radix as usize).min(lens.len()).max(2));
            if len == 0 {
                return assert_eq!(stats.total, traffic(0, 0));
            }
            // One message per distance that is a single digit.
            let messages = (1..p).filter(|&j| digits(j, k) == 1).count();
            let blocks: usize = (1..p).map(|j| digits(j, k)).sum();
            assert_eq!(stats.total, traffic(p * messages, p * blocks * len));
            assert_eq!(stats.rounds, log(p, k));
        });
    }
}
