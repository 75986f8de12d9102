// SPDX-License-Identifier: BSD-3-Clause
//! Alltoall within a group: every member has a block for every member.
//!
//! `out` is none where the blocks to send lie in the receive buffer, each where the block from the same
//! member will be (in place); they have the same lengths then.

pub mod bruck;
mod exchange;
pub mod linear;
pub mod pairwise;
