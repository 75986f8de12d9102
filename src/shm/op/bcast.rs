// SPDX-License-Identifier: BSD-3-Clause
//! Broadcast: the root publishes, everybody reads.
//!
//! Up to 56 bytes travel in the line, up to 4 KiB in a short slot, and where members take turns on the cores
//! up to 64 KiB as a whole in the set; more go through the root's slots, piece by piece, which readers copy
//! out while the root copies the next ones in; or readers copy from the root's memory directly, where the
//! root helps them ([`divided`]).

use super::divided;
use super::short::{self, rooted::Bcast};
use super::unequal::{Of, fits, take};
use super::{address, announce, announced, tally};
use crate::endpoint::{Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::policy::{Operation, Way, Writer, writers_part};
use crate::shm::protocol::turn::{Travel, Turn};

/// Broadcasts `data` of `root`. From `zero_copy` bytes on, readers may read the root's memory.
pub fn bcast<S: Stream>(turn: Turn<'_>, root: Member, data: &S, zero_copy: usize) -> impl Future<Output = Result<()>> {
    bcast_by(turn, root, data, zero_copy, true)
}

/// As [`bcast`]; `divide`: the root may help readers that read its memory.
pub fn bcast_by<S: Stream>(
    turn: Turn<'_>,
    root: Member,
    data: &S,
    zero_copy: usize,
    divide: bool,
) -> impl Future<Output = Result<()>> {
    short::run(turn, Bcast { root, data, zero_copy, divide })
}

/// It is not short.
pub(super) async fn long(
    turn: Turn<'_>,
    root: Member,
    data: &dyn Stream,
    zero_copy: usize,
    divide: bool,
) -> Result<()> {
    match turn.me() == root {
        true => send(turn, data, zero_copy, divide).await,
        false => receive(turn, root, data, zero_copy, divide).await,
    }
}

/// The way of so many bytes, and where the part of the root begins: `len` without one.
fn way(turn: &Turn<'_>, len: usize, zero_copy: usize, divide: bool) -> (Way, usize) {
    let facts = turn.facts(Operation::Bcast, zero_copy);
    let (way, middle) = match facts.way(len) {
        Way::TwoSided if divide => (Way::TwoSided, len - writers_part(&facts, len, Writer::Idle)),
        Way::TwoSided => (Way::SingleCopy, len),
        way => (way, len),
    };
    tally::count(Operation::Bcast, way);
    (way, middle)
}

async fn send(turn: Turn<'_>, data: &dyn Stream, zero_copy: usize, divide: bool) -> Result<()> {
    let (me, len, piece) = (turn.me(), data.len(), turn.piece(data.len()));
    let (way, middle) = way(&turn, len, zero_copy, divide);
    turn.set_free().await?;
    let turn = turn.saying(len);
    if way.reads_peers() {
        let from = address(&turn, data);
        announce(&turn, from);
        if from != 0 {
            turn.note_length(len, if middle < len { Travel::LentBothWays } else { Travel::Lent });
            turn.publish(1);
            let helped = help(&turn, data, middle).await;
            let told = helped.map(|end| divided::tell(&turn, end));
            return turn.end_together(told).await;
        }
    }
    turn.note_length(len, Travel::InPieces);
    for step in 0..turn.steps(len.div_ceil(piece))? {
        turn.slot_free(step).await?;
        let at = step as usize * piece;
        let part = piece.min(len - at);
        // SAFETY: the slot is free, and holds a piece.
        unsafe { copy::pack(data, at, part, turn.slot_of(me, step, piece)) }?;
        turn.publish(step + 1);
    }
    turn.finish();
    Ok(())
}

/// Writes what follows `at` to others' memory, where possible: to that of all before the one that it returns.
async fn help(turn: &Turn<'_>, data: &dyn Stream, at: usize) -> Result<Member> {
    if at == data.len() {
        return Ok(0);
    }
    for member in turn.others() {
        turn.wrote(member, 1).await?;
        if !divided::store(turn, member, data, turn.payload(member), at)? {
            return Ok(member);
        }
    }
    Ok(turn.size())
}

async fn receive(turn: Turn<'_>, root: Member, data: &dyn Stream, zero_copy: usize, divide: bool) -> Result<()> {
    let (len, piece) = (data.len(), turn.piece(data.len()));
    let (way, middle) = way(&turn, len, zero_copy, divide);
    turn.wrote(root, 1).await?;
    if turn.differs_anyhow(root, len) {
        let whole = take(*turn, root, data, Of::Bcast).await?;
        turn.finish();
        return fits(whole);
    }
    if way.reads_peers() {
        let from = announced(&turn, root);
        if from != 0 {
            return divided::receive(turn, root, from, data, middle).await;
        }
    }
    let bypass = turn.bypasses(turn.size() - 1, len);
    let steps = turn.steps(len.div_ceil(piece))?;
    for step in 0..steps {
        turn.wrote(root, step + 1).await?;
        let at = step as usize * piece;
        // SAFETY: published; the slot holds a piece.
        unsafe { copy::unpack(data, at, piece.min(len - at), turn.slot_of(root, step, piece), bypass) }?;
        // Somebody waits for it only where the slot is used again.
        if step + turn.depth() < steps {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}
