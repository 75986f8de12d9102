// SPDX-License-Identifier: BSD-3-Clause
//! The buffers of a case: sets of one send and one receive buffer, with guards around the latter, filled with
//! and checked against the contents that the shape says.

use std::alloc::{Layout as Block, alloc, dealloc};

use crate::error::{Error, Result};

use super::content::{self, CANARY};
use super::reduction::Inputs;
use super::shape::{Piece, Role, What, Who};
use super::types::Layout;

/// Bytes before and after a receive buffer that nobody may write.
pub const GUARD: usize = 64;
/// Bytes of packed contents that are made at a time.
const CHUNK: usize = 8192;

/// One call's contents.
pub struct Contents<'a> {
    /// The reduction's inputs; also seed and number of the call.
    pub inputs: Inputs,
    /// The root.
    pub root: usize,
    /// The datatype.
    pub layout: &'a Layout,
}

/// Memory of all sets.
pub struct Buffers {
    memory: *mut u8,
    block: Block,
    sets: usize,
    stride: usize,
    recv_at: usize,
    send_len: usize,
    recv_len: usize,
    scratch: Vec<u8>,
}

/// How a set lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Bytes from a set to the next.
    pub stride: usize,
    recv_at: usize,
    send_len: usize,
    recv_len: usize,
}

impl Plan {
    /// A set of buffers of so many bytes, at multiples of `align`.
    pub fn new(send_len: usize, recv_len: usize, align: usize) -> Option<Plan> {
        let recv_at = send_len.checked_add(GUARD)?.checked_next_multiple_of(align)?;
        let stride = recv_at.checked_add(recv_len)?.checked_add(GUARD)?.checked_next_multiple_of(align)?;
        Some(Plan { stride, recv_at, send_len, recv_len })
    }
}

impl Buffers {
    /// Allocates `sets` sets, for a datatype whose elements have `size` bytes.
    pub fn new(plan: Plan, sets: usize, align: usize, size: usize) -> Result<Buffers> {
        let bytes = plan.stride.checked_mul(sets).filter(|bytes| *bytes <= isize::MAX as usize - align);
        let wanted = || {
            Error::usage(format!(
                "cannot allocate {sets} sets of buffers of {} bytes each: ask for smaller messages",
                plan.stride
            ))
        };
        let block = bytes.and_then(|bytes| Block::from_size_align(bytes, align).ok()).ok_or_else(wanted)?;
        // SAFETY: the size is not 0, for a set has guards.
        let memory = unsafe { alloc(block) };
        if memory.is_null() {
            return Err(wanted());
        }
        // SAFETY: fresh memory of this size.
        unsafe { memory.write_bytes(0, block.size()) };
        let Plan { stride, recv_at, send_len, recv_len } = plan;
        Ok(Buffers { memory, block, sets, stride, recv_at, send_len, recv_len, scratch: vec![0; CHUNK.max(size)] })
    }

    /// Bytes of all sets.
    pub fn bytes(&self) -> usize {
        self.block.size()
    }

    /// The number of sets.
    pub fn sets(&self) -> usize {
        self.sets
    }

    /// Start of a set's send buffer.
    pub fn send(&self, set: usize) -> *mut u8 {
        debug_assert!(set < self.sets);
        // SAFETY: within the memory: callers number sets below `sets`.
        unsafe { self.memory.add(set * self.stride) }
    }

    /// Start of a set's receive buffer.
    pub fn recv(&self, set: usize) -> *mut u8 {
        // SAFETY: within the set.
        unsafe { self.send(set).add(self.recv_at) }
    }

    /// The send buffer, the receive buffer with its guards, and room for packed contents.
    fn parts(&mut self, set: usize) -> (&mut [u8], &mut [u8], &mut [u8]) {
        // SAFETY: both lie in the set without overlap (a guard is between them), and MPI uses none of it now:
        // a case fills and checks before and after its call.
        unsafe {
            let send = std::slice::from_raw_parts_mut(self.send(set), self.send_len);
            let recv = std::slice::from_raw_parts_mut(self.recv(set).sub(GUARD), self.recv_len + 2 * GUARD);
            (send, recv, &mut self.scratch)
        }
    }

    /// Fills a set for a call. `guarded`: what the call must not write is marked.
    pub fn fill(&mut self, set: usize, role: &Role, contents: &Contents, guarded: bool) {
        let (send, recv, scratch) = self.parts(set);
        if guarded {
            content::fill(CANARY, 0, recv);
            if !contents.layout.dense() {
                content::fill(CANARY, 0, send);
            }
        }
        let end = recv.len() - GUARD;
        let to = if role.in_recv { &mut recv[GUARD..end] } else { send };
        for piece in &role.input {
            contents.write(piece, to, scratch);
        }
    }

    /// Checks a set after its call: the first thing that is wrong.
    pub fn check(&mut self, set: usize, role: &Role, contents: &Contents) -> std::result::Result<(), String> {
        let (send, recv, scratch) = self.parts(set);
        let (inner, extent) = (recv.len() - GUARD, contents.layout.extent);
        for piece in &role.output {
            contents.compare(piece, &recv[GUARD..inner], GUARD, scratch)?;
        }
        let mut kept = vec![(0, GUARD), (inner, recv.len())];
        if !role.undefined {
            let mut end = GUARD;
            // Outputs are in the order of memory.
            for piece in &role.output {
                kept.push((end, GUARD + piece.at * extent));
                end = GUARD + (piece.at + piece.count) * extent;
            }
            kept.push((end, inner));
        }
        for (from, to) in kept {
            if let Some(i) = content::differs(CANARY, from, &recv[from..to]) {
                let at = (from + i) as isize - GUARD as isize;
                return Err(format!(
                    "byte {at} from the start of the receive buffer was written, which lies outside of what is received"
                ));
            }
        }
        if !role.in_recv {
            for piece in &role.input {
                contents
                    .compare(piece, send, 0, scratch)
                    .map_err(|text| format!("the send buffer was changed: {text}"))?;
            }
        }
        Ok(())
    }

    /// Flips a bit of the result in a set; false if there is none.
    pub fn spoil(&mut self, set: usize, role: &Role, layout: &Layout) -> bool {
        let Some(piece) = role.output.iter().rev().find(|piece| piece.count > 0) else { return false };
        let (_, recv, _) = self.parts(set);
        let (at, len) = layout.pieces[layout.pieces.len() - 1];
        recv[GUARD + (piece.at + piece.count - 1) * layout.extent + at + len - 1] ^= 1;
        true
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.memory, self.block) };
    }
}

impl Contents<'_> {
    fn key(&self, who: Who, slot: usize) -> u64 {
        let rank = match who {
            Who::Rank(rank) => rank,
            Who::Root => self.root,
        };
        content::key(self.inputs.seed, self.inputs.call, rank, slot)
    }

    /// The packed contents of a piece from element `first` on.
    fn packed(&self, what: &What, first: usize, out: &mut [u8]) {
        match what {
            What::Block(who, slot) => content::fill(self.key(*who, *slot), first * self.layout.size, out),
            What::Fold(ranks, from) => self.inputs.fold(ranks.clone(), from + first, out),
        }
    }

    /// Elements that are made at a time.
    fn step(&self, scratch: &mut [u8]) -> usize {
        (scratch.len() / self.layout.size).max(1)
    }

    fn write(&self, piece: &Piece, buffer: &mut [u8], scratch: &mut [u8]) {
        let layout = self.layout;
        let place = piece.at * layout.extent..(piece.at + piece.count) * layout.extent;
        let memory = &mut buffer[place];
        if layout.dense() {
            return self.packed(&piece.what, 0, memory);
        }
        let step = self.step(scratch);
        for first in (0..piece.count).step_by(step) {
            let n = step.min(piece.count - first);
            let packed = &mut scratch[..n * layout.size];
            self.packed(&piece.what, first, packed);
            for (element, to) in
                packed.chunks_exact(layout.size).zip(memory[first * layout.extent..].chunks_mut(layout.extent))
            {
                let mut from = 0;
                for (at, len) in &layout.pieces {
                    to[*at..at + len].copy_from_slice(&element[from..from + len]);
                    from += len;
                }
            }
        }
    }

    /// Compares a piece of `buffer`, which lies at `canary` of the canaries' stream.
    fn compare(
        &self,
        piece: &Piece,
        buffer: &[u8],
        canary: usize,
        scratch: &mut [u8],
    ) -> std::result::Result<(), String> {
        let layout = self.layout;
        let start = piece.at * layout.extent;
        let memory = &buffer[start..start + piece.count * layout.extent];
        if let (true, What::Block(who, slot)) = (layout.dense(), &piece.what) {
            let Some(i) = content::differs(self.key(*who, *slot), 0, memory) else { return Ok(()) };
            let (element, size) = (i / layout.size, layout.size);
            let mut expected = vec![0; size];
            self.packed(&piece.what, element, &mut expected);
            return Err(self.report(piece, element, &memory[element * size..][..size], &expected));
        }
        let step = self.step(scratch);
        for first in (0..piece.count).step_by(step) {
            let n = step.min(piece.count - first);
            let packed = &mut scratch[..n * layout.size];
            self.packed(&piece.what, first, packed);
            if layout.dense() && *packed == memory[first * layout.size..][..packed.len()] {
                continue;
            }
            for (i, expected) in packed.chunks_exact(layout.size).enumerate() {
                let at = (first + i) * layout.extent;
                self.element(piece, first + i, &memory[at..at + layout.extent], expected, canary + start + at)?;
            }
        }
        Ok(())
    }

    fn element(
        &self,
        piece: &Piece,
        i: usize,
        memory: &[u8],
        expected: &[u8],
        canary: usize,
    ) -> std::result::Result<(), String> {
        let mut from = 0;
        for (at, len) in &self.layout.pieces {
            if memory[*at..at + len] != expected[from..from + len] {
                let got: Vec<u8> =
                    self.layout.pieces.iter().flat_map(|(at, len)| &memory[*at..at + len]).copied().collect();
                return Err(self.report(piece, i, &got, expected));
            }
            from += len;
        }
        for (at, len) in &self.layout.holes {
            if let Some(wrong) = content::differs(CANARY, canary + at, &memory[*at..at + len]) {
                return Err(format!(
                    "byte {} of element {i} was written, which lies in a gap of the datatype",
                    at + wrong
                ));
            }
        }
        Ok(())
    }

    fn report(&self, piece: &Piece, element: usize, got: &[u8], expected: &[u8]) -> String {
        let what = match &piece.what {
            What::Block(Who::Rank(rank), _) => format!("of the block of rank {rank}"),
            What::Block(Who::Root, _) => format!("of the block of root {}", self.root),
            What::Fold(ranks, _) if ranks.len() == 1 => format!("of rank {}'s vector", ranks.start),
            What::Fold(ranks, _) => format!("of the reduction over ranks {} to {}", ranks.start, ranks.end - 1),
        };
        let value = |bytes: &[u8]| match (&piece.what, self.layout.plain) {
            (What::Fold(..), Some(base)) => base.show(bytes),
            _ => bytes.iter().take(32).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" "),
        };
        format!("element {element} {what} is {}, must be {}", value(got), value(expected))
    }
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
