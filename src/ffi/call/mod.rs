// SPDX-License-Identifier: BSD-3-Clause
//! A call's arguments, and what all ranks know of them.
//!
//! Layers of `ffi` that it may import: `base`, `mpi`, `process`, `comm`.
//!
//! # Words
//!
//! * *plain*: data without gaps, so that a run of bytes is all there is to know ([`plain`]).
//! * *significant*: an argument that MPI says counts at this rank.
//! * *eligible*: a call that may go through shared memory ([`eligible`]); the same on all ranks.
//! * *below*: the component that Open MPI would have taken without this one. A call *passes* there.
//! * *packed*: reduced out of packed operands ([`packed`]).
//! * *staged*: with host memory in place of a device's.

pub mod accept;
pub mod arguments;
pub mod device;
pub mod eligible;
pub mod packed;
pub mod plain;
pub mod staged;
