//! Reduction to all, in the order of the members, so that all have bitwise the same result.
//!
//! Up to 56 bytes travel in the lines, up to 4 KiB in short slots, and everybody combines everything; so it
//! is with fragments in slots while latency counts more than work. Otherwise each member combines a part of
//! every fragment, and all collect the parts: less to combine even for two members, and no more to copy
//! between caches. Of long operands they may [read](super::fetched) their parts where those lie.

use super::combine::{Combine, ForSlot, fold};
use super::reduce::{Pieces, must_set_aside};
use super::short::reductions::{Reduction, ToAll};
use super::{all_wrote_alike, fetched, shared, short, tally, wrote_alike};
use crate::endpoint::{Result, Span};
use crate::shm::copy;
use crate::shm::policy::{Operation, Way};
use crate::shm::turn::Turn;

/// Combines `input` of all members, `input.len()` contiguous elements each, in `output` of all, which may be
/// the input. From `zero_copy` bytes on, members may read each other's memory.
pub fn allreduce<C: Combine>(
    turn: Turn<'_>,
    op: &C,
    input: Span,
    output: Span,
    zero_copy: usize,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Reduction { role: ToAll { zero_copy }, op, input, output })
}

/// The operands are not short.
pub(super) async fn long<C: Combine>(
    turn: Turn<'_>,
    op: &C,
    input: Span,
    output: Span,
    zero_copy: usize,
) -> Result<()> {
    let turn = turn.saying(input.len() * op.size());
    let way = turn.way(Operation::Allreduce, input.len() * op.size(), op.size(), zero_copy);
    tally::count(Operation::Allreduce, way);
    match way {
        Way::SingleCopy => fetched::allreduce(turn, op, input, output).await,
        Way::ReduceBcast => through_one(turn, op, input, output).await,
        Way::Split => shared::reduce(turn, None, op, input, output).await,
        _ => everyone(turn, op, input, output).await,
    }
}

/// From how many bytes on there are other ways than that everybody combines everything out of rooms.
#[inline(always)]
pub(super) fn other_ways(turn: &Turn<'_>, element: usize, zero_copy: usize) -> usize {
    turn.team().config().shared_work_min.min(zero_copy.max(element * turn.size()))
}

/// Member 0 combines everything. Where members take turns on the cores, shared work is done no sooner, and
/// needs more turns.
async fn through_one<C: Combine>(turn: Turn<'_>, op: &C, input: Span, output: Span) -> Result<()> {
    let turn = turn.widened();
    let (me, members, size) = (turn.me(), turn.size(), op.size());
    let pieces = Pieces::new(&turn, op, input.len())?;
    if me == 0 {
        let mut result = ForSlot::new();
        for step in 0..pieces.steps {
            turn.slot_free(step).await?;
            turn.note_operand(step, input.len() * size);
            all_wrote_alike(&turn, step + 1, input.len() * size).await?;
            let (at, count) = pieces.get(step);
            let slot = turn.slot(0, step);
            let (from, to) = (input.ptr().wrapping_add(at), output.ptr().wrapping_add(at));
            op.needs(from, count * size)?;
            let operand = |m| if m == 0 { from } else { turn.slot(m, step) }.cast_const();
            // SAFETY: the others' operands are published; the caller's slot is free, and holds a piece.
            let result = unsafe { result.fold(op, members, count, operand, slot) };
            turn.publish(step + 1);
            turn.acknowledge(step + 1);
            // SAFETY: nobody else writes the result; the piece lies within the output.
            unsafe { copy::read(to, result, count * size, false) };
            op.made(to, count * size);
        }
        turn.finish();
        return Ok(());
    }
    turn.set_free().await?;
    turn.note_operand(0, input.len() * size);
    // Results are read so much later than operands are written: in between the others do their part. Member 0
    // never waits for a result to be read whose operand has not been followed by `depth` others.
    let lag = (turn.depth() / 2).min(pieces.steps);
    for step in 0..pieces.steps + lag {
        if step < pieces.steps {
            if let Some(before) = step.checked_sub(turn.depth()) {
                turn.read(0, before + 1).await?;
            }
            let (at, count) = pieces.get(step);
            let slot = turn.slot(me, step);
            let from = input.ptr().wrapping_add(at);
            op.needs(from, count * size)?;
            // SAFETY: member 0 is through with what the slot held; it holds a piece.
            unsafe { copy::write(slot, from, count * size) };
            turn.publish(step + 1);
        }
        if let Some(result) = step.checked_sub(lag) {
            wrote_alike(&turn, 0, result + 1, input.len() * size).await?;
            let (at, count) = pieces.get(result);
            let to = output.ptr().wrapping_add(at);
            // SAFETY: published; the piece lies within the output, and its operand has been combined.
            unsafe { copy::read(to, turn.slot(0, result), count * size, false) };
            op.made(to, count * size);
            turn.acknowledge(result + 1);
        }
    }
    turn.finish();
    Ok(())
}

/// Everybody combines everything.
async fn everyone<C: Combine>(turn: Turn<'_>, op: &C, input: Span, output: Span) -> Result<()> {
    let pieces = Pieces::new(&turn, op, input.len())?;
    let aside = must_set_aside(&turn, input, output);
    // With more than one slot, the next piece is on its way to the others while this one is combined.
    let ahead = u32::from(turn.depth() > 1);
    let mut put = 0;
    for step in 0..pieces.steps {
        while put < pieces.steps.min(step + 1 + ahead) {
            turn.slot_free(put).await?;
            turn.note_operand(put, input.len() * op.size());
            let (at, count) = pieces.get(put);
            let slot = turn.slot_of(turn.me(), put, pieces.bytes());
            let from = input.ptr().wrapping_add(at);
            op.needs(from, count * op.size())?;
            // SAFETY: the slot is free, and holds a piece.
            unsafe { copy::write(slot, from, count * op.size()) };
            put += 1;
            turn.publish(put);
        }
        all_wrote_alike(&turn, step + 1, input.len() * op.size()).await?;
        let (at, count) = pieces.get(step);
        let operand = |m| match m == turn.me() && !aside {
            true => input.ptr().wrapping_add(at).cast_const(),
            false => turn.slot_of(m, step, pieces.bytes()).cast_const(),
        };
        // SAFETY: published; the output is in nobody's slot, and no operand but one that may be.
        unsafe { fold(op, turn.size(), count, operand, output.ptr().wrapping_add(at)) };
        op.made(output.ptr().wrapping_add(at), count * op.size());
        if step + turn.depth() < pieces.steps {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}
