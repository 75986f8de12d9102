// SPDX-License-Identifier: BSD-3-Clause
//! Allreduce as reduce-scatter and allgather (Rabenseifner).
//!
//! Extras hand their value to their proxies; players halve the vector ([`halving`]), then double the chunks
//! they have with the same partners in reverse order; extras get the result at the end.
//!
//! Cost: 2 ⌊log₂ p⌋ (+ 2) steps, 2 (p − 1)/p · n units and (p − 1)/p · n combinations per player.
//! Requirements: a commutative operation.
//! Source: Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004.

use crate::algo::Stage;
use crate::algo::reduce::reduce_scatter_gather::halving;
use crate::algo::reduce::{Value, Work};
use crate::endpoint::{Endpoint, Result};
use crate::pattern::chunks::Chunks;
use crate::pattern::pof2::{Part, Players, Proxy};

/// Combines all members' `mine` everywhere. Uses two phases.
pub async fn rabenseifner<'a, E: Endpoint>(stage: &Stage<'a, E>, mine: Value, work: &mut Work<'a, E>) -> Result<Value> {
    let players = Players::new(stage.size(), Proxy::Lower);
    let second = stage.second();
    let (id, extra) = match players.part(stage.me()) {
        Part::Extra { proxy } => {
            stage.send(proxy, mine.span).await?;
            work.give(mine);
            let result = work.take(true)?;
            second.recv(proxy, result).await?;
            return Ok(Value::owned(result));
        }
        Part::Player { id, extra } => (id, extra),
    };
    let mut value = mine;
    if let Some(extra) = extra {
        let span = work.take(true)?;
        stage.recv(extra, span).await?;
        value = work.combine(value, Value::owned(span))?;
    }
    let chunks = Chunks::new(value.span.len(), players.count());
    let sum = halving(stage, id, players.count(), |i| players.member(i), value, chunks, work).await?;

    let mut width = 1;
    while width < players.count() {
        let partner = id ^ width;
        let have = id / width * width;
        let get = partner / width * width;
        let out = sum.span.slice(chunks.span(have, have + width));
        let into = sum.span.slice(chunks.span(get, get + width));
        second.exchange(players.member(partner), out, players.member(partner), into).await?;
        width *= 2;
    }
    if let Some(extra) = extra {
        second.send(extra, sum.span).await?;
    }
    Ok(sum)
}
