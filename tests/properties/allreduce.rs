// SPDX-License-Identifier: BSD-3-Clause
//! Allreduce within a group.

use super::data::{Buffers, Op, layouts};
use super::team::{Team, players, sweep, traffic};
use coll_rust::algo::allreduce::{rabenseifner::rabenseifner, recursive_doubling::recursive_doubling, ring::ring};
use coll_rust::algo::reduce::{Value, Work};
use coll_rust::endpoint::Endpoint;
use coll_rust::select::Allreduce;
use coll_rust::sim::{Rng, Stats};

/// One run, on a team, operation and data that follow from the seed.
fn run(seed: u64, size: usize, count: usize, algorithm: Allreduce) -> Stats {
    let mut rng = Rng::new(seed);
    let team = Team::new(&mut rng, size);
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let ordered = algorithm == Allreduce::RecursiveDoubling;
    let op = if ordered { [Op::Affine, Op::Sum, Op::Float] } else { [Op::Sum, Op::Sum, Op::Float] }[rng.below(3)];
    let inputs: Vec<_> = (0..size).map(|_| op.values(&mut rng, count)).collect();
    // 0: borrowed, 1: in place, 2: in memory of its own, as after a reduction on a level below.
    let ways: Vec<usize> = (0..size).map(|_| rng.below(3)).collect();
    let buffers: Vec<_> = inputs.iter().zip(&ways).map(|(input, &way)| Buffers::new(unit, input, way == 1)).collect();
    let (team_ref, buffers_ref, ways_ref) = (&team, &buffers, &ways);
    let stats = op.world(team.world, unit).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let mine = &buffers_ref[stage.me()];
        let target = mine.target();
        let mut work = Work::new(&ep, count, op.commutes(), (!mine.in_place()).then_some(target));
        let input = match ways_ref[stage.me()] {
            0 => Value::borrowed(mine.input()),
            1 => Value::owned(mine.input()),
            _ => {
                let temp = work.take(false)?;
                ep.copy(mine.input(), temp);
                Value::owned(temp)
            }
        };
        let result = match algorithm {
            Allreduce::RecursiveDoubling => recursive_doubling(&stage, input, &mut work).await?,
            Allreduce::Rabenseifner => rabenseifner(&stage, input, &mut work).await?,
            Allreduce::Ring => ring(&stage, input, &mut work).await?,
            Allreduce::ReduceBcast => panic!("a composition"),
        };
        assert!(result.owned || stage.size() == 1, "the result is not the user's input");
        if result.span.ptr() != target.ptr() {
            ep.copy(result.span, target);
        }
        Ok(())
    });
    let context = format!("{algorithm:?} {op:?} seed {seed} {count} of {unit:?} {ways:?} {team:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    buffers.iter().for_each(|buffer| buffer.check(true));
    assert_eq!(op.exact(&buffers[0].result()), op.exact(&op.fold(&inputs)), "{context}");
    assert!(buffers.iter().all(|buffer| buffer.result() == buffers[0].result()), "the same bits: {context}");
    stats
}

#[test]
fn recursive_doubling_exchanges_whole_values() {
    sweep(1, 257, |seed, p, _, n| {
        let stats = run(seed, p, n, Allreduce::RecursiveDoubling);
        let (players, extras) = players(p);
        let steps = players.ilog2() as usize;
        let messages = 2 * extras + players * steps;
        assert_eq!(stats.total, traffic(messages, messages * n));
        let most = steps + if extras > 0 { 2 } else { 0 };
        assert!(stats.rounds as usize <= most && (extras > 0 || stats.rounds as usize == most));
        assert_eq!(stats.reduced.iter().sum::<u64>(), ((extras + players * steps) * n) as u64);
    });
}

#[test]
fn rabenseifner_moves_twice_the_vector() {
    sweep(1, 257, |seed, p, _, n| {
        let stats = run(seed, p, n, Allreduce::Rabenseifner);
        let (players, extras) = players(p);
        let steps = players.ilog2() as usize;
        let units = 2 * extras * n + 2 * (players - 1) * n;
        assert_eq!(stats.total, traffic(2 * extras + 2 * players * steps, units));
        assert_eq!(stats.rounds as usize, 2 * steps + if extras > 0 { 2 } else { 0 });
        assert_eq!(stats.reduced.iter().sum::<u64>(), ((p - 1) * n) as u64);
    });
}

#[test]
fn ring_has_the_least_traffic() {
    // A group has two members at least.
    sweep(2, 64, |seed, p, _, n| {
        let stats = run(seed, p, n, Allreduce::Ring);
        assert_eq!(stats.total, traffic(2 * p * (p - 1), 2 * (p - 1) * n));
        assert_eq!(stats.rounds as usize, 2 * (p - 1));
        assert_eq!(stats.reduced.iter().sum::<u64>(), ((p - 1) * n) as u64);
        let (least, most) = (2 * (p - 1) * (n / p), 2 * (p - 1) * n.div_ceil(p));
        let shares = stats.sent.iter().filter(|sent| sent.messages > 0).map(|sent| sent.units as usize);
        assert!(shares.clone().all(|units| (least..=most).contains(&units)), "2 (p - 1) / p · n per member");
    });
    run(7, 257, 300, Allreduce::Ring);
}
