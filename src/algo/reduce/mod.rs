// SPDX-License-Identifier: BSD-3-Clause
//! Reduction within a group: member `root` gets the combination of all members' values, in the order of the
//! members (but for [`reduce_scatter_gather`], which needs a commutative operation).

pub mod chain;
pub mod flat;
pub mod knomial;
pub mod reduce_scatter_gather;
mod work;

pub use work::{Value, Work};
