// SPDX-License-Identifier: BSD-3-Clause
//! Broadcast, k-nomial tree (k = 2: binomial).
//!
//! Every member passes the message on as soon as it has it, to the largest subtree first. Members are counted
//! from the root, in a circle.
//!
//! Cost: ⌈log_k p⌉ steps of up to k − 1 messages · n units per edge, p − 1 messages in all. Requirements:
//! none. Source: Kurnosov 2023 (coll/tcl); the binomial case is folklore.

use crate::algo::{Posts, Stage, join};
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::knomial::Knomial;
use crate::pattern::{Member, absolute, relative};

/// Broadcasts `data` of `root` along the tree of the given radix.
pub async fn knomial<E: Endpoint>(stage: &Stage<'_, E>, root: Member, data: Span, radix: u32) -> Result<()> {
    let size = stage.size();
    let me = relative(stage.me(), root, size);
    let tree = Knomial::new(size, radix);
    if let Some(parent) = tree.parent(me) {
        stage.recv(absolute(parent, root, size), data).await?;
    }
    let sends: Posts<E> = tree.children(me).map(|c| stage.send(absolute(c, root, size), data)).collect();
    join(sends).await
}
