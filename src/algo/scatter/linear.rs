// SPDX-License-Identifier: BSD-3-Clause
//! Scatter, linear: the root sends every member its block.
//!
//! The root keeps up to `posts` sends posted, in the order of the members, so the buffers for blocks that
//! must be packed do not grow with the group.
//!
//! Cost: 1 step for the members, p − 1 messages one after the other at the root; every block travels once.
//! Memory: at the root `posts` buffers of the longest block that is not direct; elsewhere one of the own
//! block, if it is not direct.
//! Requirements: none; lengths may differ, and nobody but the root needs those of others.

use crate::algo::data::{Block, Pool, Role, Staged, transfer};
use crate::algo::{Posts, Stage, join};
use crate::endpoint::{Blocks, Endpoint, Result, Stream};
use crate::pattern::Member;
use std::collections::VecDeque;

/// Scatters the blocks of `root`.
pub async fn linear<E: Endpoint, S: Stream, B: Blocks>(
    stage: &Stage<'_, E>,
    root: Member,
    role: Role<'_, S, B>,
    posts: usize,
) -> Result<()> {
    let (all, own) = match role {
        Role::Other { own } => {
            let mut pool = Pool::new(stage.ep(), own.len());
            let into = pool.incoming(own)?;
            join(stage.recv_some(root, into.span)).await?;
            return pool.arrived(&into, own);
        }
        Role::Root { all, own } => (all, own),
    };
    let others = || (0..stage.size()).filter(|&m| m != root);
    let mut pool = Pool::for_blocks(stage.ep(), all, others());
    let mut open: VecDeque<(Staged, E::Post<'_>)> = VecDeque::with_capacity(posts.min(stage.size()));
    for member in others().filter(|&m| all.len(m) > 0) {
        if open.len() >= posts.max(1)
            && let Some((staged, post)) = open.pop_front()
        {
            post.await?;
            pool.give(staged);
        }
        let staged = pool.outgoing(&Block { blocks: all, member })?;
        open.push_back((staged, stage.send(member, staged.span)));
    }
    // The last messages are under way meanwhile.
    if let Some(own) = own {
        transfer(stage.ep(), &Block { blocks: all, member: root }, own)?;
    }
    let last: Posts<E> = open.into_iter().map(|(_, post)| post).collect();
    join(last).await
}
