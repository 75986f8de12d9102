//! Shared memory among the processes of a node.

pub mod alloc;
pub mod backing;
pub mod budget;
pub mod cma;
mod copy;
pub mod failure;
pub mod group;
pub mod heap;
pub mod layout;
pub mod locator;
pub mod mailbox;
pub mod memory;
pub mod op;
pub mod peer;
pub mod pool;
pub mod team;
pub mod turn;
