// SPDX-License-Identifier: BSD-3-Clause
//! Reductions of what is long, piece by piece: one function, to which each way is a [`Plan`].
//!
//! Piece k of what a member has for others lies in its slot k. A member writes its operand there; or it
//! combines what others have written, and leaves the result there or in its output; or it collects what
//! others have combined. Where it writes both, operand and result of piece k share the slot, and are
//! published as two steps. The slot holds another piece when all its readers have acknowledged this one.

use super::block::Shares;
use super::combine::{Combine, fold};
use crate::endpoint::{Error, Result, Span};
use crate::pattern::chunks::Chunks;
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::protocol::turn::{Near, Turn};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// How operands are cut into pieces, the same for all members.
pub(super) enum Cut {
    /// Who combines a piece combines all of it.
    Whole(Pieces),
    /// So many elements, all at once, in [room](crate::shm::protocol::turn::View::room) for them.
    Room(usize),
    /// Each member combines its part of each piece, and writes the rest.
    Shared(Pieces),
    /// Each member combines these elements of the result, piece by piece so many in its share of a slot.
    Scattered { parts: Vec<Range<usize>>, each: usize },
}

/// Elements cut into pieces that fit a fragment.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    total: usize,
    /// Elements in a piece.
    each: usize,
    size: usize,
    /// How many pieces.
    pub steps: u32,
}

impl Pieces {
    /// Cuts `total` elements.
    pub fn new(turn: &Turn<'_>, op: &dyn Combine, total: usize) -> Result<Pieces> {
        Pieces::of(turn, op, total, turn.fragment())
    }

    /// Cuts what goes one way ([`piece`](crate::shm::protocol::turn::View::piece)).
    pub fn one_way(turn: &Turn<'_>, op: &dyn Combine, total: usize) -> Result<Pieces> {
        Pieces::of(turn, op, total, turn.piece(total * op.size()))
    }

    /// Cuts them into pieces of up to `bytes`, or of one element.
    fn of(turn: &Turn<'_>, op: &dyn Combine, total: usize, bytes: usize) -> Result<Pieces> {
        let (size, fragment) = (op.size(), turn.fragment());
        assert!(turn.team().fits(size), "an element of {size} bytes does not fit a fragment of {fragment}");
        let each = (bytes / size).max(1);
        Ok(Pieces { total, each, size, steps: turn.steps(total.div_ceil(each))? })
    }

    /// Bytes of the longest.
    fn bytes(&self) -> usize {
        self.each.min(self.total) * self.size
    }

    /// Where piece `step` begins, in bytes, and its elements.
    pub fn get(&self, step: u32) -> (usize, usize) {
        let start = step as usize * self.each;
        (start * self.size, self.each.min(self.total - start))
    }
}

/// Where a result goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    Output,
    Slot,
    Both,
}

/// Members, which seldom are many.
pub(super) type Members = SmallVec<[Member; 8]>;

/// What a member does with each piece.
pub(super) struct Plan<'p> {
    pub cut: Cut,
    /// It writes its operand, so many pieces ahead of what it combines.
    pub writes: Option<u32>,
    /// It combines the operands of a group, then the result, as its own operand, with those of the next
    /// group.
    pub combines: Option<(SmallVec<[Members; 1]>, To)>,
    /// It collects the results of these members, so many pieces later than it does the rest.
    pub collects: Members,
    pub lag: u32,
    /// Who reads its slots.
    pub readers: Members,
    /// It goes along a tree in which the member has these neighbours.
    pub near: Option<&'p Near>,
}

impl Plan<'_> {
    /// Nothing yet.
    pub fn new(cut: Cut) -> Self {
        Plan {
            cut,
            writes: None,
            combines: None,
            collects: Members::new(),
            lag: 0,
            readers: Members::new(),
            near: None,
        }
    }

    /// All write their operands, and combine those of all in their outputs.
    pub fn by_all(turn: &Turn<'_>, cut: Cut) -> Self {
        // With more than one slot, the next piece is on its way to the others while this one is combined.
        let ahead = u32::from(turn.depth() > 1);
        let combines = Some((smallvec![(0..turn.size()).collect()], To::Output));
        Plan { writes: Some(ahead), combines, readers: turn.others().collect(), ..Plan::new(cut) }
    }

    /// All members combine a part of each piece, which `root` collects, or all do. So every byte crosses
    /// between caches twice, however many members there are.
    pub fn shared(turn: &Turn<'_>, root: Option<Member>, pieces: Pieces) -> Self {
        let (me, members) = (turn.me(), turn.size());
        let receives = root.is_none_or(|root| root == me);
        let to = if receives { To::Both } else { To::Slot };
        let mut plan = Plan::by_all(turn, Cut::Shared(pieces));
        (plan.writes, plan.combines) = (Some(0), Some((smallvec![(0..members).collect()], to)));
        // Not everybody at the same member.
        plan.collects = (me + 1..members).chain(0..me).filter(|_| receives).collect();
        plan
    }
}

/// A part of a piece: where it begins in the operand and in the result, in bytes, and its elements.
struct Part {
    from: usize,
    to: usize,
    count: usize,
}

/// An operation.
struct Run<'r, 't> {
    turn: &'r Turn<'t>,
    plan: &'r Plan<'r>,
    op: &'r dyn Combine,
    input: Span,
    output: Span,
    /// The caller's operand, where its result would overwrite it.
    aside: Vec<u128>,
    /// The result that is to lie in a slot, where that [takes longer](copy::better_elsewhere).
    elsewhere: Vec<u128>,
}

/// Does the caller's part: combines `input` of all members in `output` of those whose plan says so, which may
/// be their input; of [scattered](Cut::Scattered) results it may begin there.
pub(super) async fn run(turn: Turn<'_>, plan: Plan<'_>, op: &dyn Combine, input: Span, output: Span) -> Result<()> {
    let turn = turn.saying(input.len() * op.size());
    let mut run = Run { turn: &turn, plan: &plan, op, input, output, aside: Vec::new(), elsewhere: Vec::new() };
    let steps = run.steps()?;
    let reads = plan.combines.is_some() || !plan.collects.is_empty();
    let mut written = 0;
    for step in 0..steps + plan.lag {
        while plan.writes.is_some_and(|ahead| written < steps.min(step + 1 + ahead)) {
            run.free(written).await?;
            run.write(written)?;
            written += 1;
        }
        if let Some((groups, to)) = plan.combines.as_ref().filter(|_| step < steps) {
            if *to != To::Output && plan.writes.is_none() {
                run.free(step).await?;
            }
            run.await_operands(groups, step).await?;
            run.combine(groups, *to, step)?;
        }
        let Some(step) = step.checked_sub(plan.lag).filter(|_| reads) else { continue };
        for &member in &plan.collects {
            run.wrote(member, step, run.stages()).await?;
            run.collect(member, step);
        }
        // Somebody waits for it only where the slot is used again.
        if step + turn.depth() < steps {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}

impl Run<'_, '_> {
    /// Steps that are published for each piece: by all members that write to their slots.
    fn stages(&self) -> u32 {
        if matches!(self.plan.cut, Cut::Shared(_)) { 2 } else { 1 }
    }

    /// How many pieces there are.
    fn steps(&self) -> Result<u32> {
        let steps = match &self.plan.cut {
            Cut::Room(_) => 1,
            Cut::Whole(pieces) | Cut::Shared(pieces) => pieces.steps as usize,
            Cut::Scattered { parts, each } => parts.iter().map(|part| part.len().div_ceil(*each)).max().unwrap_or(0),
        };
        self.turn.steps(steps * self.stages() as usize + 2).map(|_| steps as u32)
    }

    /// A member's slot, or room.
    fn slot(&self, member: Member, step: u32) -> *mut u8 {
        match &self.plan.cut {
            Cut::Room(count) => self.turn.room(member, count * self.op.size()),
            Cut::Whole(pieces) => self.turn.slot_of(member, step, pieces.bytes()),
            Cut::Shared(_) | Cut::Scattered { .. } => self.turn.slot(member, step),
        }
    }

    /// Shares of a member's slot.
    fn shares(&self, writer: Member) -> Shares {
        Shares::new(self.turn.fragment(), self.turn.size(), writer, 64)
    }

    /// The part of a piece that a member combines.
    fn part(&self, member: Member, step: u32) -> Part {
        let size = self.op.size();
        match &self.plan.cut {
            &Cut::Room(count) => Part { from: 0, to: 0, count },
            Cut::Whole(pieces) => {
                let (at, count) = pieces.get(step);
                Part { from: at, to: at, count }
            }
            Cut::Shared(pieces) => {
                let (at, count) = pieces.get(step);
                let part = Chunks::new(count, self.turn.size()).get(member);
                let at = at + part.start * size;
                Part { from: at, to: at, count: part.len() }
            }
            Cut::Scattered { parts, each } => {
                let first = (step as usize * each).min(parts[member].len());
                let from = (parts[member].start + first) * size;
                Part { from, to: first * size, count: (*each).min(parts[member].len() - first) }
            }
        }
    }

    /// Where in the slot of `writer` the part that `member` combines begins. (Nobody writes its own share.)
    fn place(&self, writer: Member, member: Member, step: u32) -> usize {
        match &self.plan.cut {
            Cut::Room(_) | Cut::Whole(_) => 0,
            Cut::Shared(pieces) => self.part(member, step).from - pieces.get(step).0,
            Cut::Scattered { .. } => self.shares(writer).at(member),
        }
    }

    /// Waits until a member has published this stage of a piece: with the first one it says how long its
    /// operand is.
    async fn wrote(&self, member: Member, step: u32, stage: u32) -> Result<()> {
        if let Some(late) = self.turn.wrote(member, self.stages() * step + stage).late() {
            late.await?;
        }
        let differs = step == 0 && self.turn.differs_anyhow(member, self.input.len() * self.op.size());
        if differs { Err(Error::Lengths) } else { Ok(()) }
    }

    /// Waits until the caller may write its slot: for the first time, any.
    async fn free(&self, step: u32) -> Result<()> {
        let Run { turn, plan, .. } = self;
        let free = match (step.checked_sub(turn.depth()), &plan.cut) {
            (None, _) if step > 0 => Ok(()),
            (None, cut) => {
                let bytes = if let Cut::Room(count) = cut { count * self.op.size() } else { usize::MAX };
                match plan.near {
                    Some(near) => turn.room_free_near(bytes, near).await,
                    None => turn.room_free(bytes).await,
                }
            }
            (Some(before), _) if plan.readers.len() + 1 < turn.size() => {
                for &reader in &plan.readers {
                    turn.read(reader, before + 1).await?;
                }
                Ok(())
            }
            _ => turn.slot_free(step).await,
        };
        free.inspect(|()| turn.note_operand(step, self.input.len() * self.op.size()))
    }

    /// Writes what others combine of the caller's operand to its slot, which is free, and publishes it.
    fn write(&self, step: u32) -> Result<()> {
        let (me, size, slot) = (self.turn.me(), self.op.size(), self.slot(self.turn.me(), step));
        let put = |from: usize, place: usize, bytes: usize| -> Result<()> {
            let from = self.input.ptr().wrapping_add(from);
            self.op.needs(from, bytes)?;
            // SAFETY: the slot is free, and holds a piece.
            unsafe { copy::write(slot.wrapping_add(place), from, bytes) };
            Ok(())
        };
        match &self.plan.cut {
            Cut::Room(_) | Cut::Whole(_) => {
                let part = self.part(me, step);
                put(part.from, 0, part.count * size)?;
            }
            Cut::Shared(pieces) => {
                let (at, count) = pieces.get(step);
                let mine = Chunks::new(count, self.turn.size()).get(me);
                for part in [0..mine.start, mine.end..count] {
                    put(at + part.start * size, part.start * size, part.len() * size)?;
                }
            }
            Cut::Scattered { .. } => {
                for member in self.turn.others() {
                    let part = self.part(member, step);
                    put(part.from, self.place(me, member, step), part.count * size)?;
                }
            }
        }
        self.turn.publish(self.stages() * step + 1);
        Ok(())
    }

    /// Waits for what others have for the caller to combine: not everybody for the same one first.
    async fn await_operands(&self, groups: &[Members], step: u32) -> Result<()> {
        let (me, mut others) = (self.turn.me(), 0);
        let all = || groups.iter().flatten();
        for &member in all().filter(|&&member| member > me).chain(all().filter(|&&member| member < me)) {
            self.wrote(member, step, 1).await?;
            others += 1;
        }
        if others + 1 == self.turn.size() {
            self.turn.met();
        }
        Ok(())
    }

    /// Combines the caller's part of these operands.
    fn combine(&mut self, groups: &[Members], to: To, step: u32) -> Result<()> {
        let (me, size) = (self.turn.me(), self.op.size());
        let Part { from, to: at, count } = self.part(me, step);
        let (own, output, bytes) =
            (self.input.ptr().wrapping_add(from), self.output.ptr().wrapping_add(at), count * size);
        self.op.needs(own, bytes)?;
        let target = match to {
            To::Output => output,
            To::Slot | To::Both => self.slot(me, step).wrapping_add(self.place(me, me, step)),
        };
        let elsewhere = to != To::Output && copy::better_elsewhere(bytes);
        let result = if elsewhere { room(&mut self.elsewhere, bytes) } else { target };
        let scattered = matches!(self.plan.cut, Cut::Scattered { .. });
        let mut value = own;
        for group in groups.iter().filter(|_| count > 0) {
            let mine = group.iter().position(|&member| member == me);
            // The combination would begin to write the result before it has read the value.
            let early = mine.is_some_and(|mine| mine + 2 < group.len()) && value == result;
            if early || scattered && self.input.ptr() == self.output.ptr() {
                let aside = room(&mut self.aside, bytes);
                // SAFETY: it holds so much; nobody writes the value.
                unsafe { copy::bytes(value, aside, bytes) };
                value = aside;
            }
            let operand = |i: usize| match group[i] {
                member if member == me => value.cast_const(),
                member => self.slot(member, step).wrapping_add(self.place(member, me, step)).cast_const(),
            };
            // SAFETY: published; the caller's slot is free, or nobody reads its own part of it yet; the
            // result is no operand but one that may be.
            unsafe { fold(&self.op, group.len(), count, operand, result) };
            value = result;
        }
        if elsewhere {
            // SAFETY: the slot is free, and holds a piece.
            unsafe { copy::write(target, result, bytes) };
        }
        if to != To::Output {
            self.turn.publish(self.stages() * (step + 1));
        }
        if to == To::Both {
            // SAFETY: nobody else writes the result; the part lies within the output.
            unsafe { copy::read(output, result, bytes, false) };
        }
        if to != To::Slot {
            self.op.made(output, bytes);
        }
        Ok(())
    }

    /// Copies what a member has combined to the output.
    fn collect(&self, member: Member, step: u32) {
        let part = self.part(member, step);
        let (to, bytes) = (self.output.ptr().wrapping_add(part.to), part.count * self.op.size());
        let from = self.slot(member, step).wrapping_add(self.place(member, member, step));
        // SAFETY: published; the part lies within the output, and the operand there is needed no more.
        unsafe { copy::read(to, from, bytes, false) };
        self.op.made(to, bytes);
    }
}

/// Memory of at least so many bytes.
fn room(memory: &mut Vec<u128>, bytes: usize) -> *mut u8 {
    memory.resize(bytes.div_ceil(size_of::<u128>()).max(memory.len()), 0);
    memory.as_mut_ptr().cast()
}
