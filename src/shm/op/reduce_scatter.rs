//! Reduction whose result is scattered: each member combines its part, directly from where the others have
//! put theirs.
//!
//! Up to 56 bytes in all travel in the lines, up to 4 KiB in short slots, and where members take turns on the
//! cores up to 64 KiB as a whole in the sets. Of more, round k brings, for every member in its share of the
//! slot, the k-th part of that member's elements.

use super::block::Shares;
use super::combine::{Combine, fold};
use super::short::reductions::{Reduction, Scattered};
use super::{all_wrote_alike, short, tally};
use crate::endpoint::{Result, Span};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::policy::{Operation, Way};
use crate::shm::turn::Turn;

/// Combines `input` of all members; `counts(i)` elements of the result go to `output` of member i. The output
/// may begin where the input does, but not overlap it otherwise.
pub fn reduce_scatter<C: Combine>(
    turn: Turn<'_>,
    op: &C,
    input: Span,
    counts: impl Fn(Member) -> usize,
    output: Span,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Reduction { role: Scattered(counts), op, input, output })
}

/// The input is not short.
pub(super) async fn long<C: Combine>(
    turn: Turn<'_>,
    op: &C,
    input: Span,
    counts: impl Fn(Member) -> usize,
    output: Span,
) -> Result<()> {
    tally::count(Operation::ReduceScatter, Way::Split);
    let turn = turn.saying(input.len() * op.size());
    let (me, members, size) = (turn.me(), turn.size(), op.size());
    let start = (0..me).map(&counts).sum::<usize>();
    let mine = counts(me);
    let turn = turn.widened();
    assert!(turn.team().fits(size), "an element of {size} bytes does not fit a share of a fragment");
    let shares = |writer| Shares::new(turn.fragment(), members, writer, 64);
    let each = shares(0).each / size;
    let longest = (0..members).map(&counts).max().unwrap_or(0);
    let rounds = turn.steps(longest.div_ceil(each))?;
    let ahead = u32::from(turn.depth() > 1);
    // The output may overwrite the caller's own operand while that is combined.
    let mut aside = vec![0_u128; if input.ptr() == output.ptr() { (each * size).div_ceil(16) } else { 0 }];
    let mut next = 0;
    for round in 0..rounds {
        while next < rounds.min(round + 1 + ahead) {
            turn.slot_free(next).await?;
            turn.note_operand(next, input.len() * size);
            let mut at = 0;
            for member in 0..members {
                let count = counts(member);
                let first = (next as usize * each).min(count);
                if member != me {
                    let to = turn.slot(me, next).wrapping_add(shares(me).at(member));
                    let from = input.ptr().wrapping_add((at + first) * size);
                    let bytes = each.min(count - first) * size;
                    op.needs(from, bytes)?;
                    // SAFETY: the slot is free, and a share holds so much.
                    unsafe { copy::write(to, from, bytes) };
                }
                at += count;
            }
            next += 1;
            turn.publish(next);
        }
        all_wrote_alike(&turn, round + 1, input.len() * size).await?;
        let first = (round as usize * each).min(mine);
        let count = each.min(mine - first);
        let mut own = input.ptr().wrapping_add((start + first) * size).cast_const();
        op.needs(own, count * size)?;
        if !aside.is_empty() {
            let room = aside.as_mut_ptr().cast::<u8>();
            // SAFETY: the room holds so much.
            unsafe { copy::bytes(own, room, count * size) };
            own = room;
        }
        let operand = |m| match m == me {
            true => own,
            false => turn.slot(m, round).wrapping_add(shares(m).at(me)).cast_const(),
        };
        if count > 0 {
            // SAFETY: published; the output is no operand.
            unsafe { fold(op, members, count, operand, output.ptr().wrapping_add(first * size)) };
            op.made(output.ptr().wrapping_add(first * size), count * size);
        }
        if round + turn.depth() < rounds {
            turn.acknowledge(round + 1);
        }
    }
    turn.finish();
    Ok(())
}
