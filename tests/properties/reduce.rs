// SPDX-License-Identifier: BSD-3-Clause
//! Reduction within a group.

use super::data::{Buffers, Op, layouts};
use super::team::{Team, log, players, sweep, traffic};
use coll_rust::algo::reduce::{
    Value, Work, chain::chain, flat::flat, knomial::knomial, reduce_scatter_gather::reduce_scatter_gather,
};
use coll_rust::endpoint::Endpoint;
use coll_rust::pattern::chunks::Chunks;
use coll_rust::select::Reduce;
use coll_rust::sim::{Rng, Stats};

/// One run, on a team, operation and data that follow from the seed. Some members bring their value in memory
/// of their own, as after a reduction on a level below.
fn run(seed: u64, size: usize, root: usize, count: usize, algorithm: Reduce) -> Stats {
    let mut rng = Rng::new(seed);
    let team = Team::new(&mut rng, size);
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let op = if algorithm == Reduce::ReduceScatterGather || rng.below(3) == 0 { Op::Sum } else { Op::Affine };
    let inputs: Vec<_> = (0..size).map(|_| op.values(&mut rng, count)).collect();
    let in_place = rng.below(2) == 0;
    let buffers: Vec<_> =
        inputs.iter().enumerate().map(|(m, input)| Buffers::new(unit, input, in_place && m == root)).collect();
    let temps: Vec<bool> = (0..size).map(|_| rng.below(3) == 0).collect();
    let (team_ref, buffers_ref, temps) = (&team, &buffers, &temps);
    let stats = op.world(team.world, unit).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let (me, mine) = (stage.me(), &buffers_ref[stage.me()]);
        let target = (me == root).then(|| mine.target());
        let mut work = Work::new(&ep, count, op.commutes(), target.filter(|_| !mine.in_place()));
        let input = match (mine.in_place(), temps[me]) {
            (true, _) => Value::owned(mine.input()),
            (false, false) => Value::borrowed(mine.input()),
            (false, true) => {
                let temp = work.take(false)?;
                ep.copy(mine.input(), temp);
                Value::owned(temp)
            }
        };
        let result = match algorithm {
            Reduce::Flat => flat(&stage, root, input, &mut work).await?,
            Reduce::Knomial(radix) => knomial(&stage, root, input, &mut work, radix).await?,
            Reduce::Chain => chain(&stage, root, input, &mut work).await?,
            Reduce::ReduceScatterGather => reduce_scatter_gather(&stage, root, input, &mut work).await?,
        };
        assert_eq!(result.is_some(), me == root, "who has the result");
        if let (Some(value), Some(target)) = (result, target)
            && value.span.ptr() != target.ptr()
        {
            ep.copy(value.span, target);
        }
        Ok(())
    });
    let context = format!("{algorithm:?} {op:?} seed {seed} root {root} in place {in_place} {count} {unit:?} {team:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    buffers.iter().enumerate().for_each(|(m, buffer)| buffer.check(m == root));
    assert_eq!(op.exact(&buffers[root].result()), op.exact(&op.fold(&inputs)), "{context}");
    let combined = stats.reduced.iter().sum::<u64>();
    assert_eq!(combined, ((size - 1) * count) as u64, "combinations: {context}");
    stats
}

#[test]
fn flat_does_all_at_the_root() {
    sweep(1, 257, |seed, p, root, n| {
        let stats = run(seed, p, root, n, Reduce::Flat);
        assert_eq!(stats.total, traffic(p - 1, (p - 1) * n));
        assert_eq!(stats.rounds, (p > 1).into());
        assert_eq!(stats.reduced.iter().max(), Some(&(((p - 1) * n) as u64)));
        assert!(stats.temp_peak.iter().all(|&units| units <= 6 * n), "memory does not grow: {:?}", stats.temp_peak);
    });
}

#[test]
fn chain_comes_from_both_sides() {
    sweep(1, 257, |seed, p, root, n| {
        let stats = run(seed, p, root, n, Reduce::Chain);
        assert_eq!(stats.total, traffic(p - 1, (p - 1) * n));
        assert_eq!(stats.rounds as usize, root.max(p - 1 - root));
        assert!(stats.reduced.iter().all(|&units| units <= 2 * n as u64));
    });
}

#[test]
fn knomial_is_logarithmic() {
    for radix in [2, 3, 4, 8, 64] {
        sweep(1, 257, |seed, p, root, n| {
            let stats = run(seed, p, root, n, Reduce::Knomial(radix));
            assert_eq!(stats.total, traffic(p - 1, (p - 1) * n));
            let depth = log(p, radix as usize);
            assert!(stats.rounds <= depth, "{} > {depth}", stats.rounds);
            assert!(stats.reduced.iter().all(|&units| units <= (depth * (radix - 1)) as u64 * n as u64));
        });
    }
}

#[test]
fn reduce_scatter_gather_halves() {
    sweep(1, 257, |seed, p, root, n| {
        let stats = run(seed, p, root, n, Reduce::ReduceScatterGather);
        let (players, extras) = players(p);
        let steps = players.ilog2() as usize;
        let chunk = |id: usize| Chunks::new(n, players).get(id).len();
        let gather: usize = (0..players).map(|id| chunk(id) * id.count_ones() as usize).sum();
        let units = extras * n + (players - 1) * n + gather;
        assert_eq!(stats.total, traffic(extras + players * steps + players - 1, units));
        assert!(stats.rounds as usize <= 2 * steps + usize::from(extras > 0));
        // With fewer units than players, the chunks of the first players are not empty, those of the others
        // are.
        let share = (if n >= players { 2 * n + steps } else { n * (steps + 1) }) as u64;
        assert!(stats.sent.iter().all(|sent| sent.units <= share), "about 2 n per member");
        assert!(stats.reduced.iter().all(|&units| units <= share));
    });
}
