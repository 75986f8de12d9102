// SPDX-License-Identifier: BSD-3-Clause
//! Allgather, ring: in each step every member passes on the block that it got in the step before.
//!
//! Cost: p − 1 steps, p − 1 messages per member; every block but one is sent and received once by every
//! member, between neighbours only. Memory: two buffers of the longest block that is not direct.
//! Requirements: none. Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005.

use crate::algo::Stage;
use crate::algo::data::{Block, Pool, contribute};
use crate::endpoint::{Blocks, Endpoint, Result, Stream};

/// Gathers everybody's data everywhere.
pub async fn ring<E: Endpoint, S: Stream, B: Blocks>(stage: &Stage<'_, E>, own: Option<&S>, into: &B) -> Result<()> {
    let (me, size) = (stage.me(), stage.size());
    contribute(stage.ep(), own, into, me)?;
    let (next, previous) = ((me + 1) % size, (me + size - 1) % size);
    let mut pool = Pool::for_blocks(stage.ep(), into, 0..size);
    let mut out = pool.outgoing(&Block { blocks: into, member: me })?;
    for step in 1..size {
        let block = Block { blocks: into, member: (me + size - step) % size };
        let staged = pool.incoming(&block)?;
        stage.exchange_some(next, out.span, previous, staged.span).await?;
        pool.arrived(&staged, &block)?;
        pool.give(out);
        out = staged;
    }
    Ok(())
}
