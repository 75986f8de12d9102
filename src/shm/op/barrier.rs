// SPDX-License-Identifier: BSD-3-Clause
//! Barrier: everybody publishes, and waits for everybody.
//!
//! p − 1 cache lines per member, all on their way at the same time. Its two halves, for a node among others:
//! all publish and one waits for them ([`arrive`]); that one publishes, and all wait for it ([`release`]).

use super::all_wrote;
use super::short::{self, rooted::Barrier};
use crate::endpoint::Result;
use crate::shm::memory::Member;
use crate::shm::protocol::turn::Turn;

/// Returns when all members have called it.
pub fn barrier(turn: Turn<'_>) -> impl Future<Output = Result<()>> {
    short::run(turn, Barrier)
}

/// Returns at the leader when all members have called it, elsewhere at once.
pub async fn arrive(turn: Turn<'_>, leader: Member) -> Result<()> {
    if turn.me() == leader {
        all_wrote(&turn, 1).await?;
    } else {
        turn.line_free().await?;
        turn.publish(1);
    }
    turn.finish();
    Ok(())
}

/// Returns when the leader has called it.
pub async fn release(turn: Turn<'_>, leader: Member) -> Result<()> {
    if turn.me() == leader {
        turn.line_free().await?;
        turn.publish(1);
    } else {
        turn.wrote(leader, 1).await?;
    }
    turn.finish();
    Ok(())
}
