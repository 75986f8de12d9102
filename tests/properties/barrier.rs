// SPDX-License-Identifier: BSD-3-Clause
//! Barrier within a group.

use super::team::{Team, log, sweep, traffic};
use coll_rust::algo::barrier::dissemination::dissemination;
use coll_rust::algo::barrier::tree::{arrive, release};
use coll_rust::sim::{Rng, World};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[test]
fn dissemination_holds_everybody() {
    sweep(1, 257, |seed, p, _, _| {
        let team = Team::new(&mut Rng::new(seed), p);
        let (come, team_ref) = (&AtomicUsize::new(0), &team);
        let stats = World::new(team.world as u32).run_seed(seed, |ep| async move {
            let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
            come.fetch_add(1, Relaxed);
            dissemination(&stage).await?;
            assert_eq!(come.load(Relaxed), p, "who has come when member {} leaves", stage.me());
            Ok(())
        });
        let stats = stats.unwrap_or_else(|failed| panic!("seed {seed} {team:?}: {failed}"));
        let steps = log(p, 2);
        assert_eq!(stats.total, traffic(p * steps as usize, 0));
        assert_eq!((stats.rounds, stats.port_rounds), (steps, steps));
    });
}

#[test]
fn tree_holds_everybody() {
    for radix in [2, 3, 4, 64] {
        sweep(1, 257, |seed, p, leader, _| {
            let team = Team::new(&mut Rng::new(seed), p);
            let (come, team_ref) = (&AtomicUsize::new(0), &team);
            let stats = World::new(team.world as u32).run_seed(seed, |ep| async move {
                let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
                come.fetch_add(1, Relaxed);
                arrive(&stage, leader, radix).await?;
                if stage.me() == leader {
                    assert_eq!(come.load(Relaxed), p, "who has come when the leader knows that all have");
                }
                release(&stage.second(), leader, radix).await?;
                assert_eq!(come.load(Relaxed), p, "who has come when member {} leaves", stage.me());
                Ok(())
            });
            let stats = stats.unwrap_or_else(|failed| panic!("seed {seed} radix {radix} {team:?}: {failed}"));
            assert_eq!(stats.total, traffic(2 * (p - 1), 0));
            assert!(stats.rounds <= 2 * log(p, radix as usize), "{} rounds", stats.rounds);
        });
    }
}
