//! Collective operations through shared memory: each an `async fn` over a [`Turn`], the same for blocking, nonblocking and persistent
//! ones.
//!
//! Members call an operation with the same arguments in the sense of MPI (root, total bytes, thresholds). What only one of them knows
//! (whether its data lie in one run of memory, so that others may read them directly) is announced in-band, by the writer.

pub mod allreduce;
pub mod barrier;
pub mod bcast;
pub mod combine;
pub mod reduce;
mod shared;

pub use combine::Combine;

use crate::endpoint::{Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;
use crate::sync::shared::{will_read, will_write};

/// Waits until all others have published the steps before `step`.
#[inline(always)]
async fn all_wrote(turn: &Turn<'_>, step: u32) -> Result<()> {
    for member in (0..turn.size()).filter(|&m| m != turn.me()) {
        turn.wrote(member, step).await?;
    }
    turn.met();
    Ok(())
}

/// An announcement: a number in the caller's line, published with its next step.
fn announce(turn: &Turn<'_>, value: u64) {
    let to = turn.payload(turn.me());
    will_write(to);
    // SAFETY: the line is free, and aligned.
    unsafe { to.cast::<u64>().write(value) };
}

/// What a member has announced with a step that it has published.
fn announced(turn: &Turn<'_>, member: Member) -> u64 {
    let from = turn.payload(member);
    will_read(from);
    // SAFETY: published, and aligned.
    unsafe { from.cast::<u64>().read() }
}

/// The address for others to read `data` at; 0 if they cannot.
fn address<S: Stream + ?Sized>(turn: &Turn<'_>, data: &S) -> u64 {
    match data.direct() {
        Some(span) if turn.team().memory().zero_copy() => span.ptr() as u64,
        _ => 0,
    }
}

/// Reads `len` bytes at address `from` of a member's private memory to bytes `at..` of `data`.
async fn fetch<S: Stream + ?Sized>(
    turn: &Turn<'_>,
    member: Member,
    from: u64,
    data: &S,
    at: usize,
    len: usize,
) -> Result<()> {
    let memory = turn.team().memory();
    if let Some(span) = data.direct() {
        let to = span.slice(at..at + len);
        // SAFETY: the span's maker promised valid memory; the member waits until we are through.
        return unsafe { memory.fetch(member, from, to.ptr(), len) };
    }
    turn.set_free().await?;
    for start in (0..len).step_by(turn.fragment()) {
        let piece = turn.fragment().min(len - start);
        let bounce = turn.slot(turn.me(), 0);
        // SAFETY: the set is free, and this operation publishes nothing of it; the slot holds a fragment.
        unsafe {
            will_write(bounce);
            memory.fetch(member, from + start as u64, bounce, piece)?;
            copy::unpack(data, at + start, piece, bounce, false)?;
        }
    }
    Ok(())
}
