//! Neighbourhood exchange, direct: a message along each edge, up to `posts` of them at a time each way.
//!
//! Both lists of edges are worked off on their own, each by a window that slides when its oldest message is done; in the order of distance that
//! cannot end in a circle of members that wait for each other. Blocks that a member sends to itself are copied.
//!
//! Where no list is longer than `posts` and no block needs a buffer, there is nothing to slide: all receives are posted, then all sends, and all are
//! waited for.
//!
//! Where they are `acknowledged`, a message is done for its sender when the receiver says so: a member that only sends does not run ahead then.
//!
//! Cost: a message per edge whose block is not empty, each block travels once; 1 step where no list is longer than `posts`. Memory: on either side
//! `posts` buffers of the longest block that is not direct. Requirements: both ends of an edge know its length.

use crate::algo::data::{Block, Pool, Staged, transfer};
use crate::algo::{Stage, both, join};
use crate::endpoint::{Blocks, Endpoint, Result, Span};
use crate::pattern::neighborhood::{Edge, Neighbors};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::pin::pin;

/// Sends the blocks of `out` to the destinations, and receives those of `into` from the sources. Uses two phases where it is `acknowledged`.
pub async fn direct<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    neighbors: &Neighbors,
    out: &O,
    into: &I,
    posts: usize,
    acknowledged: bool,
) -> Result<()> {
    let copies = || {
        let mut blocks = neighbors
            .own
            .iter()
            .map(|&(from, to)| (Block { blocks: out, member: from }, Block { blocks: into, member: to }));
        blocks.try_for_each(|(from, to)| transfer(stage.ep(), &from, &to))
    };
    if !acknowledged
        && let Some(arriving) = messages(&neighbors.sources, into, posts)
        && let Some(leaving) = messages(&neighbors.destinations, out, posts)
    {
        let mut open: SmallVec<[E::Post<'_>; 8]> = SmallVec::new();
        open.extend(arriving.into_iter().filter_map(|(peer, span)| stage.recv_some(peer, span)));
        open.extend(leaving.into_iter().filter_map(|(peer, span)| stage.send_some(peer, span)));
        let copied = copies();
        return join(open).await.and(copied);
    }
    let receives = receive(stage, &neighbors.sources, into, posts, acknowledged);
    both(pin!(receives), pin!(send(stage, &neighbors.destinations, out, posts, acknowledged, copies))).await
}

/// The messages along `edges`, if there are at most `posts` and each lies in the user's memory.
fn messages<B: Blocks>(edges: &[Edge], blocks: &B, posts: usize) -> Option<SmallVec<[(usize, Span); 4]>> {
    let message = |edge: &Edge| blocks.direct(edge.slot..edge.slot + 1).map(|span| (edge.peer, span));
    if edges.len() <= posts { edges.iter().map(message).collect() } else { None }
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
