// SPDX-License-Identifier: BSD-3-Clause
//! Allgather, neighbour exchange: as a ring, but with both neighbours in turn and two blocks at a time
//! ([`crate::pattern::neighbor`]).
//!
//! Cost: p/2 steps, p/2 messages per member; every member sends and receives p − 1 blocks, like a ring, in
//! half the steps.
//! Memory: two buffers of the longest pair of blocks 2i, 2i + 1 that is not one run in memory. Requirements:
//! an even number of members.
//! Source: Chen et al., HPC Asia 2005.

use crate::algo::Stage;
use crate::algo::data::{Block, Members, Pool, Several, contribute};
use crate::endpoint::{Blocks, Endpoint, Result, Stream};
use crate::pattern::neighbor;

/// Gathers everybody's data everywhere.
///
/// # Panics
/// With an odd number of members.
pub async fn neighbor_exchange<E: Endpoint, S: Stream, B: Blocks>(
    stage: &Stage<'_, E>,
    own: Option<&S>,
    into: &B,
) -> Result<()> {
    let (ep, me, size) = (stage.ep(), stage.me(), stage.size());
    assert!(size.is_multiple_of(2), "neighbour exchange among {size} members");
    contribute(ep, own, into, me)?;
    let pair = |first| Several { ep, blocks: into, members: Members::Circle { first, count: 2, size } };
    let longest = (0..size).step_by(2).map(pair).filter(|pair| pair.direct().is_none()).map(|pair| pair.len()).max();
    let mut pool = Pool::new(ep, longest.unwrap_or(0));

    let partner = neighbor::first(me);
    let mine = pool.outgoing(&Block { blocks: into, member: me })?;
    let block = Block { blocks: into, member: partner };
    let theirs = pool.incoming(&block)?;
    stage.exchange_some(partner, mine.span, partner, theirs.span).await?;
    pool.arrived(&theirs, &block)?;
    pool.give(mine);
    pool.give(theirs);

    let mut out = pool.outgoing(&pair(me & !1))?;
    for step in neighbor::steps(me, size) {
        let blocks = pair(step.pair);
        let staged = pool.incoming(&blocks)?;
        stage.exchange_some(step.partner, out.span, step.partner, staged.span).await?;
        pool.arrived(&staged, &blocks)?;
        pool.give(out);
        out = staged;
    }
    Ok(())
}
