// SPDX-License-Identifier: BSD-3-Clause
//! The ways, operation by operation.

use std::ops::Range;

use crate::call;
use crate::error::Result;
use crate::node::{Transfer, transfer};

use super::super::call::Target;
use super::super::table::Kind;
use super::Bare;
use super::meeting::{Line, Meeting};

/// One call on one rank.
pub struct Place<'a> {
    /// Which form.
    pub bare: &'a Bare,
    /// Where from.
    pub send: *const u8,
    /// Where to.
    pub recv: *mut u8,
    /// The root, where there is one.
    pub root: usize,
    /// The reduction and its datatype.
    pub to: &'a Target,
}

impl Place<'_> {
    fn meeting(&self) -> &Meeting {
        &self.bare.meeting
    }

    fn is_root(&self) -> bool {
        self.meeting().me == self.root
    }

    /// Block `i` of the send buffer.
    fn sent(&self, i: usize) -> *const u8 {
        self.send.wrapping_add(i * self.bare.bytes)
    }

    /// Block `i` of the receive buffer.
    fn received(&self, i: usize) -> *mut u8 {
        self.recv.wrapping_add(i * self.bare.bytes)
    }

    /// Copies a block within this rank's memory.
    fn own(&self, from: *const u8, to: *mut u8) {
        // SAFETY: both are blocks of buffers that the case has made for this operation.
        unsafe { to.copy_from_nonoverlapping(from, self.bare.bytes) };
    }

    /// `into[i] = from[i] ⊕ into[i]` for so many bytes.
    fn combine(&self, from: *const u8, into: *mut u8, bytes: usize) -> Result<()> {
        let count = self.bare.elements(bytes);
        call!(MPI_Reduce_local(from.cast(), into.cast(), count, self.to.datatype, self.to.op))
    }

    /// Everybody tells all.
    pub fn barrier(&self) {
        self.meeting().raise(Line::All);
        for rank in self.meeting().others() {
            self.meeting().await_raised(rank, Line::All);
        }
    }

    /// The root's contents are there for all.
    pub fn bcast(&self) {
        if self.is_root() {
            self.meeting().write(Line::All, self.recv);
        } else {
            self.meeting().read(self.root, Line::All, self.recv);
        }
    }

    /// All but the root have contents for it.
    pub fn gather(&self) {
        if !self.is_root() {
            return self.meeting().write(Line::All, self.send);
        }
        self.own(self.send, self.received(self.root));
        for rank in self.meeting().others() {
            self.meeting().read(rank, Line::All, self.received(rank));
        }
    }

    /// The root has other contents for each.
    pub fn scatter(&self) {
        let me = self.meeting().me;
        if !self.is_root() {
            return self.meeting().read(self.root, Line::To(me), self.recv);
        }
        for rank in self.meeting().others() {
            self.meeting().write(Line::To(rank), self.sent(rank));
        }
        self.own(self.sent(me), self.recv);
    }

    /// Everybody's contents are there for all.
    pub fn allgather(&self) {
        self.meeting().write(Line::All, self.send);
        self.own(self.send, self.received(self.meeting().me));
        for rank in self.meeting().others() {
            self.meeting().read(rank, Line::All, self.received(rank));
        }
    }

    /// Everybody has other contents for each.
    pub fn alltoall(&self) {
        let me = self.meeting().me;
        for rank in self.meeting().others() {
            self.meeting().write(Line::To(rank), self.sent(rank));
        }
        self.own(self.sent(me), self.received(me));
        for rank in self.meeting().others() {
            self.meeting().read(rank, Line::To(me), self.received(rank));
        }
    }

    /// The root, or everybody, combines all operands.
    pub fn reduce(&self) -> Result<()> {
        let all = self.bare.kind == Kind::Allreduce;
        if all || !self.is_root() {
            self.meeting().write(Line::All, self.send);
        }
        if !all && !self.is_root() {
            return Ok(());
        }
        self.own(self.send, self.recv);
        let mut combined = Ok(());
        for rank in self.meeting().others() {
            self.meeting().each_part(rank, Line::All, |from, part| {
                if combined.is_ok() {
                    combined = self.combine(from, self.recv.wrapping_add(part.start), part.len());
                }
            });
        }
        combined
    }

    /// The same, but each combines its part for all who want it.
    pub fn share_work(&self) -> Result<()> {
        let meeting = self.meeting();
        meeting.write(Line::All, self.send);
        let part = self.part(meeting.me);
        let made = meeting.contents(meeting.me, Line::Made).wrapping_add(part.start);
        // SAFETY: the part lies in the send buffer, and in the room for what this rank makes.
        unsafe { made.copy_from_nonoverlapping(self.send.add(part.start), part.len()) };
        let mut combined = Ok(());
        for rank in meeting.others() {
            let from = meeting.whole(rank, Line::All).wrapping_add(part.start);
            combined = combined.and_then(|()| self.combine(from, made, part.len()));
        }
        meeting.raise(Line::Made);
        if self.bare.kind == Kind::Reduce && !self.is_root() {
            return combined;
        }
        for rank in (0..meeting.size).map(|i| (meeting.me + i) % meeting.size) {
            if rank != meeting.me {
                meeting.await_raised(rank, Line::Made);
            }
            let part = self.part(rank);
            let from = meeting.contents(rank, Line::Made).wrapping_add(part.start);
            // SAFETY: made; the part lies in the receive buffer.
            unsafe { self.recv.add(part.start).copy_from_nonoverlapping(from, part.len()) };
        }
        combined
    }

    /// A rank's part of the operands, in bytes.
    fn part(&self, rank: usize) -> Range<usize> {
        let Bare { bytes, element, .. } = *self.bare;
        let end = |ranks: usize| bytes / element * ranks / self.meeting().size * element;
        end(rank)..end(rank + 1)
    }

    /// From private memory to private memory. Nobody leaves before its buffers are its own again.
    pub fn directly(&self) -> Result<()> {
        let meeting = self.meeting();
        let (me, bytes) = (meeting.me, self.bare.bytes);
        let block = |i: usize| i * bytes;
        let (mine, rooted) = match self.bare.kind {
            Kind::Bcast | Kind::Gather | Kind::Gatherv => (self.recv.cast_const(), true),
            Kind::Scatter | Kind::Scatterv => (self.send, true),
            _ => (self.send, false),
        };
        let mut moved = Ok(());
        if !rooted || self.is_root() {
            meeting.tell(Line::All, mine as u64);
            match self.bare.kind {
                Kind::Bcast => {}
                Kind::Scatter | Kind::Scatterv => self.own(self.sent(me), self.recv),
                Kind::Alltoall | Kind::Alltoallv => self.own(self.sent(me), self.received(me)),
                _ => self.own(self.send, self.received(me)),
            }
        }
        for rank in meeting.others().filter(|rank| !rooted || (*rank == self.root && !self.is_root())) {
            let there = meeting.told(rank, Line::All) as usize;
            let (way, local, at) = match self.bare.kind {
                Kind::Bcast => (Transfer::Read, self.recv, 0),
                Kind::Gather | Kind::Gatherv => (Transfer::Write, self.send.cast_mut(), block(me)),
                Kind::Scatter | Kind::Scatterv => (Transfer::Read, self.recv, block(me)),
                Kind::Alltoall | Kind::Alltoallv => (Transfer::Read, self.received(rank), block(me)),
                _ => (Transfer::Read, self.received(rank), 0),
            };
            moved = moved.and(transfer(self.bare.processes[rank], way, local, there + at, bytes));
        }
        if !rooted || !self.is_root() {
            meeting.raise(Line::Read);
        }
        if !rooted || self.is_root() {
            for rank in meeting.others() {
                meeting.await_raised(rank, Line::Read);
            }
        }
        moved
    }
}
