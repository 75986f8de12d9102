//! Gather, with blocks of any lengths: every member writes its own queue, the root reads them all.
//!
//! Up to 56 bytes travel in the line, up to 4 KiB in a short slot. Of more, the root takes fragment k of every member, then k + 1: the
//! members copy in while it copies out. Its progress as a reader counts (fragment, member) pairs, so each member knows when its slot is free. Only the root and the
//! member need to know the length of a block.

use super::block::{Block, index, transfer};
use super::{address, announce, announced, fetch, is_short};
use crate::endpoint::{Blocks, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;

/// Sends `own` to `root`. From `zero_copy` bytes on, the root may read it directly.
pub async fn send<S: Stream + ?Sized>(turn: Turn<'_>, root: Member, own: &S, zero_copy: usize) -> Result<()> {
    let (me, len, fragment) = (turn.me(), own.len(), turn.fragment());
    if is_short(&turn, len, zero_copy) {
        if len > 0 {
            turn.line_free().await?;
            // SAFETY: free, and `len` bytes fit.
            unsafe { copy::pack(own, 0, len, turn.room(me, len)) }?;
            turn.publish(1);
        }
        turn.finish();
        return Ok(());
    }
    turn.set_free().await?;
    if len >= zero_copy {
        let from = address(&turn, own);
        announce(&turn, from);
        if from != 0 {
            turn.publish(1);
            turn.all_over(std::iter::once(root)).await?;
            turn.finish();
            return Ok(());
        }
    }
    let (others, place) = (turn.size() - 1, index(root, me));
    for step in 0..turn.steps(len.div_ceil(fragment) * others)? / others as u32 {
        if let Some(before) = step.checked_sub(turn.depth()) {
            turn.read(root, before * others as u32 + place as u32 + 1).await?;
        }
        let at = step as usize * fragment;
        // SAFETY: the set is free, and the root is through with what the slot held before; it holds a fragment.
        unsafe { copy::pack(own, at, fragment.min(len - at), turn.slot(me, step)) }?;
        turn.publish(step + 1);
    }
    turn.finish();
    Ok(())
}

/// As the root, receives every member's block in `all`; `own` is its own data, if they are not in its block.
pub async fn receive<S: Stream + ?Sized, B: Blocks + ?Sized>(
    turn: Turn<'_>,
    own: Option<&S>,
    all: &B,
    zero_copy: usize,
) -> Result<()> {
    let (me, size, fragment) = (turn.me(), turn.size(), turn.fragment());
    if let Some(own) = own {
        transfer(own, &Block::new(all, me))?;
    }
    let others = || (0..size).filter(|&m| m != me);
    let is_short = |len| is_short(&turn, len, zero_copy);
    let rounds_of = |len: usize| if is_short(len) { len.min(1) } else { len.div_ceil(fragment) };
    let longest = others().map(|m| all.len(m)).max().unwrap_or(0);
    let most = others().map(|m| rounds_of(all.len(m))).max().unwrap_or(0);
    let rounds = turn.steps(most * size)? / size as u32;
    let bypass = longest >= turn.team().config().bypass_min;
    for round in 0..rounds {
        for member in others() {
            let (block, at) = (Block::new(all, member), round as usize * fragment);
            let len = block.len();
            let may_fetch = !is_short(len) && len >= zero_copy;
            if round as usize >= rounds_of(len) || (may_fetch && round > 0 && announced(&turn, member) != 0) {
                continue;
            }
            turn.wrote(member, round + 1).await?;
            if may_fetch && round == 0 && announced(&turn, member) != 0 {
                fetch(&turn, member, announced(&turn, member), &block)?;
                continue;
            }
            if is_short(len) {
                // SAFETY: published, and it holds so much.
                unsafe { copy::unpack(&block, 0, len, turn.room(member, len), false) }?;
                continue;
            }
            // SAFETY: published; a slot holds a fragment.
            unsafe { copy::unpack(&block, at, fragment.min(len - at), turn.slot(member, round), bypass) }?;
            if at + turn.depth() as usize * fragment < len {
                turn.acknowledge(round * (size - 1) as u32 + index(me, member) as u32 + 1);
            }
        }
    }
    turn.finish();
    Ok(())
}
