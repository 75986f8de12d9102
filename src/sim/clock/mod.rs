// SPDX-License-Identifier: BSD-3-Clause
//! A clock for the processes of a node: what an operation takes on a machine that need not be at hand.
//!
//! The code that runs is the real one. Each member of a team is a future with a clock of its own; the one
//! furthest behind is polled next, in one thread. Whatever a member does to shared memory is told to the
//! clock ([`timed`](crate::sync::timed)), which charges it by a model of the caches ([`Caches`]) of a
//! [`Machine`]. A member that waits for a word goes on when that word is written. Two runs are equal to the
//! picosecond.
//!
//! What it leaves out: which lines fall out of a cache for want of associativity, most prefetching by the
//! hardware, the system's interruptions, frequencies that change. Members have a core each.
//!
//! * [`machine`]: cores, caches, and what things cost there
//! * [`caches`]: who has which line, and what an access takes
//! * [`run`]: the members and their clocks
//! * [`net`]: messages between processes, of one node or of many
//! * `stacks`: those of very many coroutines
//! * `state`: what is known of the members, and what accesses do to their clocks
//! * `spent`: with what members spend their time
//! * `window`: what a core has under way at the same time

pub mod caches;
pub mod machine;
pub mod net;
pub mod run;
mod spent;
mod stacks;
mod state;
mod window;

pub use caches::{Caches, Counts};
pub use machine::{Distance, Machine};
pub use run::{Clock, Work};
pub use spent::{Cause, Path, Record, Spent, Wait, critical};

/// Picoseconds.
pub type Time = u64;
