// SPDX-License-Identifier: BSD-3-Clause
//! What lies in memory that processes share: 64-bit words, and the contents that they guard.
//!
//! Words are found by address, and start as zeros. Under the model checker (`--cfg loom`) the checker's
//! atomics stand in for them, kept in a table by address; contents keep their bytes in the real memory, and
//! each access is reported to the checker, which finds those that no release and acquire put in order. With
//! the feature `clock` a simulated clock is told of each access.

pub use crate::sync::atomic::{Ordering, fence};
#[cfg(loom)]
pub use crate::sync::model::{SharedU64, will_read, will_write};
#[cfg(all(feature = "clock", not(loom)))]
pub use crate::sync::timed::{SharedU64, awaits, will_read, will_write};
#[cfg(not(any(loom, feature = "clock")))]
pub use std::sync::atomic::AtomicU64 as SharedU64;

/// Tells a simulated clock that whoever is polled waits for this word, at least.
#[cfg(any(loom, not(feature = "clock")))]
#[inline(always)]
pub fn awaits(_word: &SharedU64) {}

/// Tells the model checker that `_len` bytes at `_at` are about to be read.
#[cfg(not(any(loom, feature = "clock")))]
#[inline(always)]
pub fn will_read(_at: *const u8, _len: usize) {}

/// Tells the model checker that `_len` bytes at `_at` are about to be written.
#[cfg(not(any(loom, feature = "clock")))]
#[inline(always)]
pub fn will_write(_at: *const u8, _len: usize) {}
