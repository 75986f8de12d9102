// SPDX-License-Identifier: BSD-3-Clause
//! Temporary buffers of one length, used over and over.

use super::read;
use crate::endpoint::{Blocks, Endpoint, Result, Span, Stream, TempBuffer};
use smallvec::SmallVec;

/// Buffers of a fixed number of units for messages that are not longer. They all have that length because an
/// endpoint keeps what was given back until the operation ends.
pub struct Pool<'a, E: Endpoint + 'a> {
    ep: &'a E,
    units: usize,
    free: SmallVec<[Span; 4]>,
    /// Keeps the buffers alive as long as spans of them may be about.
    temps: SmallVec<[E::Temp<'a>; 2]>,
}

/// The memory of one message.
#[derive(Clone, Copy)]
pub struct Staged {
    /// All of the message.
    pub span: Span,
    /// The buffer that it lies in, if not in the user's memory.
    buffer: Option<Span>,
}

impl<'a, E: Endpoint> Pool<'a, E> {
    /// For messages of up to `units` units.
    pub fn new(ep: &'a E, units: usize) -> Pool<'a, E> {
        Pool { ep, units, free: SmallVec::new(), temps: SmallVec::new() }
    }

    /// For the blocks of these members, one at a time in each buffer.
    pub fn for_blocks(ep: &'a E, blocks: &impl Blocks, members: impl IntoIterator<Item = usize>) -> Pool<'a, E> {
        let staged = |member: &usize| blocks.direct(*member..*member + 1).is_none();
        Pool::new(ep, members.into_iter().filter(staged).map(|member| blocks.len(member)).max().unwrap_or(0))
    }

    fn take(&mut self, len: usize) -> Result<Staged> {
        if len == 0 {
            return Ok(Staged { span: Span::empty(), buffer: None });
        }
        let buffer = match self.free.pop() {
            Some(span) => span,
            None => {
                let temp = self.ep.temp(self.units)?;
                let span = temp.span();
                self.temps.push(temp);
                span
            }
        };
        Ok(Staged { span: buffer.slice(0..len), buffer: Some(buffer) })
    }

    /// Memory to receive `stream` in.
    pub fn incoming(&mut self, stream: &impl Stream) -> Result<Staged> {
        match stream.direct() {
            Some(span) => Ok(Staged { span, buffer: None }),
            None => self.take(stream.len()),
        }
    }

    /// Memory to send `stream` from.
    pub fn outgoing(&mut self, stream: &impl Stream) -> Result<Staged> {
        match stream.direct() {
            Some(span) => Ok(Staged { span, buffer: None }),
            None => self.copy(stream),
        }
    }

    /// A copy of `stream`.
    pub fn copy(&mut self, stream: &impl Stream) -> Result<Staged> {
        let staged = self.take(stream.len())?;
        read(self.ep, stream, 0, staged.span)?;
        Ok(staged)
    }

    /// Puts what was received in [`Pool::incoming`] memory where it belongs. The memory stays taken.
    pub fn arrived(&self, staged: &Staged, stream: &impl Stream) -> Result<()> {
        if staged.buffer.is_some() { stream.unpack(0, staged.span) } else { Ok(()) }
    }

    /// Takes the memory of a message back.
    pub fn give(&mut self, staged: Staged) {
        self.free.extend(staged.buffer);
    }
}
