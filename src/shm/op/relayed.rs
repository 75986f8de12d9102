//! Reduction to a root where members take turns on the cores and are all within the call, of what is long:
//! one of the upper half of the members, the relay, combines what that half has, and the root the rest. (A
//! relay that computes after a nonblocking call would keep the root waiting.)
//!
//! The expression is the same as if the root combined everything: x₀ ⊕ (x₁ ⊕ (… ⊕ s)), s being what the relay
//! makes of the upper half. Nor is more copied, since the relay would have to copy its operand in any case.
//! But two cores work at a time, the relay piece by piece ahead of the root.

use super::combine::{Combine, ForSlot, fold};
use super::reduce::{Pieces, must_set_aside_among, roots_own};
use super::wrote_alike;
use crate::endpoint::{Result, Span};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;

/// Who does what.
#[derive(Clone, Copy)]
struct Roles {
    root: Member,
    /// Combines what the members from `half` on have.
    relay: Member,
    /// The first member of the upper half.
    half: Member,
}

impl Roles {
    /// Of three or more members.
    fn new(members: usize, root: Member) -> Roles {
        let half = members / 2;
        Roles { root, relay: if root == half { half + 1 } else { half }, half }
    }

    /// Who reads the slots of `member`, which is not the root, or in the upper half.
    fn reader(self, member: Member) -> Member {
        if member >= self.half && member != self.relay { self.relay } else { self.root }
    }
}

/// Combines `input` of all members, three or more, in `output` of `root`.
pub(super) async fn reduce<C: Combine>(turn: Turn<'_>, root: Member, op: &C, input: Span, output: Span) -> Result<()> {
    let turn = turn.narrowed();
    let (me, roles) = (turn.me(), Roles::new(turn.size(), root));
    let pieces = Pieces::new(&turn, op, input.len())?;
    let writer = Writer { turn: &turn, op, pieces, input };
    turn.set_free().await?;
    if me == root {
        receive(&writer, roles, output).await?;
    } else if me == roles.relay {
        relay(&writer, roles).await?;
    } else {
        for step in 0..pieces.steps {
            writer.put(roles.reader(me), step).await?;
        }
    }
    turn.finish();
    Ok(())
}

/// Writes the caller's operand.
struct Writer<'w, 't, C> {
    turn: &'w Turn<'t>,
    op: &'w C,
    pieces: Pieces,
    input: Span,
}

impl<C: Combine> Writer<'_, '_, C> {
    /// Bytes of the operand.
    fn bytes(&self) -> usize {
        self.input.len() * self.op.size()
    }

    /// Waits until the caller may write the slot of `step`, which `reader` reads.
    async fn free(&self, reader: Member, step: u32) -> Result<()> {
        match step.checked_sub(self.turn.depth()) {
            Some(before) => self.turn.read(reader, before + 1).await.map(drop),
            None => Ok(()),
        }
    }

    /// Writes and publishes a piece when the reader is through with what the slot held.
    async fn put(&self, reader: Member, step: u32) -> Result<()> {
        self.free(reader, step).await?;
        self.turn.note_operand(step, self.bytes());
        let (at, count) = self.pieces.get(step);
        let (slot, bytes) = (self.turn.slot(self.turn.me(), step), count * self.op.size());
        let from = self.input.ptr().wrapping_add(at);
        self.op.needs(from, bytes)?;
        // SAFETY: the set is free, and the reader through with what the slot held before; it holds a piece.
        unsafe { copy::write(slot, from, bytes) };
        self.turn.publish(step + 1);
        Ok(())
    }

    /// Says that the caller is through with a piece as a reader, if somebody may wait for that.
    fn pass(&self, step: u32) {
        if step + self.turn.depth() < self.pieces.steps {
            self.turn.acknowledge(step + 1);
        }
    }
}

/// Combines what the upper half has in the caller's slots.
async fn relay<C: Combine>(writer: &Writer<'_, '_, C>, roles: Roles) -> Result<()> {
    let &Writer { turn, op, pieces, input } = writer;
    let (me, members, half) = (turn.me(), turn.size(), roles.half);
    let mut result = ForSlot::new();
    for step in 0..pieces.steps {
        writer.free(roles.root, step).await?;
        turn.note_operand(step, writer.bytes());
        for member in (half..members).filter(|&m| m != me) {
            wrote_alike(turn, member, step + 1, writer.bytes()).await?;
        }
        let (at, count) = pieces.get(step);
        let own = input.ptr().wrapping_add(at);
        op.needs(own, count * op.size())?;
        let operand = |i: usize| match half + i {
            member if member == me => own.cast_const(),
            member => turn.slot(member, step).cast_const(),
        };
        // SAFETY: published; the root is through with what the caller's slot held; it is no operand.
        unsafe { result.fold(op, members - half, count, operand, turn.slot(me, step)) };
        turn.publish(step + 1);
        writer.pass(step);
    }
    Ok(())
}

/// Combines what the lower half and the relay have in `output`.
async fn receive<C: Combine>(writer: &Writer<'_, '_, C>, roles: Roles, output: Span) -> Result<()> {
    let &Writer { turn, op, pieces, input } = writer;
    let (me, relay, half) = (turn.me(), roles.relay, roles.half);
    let writes = me >= half;
    let aside = !writes && must_set_aside_among(half + 1, me, input, output);
    // The relay reads the caller's operand. It is through with a piece when the caller has what it made of
    // it.
    let ahead = (turn.depth() / 2).max(1);
    let mut put = 0;
    for step in 0..pieces.steps {
        while writes && put < pieces.steps.min(step + ahead) {
            writer.put(relay, put).await?;
            put += 1;
        }
        for member in (0..half).chain([relay]).filter(|&m| m != me) {
            wrote_alike(turn, member, step + 1, writer.bytes()).await?;
        }
        // Those whom the relay has waited for, too.
        turn.met();
        let (at, count) = pieces.get(step);
        let (from, to, bytes) = (input.ptr().wrapping_add(at), output.ptr().wrapping_add(at), count * op.size());
        op.needs(from, bytes)?;
        // SAFETY: the input has such a piece, and the set is free where it is needed.
        let own = unsafe { roots_own(turn, step, from, bytes, aside) };
        let operand = |i: usize| match i {
            _ if i == half => turn.slot(relay, step).cast_const(),
            _ if i == me => own,
            _ => turn.slot(i, step).cast_const(),
        };
        // SAFETY: published; the output is no operand but one that may be.
        unsafe { fold(op, half + 1, count, operand, to) };
        op.made(to, bytes);
        writer.pass(step);
    }
    Ok(())
}
