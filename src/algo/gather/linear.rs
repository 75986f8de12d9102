// SPDX-License-Identifier: BSD-3-Clause
//! Gather, linear: every member sends its block to the root.
//!
//! The root keeps up to `posts` receives posted, in the order of the members, so the buffers for blocks that
//! must be unpacked do not grow with the group.
//!
//! Cost: 1 step for the members, p − 1 messages one after the other at the root; every block travels once.
//! Memory: at the root `posts` buffers of the longest block that is not direct; elsewhere one of the own
//! block, if it is not direct.
//! Requirements: none; lengths may differ, and nobody but the root needs those of others.

use crate::algo::data::{Block, Pool, Role, Staged, contribute};
use crate::algo::{Stage, join};
use crate::endpoint::{Blocks, Endpoint, Result, Stream};
use crate::pattern::Member;
use std::collections::VecDeque;

/// Gathers everybody's data at `root`.
pub async fn linear<E: Endpoint, S: Stream, B: Blocks>(
    stage: &Stage<'_, E>,
    root: Member,
    role: Role<'_, S, B>,
    posts: usize,
) -> Result<()> {
    let (all, own) = match role {
        Role::Other { own } => {
            let mut pool = Pool::new(stage.ep(), own.len());
            let out = pool.outgoing(own)?;
            return join(stage.send_some(root, out.span)).await;
        }
        Role::Root { all, own } => (all, own),
    };
    let others = || (0..stage.size()).filter(|&m| m != root);
    let mut pool = Pool::for_blocks(stage.ep(), all, others());
    let mut open: VecDeque<(Member, Staged, E::Post<'_>)> = VecDeque::with_capacity(posts.min(stage.size()));
    let mut next = others().filter(|&m| all.len(m) > 0);
    let mut own = own;
    loop {
        while open.len() < posts.max(1)
            && let Some(member) = next.next()
        {
            let staged = pool.incoming(&Block { blocks: all, member })?;
            open.push_back((member, staged, stage.recv(member, staged.span)));
        }
        // The first messages are under way meanwhile.
        contribute(stage.ep(), own.take(), all, root)?;
        let Some((member, staged, post)) = open.pop_front() else { return Ok(()) };
        post.await?;
        pool.arrived(&staged, &Block { blocks: all, member })?;
        pool.give(staged);
    }
}
