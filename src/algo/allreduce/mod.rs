// SPDX-License-Identifier: BSD-3-Clause
//! Allreduce within a group: every member gets the combination of all members' values, the same bits
//! everywhere.

pub mod rabenseifner;
pub mod recursive_doubling;
pub mod ring;
