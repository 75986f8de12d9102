//! Reduction to a root, in the order of the members.
//!
//! Up to 56 bytes travel in the lines, up to 4 KiB in short slots, and where members take turns on the cores
//! less than 64 KiB as a whole in the sets. Of more, the others copy fragments to their slots and the root
//! combines them directly from there; with more than two members and enough bytes, each member combines a
//! part of every fragment ([`shared`]) and the root collects the parts, or, where they take turns in a
//! blocking call, one of them combines what half of them have ([`relayed`]).

use super::combine::{Combine, fold};
use super::short::reductions::{AtRoot, Reduction, ToRoot};
use super::{all_wrote_alike, relayed, shared, short, tally};
use crate::endpoint::{Result, Span};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::policy::{Operation, Way};
use crate::shm::turn::Turn;

/// Combines `input` of all members, `input.len()` contiguous elements each, in `output` of `root`, which may
/// be its input.
pub async fn reduce<C: Combine>(turn: Turn<'_>, root: Member, op: &C, input: Span, output: Span) -> Result<()> {
    match turn.me() == root {
        true => short::run(turn, Reduction { role: AtRoot, op, input, output }).await,
        false => short::run(turn, Reduction { role: ToRoot(root), op, input, output }).await,
    }
}

/// The operands are not short.
pub(super) async fn long<C: Combine>(turn: Turn<'_>, root: Member, op: &C, input: Span, output: Span) -> Result<()> {
    let turn = turn.saying(input.len() * op.size());
    let way = turn.way(Operation::Reduce, input.len() * op.size(), op.size(), usize::MAX);
    tally::count(Operation::Reduce, way);
    match way {
        Way::Relay => relayed::reduce(turn, root, op, input, output).await,
        Way::Split => shared::reduce(turn, Some(root), op, input, output).await,
        _ if turn.me() == root => receive(turn, op, input, output).await,
        _ => send(turn, root, op, input).await,
    }
}

/// From how many bytes on members share the work, which is then not done out of rooms.
#[inline(always)]
pub(super) fn shares_work(turn: &Turn<'_>) -> usize {
    let config = turn.team().config();
    match turn.size() {
        ..=2 => usize::MAX,
        _ if turn.is_crowded() => config.whole as usize,
        _ if turn.shares_cores() => usize::MAX,
        _ => config.shared_work_min,
    }
}

/// Whether the combination would begin to write the output before it has read the caller's operand. Unless it
/// does, that is taken from the input, not from the caller's own room: who reads a line that another core has
/// written may take it away altogether, and it would have to be fetched back.
#[inline(always)]
pub(super) fn must_set_aside(turn: &Turn<'_>, input: Span, output: Span) -> bool {
    must_set_aside_among(turn.size(), turn.me(), input, output)
}

/// The same of an operand that is number `me` of so many.
#[inline(always)]
pub(super) fn must_set_aside_among(operands: usize, me: usize, input: Span, output: Span) -> bool {
    input.ptr() == output.ptr() && me + 2 < operands
}

/// Where the root's own piece of `bytes` is to be read from: where it lies, or, if it must be [set
/// aside](must_set_aside), the caller's slot of `step`.
///
/// # Safety
/// There are so many bytes at `from`. If they are set aside, the slot is free, holds them, and nobody else
/// reads it.
pub(super) unsafe fn roots_own(turn: &Turn<'_>, step: u32, from: *const u8, bytes: usize, aside: bool) -> *const u8 {
    if !aside {
        return from;
    }
    let room = turn.slot(turn.me(), step);
    // SAFETY: by the caller's promise.
    unsafe { copy::keep(room, from, bytes) };
    room
}

async fn send<C: Combine>(turn: Turn<'_>, root: Member, op: &C, input: Span) -> Result<()> {
    let pieces = Pieces::one_way(&turn, op, input.len())?;
    turn.set_free().await?;
    turn.note_operand(0, input.len() * op.size());
    for step in 0..pieces.steps {
        if let Some(before) = step.checked_sub(turn.depth()) {
            turn.read(root, before + 1).await?;
        }
        let (at, count) = pieces.get(step);
        let (slot, bytes) = (turn.slot_of(turn.me(), step, pieces.bytes()), count * op.size());
        let from = input.ptr().wrapping_add(at);
        op.needs(from, bytes)?;
        // SAFETY: the set is free, and the root is through with what the slot held before; it holds a piece.
        unsafe { copy::write(slot, from, bytes) };
        turn.publish(step + 1);
    }
    turn.finish();
    Ok(())
}

async fn receive<C: Combine>(turn: Turn<'_>, op: &C, input: Span, output: Span) -> Result<()> {
    let (me, members) = (turn.me(), turn.size());
    let pieces = Pieces::one_way(&turn, op, input.len())?;
    let aside = must_set_aside(&turn, input, output);
    if aside {
        turn.set_free().await?;
    }
    for step in 0..pieces.steps {
        all_wrote_alike(&turn, step + 1, input.len() * op.size()).await?;
        let (at, count) = pieces.get(step);
        let (from, to, bytes) = (input.ptr().wrapping_add(at), output.ptr().wrapping_add(at), count * op.size());
        op.needs(from, bytes)?;
        // SAFETY: the input has such a piece, and the set is free where it is needed.
        let own = unsafe { roots_own(&turn, step, from, bytes, aside) };
        let operand = |m| if m == me { own } else { turn.slot_of(m, step, pieces.bytes()).cast_const() };
        // SAFETY: published; the output is no operand but one that may be.
        unsafe { fold(op, members, count, operand, to) };
        op.made(to, bytes);
        if step + turn.depth() < pieces.steps {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}

/// Elements cut into pieces that fit a fragment.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    total: usize,
    /// Elements in a piece.
    pub each: usize,
    size: usize,
    /// How many pieces.
    pub steps: u32,
}

impl Pieces {
    /// Cuts `total` elements.
    pub fn new<C: Combine>(turn: &Turn<'_>, op: &C, total: usize) -> Result<Pieces> {
        Pieces::of(turn, op, total, turn.fragment())
    }

    /// Cuts what goes one way ([`piece`](crate::shm::turn::View::piece)).
    fn one_way<C: Combine>(turn: &Turn<'_>, op: &C, total: usize) -> Result<Pieces> {
        Pieces::of(turn, op, total, turn.piece(total * op.size()))
    }

    /// Cuts them into pieces of up to `bytes`, or of one element.
    fn of<C: Combine>(turn: &Turn<'_>, op: &C, total: usize, bytes: usize) -> Result<Pieces> {
        let (size, fragment) = (op.size(), turn.fragment());
        assert!(turn.team().fits(size), "an element of {size} bytes does not fit a fragment of {fragment}");
        let each = (bytes / size).max(1);
        Ok(Pieces { total, each, size, steps: turn.steps(total.div_ceil(each))? })
    }

    /// Bytes of the longest.
    pub fn bytes(&self) -> usize {
        self.each.min(self.total) * self.size
    }

    /// Where piece `step` begins, in bytes, and its elements.
    pub fn get(&self, step: u32) -> (usize, usize) {
        let start = step as usize * self.each;
        (start * self.size, self.each.min(self.total - start))
    }
}
