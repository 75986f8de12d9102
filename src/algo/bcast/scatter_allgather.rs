// SPDX-License-Identifier: BSD-3-Clause
//! Broadcast as scatter and allgather.
//!
//! The message is cut into p chunks. A binomial tree scatters them (each subtree gets the chunks of its
//! members), then a ring collects them: in each of p − 1 steps every member passes on the chunk that it got
//! in the step before.
//!
//! Cost: ⌈log₂ p⌉ + p − 1 steps; every member sends and receives about n units in the ring; 2(p − 1)/p · n
//! units on the longest path. Requirements: none (chunks may be empty).
//! Source: Van de Geijn; Thakur, Rabenseifner, Gropp, IJHPCA 2005; Kurnosov 2023.

use crate::algo::{Posts, Stage, join};
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::chunks::Chunks;
use crate::pattern::knomial::Knomial;
use crate::pattern::{Member, absolute, relative};

/// Broadcasts `data` of `root`. Uses two phases.
pub async fn scatter_allgather<E: Endpoint>(stage: &Stage<'_, E>, root: Member, data: Span) -> Result<()> {
    let size = stage.size();
    let me = relative(stage.me(), root, size);
    let chunks = Chunks::new(data.len(), size);
    let tree = Knomial::new(size, 2);

    // Scatter: the subtree of member m is m..subtree_end(m), and those are its chunks.
    let part = |m: usize| data.slice(chunks.span(m, tree.subtree_end(m)));
    if let Some(parent) = tree.parent(me) {
        stage.recv(absolute(parent, root, size), part(me)).await?;
    }
    let sends: Posts<E> = tree.children(me).map(|c| stage.send(absolute(c, root, size), part(c))).collect();

    // Ring allgather. What a member has beyond its own chunk from the scatter, it receives again: the cost of
    // simplicity is at most n units at a few members, off the longest path. The root has everything and
    // receives nothing.
    let ring = stage.second();
    let next = absolute((me + 1) % size, root, size);
    let previous = absolute((me + size - 1) % size, root, size);
    join(sends).await?;
    for step in 0..size - 1 {
        let out = (me + size - step) % size;
        let into = (out + size - 1) % size;
        let receive = (me != 0).then(|| ring.recv(previous, data.slice(chunks.get(into))));
        let send = (me + 1 < size).then(|| ring.send(next, data.slice(chunks.get(out))));
        // One after the other: what waits for a chain of both is not known to be `Send`.
        let received = join(receive).await;
        join(send).await?;
        received?;
    }
    Ok(())
}
