// SPDX-License-Identifier: BSD-3-Clause
//! The streams of a team that operations use.

/// Nonblocking operations that may be under way in shared memory at a time.
pub const NONBLOCKING: u64 = 4;
/// Persistent operations that may use shared memory at a time.
pub const PERSISTENT: u64 = 8;

/// Which of the team's streams an operation uses.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// The blocking ones.
    Blocking,
    /// A nonblocking operation.
    Nonblocking {
        /// Its number.
        number: u64,
        /// Whether the team [had learned](crate::ffi::comm::team::Maker::has_learned) when it was called.
        late: bool,
    },
    /// A persistent operation.
    Persistent {
        /// The number that it has drawn.
        number: u64,
        /// Whether the team had learned when it was initialised.
        late: bool,
    },
}

impl Slot {
    /// Its number in the team.
    pub fn number(self) -> usize {
        match self {
            Slot::Blocking => 0,
            Slot::Nonblocking { number, .. } => nonblocking(number),
            Slot::Persistent { number, .. } => (1 + NONBLOCKING + number) as usize,
        }
    }

    /// Whether it is that of the blocking operations.
    pub fn is_blocking(self) -> bool {
        matches!(self, Slot::Blocking)
    }

    /// Whether what the team has learned counts. The same on all ranks.
    pub fn late(self) -> bool {
        match self {
            Slot::Blocking => true,
            Slot::Nonblocking { late, .. } | Slot::Persistent { late, .. } => late,
        }
    }
}

/// The number in the team of the slot that the nonblocking operation of this number uses.
pub fn nonblocking(number: u64) -> usize {
    1 + (number % NONBLOCKING) as usize
}
