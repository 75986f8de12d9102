//! Rooted operations without a copy through the queue, divided between both sides.
//!
//! A reader that copies from the writer's memory leaves the writer idle, though that could copy to the reader's memory just as well. So the root
//! copies a share of each block, and the block's other member the rest, at the same time. With p members and an idle root, all of them copy
//! n · (p − 1) / p bytes, where n is the length of a block: at best half the time with two members, and most to gain in a gather, whose root would
//! copy all blocks. Each side has to know the other's address, and announces its own.

use super::{address, announce, fetch};
use crate::endpoint::{Error, Result, Stream};
use crate::shm::memory::Member;
use crate::shm::turn::Turn;

/// What the root does besides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// Nothing.
    Idle,
    /// It has a block of its own to copy, within its memory, which takes about a quarter of the time.
    HasOwn,
}

/// Bytes of a block of `len` that its root copies; 0: the block is not divided. `len` and the result are the same for both sides.
pub(super) fn share(turn: &Turn<'_>, len: usize, root: Root) -> usize {
    let team = turn.team();
    let config = team.config();
    if config.waiting.crowded || !team.memory().stores() {
        return 0;
    }
    share_among(turn.size(), len, root, config.divided_min)
}

/// The same among so many members that can write to each other's memory. `least`: the smallest share.
pub fn share_among(members: usize, len: usize, root: Root, least: usize) -> usize {
    let even = len / members.max(1);
    let share = if root == Root::Idle { even } else { even - even / 4 } / 64 * 64;
    if share < least.max(1) { 0 } else { share }
}

/// Receives `data`, which lie at address `from` of the root's memory; what follows `middle` the root writes here, if it can.
pub(super) async fn receive<S: Stream + ?Sized>(
    turn: Turn<'_>,
    root: Member,
    from: u64,
    data: &S,
    middle: usize,
) -> Result<()> {
    let (mut at, mut to) = (data.len(), 0);
    if middle < at {
        turn.line_free().await?;
        to = address(&turn, data);
        announce(&turn, to);
        // From here on the root may write there: whatever happens, it is waited for.
        turn.publish(1);
    }
    if to != 0 {
        at = middle;
    }
    let fetched = fetch(&turn, root, from, data, at);
    turn.over_with(fetched, std::iter::once(root).filter(|_| to != 0)).await?;
    turn.finish();
    Ok(())
}

/// Writes bytes `at..end` of `data` to the stream that lies at address `to` of a member's private memory, which waits until the caller is through. Not after an
/// operation of the caller has failed, as in [`fetch_bytes`](super::fetch_bytes).
pub(super) fn store<S: Stream + ?Sized>(
    turn: &Turn<'_>,
    member: Member,
    data: &S,
    to: u64,
    at: usize,
    end: usize,
) -> Result<()> {
    let team = turn.team();
    let Some(from) = data.direct().filter(|_| at < end) else { return Ok(()) };
    let Some(_storing) = team.store() else { return Err(Error::Peer) };
    // SAFETY: who made the span promised valid memory; the member waits, and learns of failures only when `_storing` is gone.
    unsafe { team.memory().store(member, from.slice(at..end).ptr(), to + at as u64, end - at) }
}
