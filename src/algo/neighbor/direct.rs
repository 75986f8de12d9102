// SPDX-License-Identifier: BSD-3-Clause
//! Neighbourhood exchange, direct: a message along each edge, up to `posts` of them at a time each way.
//!
//! Both lists of edges are worked off on their own, each by a window that slides when its oldest message is
//! done; in the order of distance that cannot end in a circle of members that wait for each other. Blocks
//! that a member sends to itself are copied.
//!
//! Where no list is longer than `posts` and no block needs a buffer, there is nothing to slide: all receives
//! are posted, then all sends, and all are waited for.
//!
//! Where they are `acknowledged`, a message is done for its sender when the receiver says so: a member that
//! only sends does not run ahead then.
//!
//! Cost: a message per edge whose block is not empty, each block travels once; 1 step where no list is longer
//! than `posts`. Memory: on either side `posts` buffers of the longest block that is not direct.
//! Requirements: both ends of an edge know its length.

use crate::algo::data::{Block, Pool, Staged, transfer};
use crate::algo::{Stage, both, join};
use crate::endpoint::{Blocks, Endpoint, Result, Span};
use crate::pattern::neighborhood::{Edge, Neighbors};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::pin::pin;

/// Sends the blocks of `out` to the destinations, and receives those of `into` from the sources. Uses two
/// phases where it is `acknowledged`.
pub async fn direct<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    neighbors: &Neighbors,
    out: &O,
    into: &I,
    posts: usize,
    acknowledged: bool,
) -> Result<()> {
    if !acknowledged && let Some(done) = at_once(stage, neighbors, out, into, posts).await {
        return done;
    }
    let meanwhile = || copies(stage, neighbors, out, into);
    let receives = receive(stage, &neighbors.sources, into, posts, acknowledged);
    both(pin!(receives), pin!(send(stage, &neighbors.destinations, out, posts, acknowledged, meanwhile))).await
}

/// As [`direct`], where there is nothing to slide. `None`, and nothing has happened, where a list is longer
/// than `posts`, or a block needs a buffer.
pub async fn at_once<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    neighbors: &Neighbors,
    out: &O,
    into: &I,
    posts: usize,
) -> Option<Result<()>> {
    if !(is_plain(&neighbors.sources, into, posts) && is_plain(&neighbors.destinations, out, posts)) {
        return None;
    }
    let mut open: SmallVec<[E::Post<'_>; 8]> = SmallVec::new();
    for (peer, span) in messages(&neighbors.sources, into) {
        if let Some(post) = stage.recv_some(peer, span) {
            open.push(post);
        }
    }
    for (peer, span) in messages(&neighbors.destinations, out) {
        if let Some(post) = stage.send_some(peer, span) {
            open.push(post);
        }
    }
    let copied = copies(stage, neighbors, out, into);
    Some(join(&mut open).await.and(copied))
}

/// The blocks that the caller sends to itself.
fn copies<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    neighbors: &Neighbors,
    out: &O,
    into: &I,
) -> Result<()> {
    neighbors.own.iter().try_for_each(|&(from, to)| {
        transfer(stage.ep(), &Block { blocks: out, member: from }, &Block { blocks: into, member: to })
    })
}

/// Whether there are at most `posts` edges, and each block lies in the user's memory.
#[inline(always)]
fn is_plain<B: Blocks>(edges: &[Edge], blocks: &B, posts: usize) -> bool {
    edges.len() <= posts && edges.iter().all(|edge| blocks.direct(edge.slot..edge.slot + 1).is_some())
}

/// The messages along edges whose blocks lie in the user's memory.
#[inline(always)]
fn messages<'b, B: Blocks>(edges: &'b [Edge], blocks: &'b B) -> impl Iterator<Item = (usize, Span)> + 'b {
    edges.iter().filter_map(|edge| Some((edge.peer, blocks.direct(edge.slot..edge.slot + 1)?)))
}

async fn receive<E: Endpoint, I: Blocks>(
    stage: &Stage<'_, E>,
    sources: &[Edge],
    into: &I,
    posts: usize,
    acknowledged: bool,
) -> Result<()> {
    let mut pool = Pool::for_blocks(stage.ep(), into, sources.iter().map(|edge| edge.slot));
    let mut open: VecDeque<(Edge, Staged, E::Post<'_>)> = VecDeque::with_capacity(posts.min(sources.len()));
    let mut next = sources.iter().filter(|edge| into.len(edge.slot) > 0);
    loop {
        while open.len() < posts.max(1)
            && let Some(&edge) = next.next()
        {
            let staged = pool.incoming(&Block { blocks: into, member: edge.slot })?;
            open.push_back((edge, staged, stage.recv(edge.peer, staged.span)));
        }
        let Some((edge, staged, post)) = open.pop_front() else { return Ok(()) };
        post.await?;
        let thanks = acknowledged.then(|| stage.second().send(edge.peer, Span::empty()));
        pool.arrived(&staged, &Block { blocks: into, member: edge.slot })?;
        pool.give(staged);
        join(thanks).await?;
    }
}

/// `meanwhile` is called when the first messages are under way.
async fn send<E: Endpoint, O: Blocks>(
    stage: &Stage<'_, E>,
    destinations: &[Edge],
    out: &O,
    posts: usize,
    acknowledged: bool,
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut pool = Pool::for_blocks(stage.ep(), out, destinations.iter().map(|edge| edge.slot));
    let mut open: VecDeque<(Staged, [Option<E::Post<'_>>; 2])> = VecDeque::with_capacity(posts.min(destinations.len()));
    let mut next = destinations.iter().filter(|edge| out.len(edge.slot) > 0);
    let mut meanwhile = Some(meanwhile);
    loop {
        while open.len() < posts.max(1)
            && let Some(edge) = next.next()
        {
            let staged = pool.outgoing(&Block { blocks: out, member: edge.slot })?;
            let thanks = acknowledged.then(|| stage.second().recv(edge.peer, Span::empty()));
            open.push_back((staged, [Some(stage.send(edge.peer, staged.span)), thanks]));
        }
        meanwhile.take().map_or(Ok(()), |work| work())?;
        let Some((staged, posts)) = open.pop_front() else { return Ok(()) };
        join(posts.into_iter().flatten()).await?;
        pool.give(staged);
    }
}
