//! Collective operations through shared memory: each an `async fn` over a [`Turn`], the same for blocking, nonblocking and persistent
//! ones.
//!
//! Members call an operation with the same arguments in the sense of MPI (root, total bytes, thresholds). What only one of them knows
//! (whether its data lie in one run of memory, so that others may read them directly) is announced in-band, by the writer.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
mod block;
pub mod combine;
mod fetched;
pub mod gather;
pub mod reduce;
pub mod reduce_scatter;
pub mod scan;
pub mod scatter;
mod shared;

pub use combine::Combine;

use crate::endpoint::{Error, Result, Span, Stream};
use crate::shm::layout::LINE;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;
use crate::sync::shared::{will_read, will_write};

/// Whether `len` bytes travel in [`Turn::room`]. `limit`: from so many on (but not in a line), another way is wanted.
#[inline(always)]
fn is_short(turn: &Turn<'_>, len: usize, limit: usize) -> bool {
    len <= LINE || (len <= turn.team().config().short && len < limit)
}

/// Bytes for each of the others that travel in a line, where a member has something else for each of them.
pub fn line_share(members: usize) -> usize {
    block::Shares::new(LINE, members, 0, 8).each
}

/// Waits until all others have published the steps before `step`.
#[inline(always)]
async fn all_wrote(turn: &Turn<'_>, step: u32) -> Result<()> {
    for member in (0..turn.size()).filter(|&m| m != turn.me()) {
        turn.wrote(member, step).await?;
    }
    turn.met();
    Ok(())
}

/// Bytes before a share's contents: an address, and what keeps the contents aligned.
const HEAD: usize = 16;

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
fn announced(turn: &Turn<'_>, member: Member) -> u64 {
    get(turn.payload(member))
}

/// The address for others to read `data` at; 0 if they cannot.
fn address<S: Stream + ?Sized>(turn: &Turn<'_>, data: &S) -> u64 {
    match data.direct() {
        Some(span) if turn.team().memory().zero_copy() => span.ptr() as u64,
        _ => 0,
    }
}

/// Bytes that are read at a time from another member's memory to a stream that has to be unpacked.
const BOUNCE: usize = 65536;

/// Reads `len` bytes at address `from` of a member's private memory. Not after an operation of the caller has failed: then the others do not
/// wait for it any more.
///
/// # Safety
/// `to` holds so many bytes; the member waits until the caller is through.
unsafe fn fetch_bytes(turn: &Turn<'_>, member: Member, from: u64, to: *mut u8, len: usize) -> Result<()> {
    let team = turn.team();
    if team.has_failed() {
        return Err(Error::Peer);
    }
    // SAFETY: by the caller's promise.
    unsafe { team.memory().fetch(member, from, to, len) }?;
    // Another thread's operation may have failed meanwhile.
    if team.has_failed() { Err(Error::Peer) } else { Ok(()) }
}

/// Reads all of `data` at address `from` of a member's private memory, which waits until the caller is through.
fn fetch<S: Stream + ?Sized>(turn: &Turn<'_>, member: Member, from: u64, data: &S) -> Result<()> {
    let len = data.len();
    if let Some(span) = data.direct() {
        let to = span.slice(0..len);
        // SAFETY: the span's maker promised valid memory; the member waits.
        return unsafe { fetch_bytes(turn, member, from, to.ptr(), len) };
    }
    // Not in the caller's queue: others may be reading that.
    let mut bounce = vec![0_u8; len.min(BOUNCE)];
    for at in (0..len).step_by(BOUNCE) {
        let piece = Span::new(bounce.as_mut_ptr(), BOUNCE.min(len - at), 1);
        // SAFETY: the buffer holds so much; the member waits.
        unsafe { fetch_bytes(turn, member, from + at as u64, piece.ptr(), piece.len()) }?;
        data.unpack(at, piece)?;
    }
    Ok(())
}
