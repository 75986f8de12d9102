// SPDX-License-Identifier: BSD-3-Clause
//! Scatter within a group: every member gets its block of the root's.

pub mod knomial;
pub mod linear;
