// SPDX-License-Identifier: BSD-3-Clause
//! Allgather within a group: every member gets every member's block. Lengths may differ, and all members know
//! all of them.
//!
//! `own` is none where a member's data are in its block already (in place).

pub mod bruck;
pub mod linear;
pub mod neighbor_exchange;
pub mod recursive_doubling;
pub mod ring;
