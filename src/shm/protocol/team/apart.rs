// SPDX-License-Identifier: BSD-3-Clause
//! Members that are not in the same operation as one another, as a program has given them lengths that
//! differ: what one waits for will not come.

use super::{Stream, Team};
use crate::shm::memory::Member;
use crate::shm::memory::layout::{NOT_YET, Part, StreamControl, reached, word};
use crate::sync::shared::Ordering;

impl Team {
    /// What a member writes for a stream whose controls all know.
    fn of_stream<'t>(&'t self, stream: &'t Stream, member: Member) -> Option<&'t StreamControl> {
        let controls = stream.controls.get()?.as_ref()?;
        // SAFETY: the directory says that it is there; it is only accessed through shared words.
        Some(unsafe { &*controls[member].0 })
    }

    /// Whether a member is through with the caller's operation of a stream: it publishes nothing more for it.
    fn is_through(&self, stream: &Stream, member: Member) -> bool {
        let after = word(stream.next.load(Ordering::Relaxed).wrapping_add(1), 0);
        // SYNC(read): acquires what the member has published before.
        let seen = self.of_stream(stream, member).map(|control| control.read.word.load(Ordering::Acquire));
        seen.is_some_and(|seen| reached(seen, after))
    }

    /// Whether what one waits for from a member in an operation of a stream will not come, unless it has come
    /// by now: the member is through with the operation; or it waits for a queue of the caller's, which does
    /// not need any for this operation.
    #[cold]
    #[inline(never)]
    pub(in crate::shm) fn goes_on_without(&self, stream: &Stream, member: Member) -> bool {
        let queue = |member: Member| {
            // SYNC(directory): acquires what the member has published before.
            self.control(member).directory[stream.id][Part::Queue as usize].load(Ordering::Acquire)
        };
        self.is_through(stream, member) || (queue(self.me()) == NOT_YET && queue(member) != NOT_YET)
    }
}
