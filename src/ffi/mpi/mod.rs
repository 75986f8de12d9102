// SPDX-License-Identifier: BSD-3-Clause
//! Open MPI's objects, as Rust sees them.
//!
//! Layers of `ffi` that it may import: `base`.
//!
//! # Words
//!
//! * *datatype*: Open MPI's, with the sizes that matter ([`data::Datatype`]); without one, bytes.
//! * *side*: the data that a call sends, or those that it receives ([`data::Side`]).
//! * *run*: elements that lie in memory as one piece, without gaps.
//! * *device*: an accelerator; *stage*: host memory that stands in for a device's ([`device`]).
//! * *smsc*: Open MPI's framework by which a process reads another's memory.

pub mod data;
pub mod device;
pub mod elements;
pub mod progress;
pub mod smsc;
