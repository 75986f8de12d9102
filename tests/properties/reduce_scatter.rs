// SPDX-License-Identifier: BSD-3-Clause
//! Reduce-scatter within a group.

use super::blocks::{digits, filled, known, no_empty_message, send, sweep};
use super::data::{Op, layouts};
use super::team::{Team, log, players, traffic};
use coll_rust::algo::reduce_scatter::{
    pairwise::pairwise, recursive_halving::recursive_halving, reduce_scatterv::reduce_scatterv, ring::ring,
};
use coll_rust::pattern::knomial::Knomial;
use coll_rust::pattern::pof2::{Players, Proxy};
use coll_rust::sim::{Rng, Stats, UnitBuffer};

#[derive(Clone, Copy, Debug, PartialEq)]
enum ReduceScatter {
    Pairwise,
    Ring,
    RecursiveHalving,
    ReduceScatterv { radix: u32 },
}

/// One run, on a team, operation and data that follow from the seed; units combined and lent, by member.
fn run(seed: u64, size: usize, lens: &[usize], algorithm: ReduceScatter) -> (Stats, Vec<(usize, usize)>) {
    let mut rng = Rng::new(seed);
    let team = Team::new(&mut rng, size);
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let ordered = matches!(algorithm, ReduceScatter::Pairwise | ReduceScatter::ReduceScatterv { .. });
    let op = if ordered && rng.below(4) > 0 { Op::Affine } else { Op::Sum };
    let total: usize = lens.iter().sum();
    let inputs: Vec<_> = (0..size).map(|_| op.values(&mut rng, total)).collect();
    let in_place: Vec<bool> = (0..size).map(|_| rng.below(2) == 0).collect();
    let mine: Vec<_> = inputs.iter().map(|input| UnitBuffer::with(unit, input)).collect();
    let apart: Vec<_> = lens.iter().map(|&len| UnitBuffer::new(unit, len)).collect();
    let known = known(&mut rng, lens);
    let (team_ref, known, mine_ref, apart_ref, in_place_ref) = (&team, &known, &mine, &apart, &in_place);
    let stats = op.world(team.world, unit).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let me = stage.me();
        let mine = mine_ref[me].span();
        let target = if in_place_ref[me] { mine.slice(0..lens[me]) } else { apart_ref[me].span() };
        match algorithm {
            ReduceScatter::Pairwise => send(pairwise(&stage, mine, known, target)).await,
            ReduceScatter::Ring => send(ring(&stage, mine, known, target)).await,
            ReduceScatter::RecursiveHalving => send(recursive_halving(&stage, mine, known, target)).await,
            ReduceScatter::ReduceScatterv { radix } => send(reduce_scatterv(&stage, mine, known, target, radix)).await,
        }
    });
    let context = format!("{algorithm:?} {op:?} seed {seed} in place {in_place:?} {lens:?} {unit:?} {team:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    let sum = op.fold(&inputs);
    for m in 0..size {
        let (bytes, result) = (Op::SIZE * known.start(m)..Op::SIZE * known.start(m + 1), bytes_of(lens[m]));
        let (written, kept) = if in_place[m] { (mine[m].data(), result) } else { (apart[m].data(), 0) };
        assert_eq!(op.exact(&written[..result]), op.exact(&sum[bytes]), "member {m}: {context}");
        assert_eq!(mine[m].data()[kept..], inputs[m][kept..], "what is not the result stays: member {m}: {context}");
        assert!(mine[m].gaps_intact() && apart[m].gaps_intact(), "bytes outside the units: {context}");
    }
    no_empty_message(&stats);
    assert_eq!(stats.reduced.iter().sum::<u64>() as usize, (size - 1) * total, "combinations: {context}");
    let by_member = |&rank: &u32| (stats.reduced[rank as usize] as usize, stats.temp_peak[rank as usize]);
    let by_member = team.members.iter().map(by_member).collect();
    (stats, by_member)
}

fn bytes_of(units: usize) -> usize {
    units * Op::SIZE
}

#[test]
fn pairwise_combines_each_block_at_its_owner() {
    sweep(1, |seed, p, lens| {
        let (stats, members) = run(seed, p, lens, ReduceScatter::Pairwise);
        let total: usize = lens.iter().sum();
        assert_eq!(stats.total, traffic((p - 1) * filled(lens.iter().copied()), (p - 1) * total));
        assert!((stats.rounds as usize) < p);
        for (&(reduced, lent), len) in members.iter().zip(lens) {
            assert_eq!(reduced, (p - 1) * len);
            assert!(lent <= 5 * len, "{lent} units lent for a block of {len}");
        }
    });
}

#[test]
fn ring_passes_every_block_once_round() {
    sweep(1, |seed, p, lens| {
        let (stats, members) = run(seed, p, lens, ReduceScatter::Ring);
        let (total, largest) = (lens.iter().sum::<usize>(), *lens.iter().max().unwrap());
        assert_eq!(stats.total, traffic((p - 1) * filled(lens.iter().copied()), (p - 1) * total));
        assert_eq!(stats.rounds as usize, if total > 0 { p - 1 } else { 0 });
        assert!(stats.pairs.len() <= p, "only neighbours");
        assert!(members.iter().all(|&(_, lent)| lent <= 2 * largest), "{members:?}");
    });
}

#[test]
fn recursive_halving_halves() {
    sweep(1, |seed, p, lens| {
        let (stats, members) = run(seed, p, lens, ReduceScatter::RecursiveHalving);
        let (total, who) = (lens.iter().sum::<usize>(), Players::new(p, Proxy::Lower));
        let (count, extras) = players(p);
        let block =
            |ids: std::ops::Range<usize>| -> usize { ids.map(|id| lens[who.members(id)].iter().sum::<usize>()).sum() };
        // At width w a player sends the half of its 2w players' blocks that it is not in.
        let sent = (0..count.ilog2()).map(|i| 1 << i).flat_map(|w: usize| {
            let block = &block;
            (0..count).map(move |id| block((id ^ w) / w * w..(id ^ w) / w * w + w))
        });
        let handed = (0..extras).map(|id| lens[2 * id + 1]);
        let (messages, units) = (filled(sent.clone()) + filled(handed.clone()), sent.chain(handed).sum::<usize>());
        let whole = if total > 0 { extras } else { 0 };
        assert_eq!(stats.total, traffic(messages + whole, units + extras * total));
        assert_eq!(units - (0..extras).map(|id| lens[2 * id + 1]).sum::<usize>(), (count - 1) * total);
        assert!(stats.rounds <= count.ilog2() + if extras > 0 { 2 } else { 0 });
        let equal = lens.iter().all(|len| *len == lens[0]) && extras == 0;
        for &(_, lent) in &members {
            let most = if equal { 3 * total / 4 } else { 3 * total };
            assert!(lent <= most, "{lent} of {total} units lent");
        }
        if lens.iter().all(|&len| len > 0) {
            assert_eq!(stats.total.messages as usize, 2 * extras + count * count.ilog2() as usize);
        }
    });
}

#[test]
fn reduce_scatterv_goes_up_and_down() {
    for radix in [2, 3, 8] {
        sweep(1, |seed, p, lens| {
            let (stats, members) = run(seed, p, lens, ReduceScatter::ReduceScatterv { radix });
            let (total, tree) = (lens.iter().sum::<usize>(), Knomial::new(p, radix));
            if total == 0 {
                return assert_eq!(stats.total, traffic(0, 0));
            }
            let down = (1..p).map(|m| lens[m..tree.subtree_end(m)].iter().sum());
            let units: usize = (0..p).map(|m| lens[m] * digits(m, radix as usize)).sum();
            assert_eq!(stats.total, traffic(p - 1 + filled(down), (p - 1) * total + units));
            assert!(stats.rounds <= 2 * log(p, radix as usize));
            let most = (radix as usize + 1) * total;
            assert!(members.iter().all(|&(_, lent)| lent <= most), "{members:?} lent of {most}");
        });
    }
}
