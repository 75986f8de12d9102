// SPDX-License-Identifier: BSD-3-Clause
//! What exists once per process.
//!
//! Layers of `ffi` that it may import: `base`, `mpi`.
//!
//! # Words
//!
//! * *settings*: the parameters as MCA holds them; *config*: the same, parsed.
//! * *card*: what a process publishes of itself when it starts; others read it when they first need it.
//! * *place*: the node, the modules and the core that a process sits on.
//! * *link*: the connection with the gateway of the own cluster.
//! * *pool*: this process's shared memory, from which communicators get theirs.
//! * *times*: what it knows of how long copies take, from which thresholds follow.

pub mod card;
pub mod counters;
pub mod gateway;
pub mod network;
pub mod placement;
pub mod pool;
pub mod settings;
pub mod startup;
pub mod times;
pub mod version;
