// SPDX-License-Identifier: BSD-3-Clause
//! Timers, and the global clock.
//!
//! * [`Timer`]: the local clock of one process.
//! * `exchange`: the offset between two clocks by ping-pongs.
//! * `fit`: offset and drift out of several such measurements. Pure.
//! * `node`: which ranks share a node, a clock, and cores.
//! * [`Global`]: the clock of rank 0 on every rank.

pub mod counter;
mod exchange;
pub mod fit;
mod global;
mod node;
mod timer;

pub use exchange::Search;
pub use global::Global;
pub use timer::{Origin, Timer};

/// Which counter a timer reads.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The time stamp counter if it is invariant and synchronous, else the system's clock.
    Auto,
    /// The time stamp counter.
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    Monotonic,
    /// `MPI_Wtime`.
    Wtime,
}

impl Source {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Source::Auto => "auto",
            Source::Tsc => "tsc",
            Source::Monotonic => "monotonic",
            Source::Wtime => "wtime",
        }
    }
}

/// How the offsets are found.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Rank 0 with each rank.
    Linear,
    /// Rank i with i − 1; sums of offsets.
    Ring,
    /// Ranks of one node share a clock where the timer allows it; leaders of nodes by the linear scheme.
    Hierarchical,
}

impl Scheme {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Linear => "linear",
            Scheme::Ring => "ring",
            Scheme::Hierarchical => "hierarchical",
        }
    }
}
