// SPDX-License-Identifier: BSD-3-Clause
//! Allgather, with blocks of any lengths: round by round, everybody writes a fragment and reads everybody's.
//!
//! A block of up to 56 bytes travels in the line, of up to 4 KiB in a short slot, and where members take
//! turns on the cores of up to 64 KiB, or 256 KiB among few, as a whole in the set. A member whose block is
//! exhausted writes no more, but goes on reading.

use super::block::{Block, sum_lengths, transfer};
use super::peers::{Everybody, Peers};
use super::short::{self, exchange::Allgather};
use super::unequal::{Odd, Of, fits};
use super::{address, announce, announced, fetch, tally};
use crate::endpoint::{Blocks, Result, Stream};
use crate::shm::copy;
use crate::shm::policy::{Facts, Operation};
use crate::shm::protocol::turn::{Travel, Turn};

/// Whether a block of so many bytes bypasses the cache where it travels as a whole and [copies are so
/// long](crate::shm::protocol::turn::View::bypasses): if it is longer than other messages that do so.
#[inline(always)]
fn may_bypass(turn: &Turn<'_>, len: usize) -> bool {
    len > turn.team().config().whole as usize
}

/// Whether such a block does, as if all were as long.
#[inline(always)]
pub(super) fn bypasses(turn: &Turn<'_>, len: usize) -> bool {
    may_bypass(turn, len) && turn.bypasses(turn.size(), len.saturating_mul(turn.size() - 1))
}

/// Gathers every member's block in `all` of all members; `own` is the caller's data, if they are not in its
/// block. From `zero_copy` bytes on, others may read a block directly.
pub fn allgather<S: Stream, B: Blocks>(
    turn: Turn<'_>,
    own: Option<&S>,
    all: &B,
    zero_copy: usize,
) -> impl Future<Output = Result<()>> {
    let peers = Everybody::of(turn.team());
    short::run(turn, Allgather { own, all, peers, zero_copy })
}

/// Not all blocks are short.
pub(super) async fn long(
    turn: Turn<'_>,
    peers: impl Peers,
    own: Option<&dyn Stream>,
    all: &dyn Blocks,
    zero_copy: usize,
) -> Result<()> {
    let mine = Block::new(all, turn.me());
    let turn = turn.saying(mine.len());
    let facts = turn.facts(Operation::Allgather, zero_copy);
    let way = facts.way(mine.len());
    tally::count(Operation::Allgather, way);
    let from = match way.reads_peers() {
        true => own.map_or_else(|| address(&turn, &mine), |own| address(&turn, own)),
        false => 0,
    };
    let mut odd = Odd::default();
    let gathered = rounds(&turn, &facts, peers, own, all, from, &mut odd).await;
    if from != 0 {
        return turn.end_with(gathered, peers.to()).await.and(fits(!odd.cut));
    }
    gathered?;
    turn.finish();
    fits(!odd.cut)
}

/// All rounds. `from`: where others may read the caller's data, or 0.
async fn rounds(
    turn: &Turn<'_>,
    facts: &Facts,
    peers: impl Peers,
    own: Option<&dyn Stream>,
    all: &dyn Blocks,
    from: u64,
    odd: &mut Odd,
) -> Result<()> {
    let fragment = turn.fragment();
    let mine = Block::new(all, turn.me());
    let longest = peers.from().map(|m| all.len(m)).max().unwrap_or(0).max(mine.len());
    let is_short = |len: usize| facts.way(len).is_short();
    let may_fetch = |len: usize| facts.way(len).reads_peers();
    let counts = |len| match facts.way(len) {
        way if way.is_short() => may_bypass(turn, len),
        way => !way.reads_peers(),
    };
    let queued = sum_lengths(all, peers.from(), counts);
    let bypass = turn.bypasses(turn.size(), queued);
    let rounds_of = |len: usize| if is_short(len) { len.min(1) } else { len.div_ceil(fragment) };
    let rounds = turn.steps(rounds_of(longest))?;
    let my_rounds = if from != 0 { 1 } else { rounds_of(mine.len()) as u32 };
    let ahead = u32::from(turn.depth() > 1);
    let mut next = 0;
    for round in 0..rounds {
        while next < my_rounds.min(round + 1 + ahead) {
            match own {
                Some(own) => put(turn, own, next, is_short(mine.len()), may_fetch(mine.len()).then_some(from)).await?,
                None => put(turn, &mine, next, is_short(mine.len()), may_fetch(mine.len()).then_some(from)).await?,
            }
            next += 1;
        }
        if let (Some(own), 0) = (own, round) {
            transfer(own, &mine)?;
        }
        for member in peers.from() {
            let (block, at) = (Block::new(all, member), round as usize * fragment);
            let len = block.len();
            if round as usize >= rounds_of(len)
                || odd.members.contains(&member)
                || (round > 0 && may_fetch(len) && announced(turn, member) != 0)
            {
                continue;
            }
            if is_short(len) {
                turn.wrote_room(member, len).await?;
            } else {
                turn.wrote(member, round + 1).await?;
            }
            if round == 0 && turn.differs_anyhow(member, len) {
                odd.take(**turn, member, &block, Of::Allgather).await?;
                continue;
            }
            if is_short(len) {
                let bypass = bypass && may_bypass(turn, len);
                // SAFETY: published, and it holds so much.
                unsafe { copy::unpack(&block, 0, len, turn.room(member, len), bypass) }?;
                continue;
            }
            if round == 0 && may_fetch(len) && announced(turn, member) != 0 {
                fetch(turn, member, announced(turn, member), &block, 0..len)?;
                continue;
            }
            // SAFETY: published; a slot holds so much.
            unsafe {
                copy::unpack(&block, at, fragment.min(len - at), turn.slot_of(member, round, fragment.min(len)), bypass)
            }?;
        }
        if round == 0 && peers.from().filter(|&m| all.len(m) > 0).count() + 1 == turn.size() {
            turn.met();
        }
        if round + turn.depth() < rounds {
            turn.acknowledge(round + 1);
        }
    }
    Ok(())
}

/// Publishes fragment `step` of the caller's data; `away` is to be announced with the first: where to read
/// them instead, or 0.
async fn put(turn: &Turn<'_>, data: &dyn Stream, step: u32, short: bool, away: Option<u64>) -> Result<()> {
    let (me, len, fragment) = (turn.me(), data.len(), turn.fragment());
    let at = step as usize * fragment;
    if short {
        turn.room_free(len).await?;
        turn.note_length(len, Travel::AtOnce);
        // SAFETY: free, and `len` bytes fit.
        unsafe { copy::pack(data, 0, len, turn.room(me, len)) }?;
    } else {
        turn.slot_free(step).await?;
        if step == 0 {
            turn.note_length(len, if away.unwrap_or(0) == 0 { Travel::InPieces } else { Travel::Lent });
        }
        if let (Some(away), 0) = (away, step) {
            announce(turn, away);
        }
        if away.unwrap_or(0) == 0 {
            let part = fragment.min(len - at);
            // SAFETY: the slot is free, and holds a fragment.
            unsafe { copy::pack(data, at, part, turn.slot_of(me, step, fragment.min(len))) }?;
        }
    }
    turn.publish(step + 1);
    Ok(())
}
