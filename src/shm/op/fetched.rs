// SPDX-License-Identifier: BSD-3-Clause
//! Allreduce without a copy through the queue: each member reads its part of the others' operands from their
//! memory, combines it in its output, and reads the other parts from the others' outputs.
//!
//! So every byte is moved twice, by its reader. A member may overwrite its operand, in place, with the result
//! of part j when member j has published that it is through with that part; nobody else reads it.

use super::combine::{Combine, fold};
use super::{all_wrote_alike, fetch_bytes, get, put};
use crate::endpoint::{Result, Span};
use crate::pattern::chunks::Chunks;
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::protocol::turn::Turn;

/// Bytes of an operand that are combined at a time: they stay in the cache.
const PIECE: usize = 32 << 10;

/// Combines `input` of all members in `output` of all, which may be the input. All members can read each
/// other's memory.
pub(super) async fn allreduce<C: Combine>(turn: Turn<'_>, op: &C, input: Span, output: Span) -> Result<()> {
    // From the next step on, the others read it.
    op.needs(input.ptr(), input.len() * op.size())?;
    turn.line_free().await?;
    let line = turn.payload(turn.me());
    put(line, input.ptr() as u64);
    put(line.wrapping_add(8), output.ptr() as u64);
    turn.note_operand(0, input.len() * op.size());
    turn.publish(1);
    let done = both_halves(&turn, op, input, output).await;
    turn.end_together(done).await
}

async fn both_halves<C: Combine>(turn: &Turn<'_>, op: &C, input: Span, output: Span) -> Result<()> {
    all_wrote_alike(turn, 1, input.len() * op.size()).await?;
    let (me, members, size) = (turn.me(), turn.size(), op.size());
    let parts = Chunks::new(input.len(), members);
    combine(turn, op, input, output, parts)?;
    turn.publish(2);
    for member in (me + 1..members).chain(0..me) {
        turn.wrote(member, 2).await?;
        let part = parts.get(member);
        let (at, len) = (part.start * size, part.len() * size);
        let from = get(turn.payload(member).wrapping_add(8)) + at as u64;
        let to = output.ptr().wrapping_add(at);
        // SAFETY: the part lies within the output; the member waits until the caller is through.
        unsafe { fetch_bytes(turn, member, from, to, len) }?;
        op.made(to, len);
    }
    Ok(())
}

/// Combines the caller's part of all operands.
fn combine<C: Combine>(turn: &Turn<'_>, op: &C, input: Span, output: Span, parts: Chunks) -> Result<()> {
    let (me, members, size) = (turn.me(), turn.size(), op.size());
    let part = parts.get(me);
    let each = (PIECE / size).clamp(1, part.len().max(1));
    // The combination may begin to write the output when it has not yet read the caller's operand.
    let aside = input.ptr() == output.ptr() && me + 2 < members;
    let mut room = vec![0_u128; members * (each * size).div_ceil(16)];
    let stride = (each * size).div_ceil(16) * 16;
    let base = room.as_mut_ptr().cast::<u8>();
    let at = |member: Member| base.wrapping_add(member * stride);
    for start in part.clone().step_by(each) {
        let (shift, count) = (start * size, each.min(part.end - start));
        let own = input.ptr().wrapping_add(shift);
        // Not everybody at the same member, whose address space one may change or read at a time.
        for member in std::iter::once(me).chain(turn.around()) {
            // SAFETY: the room has so much for each member; own operand and the others' are as long; the
            // others wait.
            unsafe {
                if member != me {
                    let from = get(turn.payload(member)) + shift as u64;
                    fetch_bytes(turn, member, from, at(member), count * size)?;
                } else if aside {
                    copy::bytes(own, at(me), count * size);
                }
            }
        }
        let operand = |m| if m == me && !aside { own.cast_const() } else { at(m).cast_const() };
        // SAFETY: every operand holds so many elements; the output is no operand but one that may be.
        unsafe { fold(op, members, count, operand, output.ptr().wrapping_add(shift)) };
        op.made(output.ptr().wrapping_add(shift), count * size);
    }
    Ok(())
}
