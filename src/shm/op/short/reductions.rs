// SPDX-License-Identifier: BSD-3-Clause
//! Short reductions: everybody writes its operand, and combines those that it needs where they lie.

use super::Short;
use crate::endpoint::{Result, Span};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::op::allreduce::{self, other_ways};
use crate::shm::op::combine::{Combine, fold};
use crate::shm::op::reduce::{self, must_set_aside, shares_work};
use crate::shm::op::{is_short, reduce_scatter, scan};
use crate::shm::policy::Operation;
use crate::shm::policy::choose::PASSED_ON;
use crate::shm::protocol::turn::Turn;
use std::ops::Range;

/// A reduction as one member takes part in it.
pub struct Reduction<C, R> {
    /// What differs from others.
    pub role: R,
    /// Combines elements.
    pub op: C,
    /// The caller's elements.
    pub input: Span,
    /// Where the result goes, if the caller gets one. May begin where the input does.
    pub output: Span,
}

/// What a member does in a reduction.
pub trait Role<C: Combine>: Sized + Send + Sync {
    /// The operation.
    const OPERATION: Operation;
    /// Nobody else reads what the caller writes.
    const KEEPS: bool = false;
    /// The caller writes, and reads nothing.
    const GIVES: bool = false;

    /// From how many bytes on there is another way, in elements of `element` bytes.
    fn limit(&self, turn: &Turn<'_>, element: usize) -> usize;

    /// How many operands the caller combines, the first of which is that of member 0.
    #[inline(always)]
    fn operands(&self, turn: &Turn<'_>) -> usize {
        turn.size()
    }

    /// Which of so many elements the caller combines.
    #[inline(always)]
    fn part(&self, me: Member, elements: usize) -> Range<usize> {
        let _ = me;
        0..elements
    }

    /// The reduction where it is not short.
    fn long(turn: Turn<'_>, reduction: Reduction<C, Self>) -> impl Future<Output = Result<()>> + Send;
}

impl<C: Combine, R> Reduction<C, R> {
    /// Bytes of an operand.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        self.input.len() * self.op.size()
    }
}

impl<C: Combine, R: Role<C>> Reduction<C, R> {
    /// Whether the combination of a part would begin to write the output before it has read the caller's
    /// operand. Unless it does, that is taken from the input, not from the caller's own room: who reads a
    /// line that another core has written may take it away altogether, and it would have to be fetched back.
    #[inline(always)]
    fn aside(&self, turn: &Turn<'_>, part: &Range<usize>) -> bool {
        let (input, output) = (self.input, self.output);
        must_set_aside(self.role.operands(turn), turn.me(), input, output)
            || part.len() < input.len() && input.ptr() == output.ptr()
    }
}

impl<C: Combine, R: Role<C>> Short for Reduction<C, R> {
    const WRITES_OR_READS: bool = R::GIVES;
    const SAYS: bool = true;
    const COMPARES: bool = true;

    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        let limit = if self.op.is_whole() { usize::MAX } else { self.role.limit(turn, self.op.size()) };
        is_short(turn, R::OPERATION, self.bytes(), limit)
    }

    #[inline(always)]
    fn room(&self, turn: &Turn<'_>) -> Option<usize> {
        if !R::KEEPS || self.aside(turn, &(0..self.input.len())) { Some(self.bytes()) } else { None }
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let (bytes, from) = (self.bytes(), self.input.ptr());
        let to = turn.room(turn.me(), bytes);
        // SAFETY: free, and the bytes fit.
        unsafe { if R::KEEPS { copy::keep(to, from, bytes) } else { copy::write(to, from, bytes) } };
        Ok(())
    }

    #[inline(always)]
    fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
        // Those that come after the last operand, in a Scan, are passed over.
        let operands = self.role.operands(turn);
        turn.around().filter(move |&member| member < operands)
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        let bytes = self.bytes();
        Some((bytes, turn.room(source, bytes)))
    }

    #[inline(always)]
    unsafe fn end(&self, turn: &Turn<'_>) -> Result<()> {
        let operands = self.role.operands(turn);
        if operands == 0 {
            return Ok(());
        }
        let (me, rooms) = (turn.me(), turn.rooms(self.bytes()));
        let part = self.role.part(me, self.input.len());
        let at = part.start * self.op.size();
        let own = if self.aside(turn, &part) { rooms.of(me) } else { self.input.ptr() };
        // By value: what has an address lies in memory, and where a closure refers to a part of an
        // operation's state that is all of it.
        let operand = move |member| if member == me { own } else { rooms.of(member) }.wrapping_add(at).cast_const();
        // SAFETY: all have published; the output is in nobody's room, and no operand but one that may be.
        unsafe {
            match self.op.is_whole() {
                true => self.op.fold_whole(operands, part.len(), &operand, self.output.ptr()),
                false => fold(&self.op, operands, part.len(), operand, self.output.ptr()),
            }
        }
        Ok(())
    }

    fn long(self, turn: Turn<'_>) -> impl Future<Output = Result<()>> + Send {
        R::long(turn, self)
    }
}

/// Reduce at the root: it combines all operands.
pub struct AtRoot;

impl<C: Combine> Role<C> for AtRoot {
    const OPERATION: Operation = Operation::Reduce;
    const KEEPS: bool = true;

    #[inline(always)]
    fn limit(&self, turn: &Turn<'_>, _: usize) -> usize {
        shares_work(turn)
    }

    async fn long(turn: Turn<'_>, of: Reduction<C, AtRoot>) -> Result<()> {
        let root = turn.me();
        reduce::long(turn, root, &of.op, of.input, of.output).await
    }
}

/// Reduce at a member that is not the root: it writes its operand.
pub struct ToRoot(pub Member);

impl<C: Combine> Role<C> for ToRoot {
    const OPERATION: Operation = Operation::Reduce;
    const GIVES: bool = true;

    #[inline(always)]
    fn limit(&self, turn: &Turn<'_>, _: usize) -> usize {
        shares_work(turn)
    }

    #[inline(always)]
    fn operands(&self, _: &Turn<'_>) -> usize {
        0
    }

    async fn long(turn: Turn<'_>, of: Reduction<C, ToRoot>) -> Result<()> {
        reduce::long(turn, of.role.0, &of.op, of.input, of.output).await
    }
}

/// Allreduce: everybody combines everything.
pub struct ToAll {
    /// From how many bytes on members may read each other's memory.
    pub zero_copy: usize,
}

impl<C: Combine> Role<C> for ToAll {
    const OPERATION: Operation = Operation::Allreduce;

    #[inline(always)]
    fn limit(&self, turn: &Turn<'_>, element: usize) -> usize {
        other_ways(turn, element, self.zero_copy)
    }

    async fn long(turn: Turn<'_>, of: Reduction<C, ToAll>) -> Result<()> {
        allreduce::long(turn, &of.op, of.input, of.output, of.role.zero_copy).await
    }
}

/// Reduce_scatter: everybody combines its own part; the elements of the result for each member.
pub struct Scattered<F>(pub F);

impl<C: Combine, F: Fn(Member) -> usize + Send + Sync> Role<C> for Scattered<F> {
    const OPERATION: Operation = Operation::ReduceScatter;

    #[inline(always)]
    fn limit(&self, _: &Turn<'_>, _: usize) -> usize {
        usize::MAX
    }

    #[inline(always)]
    fn part(&self, me: Member, _: usize) -> Range<usize> {
        let start = (0..me).map(&self.0).sum();
        start..start + (self.0)(me)
    }

    async fn long(turn: Turn<'_>, of: Reduction<C, Scattered<F>>) -> Result<()> {
        reduce_scatter::long(turn, &of.op, of.input, of.role.0, of.output).await
    }
}

/// Scan and Exscan: everybody combines the operands before its own, and its own in a Scan.
pub struct Prefix {
    /// Exscan.
    pub exclusive: bool,
}

impl<C: Combine> Role<C> for Prefix {
    const OPERATION: Operation = Operation::Scan;

    #[inline(always)]
    fn limit(&self, _: &Turn<'_>, _: usize) -> usize {
        PASSED_ON
    }

    #[inline(always)]
    fn operands(&self, turn: &Turn<'_>) -> usize {
        if self.exclusive { turn.me() } else { turn.me() + 1 }
    }

    async fn long(turn: Turn<'_>, of: Reduction<C, Prefix>) -> Result<()> {
        scan::long(turn, of.role.exclusive, &of.op, of.input, of.output).await
    }
}
