// SPDX-License-Identifier: BSD-3-Clause
//! Atomics of the protocols: the standard library's, or the model checker's under `--cfg loom`.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
