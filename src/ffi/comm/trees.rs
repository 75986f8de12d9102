// SPDX-License-Identifier: BSD-3-Clause
//! The levels of the trees along which the processes of a node work in shared memory.

use crate::ffi::base::kind::Kind;
use crate::ffi::comm::core::Core;
use crate::topo::LevelSpec;
use std::sync::OnceLock;

/// By operation, the levels of its trees on the caller's node; found at the first need.
#[derive(Default)]
pub struct Trees([OnceLock<Option<LevelSpec>>; Kind::COUNT]);

impl Trees {
    /// Those of an operation on this communicator, if it goes along trees.
    pub fn levels(&self, comm: &Core, kind: Kind) -> Option<&LevelSpec> {
        let find = || {
            let may = matches!(kind, Kind::Barrier | Kind::Bcast | Kind::Reduce | Kind::Allreduce);
            let place = comm.place().ok().filter(|_| may)?;
            place.tree_levels(comm.levels(kind))
        };
        self.0[kind as usize].get_or_init(find).as_ref()
    }
}
