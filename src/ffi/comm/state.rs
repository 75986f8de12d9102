// SPDX-License-Identifier: BSD-3-Clause
//! The Rust half of a module: all that one communicator has.

use crate::ffi::base::glue::ompi_communicator_t;
use crate::ffi::base::kind::Kind;
use crate::ffi::comm::core::{Core, due};
use crate::ffi::comm::team::Maker;
use crate::ffi::comm::topology::Neighborhood;
use crate::ffi::comm::trees::{Trees, goes_unasked};
use crate::params::Config;
use crate::select::decision::is_shared_within_node;
use crate::shm::protocol::team::Team;
use crate::topo::TreeLevels;
use std::ops::Deref;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// One communicator. What short calls need comes first.
#[repr(C)]
pub struct Comm {
    /// The operations, by number, whose calls may try the team at once.
    quick: AtomicU32,
    /// The [team](Comm::team), for those.
    ready: AtomicPtr<Team>,
    core: Core,
    /// Its processes on this node, where they share memory.
    pub team: Maker,
    /// Rooted calls so far, for flow control.
    rooted: AtomicU32,
    /// Neighbourhood calls on a distributed graph so far, likewise.
    directed: AtomicU32,
    /// The same of those that [some ranks](crate::ffi::exec::blocking) do not make: as many on all ranks that
    /// hang together by edges.
    partial: AtomicU32,
    /// None without a process topology; looked up by the first neighbourhood call.
    neighborhood: OnceLock<Option<Neighborhood>>,
    /// How those on this node work together.
    trees: Trees,
    /// Blocking calls that are still to go to the component below.
    first_calls: AtomicU32,
}

impl Deref for Comm {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Comm {
    /// For a communicator of two or more processes.
    pub fn new(handle: *mut ompi_communicator_t, config: &'static Config) -> Comm {
        Comm {
            quick: AtomicU32::new(0),
            ready: AtomicPtr::default(),
            core: Core::new(handle, config),
            team: Maker::default(),
            rooted: AtomicU32::new(0),
            directed: AtomicU32::new(0),
            partial: AtomicU32::new(0),
            neighborhood: OnceLock::new(),
            trees: Trees::default(),
            // What is to be shown, or to be the same wherever it runs, is ours from the first call on.
            first_calls: AtomicU32::new(match config.reproducible || config.show.decisions {
                true => 0,
                false => config.first_calls,
            }),
        }
    }

    /// Whether the operation that is being called synchronises: of those that some ranks may run ahead in,
    /// every `flow_limit`-th does.
    pub fn synchronises(&self, kind: Kind, one_way: bool, by_all: bool) -> bool {
        let counter = match (kind.is_neighbor(), by_all) {
            (false, _) => &self.rooted,
            (true, true) => &self.directed,
            (true, false) => &self.partial,
        };
        one_way && due(counter, self.config().flow_limit)
    }

    /// The caller's neighbours; none without a process topology. Not to be asked for before the first
    /// neighbourhood call: Open MPI attaches the topology after the module was made.
    pub fn neighborhood(&self) -> Option<&Neighborhood> {
        self.neighborhood.get_or_init(|| Neighborhood::find(&self.core)).as_ref()
    }

    /// The levels of an operation's trees on the caller's node, if it goes along such; the same on all ranks
    /// there.
    pub fn tree_levels(&self, kind: Kind) -> Option<&TreeLevels> {
        self.trees.levels(&self.core, kind)
    }

    /// What is known of trees.
    pub fn trees(&self) -> &Trees {
        &self.trees
    }

    /// Whether a blocking call of the operation may be among the first on the communicator, which go to the
    /// component below: to make a team takes longer than a few calls gain. Those are that all ranks make in
    /// the same order: nonblocking ones are not, since Open MPI makes some itself, nor those along edges, nor
    /// what the parameters say something about.
    pub fn has_first_calls(&self, kind: Kind) -> bool {
        let setting = self.config().algorithm(kind);
        self.first_calls.load(Ordering::Relaxed) > 0
            && !kind.is_neighbor()
            && !(setting.names_shm() || setting.names_algorithm() || setting.below())
            && self.levels(kind).is_auto()
            && !self.is_apart().unwrap_or(true)
    }

    /// One of those is made.
    pub fn take_first_call(&self) {
        let left = self.first_calls.load(Ordering::Relaxed);
        self.first_calls.store(left.saturating_sub(1), Ordering::Relaxed);
    }

    /// The team is settled: calls on plain data need not ask any more.
    pub fn open_quickly(&self) {
        // Another operation may have made the team sooner, here and not yet elsewhere.
        if self.first_calls.load(Ordering::Relaxed) > 0 {
            return;
        }
        // What is to be shown is seen on the way of all calls.
        if self.quick.load(Ordering::Relaxed) == 0 && !self.config().show.decisions {
            let wanted = |kind| {
                let (setting, levels) = (self.config().algorithm(kind), self.levels(kind));
                // Ways that are named are looked at on the way of all calls only.
                setting.way().is_none() && is_shared_within_node(setting, levels, kind, self.config().reproducible)
            };
            let team = self.team.get();
            let has_tree = |kind| {
                let may_go = |team| goes_unasked(kind, team);
                self.tree_levels(kind).is_some_and(|levels| !levels.unasked || team.is_some_and(may_go))
            };
            let kinds = Kind::all().filter(|&kind| wanted(kind) && !has_tree(kind));
            if let Some(team) = team {
                // SYNC(the team): releases the team, as its maker left it. Who sees `quick` before it goes
                // the long way.
                self.ready.store(ptr::from_ref(team).cast_mut(), Ordering::Release);
            }
            self.quick.store(kinds.fold(0, |mask, kind| mask | 1 << kind as u32), Ordering::Relaxed);
        }
    }

    /// The team, if calls of the operation of this number may try it at once.
    #[inline(always)]
    pub fn quick(&self, number: i32) -> Option<&Team> {
        if self.quick.load(Ordering::Relaxed) >> (number as u32 & 31) & 1 == 0 {
            return None;
        }
        // SYNC(the team): acquires it.
        // SAFETY: null, or our maker's team, which was made once, and does not move, as we do not.
        unsafe { self.ready.load(Ordering::Acquire).as_ref() }
    }
}
