// SPDX-License-Identifier: BSD-3-Clause
//! The levels of the trees along which the processes of a node work in shared memory, and the latest trees.

use crate::endpoint::Rank;
use crate::ffi::base::kind::Kind;
use crate::ffi::comm::core::Core;
use crate::shm::op::tree::Tree;
use crate::shm::policy::choose::least_members_for_tree;
use crate::shm::protocol::team::Team;
use crate::topo::TreeLevels;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Of each operation, what is known of its trees on the caller's node.
#[derive(Default)]
pub struct Trees([Of; Kind::COUNT]);

/// Of one operation.
#[derive(Default)]
struct Of {
    /// Found at the first need.
    levels: OnceLock<Option<TreeLevels>>,
    /// The latest tree, its root, and whether its groups had to be of consecutive ranks: loops have one.
    latest: Mutex<Option<Latest>>,
}

type Latest = (Option<Rank>, bool, Option<Arc<Tree>>);

impl Trees {
    /// The levels of an operation's on this communicator, if it goes along trees.
    pub fn levels(&self, comm: &Core, kind: Kind) -> Option<&TreeLevels> {
        let find = || {
            let may = matches!(kind, Kind::Barrier | Kind::Bcast | Kind::Reduce | Kind::Allreduce);
            let place = comm.place().ok().filter(|_| may)?;
            place.tree_levels(comm.levels(kind))
        };
        self.0[kind as usize].levels.get_or_init(find).as_ref()
    }

    /// The caller's place in an operation's tree of this root, the latest one if that was the same.
    pub fn latest(
        &self,
        kind: Kind,
        root: Option<Rank>,
        ordered: bool,
        make: impl FnOnce() -> Option<Tree>,
    ) -> Option<Arc<Tree>> {
        let mut latest = self.0[kind as usize].latest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some((of, by, tree)) if *of == root && *by == ordered => tree.clone(),
            _ => {
                let tree = make().map(Arc::new);
                *latest = Some((root, ordered, tree.clone()));
                tree
            }
        }
    }
}

/// Whether any call of an operation may go along a tree that nobody has asked for: the same on all
/// members.
pub fn goes_unasked(kind: Kind, team: &Team) -> bool {
    !team.config().waiting.crowded && team.size() >= least_members_for_tree(kind.of_ways())
}
