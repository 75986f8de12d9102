// SPDX-License-Identifier: BSD-3-Clause
//! Broadcast within a group: `data` of the root goes to all members.

pub mod chain;
pub mod flat;
pub mod knomial;
pub mod scatter_allgather;
