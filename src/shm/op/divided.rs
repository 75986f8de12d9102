// SPDX-License-Identifier: BSD-3-Clause
//! Rooted operations without a copy through the queue, divided between both sides.
//!
//! A reader that copies from the writer's memory leaves the writer idle, though that could copy to the
//! reader's memory just as well. So the root copies a share of each block, and the block's other member the
//! rest, at the same time. With p members and an idle root, all of them copy n · (p − 1) / p bytes, where n
//! is the length of a block: at best half the time with two members, and most to gain in a gather, whose root
//! would copy all blocks. Each side has to know the other's address, and announces its own.
//!
//! Blocking operations only: of others, a root that computes would hold up whom it has to write to, and
//! readers can do all the work.
//!
//! Whoever has memory written to says how much of it there is: where the other side has another length (an
//! error of the program), nothing is written. Nor is what cannot be: some memory can be accessed by its own
//! process only, such as a device's. Who writes says in the end whom it has served; all others read what is
//! missing, as they would what is not divided.

use super::{address, fetch, get, put};
use crate::endpoint::{Error, Result, Stream};
use crate::shm::memory::Member;
use crate::shm::protocol::turn::Turn;

/// Bytes of a loan.
pub(super) const LOAN: usize = 2 * size_of::<u64>();
const _: () = assert!(LOAN == crate::shm::policy::choose::LOAN);

/// Says at `at` that another member may write `len` bytes to address `to`; 0: nowhere.
pub(super) fn lend(turn: &Turn<'_>, at: *mut u8, to: u64, len: usize) {
    put(at, to);
    put(at.wrapping_add(size_of::<u64>()), sealed(turn, len));
}

/// What stands for so many bytes that are lent in this operation. Nothing else that a member may find at that
/// place looks like it: neither data, nor what was lent there before.
fn sealed(turn: &Turn<'_>, len: usize) -> u64 {
    len as u64 ^ u64::from(turn.number()) << 32 ^ 0x6c65_6e74_746f_6d65
}

/// Says that the caller has served all members before `end`. To be said before it is through with the
/// operation; then it waits for whom it concerns.
pub(super) fn tell(turn: &Turn<'_>, end: Member) {
    put(turn.last_words(turn.me()), end as u64);
}

/// Whether a member that is through has served the caller.
pub(super) fn is_served(turn: &Turn<'_>, by: Member) -> bool {
    (turn.me() as u64) < get(turn.last_words(by))
}

/// Receives `data`, which lie at address `from` of the root's memory; what follows `middle` the root writes
/// here, if it can.
pub(super) async fn receive<S: Stream + ?Sized>(
    turn: Turn<'_>,
    root: Member,
    from: u64,
    data: &S,
    middle: usize,
) -> Result<()> {
    let len = data.len();
    let mut lent = false;
    if middle < len {
        turn.line_free().await?;
        let to = address(&turn, data);
        lend(&turn, turn.payload(turn.me()), to, len);
        lent = to != 0;
        // From here on the root may write there: whatever happens, it is waited for.
        turn.publish(1);
        // It may want to use the slot again that its address was in.
        turn.acknowledge(1);
    }
    let fetched = fetch(&turn, root, from, data, 0..if lent { middle } else { len });
    if lent {
        turn.outlast(fetched, std::iter::once(root)).await?;
        if !is_served(&turn, root) {
            fetch(&turn, root, from, data, middle..len)?;
        }
    } else {
        fetched?;
    }
    turn.finish();
    Ok(())
}

/// Writes what follows `at` of `data` to private memory that a member has lent at `loan`, and that waits
/// until the caller is through; false: it has to read that. Not after an operation of the caller has failed,
/// as in [`fetch_bytes`](super::fetch_bytes).
pub(super) fn store<S: Stream + ?Sized>(
    turn: &Turn<'_>,
    member: Member,
    data: &S,
    loan: *const u8,
    at: usize,
) -> Result<bool> {
    let (to, room, len) = (get(loan), get(loan.wrapping_add(size_of::<u64>())), data.len());
    if to == 0 {
        return Ok(true); // It reads everything.
    }
    let Some(from) = data.direct().filter(|_| room == sealed(turn, len)) else { return Ok(false) };
    let team = turn.team();
    let Some(_access) = team.access() else { return Err(Error::Peer) };
    // SAFETY: who made the span promised valid memory; the member has so much, waits, and learns of failures
    // only when `_access` is gone.
    match unsafe { team.memory().store(member, from.slice(at..len).ptr(), to + at as u64, len - at) } {
        Ok(()) => Ok(true),
        Err(Error::Fetch(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
