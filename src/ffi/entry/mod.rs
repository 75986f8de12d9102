// SPDX-License-Identifier: BSD-3-Clause
//! What the shim calls.
//!
//! Layers of `ffi` that it may import: `base`, `mpi`, `process`, `comm`, `call`, `run`, `exec`.
//!
//! # Words
//!
//! * *door*: the entry of one blocking operation, with all that its short calls do.
//! * *quick*: the short way of calls on plain data through a team that exists; *edges*: that of short
//!   neighbourhood operations.

mod device;
mod dispatch;
mod edges;
mod exports;
mod quick;
mod summary;
