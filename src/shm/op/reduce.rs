//! Reduction to a root, in the order of the members.
//!
//! Up to 56 bytes travel in the lines. Of more, the others copy fragments to their slots and the root combines them directly from
//! there; with more than two members and enough bytes, each member combines a part of every fragment ([`shared`]) and
//! the root collects the parts.

use super::combine::{Combine, fold};
use super::{all_wrote, shared};
use crate::endpoint::{Result, Span};
use crate::shm::copy;
use crate::shm::layout::LINE;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;

/// Combines `input` of all members, `input.len()` contiguous elements each, in `output` of `root`, which may be its input.
#[inline(always)]
pub async fn reduce<C: Combine>(turn: Turn<'_>, root: Member, op: &C, input: Span, output: Span) -> Result<()> {
    let bytes = input.len() * op.size();
    if bytes > LINE {
        let (members, least) = (turn.size(), turn.team().config().shared_work_min);
        return if members > 2 && bytes >= least {
            shared::reduce(turn, Some(root), op, input, output).await
        } else if turn.me() == root {
            receive(turn, op, input, output).await
        } else {
            send(turn, root, op, input).await
        };
    }
    if turn.me() == root {
        all_wrote(&turn, 1).await?;
        in_lines(&turn, op, input, output);
    } else {
        turn.line_free().await?;
        // SAFETY: the line is free, and the bytes fit.
        unsafe { copy::write(turn.payload(turn.me()), input.ptr(), bytes) };
        turn.publish(1);
    }
    turn.finish();
    Ok(())
}

/// Combines what stands in the others' lines with the caller's input.
#[inline(always)]
fn in_lines<C: Combine>(turn: &Turn<'_>, op: &C, input: Span, output: Span) {
    #[repr(align(64))]
    struct Room([u8; LINE]);
    let mut room = Room([0; LINE]);
    let mut own = input.ptr().cast_const();
    if std::ptr::eq(own, output.ptr()) {
        // SAFETY: the caller has checked that the bytes fit.
        unsafe { std::ptr::copy_nonoverlapping(own, room.0.as_mut_ptr(), input.len() * op.size()) };
        own = room.0.as_ptr();
    }
    let operand = |m| if m == turn.me() { own } else { turn.payload(m).cast_const() };
    // SAFETY: all others have published; the output is none of the operands.
    unsafe { fold(op, turn.size(), input.len(), operand, output.ptr()) };
}

async fn send<C: Combine>(turn: Turn<'_>, root: Member, op: &C, input: Span) -> Result<()> {
    let pieces = Pieces::new(&turn, op, input.len())?;
    turn.set_free().await?;
    for step in 0..pieces.steps {
        if let Some(before) = (step + 1).checked_sub(turn.depth()) {
            turn.read(root, before).await?;
        }
        let (at, count) = pieces.get(step);
        // SAFETY: the set is free, and the root is through with what the slot held before; it holds a piece.
        unsafe { copy::write(turn.slot(turn.me(), step), input.ptr().wrapping_add(at), count * op.size()) };
        turn.publish(step + 1);
    }
    turn.finish();
    Ok(())
}

async fn receive<C: Combine>(turn: Turn<'_>, op: &C, input: Span, output: Span) -> Result<()> {
    let (me, members) = (turn.me(), turn.size());
    let pieces = Pieces::new(&turn, op, input.len())?;
    // The combination may begin to write the output when it has not yet read the caller's operand.
    let aside = input.ptr() == output.ptr() && me + 2 < members;
    if aside {
        turn.set_free().await?;
    }
    for step in 0..pieces.steps {
        all_wrote(&turn, step + 1).await?;
        let (at, count) = pieces.get(step);
        let mut own = input.ptr().wrapping_add(at).cast_const();
        if aside {
            let room = turn.slot(me, step);
            // SAFETY: the set is free, and nobody reads the root's.
            unsafe { copy::write(room, own, count * op.size()) };
            own = room;
        }
        let operand = |m| if m == me { own } else { turn.slot(m, step).cast_const() };
        // SAFETY: published; the output is no operand but one that may be.
        unsafe { fold(op, members, count, operand, output.ptr().wrapping_add(at)) };
        if step + turn.depth() < pieces.steps {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}

/// Elements cut into pieces that fit a fragment.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    total: usize,
    /// Elements in a piece.
    pub each: usize,
    size: usize,
    /// How many pieces.
    pub steps: u32,
}

impl Pieces {
    /// Cuts `total` elements.
    pub fn new<C: Combine>(turn: &Turn<'_>, op: &C, total: usize) -> Result<Pieces> {
        let (size, fragment) = (op.size(), turn.fragment());
        assert!(turn.team().fits(size), "an element of {size} bytes does not fit a fragment of {fragment}");
        let each = fragment / size;
        Ok(Pieces { total, each, size, steps: turn.steps(total.div_ceil(each))? })
    }

    /// Where piece `step` begins, in bytes, and its elements.
    pub fn get(&self, step: u32) -> (usize, usize) {
        let start = step as usize * self.each;
        (start * self.size, self.each.min(self.total - start))
    }
}
