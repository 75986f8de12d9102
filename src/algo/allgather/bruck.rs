// SPDX-License-Identifier: BSD-3-Clause
//! Allgather, Bruck: in step i a member sends its first 2^i blocks to the one 2^i before, and appends those
//! that come from the one 2^i further.
//!
//! Blocks are kept in the order of the members from oneself on, in a circle, and go to their places at the
//! end.
//!
//! Cost: ⌈log₂ p⌉ steps and messages per member; every member sends and receives p − 1 blocks. Memory: one
//! buffer of all blocks.
//! Requirements: none.
//! Source: Bruck et al.: Efficient algorithms for all-to-all communications, IEEE TPDS 1997.

use crate::algo::Stage;
use crate::algo::data::{Block, contribute, read, write};
use crate::endpoint::{Blocks, Endpoint, Result, Stream, TempBuffer};
use crate::pattern::lengths::Lengths;

/// Gathers everybody's data everywhere.
pub async fn bruck<E: Endpoint, S: Stream, B: Blocks>(stage: &Stage<'_, E>, own: Option<&S>, into: &B) -> Result<()> {
    let (ep, me, size) = (stage.ep(), stage.me(), stage.size());
    contribute(ep, own, into, me)?;
    let further = |i: usize| (me + i) % size;
    let lengths = Lengths::each((0..size).map(|i| into.len(further(i))));
    if size == 1 || lengths.is_empty() {
        return Ok(());
    }
    let temp = ep.temp(lengths.total())?;
    let all = temp.span();
    read(ep, &Block { blocks: into, member: me }, 0, all.slice(lengths.get(0)))?;
    let mut width = 1;
    while width < size {
        let count = width.min(size - width);
        let out = all.slice(lengths.span(0..count));
        let arriving = all.slice(lengths.span(width..width + count));
        stage.exchange_some(further(size - width), out, further(width), arriving).await?;
        width *= 2;
    }
    for i in 1..size {
        write(ep, &Block { blocks: into, member: further(i) }, 0, all.slice(lengths.get(i)))?;
    }
    Ok(())
}
