// SPDX-License-Identifier: BSD-3-Clause
//! Scatter, with blocks of any lengths: the root writes its queue, and each member reads what is its.
//!
//! A block that fits its member's share of the line, or of the short slot, travels there. Of others the first
//! slot holds, for each member in its share, an address to read the block at, or the block's beginning; what
//! remains goes in pieces, the k-th ones of all members before the next ones. Only the root and the member
//! need to know the length of a block: step k · (p − 1) + i + 1 belongs to member i. Where members take turns
//! on the cores, [`dealt`] says how blocks travel that are not short.

use super::alltoall::places::LENGTH;
use super::block::{Block, Rooms, Shares, all_lengths, index, transfer, want_set};
use super::dealt;
use super::divided;
use super::short::rooted::{Deal, Take};
use super::unequal::fits;
use super::{address, get, put, short, tally, told};
use crate::endpoint::{Blocks, Error, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::policy::{Facts, Operation, Way, Writer, writers_part};
use crate::shm::protocol::turn::Turn;

/// Where what travels.
struct Plan<'p, 't> {
    turn: &'p Turn<'t>,
    rooms: Rooms,
    first: Shares,
}

impl<'p, 't> Plan<'p, 't> {
    fn new(turn: &'p Turn<'t>, root: Member, zero_copy: usize) -> Plan<'p, 't> {
        let (size, fragment) = (turn.size(), turn.fragment());
        Plan { turn, rooms: rooms(turn, root, zero_copy), first: Shares::new(fragment, size, root, 64) }
    }

    /// The root's slot of `step`, which only the member with the block of `len` bytes reads; but all read the
    /// first one, unless there is one only.
    fn slot(&self, root: Member, step: u32, len: usize) -> *mut u8 {
        let fragment = self.turn.fragment();
        let bytes = if self.turn.size() == 2 { self.first.head() + self.turn.piece(len) } else { fragment };
        self.turn.slot_of(root, step, bytes.min(fragment))
    }

    /// Bytes of a block that travel in the first slot.
    fn beginning(&self, len: usize) -> usize {
        self.turn.piece(len).min(len).min(self.first.part())
    }

    /// Pieces of a block after that.
    fn rounds(&self, len: usize) -> usize {
        if self.rooms.hold(len) { 0 } else { (len - self.beginning(len)).div_ceil(self.turn.piece(len)) }
    }
}

/// Where short blocks of the root lie.
#[inline(always)]
pub(super) fn rooms(turn: &Turn<'_>, root: Member, zero_copy: usize) -> Rooms {
    Rooms::new(turn.team(), turn.is_still(), root, turn.limit(Operation::Scatter, zero_copy))
}

/// As the root, sends every member its block of `all`; its own goes to `own`, if it does not stay there. From
/// `zero_copy` bytes on, members may read their blocks directly.
pub fn send<S: Stream, B: Blocks>(
    turn: Turn<'_>,
    all: &B,
    own: Option<&S>,
    zero_copy: usize,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Deal { all, own, zero_copy })
}

/// Whether all blocks that are not short are [dealt], and none is so long that it may be read from the root's
/// memory.
#[inline(always)]
fn is_dealt<B: Blocks + ?Sized>(turn: &Turn<'_>, all: &B, zero_copy: usize) -> bool {
    let is_dealt = |len| {
        let way = turn.way(Operation::Scatter, len, 1, zero_copy);
        way == Way::Ring || way.is_short()
    };
    dealt::is_wanted(turn) && all_lengths(all, turn.others(), is_dealt)
}

/// Not all blocks are short.
pub(super) async fn send_long(
    turn: Turn<'_>,
    all: &dyn Blocks,
    own: Option<&dyn Stream>,
    zero_copy: usize,
) -> Result<()> {
    let (me, rooms) = (turn.me(), rooms(&turn, turn.me(), zero_copy));
    if is_dealt(&turn, all, zero_copy) && dealt::holds_all(&turn, &rooms, all) {
        turn.room_free(want_set(turn.team().config(), all, turn.others())).await?;
        tally::count(Operation::Scatter, Way::Ring);
        let turn = saying(turn, &rooms, all);
        dealt::send_all(turn, rooms, all)?;
        return own.map_or(Ok(()), |own| transfer(&Block::new(all, me), own));
    }
    send_in_pieces(turn, all, own, zero_copy).await
}

/// The same operation, in which the caller says how long the blocks are for the others; its line is free.
fn saying<'t>(turn: Turn<'t>, rooms: &Rooms, all: &dyn Blocks) -> Turn<'t> {
    let word = told::word_of(&turn, all, turn.others(), |len| rooms.hold(len));
    let turn = turn.saying_as(word);
    told::note(&turn, all, turn.others(), |len| rooms.hold(len));
    turn
}

/// The same, but not all of them by the ring at once.
async fn send_in_pieces(turn: Turn<'_>, all: &dyn Blocks, own: Option<&dyn Stream>, zero_copy: usize) -> Result<()> {
    let turn = turn.widened();
    let (me, deals) = (turn.me(), dealt::is_wanted(&turn));
    turn.set_free().await?;
    let rooms = rooms(&turn, me, zero_copy);
    let turn = saying(turn, &rooms, all);
    let plan = Plan::new(&turn, me, zero_copy);
    let facts = turn.facts(Operation::Scatter, zero_copy);
    turn.others().take(1).for_each(|m| tally::count(Operation::Scatter, facts.way(all.len(m))));
    let away = |m: Member| match facts.way(all.len(m)).reads_peers() {
        true => address(&turn, &Block::new(all, m)),
        false => 0,
    };
    for member in turn.others() {
        let (block, len) = (Block::new(all, member), all.len(member));
        if plan.rooms.hold(len) {
            // SAFETY: free, and a share holds so much.
            unsafe { copy::pack(&block, 0, len, plan.rooms.at(&turn, member, len)) }?;
            continue;
        }
        if deals {
            continue;
        }
        let (from, to) = (away(member), plan.slot(me, 0, len).wrapping_add(plan.first.at(member)));
        put(to, from);
        put(to.wrapping_add(LENGTH), len as u64);
        if from == 0 {
            // SAFETY: the slot is free, and a share holds so much.
            unsafe { copy::pack(&block, 0, plan.beginning(len), to.wrapping_add(plan.first.head())) }?;
        }
    }
    if deals {
        dealt::tell(&turn, &plan.rooms, all, away)?;
    }
    turn.publish(1);
    let keep = || own.map_or(Ok(()), |own| transfer(&Block::new(all, me), own));
    let sent = match deals {
        // There is nothing to be read yet, as a rule.
        true => dealt::send(&turn, &plan.rooms, all, |m| away(m) != 0).await.and_then(|()| keep()),
        false => keep().and(send_rest(&turn, &plan, all, |m| away(m) != 0).await),
    };
    let helped = match sent {
        Ok(()) => help(&turn, &facts, all, |m| away(m) != 0).await.map(|end| divided::tell(&turn, end)),
        failed => failed,
    };
    // In any case: they read the caller's memory.
    turn.over_with(helped, turn.others().filter(|&m| away(m) != 0)).await?;
    turn.finish();
    Ok(())
}

/// Where the part of the root begins of a block that can be read from its memory; `len` without one.
fn middle(facts: &Facts, len: usize) -> usize {
    len - writers_part(facts, len, Writer::HasOwn)
}

/// Writes the root's part of the blocks that are `away` to their members' memory, where possible: to that of
/// all before the one that it returns.
async fn help(turn: &Turn<'_>, facts: &Facts, all: &dyn Blocks, away: impl Fn(Member) -> bool) -> Result<Member> {
    for member in turn.others().filter(|&m| away(m)) {
        let (block, len) = (Block::new(all, member), all.len(member));
        let at = middle(facts, len);
        if at == len {
            continue;
        }
        turn.wrote(member, 1).await?;
        if !divided::store(turn, member, &block, turn.payload(member), at)? {
            return Ok(member);
        }
    }
    Ok(turn.size())
}

/// Sends what does not fit the first slot.
async fn send_rest(
    turn: &Turn<'_>,
    plan: &Plan<'_, '_>,
    all: &dyn Blocks,
    away: impl Fn(Member) -> bool,
) -> Result<()> {
    let (me, size) = (turn.me(), turn.size());
    let rounds = |m| if away(m) { 0 } else { plan.rounds(all.len(m)) };
    let most = turn.others().map(rounds).max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    turn.steps(most * size + 1)?;
    // Who has read each slot last, and at which step; the first slot is everybody's.
    let mut readers: Vec<Option<(Member, u32)>> = vec![None; turn.depth() as usize];
    let mut first = true;
    for round in 0..most {
        for member in turn.others() {
            if round >= rounds(member) {
                continue;
            }
            let step = (round * (size - 1) + index(me, member) + 1) as u32;
            let slot = (step & (turn.depth() - 1)) as usize;
            if let Some((reader, before)) = readers[slot] {
                turn.read(reader, before + 1).await?;
            } else if slot == 0 && first {
                first = false;
                turn.all_read(1).await?;
            }
            let (block, len) = (Block::new(all, member), all.len(member));
            let piece = turn.piece(len);
            let at = plan.beginning(len) + round * piece;
            let part = piece.min(len - at);
            // SAFETY: the slot is free, and holds a piece.
            unsafe { copy::pack(&block, at, part, plan.slot(me, step, len)) }?;
            turn.publish(step + 1);
            readers[slot] = Some((member, step));
        }
    }
    Ok(())
}

/// Receives the caller's block from `root`.
pub fn receive<S: Stream>(turn: Turn<'_>, root: Member, own: &S, zero_copy: usize) -> impl Future<Output = Result<()>> {
    short::run(turn, Take { root, own, zero_copy })
}

/// The block is not short.
pub(super) async fn receive_long(turn: Turn<'_>, root: Member, own: &dyn Stream, zero_copy: usize) -> Result<()> {
    let way = turn.way(Operation::Scatter, own.len(), 1, zero_copy);
    tally::count(Operation::Scatter, way);
    match way {
        Way::Ring => {
            turn.wrote(root, 1).await?;
            match told::differs(&turn, root, own.len(), false) {
                true => receive_other(turn, root, own),
                false => dealt::receive(turn, root, own).await,
            }
        }
        _ => receive_in_pieces(turn, root, own, zero_copy).await,
    }
}

/// The root has another length for it.
fn receive_other(turn: Turn<'_>, root: Member, own: &dyn Stream) -> Result<()> {
    let whole = told::take(*turn, root, own)?;
    turn.finish();
    fits(whole)
}

async fn receive_in_pieces(turn: Turn<'_>, root: Member, own: &dyn Stream, zero_copy: usize) -> Result<()> {
    let turn = turn.widened();
    let (me, len) = (turn.me(), own.len());
    let plan = Plan::new(&turn, root, zero_copy);
    turn.wrote(root, 1).await?;
    if told::differs(&turn, root, len, false) {
        return receive_other(turn, root, own);
    }
    let facts = turn.facts(Operation::Scatter, zero_copy);
    let deals = dealt::is_wanted(&turn);
    let from = plan.slot(root, 0, len).wrapping_add(plan.first.at(me));
    let away = if deals { dealt::address(&turn, root) } else { get(from) };
    let told = if deals { dealt::length(&turn, root) } else { get(from.wrapping_add(LENGTH)) };
    if told != len as u64 {
        return Err(Error::Lengths);
    }
    if away != 0 {
        let middle = middle(&facts, len);
        // Else it would acknowledge once more, an earlier step.
        debug_assert!(!deals || middle == len, "nothing is divided where blocks are dealt");
        return divided::receive(turn, root, away, own, middle).await;
    }
    if deals {
        return dealt::receive(turn, root, own).await;
    }
    let bypass = turn.bypasses(turn.size() - 1, len);
    // SAFETY: published, and a share holds so much.
    unsafe { copy::unpack(own, 0, plan.beginning(len), from.wrapping_add(plan.first.head()), bypass) }?;
    let rounds = plan.rounds(len);
    turn.steps(rounds * turn.size() + 1)?;
    if rounds > 0 {
        turn.acknowledge(1);
    }
    for round in 0..rounds {
        let step = (round * (turn.size() - 1) + index(root, me) + 1) as u32;
        turn.wrote(root, step + 1).await?;
        let (piece, start) = (turn.piece(len), plan.beginning(len));
        let at = start + round * piece;
        // SAFETY: published; the slot holds a piece.
        unsafe { copy::unpack(own, at, piece.min(len - at), plan.slot(root, step, len), bypass) }?;
        if round + 1 < rounds {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}
