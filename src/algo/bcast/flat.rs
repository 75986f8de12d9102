// SPDX-License-Identifier: BSD-3-Clause
//! Broadcast, flat tree: the root sends to every member.
//!
//! Cost: 1 step for the members, p − 1 messages of n units one after the other at the root. Requirements:
//! none.

use crate::algo::{Posts, Stage, join};
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::Member;

/// Broadcasts `data` of `root`.
pub async fn flat<E: Endpoint>(stage: &Stage<'_, E>, root: Member, data: Span) -> Result<()> {
    if stage.me() != root {
        return stage.recv(root, data).await;
    }
    let sends: Posts<E> = (0..stage.size()).filter(|&m| m != root).map(|m| stage.send(m, data)).collect();
    join(sends).await
}
