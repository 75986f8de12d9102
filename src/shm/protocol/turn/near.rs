// SPDX-License-Identifier: BSD-3-Clause
//! When rooms are free in operations along a tree.
//!
//! There only a member's neighbours read what it writes. Once all members are known to be through with what
//! came before a run of operations along one tree, its neighbours alone have to be through with what it wrote
//! since. On a node of many members, a writer that asked all of them would get a line from each: with 95
//! others, some 2 µs every few calls.
//!
//! It is not enough that the room's operation before was one of the run. The member may have written nothing
//! in that, or its line only: then the room still holds what was there before the run, and somebody far away
//! in the tree may be about to read it.

use super::View;
use crate::endpoint::Result;
use crate::shm::memory::Member;
use crate::shm::memory::layout::{is_round, reached, word};
use crate::sync::shared::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The neighbours of one member in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Near {
    /// Its parent, if it has one, and its children.
    pub members: Vec<Member>,
    /// A number that tells them from others.
    pub mark: u64,
}

impl Near {
    /// Those.
    pub fn new(members: Vec<Member>) -> Near {
        let mut hasher = DefaultHasher::new();
        members.hash(&mut hasher);
        Near { members, mark: hasher.finish() | 1 }
    }
}

impl View<'_> {
    /// Notes that this operation goes along a tree in which the caller has these neighbours.
    pub fn goes_near(&self, near: &Near) {
        let notes = &self.stream.near;
        let latest = notes.latest.load(Ordering::Relaxed);
        let goes_on = notes.mark.load(Ordering::Relaxed) == near.mark && latest == self.op.wrapping_sub(1);
        // Now and then it begins anew, so that what is noted never is too old to be compared.
        if !goes_on || is_round(self.op) {
            notes.mark.store(near.mark, Ordering::Relaxed);
            notes.since.store(self.op, Ordering::Relaxed);
            // Nothing is known of operations from this one on.
            notes.behind.store(word(self.op, 0), Ordering::Relaxed);
        }
        notes.latest.store(self.op, Ordering::Relaxed);
    }

    /// Waits until the caller's [room](View::room) for so many bytes is free, in an operation that [goes
    /// near](View::goes_near).
    pub async fn room_free_near(&self, len: usize, near: &Near) -> Result<()> {
        let notes = &self.stream.near;
        let before = self.op.wrapping_sub(self.rooms_for(len).0);
        let since = notes.since.load(Ordering::Relaxed);
        let alike = before.wrapping_sub(since) as i32 >= 0 && self.known(word(since, 0));
        // Where members take turns, and where slots rotate, which room it is depends on all. (What this finds
        // out is beyond the beginning of the run, so that all are asked once.)
        if !alike || self.shares_cores() || self.team.config().rotates {
            return self.room_free(len).await;
        }
        let target = word(before.wrapping_add(1), 0);
        if self.known(target) || reached(notes.behind.load(Ordering::Relaxed), target) {
            return Ok(());
        }
        let mut least = None;
        for &member in &near.members {
            least = Some(self.less(least, self.reader(member, target).await?));
        }
        notes.behind.store(least.unwrap_or(target), Ordering::Relaxed);
        Ok(())
    }

    /// Says what is known from another source: all others have begun the operation before this one.
    pub fn met_before(&self) {
        let before = word(self.op.wrapping_sub(1), 0);
        if !self.known(before) {
            self.stream.behind.store(before, Ordering::Relaxed);
        }
    }

    /// The lesser of two words, of which the first may be missing.
    pub(super) fn less(&self, one: Option<u64>, other: u64) -> u64 {
        one.filter(|&one| reached(other, one)).unwrap_or(other)
    }
}
