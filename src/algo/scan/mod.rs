// SPDX-License-Identifier: BSD-3-Clause
//! Scan and exscan within a group: member i gets the combination of the values of members 0..=i, or of 0..i,
//! always in that order.
//!
//! Units are elements. In place, `target` is `mine`. An exclusive scan leaves the target of member 0 as it
//! is.

pub mod linear;
pub mod recursive_doubling;
pub mod tree;

/// Whether a member's own value belongs to its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// It does: MPI's scan.
    Inclusive,
    /// It does not: MPI's exscan.
    Exclusive,
}
