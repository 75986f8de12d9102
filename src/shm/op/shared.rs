//! Reductions whose work the members share.
//!
//! Round by round: each member copies a fragment of its input to its slot (step 2k), all but the part that it
//! will combine itself; it combines its part from all slots into its own (step 2k + 1), and collects the
//! other parts from where they were combined. So every byte crosses between caches twice, however many
//! members there are.

use super::all_wrote_alike;
use super::combine::{Combine, ForSlot};
use super::reduce::Pieces;
use crate::endpoint::{Result, Span};
use crate::pattern::chunks::Chunks;
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;

/// Combines `input` of all in `output` of `root`, or of all members.
pub(super) async fn reduce<C: Combine>(
    turn: Turn<'_>,
    root: Option<Member>,
    op: &C,
    input: Span,
    output: Span,
) -> Result<()> {
    let turn = turn.widened();
    let (me, members, size) = (turn.me(), turn.size(), op.size());
    let pieces = Pieces::new(&turn, op, input.len())?;
    turn.steps(pieces.steps as usize * 2 + 2)?;
    let mut result = ForSlot::new();
    let receives = root.is_none_or(|root| root == me);
    for round in 0..pieces.steps {
        turn.slot_free(round).await?;
        turn.note_operand(round, input.len() * size);
        let (at, count) = pieces.get(round);
        let parts = Chunks::new(count, members);
        let mine = parts.get(me);
        let room = turn.slot(me, round);
        op.needs(input.ptr().wrapping_add(at), count * size)?;
        for part in [0..mine.start, mine.end..count] {
            let from = input.ptr().wrapping_add(at + part.start * size);
            // SAFETY: the slot is free, and holds a piece.
            unsafe { copy::write(room.wrapping_add(part.start * size), from, part.len() * size) };
        }
        turn.publish(2 * round + 1);
        all_wrote_alike(&turn, 2 * round + 1, input.len() * size).await?;
        {
            let (start, bytes) = (mine.start * size, mine.len() * size);
            let operand = |m| match m == me {
                true => input.ptr().wrapping_add(at + start).cast_const(),
                false => turn.slot(m, round).wrapping_add(start).cast_const(),
            };
            // SAFETY: published; one's own part of one's own slot is read by nobody yet.
            let result =
                unsafe { result.fold(op, members, mine.len(), operand, turn.slot(me, round).wrapping_add(start)) };
            turn.publish(2 * round + 2);
            if receives {
                // SAFETY: nobody else writes the result; the part lies within the output.
                unsafe { copy::read(output.ptr().wrapping_add(at + start), result, bytes, false) };
                op.made(output.ptr().wrapping_add(at + start), bytes);
            }
        }
        if receives {
            collect(&turn, round, parts, op, output.ptr().wrapping_add(at).into()).await?;
        }
        if round + turn.depth() < pieces.steps {
            turn.acknowledge(round + 1);
        }
    }
    turn.finish();
    Ok(())
}

/// Where the output of a round begins.
#[derive(Clone, Copy)]
struct Target(*mut u8);

// SAFETY: an address in the caller's buffer, which the operation has to itself.
unsafe impl Send for Target {}

impl From<*mut u8> for Target {
    fn from(at: *mut u8) -> Target {
        Target(at)
    }
}

/// Copies the others' parts to the output.
async fn collect<C: Combine>(turn: &Turn<'_>, round: u32, parts: Chunks, op: &C, output: Target) -> Result<()> {
    let (me, members, size) = (turn.me(), turn.size(), op.size());
    // Not everybody at the same member.
    for member in (me + 1..members).chain(0..me) {
        turn.wrote(member, 2 * round + 2).await?;
        let part = parts.get(member);
        let start = part.start * size;
        let from = turn.slot(member, round).wrapping_add(start);
        // SAFETY: published; the part lies within the round's output.
        unsafe { copy::read(output.0.wrapping_add(start), from, part.len() * size, false) };
        op.made(output.0.wrapping_add(start), part.len() * size);
    }
    Ok(())
}
