// SPDX-License-Identifier: BSD-3-Clause
//! Reduce-scatter within a group: the members' vectors are combined, and each member gets its block of the
//! result.
//!
//! Units are elements. `mine` is the whole vector and is not written, `lengths` are those of the blocks and
//! the same on all members, `target` is where the member's own block is wanted. In place, `target` lies at
//! the beginning of `mine`: then it is written when nothing else is needed of `mine`.

pub mod pairwise;
pub mod recursive_halving;
pub mod reduce_scatterv;
pub mod ring;

use crate::endpoint::{Endpoint, Span};

/// Copies the result to where it is wanted, unless it lies there.
fn settle<E: Endpoint>(ep: &E, result: Span, target: Span) {
    if result.ptr() != target.ptr() && !target.is_empty() {
        ep.copy(result, target);
    }
}
