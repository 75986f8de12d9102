// SPDX-License-Identifier: BSD-3-Clause
//! Collective operations through shared memory, the same for blocking, nonblocking and persistent calls.
//!
//! What fits a line or one slot is [`short`]: three files say what each operation writes and reads, and one
//! function does all of them. Longer ways are `async fn`s over a [`Turn`], in a file for each operation.
//!
//! Members call an operation with the same arguments in the sense of MPI (root, total bytes, thresholds).
//! What only one of them knows (whether its data lie in one run of memory, so that others may read them
//! directly) is announced in-band, by the writer.
//!
//! Short ways are compiled for each kind of data, long ones take `&dyn Stream` and `&dyn Blocks`: to tell the
//! kind at run time costs them nothing that shows, and compiled for each they were an eighth of the
//! component.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod block;
pub mod combine;
mod dealt;
pub mod divided;
mod facts;
mod fetched;
pub mod gather;
pub mod neighbor;
pub mod peers;
mod pipeline;
pub mod reduce;
pub mod reduce_scatter;
pub mod scan;
pub mod scatter;
pub mod short;
pub mod tally;
mod told;
pub mod tree;
mod unequal;

#[cfg(all(test, not(loom)))]
mod tests;

pub use combine::Combine;
pub use facts::choice;

use crate::endpoint::{Error, Result, Span, Stream};
use crate::shm::memory::Member;
use crate::shm::memory::layout::{LINE, SHARE_ALIGN, share};
use crate::shm::policy::Operation;
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::{Turn, View};
use crate::sync::shared::{will_read, will_write};
use std::ops::Range;

/// Whether `len` bytes travel in [`room`](crate::shm::protocol::turn::View::room). `limit`: from so many on
/// (but not in a line), another way is wanted, where no parameter says so.
#[inline(always)]
fn is_short(turn: &Turn<'_>, operation: Operation, len: usize, limit: usize) -> bool {
    turn.is_still() || is_within(turn.team().config().whole, len, turn.limit(operation, limit))
}

/// The same of a block that is gathered.
#[inline(always)]
fn is_short_gathered(turn: &Turn<'_>, operation: Operation, len: usize, limit: usize) -> bool {
    turn.is_still() || is_within(turn.team().config().whole_gathered, len, turn.limit(operation, limit))
}

#[inline(always)]
pub(super) fn is_within(whole: u32, len: usize, limit: usize) -> bool {
    len <= LINE || (len <= whole as usize && len < limit)
}

/// Bytes for each of the others that travel in a line, where a member has something else for each of them.
pub fn line_share(members: usize) -> usize {
    share(LINE, members, SHARE_ALIGN)
}

/// Waits until all others have published the steps before `step`.
#[inline(always)]
async fn all_wrote(turn: &Turn<'_>, step: u32) -> Result<()> {
    for member in turn.around() {
        if let Some(late) = turn.wrote(member, step).late() {
            late.await?;
        }
    }
    turn.met();
    Ok(())
}

/// The same of operands of so many bytes, the first step of which is 1.
#[inline(always)]
async fn all_wrote_alike(turn: &Turn<'_>, step: u32, len: usize) -> Result<()> {
    all_wrote(turn, step).await?;
    if step == 1 && turn.others().any(|member| turn.differs_anyhow(member, len)) { Err(Error::Lengths) } else { Ok(()) }
}

/// Waits until a member has published the steps before `step` of its operand of so many bytes, the first step
/// of which is 1.
async fn wrote_alike(turn: &Turn<'_>, member: Member, step: u32, len: usize) -> Result<()> {
    turn.wrote(member, step).await?;
    if step == 1 && turn.differs_anyhow(member, len) { Err(Error::Lengths) } else { Ok(()) }
}

/// Writes a number to a free line or slot of the caller's; `to` is aligned to 8 bytes.
fn put(to: *mut u8, value: u64) {
    will_write(to, 8);
    // SAFETY: free, and aligned.
    unsafe { to.cast::<u64>().write(value) };
}

/// Reads a number from a line or slot that is published.
fn get(from: *const u8) -> u64 {
    will_read(from, 8);
    // SAFETY: published, and aligned.
    unsafe { from.cast::<u64>().read() }
}

/// An announcement: a number in the caller's line, published with its next step.
fn announce(turn: &Turn<'_>, value: u64) {
    put(turn.payload(turn.me()), value);
}

/// What a member has announced with a step that it has published.
fn announced(turn: &View<'_>, member: Member) -> u64 {
    get(turn.payload(member))
}

/// The address for others to read data at; 0 if they cannot.
fn address<S: Stream + ?Sized>(turn: &Turn<'_>, data: &S) -> u64 {
    address_in(turn.team(), data)
}

/// The same, where the turn is about to end.
fn address_in<S: Stream + ?Sized>(team: &Team, data: &S) -> u64 {
    match data.direct() {
        Some(span) if team.memory().zero_copy() => span.ptr().expose_provenance() as u64,
        _ => 0,
    }
}

/// Bytes that are read at a time from another member's memory to a stream that has to be unpacked.
const BOUNCE: usize = 65536;

/// Reads `len` bytes at address `from` of a member's private memory. Not after an operation of the caller has
/// failed: then the others do not wait for it any more.
///
/// # Safety
/// `to` holds so many bytes; the member waits until the caller is through.
unsafe fn fetch_bytes(turn: &View<'_>, member: Member, from: u64, to: *mut u8, len: usize) -> Result<()> {
    let team = turn.team();
    let Some(_access) = team.access() else { return Err(Error::Peer) };
    // SAFETY: by the caller's promise; the member learns of failures of the caller's other threads only when
    // `_access` is gone.
    unsafe { team.memory().fetch(member, from, to, len) }
}

/// Reads a part of `data`, all of which lie at address `from` of a member's private memory, which waits until
/// the caller is through.
fn fetch<S: Stream + ?Sized>(turn: &View<'_>, member: Member, from: u64, data: &S, part: Range<usize>) -> Result<()> {
    if let Some(span) = data.direct() {
        let to = span.slice(part.clone());
        // SAFETY: the span's maker promised valid memory; the member waits.
        return unsafe { fetch_bytes(turn, member, from + part.start as u64, to.ptr(), part.len()) };
    }
    // Not in the caller's queue: others may be reading that.
    let mut bounce = vec![0_u8; part.len().min(BOUNCE)];
    for at in part.clone().step_by(BOUNCE) {
        // SAFETY: the buffer holds so much, and outlives what is done with it.
        let piece = unsafe { Span::new(bounce.as_mut_ptr(), BOUNCE.min(part.end - at), 1) };
        // SAFETY: the buffer holds so much; the member waits.
        unsafe { fetch_bytes(turn, member, from + at as u64, piece.ptr(), piece.len()) }?;
        data.unpack(at, piece)?;
    }
    Ok(())
}
