// SPDX-License-Identifier: BSD-3-Clause
//! What an operation takes over several nodes that are all alike.
//!
//! * [`call`]: one process' call, as the component composes it
//! * [`groups`]: the groups of very many ranks
//! * [`whole`]: with the shared memory of each node
//! * [`many`]: by messages alone, which may be a million ranks

pub mod call;
pub mod groups;
pub mod many;
pub mod whole;

use super::Kind;
use crate::select::decision::is_shared_within_node;
use crate::select::{Operation, Setting};
use crate::sim::Traffic;
use crate::sim::clock::net::network::LEVELS;
use crate::sim::clock::{Counts, Path, Time};
use crate::topo::LevelSpec;
pub use call::{Settings, has};
pub use whole::Cluster;

/// What is predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// From the common start until the last rank is through, in picoseconds.
    pub time: Time,
    /// The critical path.
    pub path: Path,
    /// Messages and bytes of all ranks in a call, by [level](crate::sim::clock::net::Places::level).
    pub traffic: [Traffic; LEVELS],
    /// Lines of shared memory that moved in a call, of all ranks.
    pub counts: Counts,
}

/// Whether the component does what is within nodes through their shared memory.
pub fn shares(kind: Kind, levels: &LevelSpec, settings: &Settings) -> bool {
    let (setting, operation): (&dyn Setting, _) = match kind {
        Kind::Barrier => (&settings.barrier, Operation::Barrier),
        Kind::Bcast => (&settings.bcast, Operation::Bcast),
        Kind::Reduce => (&settings.reduce, Operation::Reduce),
        _ => (&settings.allreduce, Operation::Allreduce),
    };
    is_shared_within_node(setting, levels, operation, false)
}
