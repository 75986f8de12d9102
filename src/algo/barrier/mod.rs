// SPDX-License-Identifier: BSD-3-Clause
//! Barrier within a group, and its two halves: nobody leaves before all have come.

pub mod dissemination;
pub mod tree;
