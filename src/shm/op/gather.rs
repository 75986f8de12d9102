// SPDX-License-Identifier: BSD-3-Clause
//! Gather, with blocks of any lengths: every member writes its own queue, the root reads them all.
//!
//! Up to 56 bytes travel in the line, up to 4 KiB in a short slot, and where members take turns on the cores
//! up to 64 KiB, or 256 KiB among few, as a whole in the set. Of more, the root takes piece k of every
//! member, then k + 1: the members copy in while it copies out. Its progress as a reader counts (piece,
//! member) pairs in this order, so each member knows when its slot is free. Only the root and the member need
//! to know the length of a block.

use super::block::{Block, index, sum_lengths, transfer};
use super::divided::{self, LOAN};
use super::short::rooted::{Collect, Give};
use super::unequal::{Odd, Of, fits};
use super::{address, announce, announced, fetch, short, tally};
use crate::endpoint::{Blocks, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::policy::{Facts, Operation, Way, Writer, writers_part};
use crate::shm::protocol::turn::{Travel, Turn};

/// Where the part begins that the member itself writes to the root's memory; `len` without one.
fn middle(facts: &Facts, len: usize) -> usize {
    match writers_part(facts, len, Writer::HasOwn) {
        0 => len,
        share => share,
    }
}

/// Where the root says where a member's block is.
fn entry(turn: &Turn<'_>, root: Member, member: Member) -> *mut u8 {
    turn.room(root, turn.size() * LOAN).wrapping_add(member * LOAN)
}

/// Sends `own` to `root`. From `zero_copy` bytes on, the root may read it directly.
pub fn send<S: Stream>(turn: Turn<'_>, root: Member, own: &S, zero_copy: usize) -> impl Future<Output = Result<()>> {
    short::run(turn, Give { root, own, zero_copy })
}

/// As the root, receives every member's block in `all`; `own` is its own data, if they are not in its block.
pub fn receive<S: Stream, B: Blocks>(
    turn: Turn<'_>,
    own: Option<&S>,
    all: &B,
    zero_copy: usize,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Collect { own, all, zero_copy })
}

/// How far the root has come when it has taken this piece of the member at that [index], as it takes one of
/// each member in turn.
fn count(turn: &Turn<'_>, piece: u32, place: usize) -> u32 {
    piece * (turn.size() as u32 - 1) + place as u32 + 1
}

/// So many pieces of each member, if they can be counted.
fn counted(turn: &Turn<'_>, pieces: usize) -> Result<u32> {
    turn.steps(pieces.saturating_mul(turn.size() - 1)).map(|_| pieces as u32)
}

/// The block is not short.
pub(super) async fn send_long(turn: Turn<'_>, root: Member, own: &dyn Stream, zero_copy: usize) -> Result<()> {
    let (me, len, piece) = (turn.me(), own.len(), turn.piece(own.len()));
    let facts = turn.facts(Operation::Gather, zero_copy);
    let way = facts.way(len);
    tally::count(Operation::Gather, way);
    turn.set_free().await?;
    let turn = turn.saying(len);
    if way.reads_peers() {
        let from = address(&turn, own);
        announce(&turn, from);
        if from != 0 {
            let divided = middle(&facts, len) < len;
            turn.note_length(len, if divided { Travel::LentBothWays } else { Travel::Lent });
            turn.publish(1);
            let stored = write(&turn, &facts, root, own).await;
            let told = stored.map(|all| divided::tell(&turn, if all { turn.size() } else { 0 }));
            turn.over_with(told, std::iter::once(root)).await?;
            turn.finish();
            return Ok(());
        }
    }
    turn.note_length(len, Travel::InPieces);
    let past = turn.writes_past(len.saturating_mul(turn.size() - 1));
    for step in 0..counted(&turn, len.div_ceil(piece))? {
        if let Some(before) = step.checked_sub(turn.depth()) {
            turn.read(root, count(&turn, before, index(root, me))).await?;
        }
        let at = step as usize * piece;
        let part = piece.min(len - at);
        // SAFETY: the set is free, and the root is through with what the slot held before; it holds a piece.
        unsafe { copy::pack_past(own, at, part, turn.slot_of(me, step, piece), past) }?;
        turn.publish(step + 1);
    }
    turn.finish();
    Ok(())
}

/// Writes the caller's part of its block to the root's memory, where possible.
async fn write(turn: &Turn<'_>, facts: &Facts, root: Member, own: &dyn Stream) -> Result<bool> {
    let at = middle(facts, own.len());
    if at == own.len() {
        return Ok(false);
    }
    turn.wrote(root, 1).await?;
    divided::store(turn, root, own, entry(turn, root, turn.me()), at)
}

/// Not all blocks are short.
pub(super) async fn receive_long(
    turn: Turn<'_>,
    own: Option<&dyn Stream>,
    all: &dyn Blocks,
    zero_copy: usize,
) -> Result<()> {
    let me = turn.me();
    let facts = turn.facts(Operation::Gather, zero_copy);
    turn.others().take(1).for_each(|m| tally::count(Operation::Gather, facts.way(all.len(m))));
    let divides = |m: Member| facts.way(all.len(m)) == Way::TwoSided;
    let to = |m: Member| if divides(m) { address(&turn, &Block::new(all, m)) } else { 0 };
    let divided = turn.others().any(divides);
    if divided {
        turn.room_free(turn.size() * LOAN).await?;
        for member in turn.others() {
            divided::lend(&turn, entry(&turn, me, member), to(member), all.len(member));
        }
        turn.publish(1);
    }
    let kept = own.map_or(Ok(()), |own| transfer(own, &Block::new(all, me)));
    let mut odd = Odd::default();
    let received = kept.and(receive_all(&turn, &facts, all, to, &mut odd).await);
    if divided {
        // In any case: they write to the caller's memory.
        turn.outlast(received, turn.others().filter(|&m| to(m) != 0)).await?;
        for member in turn.others().filter(|&m| to(m) != 0 && !odd.members.contains(&m)) {
            let (from, block) = (announced(&turn, member), Block::new(all, member));
            if from != 0 && !divided::is_served(&turn, member) {
                let part = middle(&facts, block.len())..block.len();
                fetch(&turn, member, from, &block, part)?;
            }
        }
    } else {
        received?;
    }
    turn.finish();
    fits(!odd.cut)
}

/// Receives all others' blocks. `to(i)`: where member i writes a part of its block, or 0.
async fn receive_all(
    turn: &Turn<'_>,
    facts: &Facts,
    all: &dyn Blocks,
    to: impl Fn(Member) -> u64,
    odd: &mut Odd,
) -> Result<()> {
    let me = turn.me();
    let is_short = |len| facts.way(len).is_short();
    let rounds_of = |len: usize| if is_short(len) { len.min(1) } else { len.div_ceil(turn.piece(len)) };
    let most = turn.others().map(|m| rounds_of(all.len(m))).max().unwrap_or(0);
    let rounds = counted(turn, most)?;
    let queued = sum_lengths(all, turn.others(), |len| facts.way(len) == Way::Pipeline);
    let bypass = turn.bypasses(1, queued);
    for (round, member) in (0..rounds).flat_map(|round| turn.others().map(move |member| (round, member))) {
        let block = Block::new(all, member);
        let len = block.len();
        let piece = turn.piece(len);
        let at = round as usize * piece;
        let way = facts.way(len);
        let (is_short, may_fetch) = (way.is_short(), way.reads_peers());
        if round as usize >= rounds_of(len)
            || odd.members.contains(&member)
            || (may_fetch && round > 0 && announced(turn, member) != 0)
        {
            continue;
        }
        if is_short {
            turn.wrote_room(member, len).await?;
        } else {
            turn.wrote(member, round + 1).await?;
        }
        if round == 0 && turn.differs_anyhow(member, len) {
            odd.take(**turn, member, &block, Of::Gather).await?;
            continue;
        }
        if may_fetch && round == 0 && announced(turn, member) != 0 {
            let part = if to(member) != 0 { middle(facts, len) } else { len };
            fetch(turn, member, announced(turn, member), &block, 0..part)?;
            continue;
        }
        if is_short {
            // SAFETY: published, and it holds so much.
            unsafe { copy::unpack(&block, 0, len, turn.room(member, len), false) }?;
            continue;
        }
        // SAFETY: published; a slot holds a piece.
        unsafe { copy::unpack(&block, at, piece.min(len - at), turn.slot_of(member, round, piece), bypass) }?;
        if at + turn.depth() as usize * piece < len {
            turn.acknowledge(count(turn, round, index(me, member)));
        }
    }
    Ok(())
}
