// SPDX-License-Identifier: BSD-3-Clause
//! Broadcast, chain: every member passes the message to the next one.
//!
//! For one message it is the slowest tree there is; for a stream of segments it is the best one, since every
//! member sends each segment only once: p − 2 steps until the last member has the first segment, then one
//! segment per step.
//!
//! Cost: p − 1 steps · n units per edge, p − 1 messages. Requirements: none.

use crate::algo::Stage;
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::{Member, absolute, relative};

/// Broadcasts `data` of `root`.
pub async fn chain<E: Endpoint>(stage: &Stage<'_, E>, root: Member, data: Span) -> Result<()> {
    let size = stage.size();
    let me = relative(stage.me(), root, size);
    if me > 0 {
        stage.recv(absolute(me - 1, root, size), data).await?;
    }
    if me + 1 < size {
        stage.send(absolute(me + 1, root, size), data).await?;
    }
    Ok(())
}
