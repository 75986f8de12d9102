// SPDX-License-Identifier: BSD-3-Clause
//! Who polls a future: the caller, until it is over, or Open MPI's progress engine.
//!
//! Layers of `ffi` that it may import: `base`, `mpi`, `process`, `comm`, `call`, `run`.
//!
//! # Words
//!
//! * *drive*: to poll a future to its end, with progress in between.
//! * *engine*: the list of operations that Open MPI's progress polls.
//! * *launch*: the first poll, and the operation goes to that list.

pub mod below;
pub mod blocking;
pub mod engine;
pub mod persistent;
