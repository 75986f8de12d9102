// SPDX-License-Identifier: BSD-3-Clause
//! Gather within a group: the root gets every member's block.

pub mod knomial;
pub mod linear;
