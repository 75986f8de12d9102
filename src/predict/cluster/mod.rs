// SPDX-License-Identifier: BSD-3-Clause
//! What an operation takes over several nodes that are all alike.
//!
//! * [`call`]: one process' call, as the component composes it
//! * [`groups`]: the groups of very many ranks
//! * [`many`]: by messages alone, which may be a million ranks

pub mod call;
pub mod groups;
pub mod many;
#[cfg(test)]
pub(crate) mod tests;

pub use call::{Settings, has};
pub use many::many;
