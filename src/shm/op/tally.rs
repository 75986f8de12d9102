// SPDX-License-Identifier: BSD-3-Clause
//! How many calls of this process have gone which way through shared memory, but for those in one step: these
//! take so little time that to count them would show.

use crate::shm::policy::{Operation, TABLE, Way};
use std::sync::atomic::{AtomicU64, Ordering};

/// By operation and way.
static CALLS: [[AtomicU64; TABLE.len()]; Operation::ALL.len()] =
    [const { [const { AtomicU64::new(0) }; TABLE.len()] }; Operation::ALL.len()];

/// Counts a call, or the part of one that happens within the node.
#[inline(always)]
pub fn count(operation: Operation, way: Way) {
    calls(operation, way).fetch_add(1, Ordering::Relaxed);
}

/// How many there were.
#[inline(always)]
pub fn calls(operation: Operation, way: Way) -> &'static AtomicU64 {
    &CALLS[operation as usize][way as usize]
}
