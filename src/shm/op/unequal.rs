// SPDX-License-Identifier: BSD-3-Clause
//! Data of another length than the caller has for them: an error of the program, found out at the first step
//! of their writer (src/shm/protocol/turn/lengths.rs), before anything is read. The reader goes the writer's
//! way, as far as it can, and takes what it has room for: so both stay in step, and point-to-point messages
//! would do the same. Where that cannot be, the operation fails, so that nobody waits.

use super::block::Block;
use super::divided::LOAN;
use super::{announced, fetch};
use crate::endpoint::{Blocks, Error, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::memory::layout::LINE;
use crate::shm::protocol::turn::{Current, Travel, View};
use std::future::ready;
use std::pin::Pin;

/// What becomes of a message that is longer than the place for it.
pub(super) fn fits(whole: bool) -> Result<()> {
    if whole { Ok(()) } else { Err(Error::Lengths) }
}

/// In which operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Bcast,
    Gather,
    Allgather,
}

impl Of {
    /// The operation as the writer sees it whose data travel in pieces; their length, and what a slot is for.
    fn shape<'t>(self, view: View<'t>, len: usize) -> (View<'t>, usize, usize) {
        match self {
            Of::Bcast => (view, view.piece(len), view.piece(len)),
            Of::Gather => {
                let view = view.narrowed().halved();
                (view, view.piece(len), view.piece(len))
            }
            Of::Allgather => {
                let view = view.halved();
                (view, view.fragment(), view.fragment().min(len))
            }
        }
    }

    /// So many pieces a writer publishes at most before it waits for the caller. Of more than one writer's
    /// one is through with all in a certain order, and who gathers from all writes its own meanwhile.
    fn pieces(self, view: &View<'_>) -> u32 {
        match self {
            Of::Bcast => u32::MAX,
            Of::Gather => view.depth(),
            Of::Allgather => view.depth().min(2),
        }
    }

    /// Bytes in which the caller would lend memory to writers who wait for that.
    fn loans(self, view: &View<'_>) -> usize {
        if self == Of::Gather { view.size() * LOAN } else { LOAN }
    }
}

/// What becomes of data that have been taken.
pub(super) type Taken<'a> = Pin<Box<dyn Future<Output = Result<bool>> + Send + 'a>>;

/// Nothing is taken.
#[cold]
#[inline(never)]
pub(super) fn refused<'a>() -> Taken<'a> {
    Box::pin(ready(Err(Error::Lengths)))
}

/// Takes what a member has published of a length that is not that of `data`. Whether that is all.
#[cold]
#[inline(never)]
pub(super) fn take<'a>(turn: View<'a>, member: Member, data: &'a dyn Stream, of: Of) -> Taken<'a> {
    Box::pin(async move {
        let Some((len, travel)) = turn.told(member) else { return Err(Error::Lengths) };
        let Some(view) = turn.of_other_length(len > LINE) else { return Err(Error::Lengths) };
        let part = len.min(data.len());
        match travel {
            Travel::AtOnce if !view.has_room(len) => return Err(Error::Lengths),
            // SAFETY: published, and it holds so much.
            Travel::AtOnce => unsafe { copy::unpack(data, 0, part, view.room(member, len), false) }?,
            Travel::InPieces => {
                let (view, piece, slot) = of.shape(view, len);
                let steps = view.steps(len.div_ceil(piece))?;
                if steps > of.pieces(&view) {
                    return Err(Error::Lengths);
                }
                for step in 0..steps {
                    view.wrote(member, step + 1).await?;
                    let at = step as usize * piece;
                    let end = part.min(at + piece);
                    if at < end {
                        let from = view.slot_of(member, step, slot);
                        // SAFETY: published; the slot holds a piece.
                        unsafe { copy::unpack(data, at, end - at, from, false) }?;
                    }
                    if of == Of::Bcast && step + view.depth() < steps {
                        view.acknowledge(step + 1);
                    }
                }
            }
            Travel::Lent | Travel::LentBothWays => {
                if travel == Travel::LentBothWays && !view.has_published() {
                    let loans = of.loans(&view);
                    view.room_free(loans).await?;
                    let nothing = vec![0_u8; loans];
                    // SAFETY: free, and it holds so much.
                    unsafe { copy::write(view.room(view.me(), loans), nothing.as_ptr(), loans) };
                    view.publish(1);
                }
                fetch(&turn, member, announced(&turn, member), data, 0..part)?;
            }
            Travel::Otherwise => return Err(Error::Lengths),
        }
        Ok(part == len)
    })
}

/// [Takes](take) what a short operation gets. By value: what has an address lies in memory, also in an
/// operation that never comes here.
#[cold]
#[inline(never)]
pub(super) fn take_data<'a, S: Stream>(turn: Current<'a>, member: Member, data: &'a S) -> Taken<'a> {
    take(turn.into(), member, data, Of::Bcast)
}

/// The same of a member's block.
#[cold]
#[inline(never)]
pub(super) fn take_block<'a, B: Blocks>(turn: Current<'a>, member: Member, all: &'a B, of: Of) -> Taken<'a> {
    take_block_of_any(turn.into(), member, all, of)
}

fn take_block_of_any<'a>(turn: View<'a>, member: Member, all: &'a dyn Blocks, of: Of) -> Taken<'a> {
    Box::pin(async move { take(turn, member, &Block::new(all, member), of).await })
}

/// Members that have sent other lengths than the caller has room for, and whether any has sent more.
#[derive(Default)]
pub(super) struct Odd {
    pub members: Vec<Member>,
    pub cut: bool,
}

impl Odd {
    /// [Takes](take) what a member has sent.
    #[cold]
    #[inline(never)]
    pub fn take<'a>(
        &'a mut self,
        turn: View<'a>,
        member: Member,
        data: &'a dyn Stream,
        of: Of,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>> {
        Box::pin(async move {
            self.members.push(member);
            self.cut |= !take(turn, member, data, of).await?;
            Ok(())
        })
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
