// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf` measures the collectives of any MPI library: every call starts on all processes at one moment of
//! a global clock.
//!
//! * [`clock`]: timers of one process, and the global clock made of them (offsets, drift).
//! * [`op`]: what can be measured. A [`op::Case`] is one operation at one size with its buffers; it prepares,
//!   runs and verifies one call at a time and knows nothing of clocks.
//! * [`measure`]: stages of scheduled starts over one case, or over several that alternate call by call; it
//!   yields raw [`measure::Sample`]s.
//! * [`limits`]: what the machine itself can do between two processes: floors for what is measured.
//! * [`locks`]: reader–writer locks, and the store that they guard.
//! * [`machine`]: what its cores, caches and system calls take, as a machine file has it.
//! * [`stats`]: samples in, numbers out. Pure.
//! * [`report`]: rows as table, CSV, JSON, pictures.
//! * [`cmd`]: one file for each subcommand; the only place that puts the others together.
//!
//! Method: M. Kurnosov, "MPIPerf: a toolkit for benchmarking MPI collectives" (2012), and what later tools
//! added.

pub mod clock;
pub mod cmd;
pub mod error;
pub mod limits;
pub mod locks;
pub mod machine;
pub mod measure;
pub mod mpi;
pub mod node;
pub mod op;
pub mod report;
pub mod stats;
