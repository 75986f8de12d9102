// SPDX-License-Identifier: BSD-3-Clause
//! Scan and exscan within a group.

use super::blocks::{SIZES, no_empty_message, send};
use super::data::{Buffers, Op, layouts};
use super::team::{COUNTS, Team, log, traffic};
use coll_rust::algo::scan::{Scan, linear::linear, recursive_doubling::recursive_doubling};
use coll_rust::sim::{Rng, Stats};

/// One run, on a team, operation and data that follow from the seed; units combined and lent, by member.
fn run(seed: u64, size: usize, count: usize, kind: Scan, doubling: bool) -> (Stats, Vec<(usize, usize)>) {
    let mut rng = Rng::new(seed);
    let team = Team::new(&mut rng, size);
    let unit = layouts(Op::SIZE)[rng.below(4)];
    let op = if rng.below(4) > 0 { Op::Affine } else { Op::Sum };
    let inputs: Vec<_> = (0..size).map(|_| op.values(&mut rng, count)).collect();
    let buffers: Vec<_> = inputs.iter().map(|input| Buffers::new(unit, input, rng.below(2) == 0)).collect();
    let (team_ref, buffers_ref) = (&team, &buffers);
    let stats = op.world(team.world, unit).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let buffers = &buffers_ref[stage.me()];
        let (mine, target) = (buffers.input(), buffers.target());
        match doubling {
            false => send(linear(&stage, kind, mine, target)).await,
            true => send(recursive_doubling(&stage, kind, mine, target)).await,
        }
    });
    let context = format!("{kind:?} doubling {doubling} {op:?} seed {seed} {count} of {unit:?} {team:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    for (m, buffers) in buffers.iter().enumerate() {
        let first = kind == Scan::Exclusive && m == 0;
        buffers.check(!first || buffers.in_place());
        let expected = match (kind, m) {
            (Scan::Inclusive, _) => op.fold(&inputs[..=m]),
            (Scan::Exclusive, 0) if buffers.in_place() => inputs[0].clone(),
            (Scan::Exclusive, 0) => continue,
            (Scan::Exclusive, _) => op.fold(&inputs[..m]),
        };
        assert_eq!(op.exact(&buffers.result()), op.exact(&expected), "member {m}: {context}");
    }
    no_empty_message(&stats);
    let by_member = |&rank: &u32| (stats.reduced[rank as usize] as usize, stats.temp_peak[rank as usize]);
    let by_member = team.members.iter().map(by_member).collect();
    (stats, by_member)
}

/// Calls `each` for both kinds, all sizes and counts, with a seed each.
fn sweep(mut each: impl FnMut(u64, usize, usize, Scan)) {
    let mut rng = Rng::new(31);
    for size in SIZES {
        for count in COUNTS.into_iter().take(if size > 16 { 3 } else { 5 }) {
            for kind in [Scan::Inclusive, Scan::Exclusive].repeat(2) {
                each(rng.bits(), size, count, kind);
            }
        }
    }
}

#[test]
fn linear_passes_along() {
    sweep(|seed, p, n, kind| {
        let (stats, members) = run(seed, p, n, kind, false);
        let steps = if n > 0 { p - 1 } else { 0 };
        assert_eq!(stats.total, traffic(steps, steps * n));
        assert_eq!(stats.rounds as usize, steps);
        for (m, &(reduced, lent)) in members.iter().enumerate() {
            // The last one needs no sum of an exclusive scan.
            let combines = m > 0 && (kind == Scan::Inclusive || m + 1 < p);
            assert_eq!(reduced, if combines { n } else { 0 });
            assert!(lent <= if combines { n } else { 0 }, "{lent} units lent");
        }
    });
}

#[test]
fn recursive_doubling_is_logarithmic() {
    sweep(|seed, p, n, kind| {
        let (stats, members) = run(seed, p, n, kind, true);
        let distances = || (0..log(p, 2)).map(|i| 1_usize << i);
        // Of each pair one message goes up, and one down where there are members above both blocks.
        let up: usize = distances().map(|d| (0..p).filter(|m| m & d == 0 && m + d < p).count()).sum();
        let down: usize = distances().map(|d| d * ((p - 1) / (2 * d))).sum();
        let messages = if n > 0 { up + down } else { 0 };
        assert_eq!(stats.total, traffic(messages, messages * n));
        assert_eq!(stats.rounds, if n > 0 { log(p, 2) } else { 0 });
        for &(reduced, lent) in &members {
            assert!(reduced <= 2 * log(p, 2) as usize * n);
            assert!(lent <= 3 * n, "{lent} units lent");
        }
    });
}
