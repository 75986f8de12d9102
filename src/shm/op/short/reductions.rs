//! Short reductions: everybody writes its operand, and combines those that it needs where they lie.

use super::Short;
use crate::endpoint::{Result, Span};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::op::allreduce::{self, other_ways};
use crate::shm::op::combine::{Combine, fold};
use crate::shm::op::reduce::{self, must_set_aside, operands, shares_work};
use crate::shm::op::{is_short, reduce_scatter, scan};
use crate::shm::policy::Operation;
use crate::shm::policy::choose::PASSED_ON;
use crate::shm::turn::Turn;

/// Where a source has an operand of so many bytes.
#[inline(always)]
fn operand(turn: &Turn<'_>, source: Member, bytes: usize) -> Option<(usize, *const u8)> {
    Some((bytes, turn.room(source, bytes)))
}

/// Reduce at the root: it combines all operands.
pub struct Reduce<C> {
    /// Who combines.
    pub root: Member,
    /// The reduction.
    pub op: C,
    /// The caller's elements.
    pub input: Span,
    /// The root's; may be the input.
    pub output: Span,
}

impl<C: Combine> Reduce<C> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.input.len() * self.op.size()
    }

    /// Whether the caller's operand has to be where the result does not overwrite it.
    #[inline(always)]
    fn aside(&self, turn: &Turn<'_>) -> bool {
        must_set_aside(turn, self.input, self.output)
    }
}

impl<C: Combine> Short for Reduce<C> {
    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        is_short(turn, Operation::Reduce, self.bytes(), shares_work(turn))
    }

    #[inline(always)]
    fn room(&self, turn: &Turn<'_>) -> Option<usize> {
        if self.aside(turn) { Some(self.bytes()) } else { None }
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let bytes = self.bytes();
        // SAFETY: free, and the bytes fit.
        unsafe { copy::keep(turn.room(self.root, bytes), self.input.ptr(), bytes) };
        Ok(())
    }

    #[inline(always)]
    fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
        turn.others()
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        operand(turn, source, self.bytes())
    }

    #[inline(always)]
    unsafe fn end(&self, turn: &Turn<'_>) -> Result<()> {
        let rooms = turn.rooms(self.bytes());
        let own = if self.aside(turn) { rooms.of(self.root) } else { self.input.ptr() };
        let operand = operands(self.root, own, rooms);
        // SAFETY: all others have published; the output is no operand but one that may be.
        unsafe { fold(&self.op, turn.size(), self.input.len(), operand, self.output.ptr()) };
        Ok(())
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        reduce::long(turn, self.root, &self.op, self.input, self.output).await
    }
}

/// Reduce at a member that is not the root: it writes its operand.
pub struct Contribute<C>(pub Reduce<C>);

impl<C: Combine> Short for Contribute<C> {
    const WRITES_OR_READS: bool = true;

    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        self.0.fits(turn)
    }

    #[inline(always)]
    fn room(&self, _: &Turn<'_>) -> Option<usize> {
        Some(self.0.bytes())
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let bytes = self.0.bytes();
        // SAFETY: free, and the bytes fit.
        unsafe { copy::write(turn.room(turn.me(), bytes), self.0.input.ptr(), bytes) };
        Ok(())
    }

    fn long(self, turn: Turn<'_>) -> impl Future<Output = Result<()>> {
        self.0.long(turn)
    }
}

/// Allreduce: everybody combines everything.
pub struct Allreduce<C> {
    /// The reduction.
    pub op: C,
    /// The caller's elements.
    pub input: Span,
    /// May be the input.
    pub output: Span,
    /// From how many bytes on members may read each other's memory.
    pub zero_copy: usize,
}

impl<C: Combine> Allreduce<C> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.input.len() * self.op.size()
    }
}

impl<C: Combine> Short for Allreduce<C> {
    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        is_short(turn, Operation::Allreduce, self.bytes(), other_ways(turn, self.op.size(), self.zero_copy))
    }

    #[inline(always)]
    fn room(&self, _: &Turn<'_>) -> Option<usize> {
        Some(self.bytes())
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let bytes = self.bytes();
        // SAFETY: free, and the bytes fit.
        unsafe { copy::write(turn.room(turn.me(), bytes), self.input.ptr(), bytes) };
        Ok(())
    }

    #[inline(always)]
    fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
        turn.others()
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        operand(turn, source, self.bytes())
    }

    #[inline(always)]
    unsafe fn end(&self, turn: &Turn<'_>) -> Result<()> {
        let (me, rooms) = (turn.me(), turn.rooms(self.bytes()));
        let own = if must_set_aside(turn, self.input, self.output) { rooms.of(me) } else { self.input.ptr() };
        let operand = operands(me, own, rooms);
        // SAFETY: all have published; the output is in nobody's room, and no operand but one that may be.
        unsafe { fold(&self.op, turn.size(), self.input.len(), operand, self.output.ptr()) };
        Ok(())
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        allreduce::long(turn, &self.op, self.input, self.output, self.zero_copy).await
    }
}

/// Reduce_scatter: everybody combines its own part.
pub struct ReduceScatter<C, F> {
    /// The reduction.
    pub op: C,
    /// The caller's elements.
    pub input: Span,
    /// Elements of the result for each member.
    pub counts: F,
    /// May begin where the input does.
    pub output: Span,
}

impl<C: Combine, F: Fn(Member) -> usize> ReduceScatter<C, F> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.input.len() * self.op.size()
    }
}

impl<C: Combine, F: Fn(Member) -> usize> Short for ReduceScatter<C, F> {
    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        is_short(turn, Operation::ReduceScatter, self.bytes(), usize::MAX)
    }

    #[inline(always)]
    fn room(&self, _: &Turn<'_>) -> Option<usize> {
        Some(self.bytes())
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let bytes = self.bytes();
        // SAFETY: free, and the bytes fit.
        unsafe { copy::write(turn.room(turn.me(), bytes), self.input.ptr(), bytes) };
        Ok(())
    }

    #[inline(always)]
    fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
        turn.others()
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        operand(turn, source, self.bytes())
    }

    #[inline(always)]
    unsafe fn end(&self, turn: &Turn<'_>) -> Result<()> {
        // SAFETY: all have published.
        unsafe { reduce_scatter::combine(turn, &self.op, self.input, &self.counts, self.output) };
        Ok(())
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        reduce_scatter::long(turn, &self.op, self.input, self.counts, self.output).await
    }
}

/// Scan and Exscan: everybody combines the operands before its own, and its own in a Scan.
pub struct Scan<C> {
    /// Exscan.
    pub exclusive: bool,
    /// The reduction.
    pub op: C,
    /// The caller's elements.
    pub input: Span,
    /// May be the input.
    pub output: Span,
}

impl<C: Combine> Scan<C> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.input.len() * self.op.size()
    }
}

impl<C: Combine> Short for Scan<C> {
    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        is_short(turn, Operation::Scan, self.bytes(), PASSED_ON)
    }

    #[inline(always)]
    fn room(&self, _: &Turn<'_>) -> Option<usize> {
        Some(self.bytes())
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let bytes = self.bytes();
        // SAFETY: free, and the bytes fit.
        unsafe { copy::write(turn.room(turn.me(), bytes), self.input.ptr(), bytes) };
        Ok(())
    }

    #[inline(always)]
    fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
        0..turn.me()
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        operand(turn, source, self.bytes())
    }

    #[inline(always)]
    unsafe fn end(&self, turn: &Turn<'_>) -> Result<()> {
        let me = turn.me();
        let known = if self.exclusive { me } else { me + 1 };
        if known > 0 {
            // One's own operand, if it is one, is the last: the output may be the input.
            let operand = operands(me, self.input.ptr(), turn.rooms(self.bytes()));
            // SAFETY: published; the output is in nobody's room, and no operand but the last.
            unsafe { fold(&self.op, known, self.input.len(), operand, self.output.ptr()) };
        }
        Ok(())
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        scan::long(turn, self.exclusive, &self.op, self.input, self.output).await
    }
}
