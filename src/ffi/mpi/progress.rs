// SPDX-License-Identifier: BSD-3-Clause
//! Who waits for Open MPI's progress.

use std::sync::atomic::{AtomicBool, Ordering};

/// Some operation has looked for a message in vain since the last [`take_awaited`].
static AWAITED: AtomicBool = AtomicBool::new(false);

/// Whether any operation waits for a message: who does must not sleep until something changes in memory.
pub fn take_awaited() -> bool {
    AWAITED.load(Ordering::Relaxed) && AWAITED.swap(false, Ordering::Relaxed)
}

/// Says that something is waited for that may come while nothing in memory changes: a message, or a copy.
pub fn await_progress() {
    AWAITED.store(true, Ordering::Relaxed);
}
