// SPDX-License-Identifier: BSD-3-Clause
//! The messages of processes whose shared memory is under the clock too.

use super::super::run::Told;
use super::super::spent::Cause;
use super::super::state::State;
use super::endpoint::Carrier;
use crate::endpoint::{Rank, Span, Tag};
use crate::sync::timed::Watch;

impl State<'_> {
    /// A rank spends what its side of a message takes.
    fn handle(&mut self, rank: Rank, peer: Rank, bytes: usize, sends: bool) {
        let Some(fabric) = &self.fabric else { return };
        let handling = fabric.handling(rank, peer, bytes, sends);
        let member = &mut self.members[rank as usize];
        member.until(member.now() + handling.overhead, Cause::Overhead);
        member.until(member.now() + handling.copies, Cause::Copies);
    }
}

impl Carrier for Told {
    fn post(&self, (rank, peer, sends): (Rank, Rank, bool), tag: Tag, data: Span) -> u32 {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        if sends {
            state.handle(rank, peer, data.bytes().len(), true);
        }
        let member = &state.members[rank as usize];
        let at = (member.now(), &member.path);
        let fabric = state.fabric.as_mut().expect("several nodes");
        fabric.post(&mut state.events, (rank, peer, sends), tag, data, at)
    }

    fn poll(&self, rank: Rank, id: u32) -> bool {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let member = &mut state.members[rank as usize];
        let (now, node, core) = (member.now(), member.node, member.core);
        let fabric = state.fabric.as_mut().expect("several nodes");
        let (received, by_core) = (fabric.received(id), fabric.is_copied(id));
        let done = fabric.poll(&mut state.events, id, now);
        member.mail |= !done;
        if let Some((peer, span)) = received.filter(|_| done) {
            let span = span.bytes();
            state.caches[node].lands(by_core.then_some(core), span.ptr().addr(), span.len());
            state.handle(rank, peer, span.len(), false);
        }
        done
    }

    fn abandon(&self, id: u32) {
        if let Some(fabric) = &mut self.state.borrow_mut().fabric {
            fabric.abandon(id);
        }
    }

    fn reduce(&self, _: Rank, left: Span, right: Span) {
        let (left, right) = (left.bytes(), right.bytes());
        self.read(left.ptr().addr(), left.len());
        self.write(right.ptr().addr(), right.len());
        self.combine(left.len());
        // SAFETY: who made the spans promised valid memory that no message uses now.
        unsafe { super::many::sum(left, right) };
    }

    fn copy(&self, _: Rank, from: Span, to: Span) {
        let (from, to) = (from.bytes(), to.bytes());
        self.read(from.ptr().addr(), from.len());
        self.write(to.ptr().addr(), to.len());
        // SAFETY: who made the spans promised valid memory, of the same length, that do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from.ptr(), to.ptr(), from.len()) };
    }

    fn lend(&self, rank: Rank, bytes: usize) -> *mut u8 {
        self.pool.lend(rank, bytes)
    }

    fn give_back(&self, rank: Rank, at: *mut u8, bytes: usize) {
        self.pool.give_back(rank, at, bytes);
    }
}
