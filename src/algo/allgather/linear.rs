// SPDX-License-Identifier: BSD-3-Clause
//! Allgather, linear: every member sends its block to every other one.
//!
//! Up to `posts` sends and receives are posted at a time: in round i to the member i further and from the one
//! i before, so no member is everybody's target at once.
//!
//! Cost: 1 step, p − 1 messages per member; a member sends its own block p − 1 times, and receives every
//! other once. Memory: `posts` + 1 buffers of the longest block that is not direct. Requirements: none.

use crate::algo::data::{Block, Pool, Staged, contribute};
use crate::algo::{Pair, Stage, join};
use crate::endpoint::{Blocks, Endpoint, Result, Span, Stream};
use crate::pattern::Member;
use std::collections::VecDeque;

/// Gathers everybody's data everywhere.
pub async fn linear<E: Endpoint, S: Stream, B: Blocks>(
    stage: &Stage<'_, E>,
    own: Option<&S>,
    into: &B,
    posts: usize,
) -> Result<()> {
    let (me, size) = (stage.me(), stage.size());
    contribute(stage.ep(), own, into, me)?;
    let mut pool = Pool::for_blocks(stage.ep(), into, 0..size);
    let out: Span = pool.outgoing(&Block { blocks: into, member: me })?.span;
    let mut open: VecDeque<(Member, Staged, Pair<'_, E>)> = VecDeque::with_capacity(posts.min(size));
    let mut rounds = 1..size;
    loop {
        while open.len() < posts.max(1)
            && let Some(round) = rounds.next()
        {
            let (to, from) = ((me + round) % size, (me + size - round) % size);
            let staged = pool.incoming(&Block { blocks: into, member: from })?;
            open.push_back((from, staged, [stage.recv_some(from, staged.span), stage.send_some(to, out)]));
        }
        let Some((from, staged, pair)) = open.pop_front() else { return Ok(()) };
        join(pair.into_iter().flatten()).await?;
        pool.arrived(&staged, &Block { blocks: into, member: from })?;
        pool.give(staged);
    }
}
