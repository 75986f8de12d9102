// SPDX-License-Identifier: BSD-3-Clause
//! Allgather, recursive doubling: in step i partners at distance 2^i exchange all the blocks that they have.
//!
//! Cost: log₂ p steps and messages per member; every member sends and receives p − 1 blocks (as many units as
//! the blocks have, where lengths differ). Memory: one buffer of all blocks, unless they are one run in
//! memory. Requirements: a power of two of members.
//! Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005.

use crate::algo::Stage;
use crate::algo::data::{Block, Members, Several, contribute, place, read, write};
use crate::endpoint::{Blocks, Endpoint, Result, Stream};
use crate::pattern::lengths::Lengths;

/// Gathers everybody's data everywhere.
///
/// # Panics
/// When the number of members is no power of two.
pub async fn recursive_doubling<E: Endpoint, S: Stream, B: Blocks>(
    stage: &Stage<'_, E>,
    own: Option<&S>,
    into: &B,
) -> Result<()> {
    let (ep, me, size) = (stage.ep(), stage.me(), stage.size());
    assert!(size.is_power_of_two(), "recursive doubling among {size} members");
    contribute(ep, own, into, me)?;
    let lengths = Lengths::each((0..size).map(|m| into.len(m)));
    let whole = Several { ep, blocks: into, members: Members::Circle { first: 0, count: size, size } };
    let (all, temp) = place(ep, &whole)?;
    if temp.is_some() {
        read(ep, &Block { blocks: into, member: me }, 0, all.slice(lengths.get(me)))?;
    }
    let mut width = 1;
    while width < size {
        let partner = me ^ width;
        let (have, get) = (me & !(width - 1), partner & !(width - 1));
        let out = all.slice(lengths.span(have..have + width));
        let arriving = all.slice(lengths.span(get..get + width));
        stage.exchange_some(partner, out, partner, arriving).await?;
        width *= 2;
    }
    if temp.is_some() {
        for member in (0..size).filter(|&m| m != me) {
            write(ep, &Block { blocks: into, member }, 0, all.slice(lengths.get(member)))?;
        }
    }
    Ok(())
}
