// SPDX-License-Identifier: BSD-3-Clause
//! What an operation does on another machine: the real operations under a [clock](crate::sim::clock), inside
//! a node, or over many ([`cluster`]).
//!
//! A [`Case`] names an operation, its length, the members and the way; [`Node::time`] runs it as a benchmark
//! does, all members starting at the same moment, and tells the time of the last to come, with what it was
//! spent, and how many cache lines went how far. Results are checked: what is predicted has been computed.

pub mod cluster;
mod data;
mod node;

pub use node::{Case, Kind, Node, Prediction};
