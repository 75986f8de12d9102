// SPDX-License-Identifier: BSD-3-Clause
//! What exists once per communicator, and the endpoint that an operation gets there.
//!
//! Layers of `ffi` that it may import: `base`, `mpi`, `process`.
//!
//! # Words
//!
//! * *core*: what a communicator is by itself ([`core::Core`]); *state*: that, and what its operations have
//!   made so far ([`state::Comm`]).
//! * *members*: its processes, in the order of its ranks, and where they sit; communicators of the same ones
//!   share that.
//! * *team*: its processes on the caller's node, with shared memory; made by a *handshake*.
//! * *slot*: which of the team's streams an operation uses.
//! * *identity*: the tags of an operation; a *series* of them is given out in the same order on all ranks.
//! * *edges*, *neighbours*: of a process topology.

pub mod agreement;
pub mod core;
pub mod host;
pub mod identity;
pub mod members;
pub mod slot;
pub mod state;
pub mod team;
pub mod topology;
pub mod trees;
