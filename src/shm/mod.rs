//! Shared memory among the processes of a node.

pub mod memory;
mod copy;
pub mod heap;
pub mod layout;
pub mod op;
pub mod team;
pub mod turn;
pub mod alloc;
pub mod backing;
pub mod budget;
pub mod cma;
pub mod failure;
pub mod group;
pub mod locator;
pub mod mailbox;
pub mod peer;
pub mod pool;
