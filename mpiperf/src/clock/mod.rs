//! Timers, and the global clock.

use crate::error::Result;
use crate::mpi::Comm;

/// A local timer; seconds since it was made, as `f64` (0.1 ns of resolution after a day).
#[derive(Debug, Clone, Copy)]
pub struct Timer {}

/// Which counter a timer reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
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

impl Timer {
    /// A timer over `source`.
    pub fn new(_source: Source) -> Result<Timer> {
        todo!()
    }
    /// Seconds since the timer was made.
    #[inline]
    pub fn now(&self) -> f64 {
        todo!()
    }
    /// Smallest step seen between two readings, seconds.
    pub fn resolution(&self) -> f64 {
        todo!()
    }
}

/// How the offsets are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Rank 0 with each rank.
    Linear,
    /// Rank i with i − 1; sums of offsets.
    Ring,
    /// Ranks of one node share a clock where the timer allows it; leaders of nodes by the linear scheme.
    Hierarchical,
}

/// This process's view of the clock of rank 0: `offset + slope · local`.
pub struct Global {
    /// The local timer.
    pub timer: Timer,
    /// Uncertainty of the offset (half of the least round trip), seconds, the largest over all ranks.
    pub uncertainty: f64,
    // … offset, slope, reference
}

impl Global {
    /// Finds the offsets. Collective.
    pub fn synchronise(_comm: &Comm, _timer: Timer, _scheme: Scheme) -> Result<Global> {
        todo!()
    }
    /// Measures again and corrects offset and drift. Collective.
    pub fn resynchronise(&mut self, _comm: &Comm) -> Result<()> {
        todo!()
    }
    /// The global time, seconds.
    #[inline]
    pub fn now(&self) -> f64 {
        todo!()
    }
}
