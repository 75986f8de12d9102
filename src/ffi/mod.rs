// SPDX-License-Identifier: BSD-3-Clause
//! The border to Open MPI: the only `extern "C"`, the only types of Open MPI, and everything that is
//! process-wide.
//!
//! Layers, from the lowest one up. Each opens with what it is responsible for, what it may import and its
//! words; a test (`tests/layers.rs`) holds it to that.
//!
//! * [`base`]: the shim's declarations, the panic guard, what users are told, errors as MPI has them;
//! * [`mpi`]: Open MPI's objects: datatypes and the user's buffers, operations, a device's memory, smsc;
//! * [`process`]: what exists once per process: parameters, placement, the exchange at start-up, counters;
//! * [`comm`]: what exists once per communicator: hierarchies, tags, neighbours, shared memory; and the
//!   endpoint that an operation gets there;
//! * [`call`]: a call's arguments, and what all ranks know of them;
//! * [`run`]: a call becomes a future;
//! * [`exec`]: who polls it: the caller, or the progress engine;
//! * [`entry`]: what the shim calls.

mod base;
mod call;
mod comm;
mod entry;
mod exec;
mod mpi;
mod process;
mod run;
