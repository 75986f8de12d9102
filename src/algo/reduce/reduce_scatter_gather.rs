// SPDX-License-Identifier: BSD-3-Clause
//! Reduction as reduce-scatter and gather (Rabenseifner).
//!
//! Members are counted from the root. Extras hand their value to their proxies; the 2^q players halve the
//! vector q times, each time sending one half to a partner and combining the other ([`halving`]); then a
//! binomial tree gathers the chunks at the root.
//!
//! Cost: 2 ⌊log₂ p⌋ (+ 1) steps, about 2 n units and n combinations per member. Requirements: a commutative
//! operation. Source: Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004.

use super::{Value, Work};
use crate::algo::Stage;
use crate::endpoint::{Endpoint, Result, Span};
use crate::pattern::chunks::Chunks;
use crate::pattern::pof2::{Part, Players, Proxy};
use crate::pattern::{Member, absolute, relative};

/// Combines all members' `mine` at `root`; the result is `Some` there. Uses two phases.
pub async fn reduce_scatter_gather<'a, E: Endpoint>(
    stage: &Stage<'a, E>,
    root: Member,
    mine: Value,
    work: &mut Work<'a, E>,
) -> Result<Option<Value>> {
    let size = stage.size();
    let players = Players::new(size, Proxy::Lower);
    let (id, extra) = match players.part(relative(stage.me(), root, size)) {
        Part::Extra { proxy } => {
            stage.send(absolute(proxy, root, size), mine.span).await?;
            work.give(mine);
            return Ok(None);
        }
        Part::Player { id, extra } => (id, extra),
    };
    let member = |id: usize| absolute(players.member(id), root, size);
    let mut value = mine;
    if let Some(extra) = extra {
        let span = work.take(true)?;
        stage.recv(absolute(extra, root, size), span).await?;
        value = work.combine(value, Value::owned(span))?;
    }
    let chunks = Chunks::new(value.span.len(), players.count());
    let sum = halving(stage, id, players.count(), member, value, chunks, work).await?;

    // Binomial gather: player `id` has the chunks id..id + width.
    let gather = stage.second();
    let mut width = 1;
    while width < players.count() {
        if id & width != 0 {
            gather.send(member(id - width), sum.span.slice(chunks.span(id, id + width))).await?;
            work.give(sum);
            return Ok(None);
        }
        gather.recv(member(id + width), sum.span.slice(chunks.span(id + width, id + 2 * width))).await?;
        width *= 2;
    }
    Ok(Some(sum))
}

/// Reduce-scatter by recursive halving among `players` members (a power of two): the returned buffer holds,
/// at chunk `id`, the combination of all players' chunk `id`; the rest of it is undefined.
pub async fn halving<'a, E: Endpoint>(
    stage: &Stage<'a, E>,
    id: usize,
    players: usize,
    member: impl Fn(usize) -> Member,
    mine: Value,
    chunks: Chunks,
    work: &mut Work<'a, E>,
) -> Result<Value> {
    if players == 1 {
        return Ok(mine);
    }
    let sum: Span = if mine.owned { mine.span } else { work.take(true)? };
    let spare = work.take(false)?;
    let (mut low, mut width) = (0, players);
    // Where the current partial result lies: the user's buffer until the first combination.
    let mut current = mine.span;
    while width > 1 {
        width /= 2;
        let (keep, away) = if id & width == 0 { (low, low + width) } else { (low + width, low) };
        let partner = member(id ^ width);
        let (kept, sent) = (chunks.span(keep, keep + width), chunks.span(away, away + width));
        let in_place = current.ptr() == sum.ptr();
        let into = if in_place { spare.slice(kept.clone()) } else { sum.slice(kept.clone()) };
        stage.exchange(partner, current.slice(sent), partner, into).await?;
        if in_place {
            stage.ep().reduce(into, sum.slice(kept));
        } else {
            stage.ep().reduce(current.slice(kept), into);
        }
        current = sum;
        low = keep;
    }
    work.give(Value::owned(spare));
    Ok(Value::owned(sum))
}
