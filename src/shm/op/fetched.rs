// SPDX-License-Identifier: BSD-3-Clause
//! Allreduce without a copy through the queue: each member reads its part of the others' operands from their
//! memory, combines it in its output, and reads the other parts from the others' outputs.
//!
//! So every byte is moved twice, by its reader. A member may overwrite its operand, in place, with the result
//! of part j when member j has published that it is through with that part; nobody else reads it.
//!
//! Operands that cannot be read go through the queue: a member that comes to such a place says how far it has
//! combined its part, and all combine the rest of it. In place, they have kept what that needs: a member
//! overwrites its own operand as far as it has combined its own part, and others' parts as far as those have.
//! Results that cannot be read are [asked](crate::shm::turn::asking) for.

use super::combine::{Combine, fold};
use super::lent::{Lent, copy_part, is_read};
use super::pipeline::Pieces;
use super::{all_wrote, all_wrote_alike, fetch_bytes, get, put};
use crate::endpoint::{Error, Result, Span};
use crate::pattern::chunks::Chunks;
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;
use std::ops::Range;

/// Bytes of an operand that are combined at a time: they stay in the cache.
const PIECE: usize = 32 << 10;

/// Says that a member has combined all of its part.
const WHOLE: u64 = u64::MAX;

/// Where in its line it says so.
const COMBINED: usize = 16;

/// Combines `input` of all members in `output` of all, which may be the input. All members can read each
/// other's memory.
pub(super) async fn allreduce<C: Combine>(turn: Turn<'_>, op: &C, input: Span, output: Span) -> Result<()> {
    // From the next step on, the others read it.
    op.needs(input.ptr(), input.len() * op.size())?;
    turn.line_free().await?;
    let (others, line) = (turn.others(), turn.payload(turn.me()));
    put(line, input.ptr() as u64);
    put(line.wrapping_add(8), output.ptr() as u64);
    put(line.wrapping_add(COMBINED), WHOLE);
    turn.note_operand(0, input.len() * op.size());
    turn.publish(1);
    // SAFETY: the elements' memory as bytes.
    let bytes = unsafe { Span::new(output.ptr(), input.len() * op.size(), 1) };
    let lent = Lent { readers: || others.clone().collect(), copy: |_, part, room| copy_part(&bytes, part, room) };
    let done = match both_halves(&turn, op, input, output).await {
        Ok(missing) if !missing.is_empty() => {
            // SAFETY: of parts that lie within the output, with as many bytes.
            let take = |_: Member, at: usize, from: *const u8, len: usize| unsafe {
                copy::unpack(&bytes, at, len, from, false).inspect(|()| op.made(output.ptr().wrapping_add(at), len))
            };
            turn.ask(&lent, missing, &take).await
        }
        done => done.map(drop),
    };
    turn.end_together(done, &lent).await
}

/// Returns whose results could not be read, and where they are.
async fn both_halves<C: Combine>(
    turn: &Turn<'_>,
    op: &C,
    input: Span,
    output: Span,
) -> Result<Vec<(Member, Range<usize>)>> {
    all_wrote_alike(turn, 1, input.len() * op.size()).await?;
    let (me, members, size) = (turn.me(), turn.size(), op.size());
    let parts = Chunks::new(input.len(), members);
    let combined = combine(turn, op, input, output, parts)?;
    if combined < parts.get(me).len() {
        put(turn.payload(me).wrapping_add(COMBINED), combined as u64);
    }
    turn.publish(2);
    let (mut missing, mut rest) = (Vec::new(), combined < parts.get(me).len());
    for member in (me + 1..members).chain(0..me) {
        turn.wrote(member, 2).await?;
        let done = part_done(turn, parts, member)?;
        rest |= done.end < parts.get(member).end;
        let part = done.start * size..done.end * size;
        let from = get(turn.payload(member).wrapping_add(8)) + part.start as u64;
        let to = output.ptr().wrapping_add(part.start);
        // SAFETY: the part lies within the output; the member waits until the caller is through.
        if is_read(unsafe { fetch_bytes(turn, member, from, to, part.len()) })? {
            op.made(to, part.len());
        } else {
            missing.push((member, part));
        }
    }
    if rest {
        combine_rest(turn, op, input, output, parts).await?;
    }
    Ok(missing)
}

/// What a member has combined of its part when it has published that. More than the caller's operand has
/// there: it has another length.
fn part_done(turn: &Turn<'_>, parts: Chunks, member: Member) -> Result<Range<usize>> {
    let part = parts.get(member);
    match get(turn.payload(member).wrapping_add(COMBINED)) {
        WHOLE => Ok(part),
        combined if combined <= part.len() as u64 => Ok(part.start..part.start + combined as usize),
        _ => Err(Error::Lengths),
    }
}

/// Combines the caller's part of all operands; returns how much of it: up to an operand that cannot be read.
fn combine<C: Combine>(turn: &Turn<'_>, op: &C, input: Span, output: Span, parts: Chunks) -> Result<usize> {
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
                    if !is_read(fetch_bytes(turn, member, from, at(member), count * size))? {
                        return Ok(start - part.start);
                    }
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
    Ok(part.len())
}

/// Combines what all parts lack, piece by piece through the queue, everybody everything.
#[cold]
async fn combine_rest<C: Combine>(turn: &Turn<'_>, op: &C, input: Span, output: Span, parts: Chunks) -> Result<()> {
    let (me, members, size) = (turn.me(), turn.size(), op.size());
    let mut step = 0;
    for member in 0..members {
        let rest = part_done(turn, parts, member)?.end..parts.get(member).end;
        let pieces = Pieces::new(turn, op, rest.len())?;
        turn.steps((step + pieces.steps) as usize + 3)?;
        for piece in 0..pieces.steps {
            let (at, count) = pieces.get(piece);
            let at = rest.start * size + at;
            turn.slot_free(step).await?;
            // SAFETY: the slot is free, and holds a piece.
            unsafe { copy::write(turn.slot(me, step), input.ptr().wrapping_add(at), count * size) };
            turn.publish(3 + step);
            all_wrote(turn, 3 + step).await?;
            let operand = |m| turn.slot(m, step).cast_const();
            // SAFETY: published; the output is in nobody's slot.
            unsafe { fold(op, members, count, operand, output.ptr().wrapping_add(at)) };
            op.made(output.ptr().wrapping_add(at), count * size);
            step += 1;
            turn.acknowledge(step);
        }
    }
    Ok(())
}
