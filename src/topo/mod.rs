// SPDX-License-Identifier: BSD-3-Clause
//! Where every process sits, and the groups that follow from it. Strings and numbers in, numbers out.
//!
//! * [`level`]: the levels of the machine and the user's choice among them;
//! * [`locality`]: which modules of its node a process is bound to, from PMIx;
//! * [`network`]: which switches a node hangs on, from a file or from Slurm;
//! * [`clusters`]: several clusters, and who has messages with the others;
//! * [`map`]: the placement of a communicator's processes, as one of them sees it;
//! * `partition`: what the levels make of a placement;
//! * [`groups`]: the groups that a process belongs to;
//! * [`show`]: the whole tree, for people; `fold`: a large one on one screen.
#![forbid(unsafe_code)]

pub mod clusters;
mod fold;
pub mod groups;
pub mod hardware;
pub mod level;
pub mod locality;
pub mod map;
pub mod network;
mod partition;
pub mod show;
mod shown;

#[cfg(test)]
mod properties;

pub use clusters::{Clusters, Sites};
pub use groups::{Group, Hierarchy, Shape};
pub use hardware::{Hardware, Modules};
pub use level::{Level, LevelSpec, SWITCH_LAYERS};
pub use locality::Locality;
pub use map::{Placement, TreeLevels};
pub use network::address::Address;
pub use network::{Network, NetworkError};
pub use show::View;
