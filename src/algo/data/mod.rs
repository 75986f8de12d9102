// SPDX-License-Identifier: BSD-3-Clause
//! Streams and blocks on their way into messages and out of them.
//!
//! Data that lies in memory as one run goes as it is; other data is packed into temporary buffers. What an
//! algorithm sends is a [`Stream`]: one [`Block`], [`Several`] of them, or a [`Plain`] run. A composition of
//! levels gives an algorithm blocks that are made of several ranks' blocks ([`Grouped`]), or lie packed in a
//! temporary buffer ([`Packed`]).

mod announce;
mod pool;
mod views;

pub(crate) use announce::{announced, numbers};
pub(super) use pool::{Pool, Staged};
pub use views::{Block, Grouped, Members, Packed, Plain, Several};

use crate::endpoint::{Blocks, Endpoint, Error, Result, Span, Stream, TempBuffer};

/// Bytes that are copied at a time from a stream that has to be packed to one that has to be unpacked.
const PIECE: usize = 64 << 10;

/// A member's data in an operation with a root, where the root has a block per member and the others have
/// their own.
pub enum Role<'a, S, B> {
    /// The root.
    Root {
        /// Everybody's blocks.
        all: &'a B,
        /// Its own data; none where they are, and stay, in its block (in place).
        own: Option<&'a S>,
    },
    /// Another member.
    Other {
        /// Its data.
        own: &'a S,
    },
}

/// Copies the bytes of `stream` from `at` on to all of `to`.
pub fn read<E: Endpoint, S: Stream>(ep: &E, stream: &S, at: usize, to: Span) -> Result<()> {
    match stream.direct() {
        _ if to.is_empty() => {}
        Some(data) => ep.copy(data.slice(at..at + to.len()), to),
        None => stream.pack(at, to)?,
    }
    Ok(())
}

/// Copies all of `from` over the bytes of `stream` from `at` on.
pub fn write<E: Endpoint, S: Stream>(ep: &E, stream: &S, at: usize, from: Span) -> Result<()> {
    match stream.direct() {
        _ if from.is_empty() => {}
        Some(data) => ep.copy(from, data.slice(at..at + from.len())),
        None => stream.unpack(at, from)?,
    }
    Ok(())
}

/// Copies a stream over another one of the same length. Needs a buffer of at most 64 KiB. A longer one is an
/// error of the program, and nothing is copied. Nor is it where there is no place at all, as Open MPI's own
/// operations do: that is none.
pub fn transfer<E: Endpoint, S: Stream, T: Stream>(ep: &E, from: &S, to: &T) -> Result<()> {
    match to.len() {
        0 => return Ok(()),
        room if from.len() > room => {
            ep.note(Error::Lengths);
            return Ok(());
        }
        _ => {}
    }
    if let Some(data) = from.direct() {
        return write(ep, to, 0, data);
    }
    if let Some(data) = to.direct() {
        return read(ep, from, 0, data.slice(0..from.len()));
    }
    let len = from.len();
    let temp = ep.temp(len.min(PIECE))?;
    for at in (0..len).step_by(PIECE) {
        let piece = temp.span().slice(0..PIECE.min(len - at));
        from.pack(at, piece)?;
        to.unpack(at, piece)?;
    }
    Ok(())
}

/// Where a message of all of `stream` lies: in the stream itself, else in a new temporary buffer, whose
/// contents are undefined.
pub(super) fn place<'a, E: Endpoint, S: Stream>(ep: &'a E, stream: &S) -> Result<(Span, Option<E::Temp<'a>>)> {
    match stream.direct() {
        Some(data) => Ok((data, None)),
        None if stream.is_empty() => Ok((Span::empty(), None)),
        None => {
            let temp = ep.temp(stream.len())?;
            Ok((temp.span(), Some(temp)))
        }
    }
}

/// Copies the own data of a member to its block, if they are not in place.
pub(super) fn contribute<E: Endpoint, S: Stream, B: Blocks>(
    ep: &E,
    own: Option<&S>,
    into: &B,
    member: usize,
) -> Result<()> {
    own.map_or(Ok(()), |own| transfer(ep, own, &Block { blocks: into, member }))
}
