// SPDX-License-Identifier: BSD-3-Clause
//! coll/rust: topology-aware hierarchical collectives for Open MPI.
//!
//! # The idea
//!
//! A collective algorithm is an `async fn` over an [`endpoint::Endpoint`], written once. Who polls it decides
//! what it is:
//!
//! | executor | gives |
//! |---|---|
//! | `ffi::exec::blocking`: poll, `opal_progress`, poll … on the caller's stack | the blocking collective |
//! | a request that owns the pinned future, polled from the progress engine | the nonblocking collective |
//! | the same, with the future made anew from the saved arguments | the persistent collective |
//! | [`sim`]: every rank a future in one thread, messages delivered in a seeded adversarial order | the tests |
//!
//! # The way of a call
//!
//! `docs/pictures/call.svg` shows it for three calls, station by station: a short Bcast, a long Ialltoall, a
//! persistent Allreduce over four nodes.
//!
//! 1. The C shim (`ompi-glue/`) hands the arguments over (`ffi::entry`), and takes no decision.
//! 2. `ffi::run` asks Open MPI about datatype and operation, takes an identity (tags), decides how the
//!    call goes ([`select::decision`]: once for all calls that follow each other alike) and picks the
//!    hierarchy ([`hier::plans`]).
//! 3. [`hier`] composes the operation: segments, [`hier::lanes`] of which are in flight at a time, each
//!    through all levels.
//! 4. At each level [`select`] chooses the algorithm from what all members of the group know, and [`algo`]
//!    runs it over a [`algo::Stage`]: members numbered from 0, and the rank arithmetic of [`pattern`].
//! 5. The endpoint posts to Open MPI's point-to-point layer (`ffi::comm`) in the parent communicator; no
//!    communicator is ever created.
//!
//! A communicator whose processes share a node does without most of that: `ffi::run` runs the operations
//! of [`shm`] over a queue of fragments per process. Long ones are `async fn`s too,
//! [short](shm::op::short) ones all go through one function. Plain blocking calls get there straight from
//! the export. On several nodes, [`hier`] does at the level of the node what they do, by [`shm::exec::node`].
//!
//! # Layers
//!
//! Imports point one way, and a test sees to it: `ffi` → {[`hier`], [`params`]} → {[`select`], [`algo`]} →
//! {[`pattern`], [`topo`]} → [`endpoint`], and {`ffi`, [`hier`], [`select`]} → [`shm`] → {[`sync`],
//! [`endpoint`], [`version`]}; [`select`] sees the names of [ways](shm::policy) only. Beside them `ffi` →
//! [`store`] → {[`topo`], [`sync`]}, and {`ffi`, [`sim`]} → [`relay`], which imports nothing. `unsafe` lives
//! in `ffi`, [`shm`] and [`sync`] (and where the simulator copies memory); everything else forbids it, and
//! everything but `ffi` is free of MPI.
//!
//! System calls go by the crate `nix`. Straight by `libc` go those that it lacks (pidfd_open, getrandom,
//! mincore, dlsym, robust mutexes), those of which every instruction counts (futex, sched_yield,
//! clock_gettime), and copies between processes, whose memory is no slice ([`shm::copy::cma`]).
//!
//! # Rules that keep it right
//!
//! * **Choice is the same on all ranks.** What a group does depends on what all of its members know: sizes,
//!   parameters (compared by the first collective), total bytes, the operation, the placement. Never on a
//!   local count, datatype handle or address.
//! * **Movement works on packed bytes, reduction on elements.** Ranks may describe equal data by different
//!   datatypes.
//! * **Identity is taken at the call** (or at the initialisation of a persistent operation), never at the
//!   start: ranks may start persistent operations in different orders.
//! * **The root leads its groups**, so no root needs an extra hop. Operations that do not commute are
//!   combined in rank order, along groups of consecutive ranks.
//! * **Dropping a future is not cancelling.** What was posted belongs to the operation's endpoint.
//! * **One caller of progress.** Only the outermost `block_on` calls `opal_progress`; `poll` never does.
//! * **No panic crosses into C** (`ffi::base::guard`).

// The model checker needs shared memory only: the rest is left out there, so that it is built quickly.
#[cfg(not(loom))]
pub mod algo;
pub mod endpoint;
#[cfg(feature = "ompi")]
mod ffi;
#[cfg(not(loom))]
pub mod hier;
#[cfg(not(loom))]
pub mod params;
pub mod pattern;
#[cfg(all(feature = "clock", not(loom)))]
pub mod predict;
pub mod relay;
#[cfg(not(loom))]
pub mod report;
#[cfg(not(loom))]
pub mod select;
pub mod shm;
pub mod sim;
#[cfg(not(loom))]
pub mod store;
pub mod sync;
#[cfg(not(loom))]
pub mod topo;
pub mod version;
