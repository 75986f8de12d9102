// SPDX-License-Identifier: BSD-3-Clause
//! Barrier, k-nomial tree: arrivals run up to the leader, the release runs down.
//!
//! Cost: 2 ⌈log_k p⌉ steps, 2 (p − 1) empty messages in all: fewer than dissemination's p ⌈log₂ p⌉.
//! Requirements: none. Source: Mellor-Crummey, Scott: Algorithms for scalable synchronization, TOCS 1991.

use crate::algo::bcast::knomial::knomial;
use crate::algo::{Posts, Stage, join};
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::knomial::Knomial;
use crate::pattern::{Member, absolute, relative};

/// Returns at the leader when all members have called; elsewhere at once when the subtree has.
pub async fn arrive<E: Endpoint>(stage: &Stage<'_, E>, leader: Member, radix: u32) -> Result<()> {
    let size = stage.size();
    let me = relative(stage.me(), leader, size);
    let tree = Knomial::new(size, radix);
    let arrivals: Posts<E> = tree.children(me).map(|c| stage.recv(absolute(c, leader, size), Span::empty())).collect();
    join(arrivals).await?;
    match tree.parent(me) {
        Some(parent) => stage.send(absolute(parent, leader, size), Span::empty()).await,
        None => Ok(()),
    }
}

/// Returns when the leader has called. To be called on the stage after that of [`arrive`].
pub async fn release<E: Endpoint>(stage: &Stage<'_, E>, leader: Member, radix: u32) -> Result<()> {
    knomial(stage, leader, Span::empty(), radix).await
}
