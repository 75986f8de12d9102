// SPDX-License-Identifier: BSD-3-Clause
//! A process' share of the memory that its node may spend on pools, and what a pool holds of it.

use crate::shm::os::failure::Failure;
use crate::shm::os::system_page;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What the pools of a process may reserve together.
#[derive(Debug)]
pub struct Budget {
    span: u64,
    bytes: u64,
    left: AtomicU64,
}

impl Budget {
    /// `bytes`, down to whole pages of the system.
    pub fn new(bytes: u64) -> Budget {
        Budget::limited(bytes, bytes)
    }

    /// At most `bytes`, of pools that are `span` bytes long: those of all processes of a node must be as
    /// long, but what a process may have depends on the limits that it runs under.
    pub fn limited(span: u64, bytes: u64) -> Budget {
        let whole = |bytes: u64| bytes - bytes % system_page();
        let bytes = whole(bytes.min(span));
        Budget { span: whole(span), bytes, left: AtomicU64::new(bytes) }
    }

    /// Bytes of each pool, whatever may be reserved of it.
    pub fn span(&self) -> u64 {
        self.span
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes not reserved.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    pub(in crate::shm) fn take(&self, bytes: u64) -> Result<(), Failure> {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        let say = |left| {
            Failure::new(format!(
                "{bytes} bytes are beyond the process' share: {left} of {} bytes are left",
                self.bytes
            ))
        };
        taken.map(drop).map_err(say)
    }

    pub(in crate::shm) fn give(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What a pool holds at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes leased for groups.
    pub leased: u64,
    /// Bytes that the system holds for the pool.
    pub held: u64,
    /// Groups that are in use, or wait for the others' releases.
    pub groups: usize,
    /// Other processes' pools that are mapped.
    pub peers: usize,
}
