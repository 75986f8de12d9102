//! Prefix reduction: member i gets the combination of the members up to itself, or before itself.
//!
//! Up to 56 bytes travel in the lines, less than 1 KiB in short slots, and each member combines what it
//! needs. Of more, each member takes fragment by fragment what the one before has combined, adds its own, and
//! leaves that in its slot for the next one: one combination per byte and member, and the fragments follow
//! each other down the line of members.

use super::combine::Combine;
use super::reduce::Pieces;
use super::short::reductions::{Prefix, Reduction};
use super::{short, tally, wrote_alike};
use crate::endpoint::{Result, Span};
use crate::shm::copy;
use crate::shm::policy::{Operation, Way};
use crate::shm::turn::Turn;
use crate::sync::shared::{will_read, will_write};

/// Combines `input` of the members up to the caller (or before it, if `exclusive`: then member 0's output is
/// not touched) in `output`, which may be the input.
pub fn scan<C: Combine>(
    turn: Turn<'_>,
    exclusive: bool,
    op: &C,
    input: Span,
    output: Span,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Reduction { role: Prefix { exclusive }, op, input, output })
}

/// From member to member.
pub(super) async fn long<C: Combine>(turn: Turn<'_>, exclusive: bool, op: &C, input: Span, output: Span) -> Result<()> {
    tally::count(Operation::Scan, Way::Chain);
    let turn = turn.saying(input.len() * op.size());
    let (me, last) = (turn.me(), turn.size() - 1);
    let pieces = Pieces::new(&turn, op, input.len())?;
    turn.set_free().await?;
    turn.note_operand(0, input.len() * op.size());
    for step in 0..pieces.steps {
        if let Some(before) = step.checked_sub(turn.depth())
            && me < last
        {
            turn.read(me + 1, before + 1).await?;
        }
        if me > 0 {
            wrote_alike(&turn, me - 1, step + 1, input.len() * op.size()).await?;
        }
        let (at, count) = pieces.get(step);
        let bytes = count * op.size();
        let (from, to) = (input.ptr().wrapping_add(at), output.ptr().wrapping_add(at));
        op.needs(from, bytes)?;
        if me < last {
            let slot = turn.slot(me, step);
            will_write(slot, bytes);
            // SAFETY: the slot is free, and holds a piece; that of the member before is published.
            unsafe {
                if me == 0 {
                    copy::write(slot, from, bytes);
                } else {
                    let before = turn.slot(me - 1, step);
                    will_read(before, bytes);
                    op.reduce_into(before, from, slot, count);
                }
            }
            turn.publish(step + 1);
        }
        // SAFETY: a slot that is read here is the caller's own, or published; input and output may be the
        // same.
        unsafe {
            match (exclusive, me) {
                (true, 0) => {}
                (true, _) => copy::read(to, turn.slot(me - 1, step), bytes, false),
                (false, 0) => copy::within(from, to, bytes),
                (false, _) if me < last => copy::read(to, turn.slot(me, step), bytes, false),
                (false, _) => {
                    let before = turn.slot(me - 1, step);
                    will_read(before, bytes);
                    op.reduce_into(before, from, to, count);
                }
            }
        }
        if me > 0 || !exclusive {
            op.made(to, bytes);
        }
        if me > 0 && step + turn.depth() < pieces.steps {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}
