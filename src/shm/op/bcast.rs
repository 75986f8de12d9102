//! Broadcast: the root publishes, everybody reads.
//!
//! Up to 56 bytes travel in the line, up to 4 KiB in a short slot; more go through the root's slots, fragment by fragment, which readers copy out while
//! the root copies the next ones in; or readers copy from the root's memory directly.

use super::{address, announce, announced, fetch, is_short};
use crate::endpoint::{Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;

/// Broadcasts `data` of `root`. From `zero_copy` bytes on, readers may read the root's memory.
#[inline(always)]
pub async fn bcast<S: Stream + ?Sized>(turn: Turn<'_>, root: Member, data: &S, zero_copy: usize) -> Result<()> {
    let len = data.len();
    match (is_short(&turn, len, zero_copy), turn.me() == root) {
        (true, true) => {
            turn.line_free().await?;
            // SAFETY: free, and `len` bytes fit.
            unsafe { copy::pack(data, 0, len, turn.room(root, len)) }?;
            turn.publish(1);
        }
        (true, false) => {
            turn.wrote(root, 1).await?;
            // SAFETY: published, and `len` bytes fit.
            unsafe { copy::unpack(data, 0, len, turn.room(root, len), false) }?;
        }
        (false, true) => return send(turn, data, len >= zero_copy).await,
        (false, false) => return receive(turn, root, data, len >= zero_copy).await,
    }
    turn.finish();
    Ok(())
}

async fn send<S: Stream + ?Sized>(turn: Turn<'_>, data: &S, announcing: bool) -> Result<()> {
    let (me, len, fragment) = (turn.me(), data.len(), turn.fragment());
    turn.set_free().await?;
    if announcing {
        let from = address(&turn, data);
        announce(&turn, from);
        if from != 0 {
            turn.publish(1);
            return turn.finish_together().await;
        }
    }
    for step in 0..turn.steps(len.div_ceil(fragment))? {
        turn.slot_free(step).await?;
        let at = step as usize * fragment;
        // SAFETY: the slot is free, and holds a fragment.
        unsafe { copy::pack(data, at, fragment.min(len - at), turn.slot(me, step)) }?;
        turn.publish(step + 1);
    }
    turn.finish();
    Ok(())
}

async fn receive<S: Stream + ?Sized>(turn: Turn<'_>, root: Member, data: &S, announcing: bool) -> Result<()> {
    let (len, fragment) = (data.len(), turn.fragment());
    if announcing {
        turn.wrote(root, 1).await?;
        let from = announced(&turn, root);
        if from != 0 {
            fetch(&turn, root, from, data)?;
            turn.finish();
            return Ok(());
        }
    }
    let bypass = len >= turn.team().config().bypass_min;
    let steps = turn.steps(len.div_ceil(fragment))?;
    for step in 0..steps {
        turn.wrote(root, step + 1).await?;
        let at = step as usize * fragment;
        // SAFETY: published; the slot holds a fragment.
        unsafe { copy::unpack(data, at, fragment.min(len - at), turn.slot(root, step), bypass) }?;
        // Somebody waits for it only where the slot is used again.
        if step + turn.depth() < steps {
            turn.acknowledge(step + 1);
        }
    }
    turn.finish();
    Ok(())
}
