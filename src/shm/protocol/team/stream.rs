// SPDX-License-Identifier: BSD-3-Clause
//! What a member notes of a stream.

use super::At;
use crate::shm::config::MAX_SETS;
use crate::shm::memory::layout::{BLOCKING, LANES, StreamControl, word};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

/// The caller's view of all members' controls of a stream.
pub(in crate::shm) type Controls = Box<[At<StreamControl>]>;
/// The caller's view of all members' queues of a stream.
pub(in crate::shm) type Queues = Box<[At<u8>]>;

/// A member's private notes on a stream. Atomic only so that it may be shared: one operation at a time uses
/// it.
#[repr(C)]
pub(in crate::shm) struct Stream {
    /// Number of the next operation.
    pub next: AtomicU32,
    /// An operation is under way.
    pub busy: AtomicBool,
    /// In which set one's own slots are, where processes take turns on the cores.
    pub set: AtomicU8,
    /// The latest operation for which one has [chosen](crate::shm::protocol::turn::View::room_taken) that.
    pub chosen: AtomicU32,
    /// The latest operation in which one's own slots went [beyond](crate::shm::protocol::turn::rotation) its
    /// set.
    pub beyond: AtomicU32,
    /// All others are known to have come so far as readers.
    pub behind: AtomicU64,
    /// There when all have agreed on the stream; of the first one `Team::controls` are used instead.
    pub controls: OnceLock<Option<Controls>>,
    pub queues: OnceLock<Option<Queues>>,
    /// Its number.
    pub(super) id: usize,
    /// One's own leases, by part, until all are known.
    pub(in crate::shm) own: [AtomicPtr<u8>; 2],
    /// Of operations along a [tree](crate::shm::op::tree): what is known of those who may read what one
    /// wrote.
    pub near: Near,
}

/// What a member notes of its latest operations along one tree. Only its neighbours there read what it
/// writes: on a node of many members, a writer that [asked](crate::shm::protocol::turn::Near) all of them
/// would get a line from each.
#[derive(Default)]
pub(in crate::shm) struct Near {
    /// Which [neighbours](crate::shm::protocol::turn::Near) these are.
    pub mark: AtomicU64,
    /// All operations from this one up to the latest went along the tree.
    pub since: AtomicU32,
    pub latest: AtomicU32,
    /// The neighbours are known to have come so far as readers.
    pub behind: AtomicU64,
}

impl Stream {
    /// Whether its operations block.
    pub fn is_blocking(&self) -> bool {
        self.id / LANES == BLOCKING
    }

    /// Whether some member is known to have had no memory for it.
    pub fn is_refused(&self, queue: bool) -> bool {
        matches!(self.controls.get(), Some(None)) || (queue && matches!(self.queues.get(), Some(None)))
    }

    pub(super) fn new(first_op: u32, id: usize) -> Stream {
        Stream {
            next: AtomicU32::new(first_op),
            busy: AtomicBool::new(false),
            set: AtomicU8::new(0),
            chosen: AtomicU32::new(first_op.wrapping_sub(1)),
            beyond: AtomicU32::new(first_op.wrapping_sub(MAX_SETS as u32)),
            behind: AtomicU64::new(word(first_op, 0)),
            controls: OnceLock::new(),
            queues: OnceLock::new(),
            id,
            own: [AtomicPtr::default(), AtomicPtr::default()],
            near: Near::default(),
        }
    }
}
