// SPDX-License-Identifier: BSD-3-Clause
//! What linear and pairwise share: a message to and from every other member, a bounded number of them at a
//! time.

use crate::algo::data::{Block, Pool, Staged, transfer};
use crate::algo::{Pair, Stage, join};
use crate::endpoint::{Blocks, Endpoint, Result};
use crate::pattern::{Member, tournament};
use std::collections::VecDeque;

/// A round under way: whom it receives from, and the memory of both messages.
struct Round<'a, E: Endpoint + 'a> {
    from: Member,
    incoming: Staged,
    outgoing: Staged,
    posts: Pair<'a, E>,
}

/// Exchanges all blocks, with up to `posts` rounds under way at a time. In round i a member sends to the one
/// i further and receives from the one i before. In place both must be the same member, since a block that
/// arrives takes the place of the one that leaves: then members meet in pairs ([`tournament`]).
pub async fn exchange<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    out: Option<&O>,
    into: &I,
    posts: usize,
) -> Result<()> {
    let (me, size) = (stage.me(), stage.size());
    let others = || (0..size).filter(|&m| m != me);
    match out {
        Some(out) => {
            let pool = Pool::for_blocks(stage.ep(), out, others());
            let rounds = (1..size).map(|round| ((me + round) % size, (me + size - round) % size));
            run(stage, out, into, false, posts, pool, rounds).await
        }
        None => {
            let pool = Pool::new(stage.ep(), others().map(|m| into.len(m)).max().unwrap_or(0));
            let partners = (0..tournament::rounds(size)).filter_map(|round| tournament::partner(me, round, size));
            run(stage, into, into, true, posts, pool, partners.map(|partner| (partner, partner))).await
        }
    }
}

/// Runs `rounds` of (to, from). In place, what leaves is copied before its place is filled; `pool` holds what
/// leaves.
async fn run<'a, E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'a, E>,
    out: &O,
    into: &I,
    in_place: bool,
    posts: usize,
    mut pool: Pool<'a, E>,
    mut rounds: impl Iterator<Item = (Member, Member)>,
) -> Result<()> {
    let (me, size) = (stage.me(), stage.size());
    let mut arrivals = Pool::for_blocks(stage.ep(), into, (0..size).filter(|&m| m != me));
    let mut open: VecDeque<Round<'a, E>> = VecDeque::with_capacity(posts.min(size));
    let mut own_left = !in_place;
    loop {
        while open.len() < posts.max(1)
            && let Some((to, from)) = rounds.next()
        {
            let leaving = Block { blocks: out, member: to };
            let outgoing = if in_place { pool.copy(&leaving)? } else { pool.outgoing(&leaving)? };
            let incoming = arrivals.incoming(&Block { blocks: into, member: from })?;
            let posts = [stage.recv_some(from, incoming.span), stage.send_some(to, outgoing.span)];
            open.push_back(Round { from, incoming, outgoing, posts });
        }
        if std::mem::take(&mut own_left) {
            // The first messages are under way meanwhile.
            transfer(stage.ep(), &Block { blocks: out, member: me }, &Block { blocks: into, member: me })?;
        }
        let Some(round) = open.pop_front() else { return Ok(()) };
        join(round.posts.into_iter().flatten()).await?;
        arrivals.arrived(&round.incoming, &Block { blocks: into, member: round.from })?;
        arrivals.give(round.incoming);
        pool.give(round.outgoing);
    }
}
