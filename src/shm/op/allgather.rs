//! Allgather, with blocks of any lengths: round by round, everybody writes a fragment and reads everybody's.
//!
//! Up to 56 bytes travel in the line. A member whose block is exhausted writes no more, but goes on reading.

use super::block::{Block, transfer};
use super::{address, announce, announced, fetch};
use crate::endpoint::{Blocks, Result, Stream};
use crate::shm::copy;
use crate::shm::layout::LINE;
use crate::shm::turn::Turn;

/// Gathers every member's block in `all` of all members; `own` is the caller's data, if they are not in its block. From
/// `zero_copy` bytes on, others may read a block directly.
pub async fn allgather<S: Stream + ?Sized, B: Blocks + ?Sized>(
    turn: Turn<'_>,
    own: Option<&S>,
    all: &B,
    zero_copy: usize,
) -> Result<()> {
    let mine = Block::new(all, turn.me());
    let may_fetch = |len: usize| len > LINE && len >= zero_copy;
    let from = match may_fetch(mine.len()) {
        true => own.map_or_else(|| address(&turn, &mine), |own| address(&turn, own)),
        false => 0,
    };
    let gathered = rounds(&turn, own, all, from, may_fetch).await;
    if from != 0 {
        return turn.end_together(gathered).await;
    }
    gathered?;
    turn.finish();
    Ok(())
}

/// All rounds. `from`: where others may read the caller's data, or 0; `may_fetch`: whether that is said of blocks of so many bytes.
async fn rounds<S: Stream + ?Sized, B: Blocks + ?Sized>(
    turn: &Turn<'_>,
    own: Option<&S>,
    all: &B,
    from: u64,
    may_fetch: impl Fn(usize) -> bool,
) -> Result<()> {
    let (me, size, fragment) = (turn.me(), turn.size(), turn.fragment());
    let mine = Block::new(all, me);
    let longest = (0..size).map(|m| all.len(m)).max().unwrap_or(0);
    let bypass = longest >= turn.team().config().bypass_min;
    let rounds = turn.steps(longest.div_ceil(fragment))?;
    let my_rounds = if from != 0 { 1 } else { mine.len().div_ceil(fragment) as u32 };
    let ahead = u32::from(turn.depth() > 1);
    let mut next = 0;
    for round in 0..rounds {
        while next < my_rounds.min(round + 1 + ahead) {
            match own {
                Some(own) => put(turn, own, next, may_fetch(mine.len()).then_some(from)).await?,
                None => put(turn, &mine, next, may_fetch(mine.len()).then_some(from)).await?,
            }
            next += 1;
        }
        if let (Some(own), 0) = (own, round) {
            transfer(own, &mine)?;
        }
        for member in (me + 1..size).chain(0..me) {
            let (block, at) = (Block::new(all, member), round as usize * fragment);
            let len = block.len();
            if len <= at || (round > 0 && may_fetch(len) && announced(turn, member) != 0) {
                continue;
            }
            turn.wrote(member, round + 1).await?;
            if round == 0 && may_fetch(len) && announced(turn, member) != 0 {
                fetch(turn, member, announced(turn, member), &block)?;
                continue;
            }
            let from = if len <= LINE { turn.payload(member) } else { turn.slot(member, round) };
            // SAFETY: published; a line or a slot holds so much.
            unsafe { copy::unpack(&block, at, fragment.min(len - at), from, bypass) }?;
        }
        if round == 0 && (0..size).all(|m| all.len(m) > 0) {
            turn.met();
        }
        if round + turn.depth() < rounds {
            turn.acknowledge(round + 1);
        }
    }
    Ok(())
}

/// Publishes fragment `step` of the caller's data; `away` is to be announced with the first: where to read them instead, or 0.
async fn put<S: Stream + ?Sized>(turn: &Turn<'_>, data: &S, step: u32, away: Option<u64>) -> Result<()> {
    let (me, len, fragment) = (turn.me(), data.len(), turn.fragment());
    let at = step as usize * fragment;
    if len <= LINE {
        turn.line_free().await?;
        // SAFETY: the line is free, and `len` bytes fit.
        unsafe { copy::pack(data, 0, len, turn.payload(me)) }?;
    } else {
        turn.slot_free(step).await?;
        if let (Some(away), 0) = (away, step) {
            announce(turn, away);
        }
        if away.unwrap_or(0) == 0 {
            // SAFETY: the slot is free, and holds a fragment.
            unsafe { copy::pack(data, at, fragment.min(len - at), turn.slot(me, step)) }?;
        }
    }
    turn.publish(step + 1);
    Ok(())
}
