// SPDX-License-Identifier: BSD-3-Clause
//! What members read where it lies, or else [ask](crate::shm::turn::asking) for.

use super::block::Block;
use super::fetch;
use crate::endpoint::{Blocks, Error, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;
use crate::shm::turn::asking::{Lend, Nothing};
use std::ops::Range;

/// Lent to `readers()`, to all of whom the caller writes in its queue what it does not lend; `copy` is
/// [`Lend::copy`].
pub(super) struct Lent<R, C> {
    pub readers: R,
    pub copy: C,
}

impl<R, C> Lend for Lent<R, C>
where
    R: Fn() -> Vec<Member> + Sync,
    C: Fn(Member, Range<usize>, *mut u8) -> Result<bool> + Sync,
{
    fn readers(&self) -> Vec<Member> {
        (self.readers)()
    }

    fn copy(&self, to: Member, part: Range<usize>, room: *mut u8) -> Result<bool> {
        (self.copy)(to, part, room)
    }
}

/// Copies a part of `data` to `room`, which holds so much; false: there is not so much.
pub(super) fn copy_part<S: Stream + ?Sized>(data: &S, part: Range<usize>, room: *mut u8) -> Result<bool> {
    if part.end > data.len() {
        return Ok(false);
    }
    // SAFETY: it has the part, and the caller promises the room.
    unsafe { copy::pack(data, part.start, part.len(), room) }.map(|()| true)
}

/// Whether something has been read; if not because its reader could not, it is to be asked for.
pub(super) fn is_read(fetched: Result<()>) -> Result<bool> {
    match fetched {
        Err(Error::Fetch(_)) => Ok(false),
        fetched => fetched.map(|()| true),
    }
}

/// [Reads](fetch) a part of `data`, which lie at address `from` of a member's memory, or asks for it; at the
/// end of an operation in which the caller lends nothing.
pub(super) async fn get_part<S: Stream + ?Sized>(
    turn: &Turn<'_>,
    member: Member,
    from: u64,
    data: &S,
    part: Range<usize>,
) -> Result<()> {
    if is_read(fetch(turn, member, from, data, part.clone()))? {
        return Ok(());
    }
    // SAFETY: of a part of the data, with as many bytes.
    let take = |_: Member, at: usize, from: *const u8, len: usize| unsafe { copy::unpack(data, at, len, from, false) };
    turn.ask(&Nothing, vec![(member, part)], &take).await
}

/// Asks for the beginning of blocks of `all`, of so many bytes, at the end of an operation.
pub(super) async fn ask_for_blocks<B: Blocks + ?Sized>(
    turn: &Turn<'_>,
    lent: &dyn Lend,
    missing: Vec<(Member, usize)>,
    all: &B,
) -> Result<()> {
    let take = |member: Member, at: usize, from: *const u8, len: usize| {
        // SAFETY: of the beginning of the block, with as many bytes.
        unsafe { copy::unpack(&Block::new(all, member), at, len, from, false) }
    };
    turn.ask(lent, missing.into_iter().map(|(member, len)| (member, 0..len)).collect(), &take).await
}
