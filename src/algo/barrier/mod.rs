//! Barrier within a group, and its two halves: nobody leaves before all have come.

pub mod dissemination;
pub mod tree;
