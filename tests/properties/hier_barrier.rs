// SPDX-License-Identifier: BSD-3-Clause
//! Barrier on a communicator.

use super::job::{Machine, hops, large_machine, levels, machine, part};
use super::random::{Cut, config, parse, spec};
use super::team::traffic;
use coll_rust::hier::barrier::{barrier, synchronise};
use coll_rust::select::{Barrier, Spec};
use coll_rust::sim::{Stats, World};
use coll_rust::topo::{Level, LevelSpec};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs a barrier, or flow control's without a parameter, and checks that nobody leaves before all have come.
fn run(machine: &Machine, levels: &LevelSpec, spec: Option<&Spec<Barrier>>, seed: u64) -> Stats {
    let (groups, size) = (&machine.groups(levels, false, None), machine.size());
    let come = &AtomicUsize::new(0);
    let cut = &Cut { units: 0, segment: 1, window: 1, bytes: 0 };
    let stats = machine.world(World::new(size as u32), None).run_seed(seed, |ep| async move {
        come.fetch_add(1, Relaxed);
        let job = part(&ep, groups, cut, true);
        match spec {
            Some(spec) => barrier(&job, spec).await?,
            None => synchronise(&job).await?,
        }
        assert_eq!(come.load(Relaxed), size, "who has come when somebody leaves");
        Ok(())
    });
    stats.unwrap_or_else(|failed| panic!("{failed}"))
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn nobody_leaves_before_all_have_come(machine in machine(), levels in levels(), spec in spec(), seed: u64) {
        run(&machine, &levels, Some(&spec), seed);
    }

    #[test]
    fn flow_control_holds_everybody(machine in machine(), levels in levels(), seed: u64) {
        run(&machine, &levels, None, seed);
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn a_tree_goes_up_and_down_once(machine in machine(), radix in 2..6u32, seed: u64) {
        let stats = run(&machine, &LevelSpec::Auto, Some(&Spec::everywhere(Barrier::Tree(radix))), seed);
        let hops = hops(&machine.groups(&LevelSpec::Auto, false, None));
        for level in Level::ALL {
            prop_assert_eq!(stats.level(level.index()), traffic(2 * hops[usize::from(level.index())], 0));
        }
    }
}

#[test]
fn hundreds_of_ranks() {
    for (seed, text) in [(0, "auto"), (1, "tree/3"), (2, "dissemination,node:tree/8")] {
        run(&large_machine(seed), &LevelSpec::Auto, Some(&parse(text)), seed);
        run(&large_machine(seed), &LevelSpec::Auto, None, seed);
    }
}

#[test]
fn alone() {
    assert_eq!(run(&Machine::alone(), &LevelSpec::Auto, Some(&Spec::AUTO), 1).total, traffic(0, 0));
    assert_eq!(run(&Machine::alone(), &LevelSpec::Auto, None, 1).total, traffic(0, 0));
}
