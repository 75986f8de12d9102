//! Reduction to all, in the order of the members, so that all have bitwise the same result.
//!
//! Up to 56 bytes travel in the lines, and everybody combines everything; so it is with fragments in slots while latency counts
//! more than work. Otherwise each member combines a part of every fragment, and all collect the parts: less to combine even for two
//! members, and no more to copy between caches.

use super::combine::{Combine, fold};
use super::reduce::Pieces;
use super::{all_wrote, shared};
use crate::endpoint::{Result, Span};
use crate::shm::copy;
use crate::shm::layout::LINE;
use crate::shm::turn::Turn;

/// Combines `input` of all members, `input.len()` contiguous elements each, in `output` of all, which may be the input.
#[inline(always)]
pub async fn allreduce<C: Combine>(turn: Turn<'_>, op: &C, input: Span, output: Span) -> Result<()> {
    let bytes = input.len() * op.size();
    if bytes > LINE {
        return if turn.size() > 1 && bytes >= turn.team().config().shared_work_min {
            shared::reduce(turn, None, op, input, output).await
        } else {
            everyone(turn, op, input, output).await
        };
    }
    turn.line_free().await?;
    // SAFETY: the line is free, and the bytes fit.
    unsafe { copy::write(turn.payload(turn.me()), input.ptr(), bytes) };
    turn.publish(1);
    all_wrote(&turn, 1).await?;
    // SAFETY: all have published; the output is in nobody's line.
    unsafe { fold(op, turn.size(), input.len(), |m| turn.payload(m).cast_const(), output.ptr()) };
    turn.finish();
    Ok(())
}

/// Everybody combines everything.
async fn everyone<C: Combine>(turn: Turn<'_>, op: &C, input: Span, output: Span) -> Result<()> {
    let pieces = Pieces::new(&turn, op, input.len())?;
    // With more than one slot, the next piece is on its way to the others while this one is combined.
    let ahead = u32::from(turn.depth() > 1);
    let mut put = 0;
    for step in 0..pieces.steps {
        while put < pieces.steps.min(step + 1 + ahead) {
            turn.slot_free(put).await?;
            let (at, count) = pieces.get(put);
            // SAFETY: the slot is free, and holds a piece.
            unsafe { copy::write(turn.slot(turn.me(), put), input.ptr().wrapping_add(at), count * op.size()) };
            put += 1;
            turn.publish(put);
        }
        all_wrote(&turn, step + 1).await?;
        let (at, count) = pieces.get(step);
        let operand = |m| turn.slot(m, step).cast_const();
        // SAFETY: published; the output is in nobody's slot.
        unsafe { fold(op, turn.size(), count, operand, output.ptr().wrapping_add(at)) };
        if step + turn.depth() < pieces.steps {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}
