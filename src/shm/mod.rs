//! Shared memory among the processes of a node.

pub mod memory;
