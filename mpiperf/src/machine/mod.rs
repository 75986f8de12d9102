// SPDX-License-Identifier: BSD-3-Clause
//! What this machine's cores, caches and system calls take, as a machine file of `coll-rust predict` has it.
//!
//! * [`shape`]: how many of each part there are, by sysfs. Pure but for reading it.
//! * [`team`]: threads on cores of their own that do something at the same time.
//! * [`lines`]: how long a core waits for a line, and many cores for one.
//! * [`copies`]: how fast cores copy, alone and together.
//! * [`system`]: what copies between processes cost.
//! * [`combining`]: how fast the MPI library adds up numbers.
//! * [`messages`]: what messages cost, as LogGP has it.
//! * [`mod@file`]: all of it as TOML.
//!
//! Method: latencies by chains of addresses, each known only when the one before has come, as Molka,
//! Hackenberg, Schöne, Nagel, "Cache Coherence Protocol and Memory Performance of the Intel Haswell-EP
//! Architecture" (ICPP 2015). What disturbs a round makes it longer only, so medians of many rounds count.

pub mod combining;
pub mod copies;
pub mod file;
pub mod lines;
pub mod messages;
pub mod shape;
pub mod system;
pub mod team;

use crate::stats::median;

/// Rounds of a measurement.
pub const ROUNDS: usize = 100;

/// The median of times; they are never none.
pub fn middle(times: &[f64]) -> f64 {
    median(times).unwrap_or(f64::NAN)
}
