// SPDX-License-Identifier: BSD-3-Clause
//! A call becomes a future.
//!
//! Layers of `ffi` that it may import: `base`, `mpi`, `process`, `comm`, `call`.
//!
//! # Words
//!
//! * *shared*: all of it through the shared memory of one node; *part*: what of it happens there, where there
//!   are several nodes.
//! * *flat*: by messages in one group of all ranks; *joined*: along the groups of the communicator.
//! * *job*: a call as the levels see it: bytes, segments, groups.
//! * *decision*: which way a call goes, and why ([`decisions`] shows it).

pub mod decisions;
pub mod device;
mod flat;
mod job;
mod joined;
mod middle;
mod moves;
mod neighbor;
pub mod operation;
mod shared;
mod trees;
