// SPDX-License-Identifier: BSD-3-Clause
//! Alltoall, Bruck, of any radix k: blocks travel together, by the digits of the distance that they have to
//! go ([`crate::pattern::bruck`]).
//!
//! A block that waits for its next digit waits in the receive buffer, at the place where the last block of
//! its slot will be, so nothing is rotated before or after.
//!
//! Cost: ⌈log_k p⌉ steps of up to k − 1 messages; the block that goes j members further is sent as many times
//! as j has non-zero digits in base k. Memory: for the messages of one step, twice as many blocks as move in
//! it (below 2p; about p for k = 2); in place p blocks more. Requirements: all blocks have the same length
//! and signature. Source: Bruck et al.: Efficient algorithms for all-to-all communications, IEEE TPDS 1997;
//! without rotations: Träff, Rougier, Hunold: Implementing a classic, ICS 2014.

use crate::algo::data::{Block, Packed, Plain, read, transfer, write};
use crate::algo::{Posts, Stage, join};
use crate::endpoint::{Blocks, Endpoint, Result, TempBuffer};
use crate::pattern::bruck::{Bruck, Hop};
use crate::pattern::lengths::Lengths;
use smallvec::SmallVec;

/// Sends block i of `out` to member i, and receives block i of `into` from there. A `radix` below 2 counts as
/// 2.
pub async fn bruck<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    out: Option<&O>,
    into: &I,
    radix: u32,
) -> Result<()> {
    let (ep, size) = (stage.ep(), stage.size());
    let lengths = Lengths::equal(into.len(stage.me()), size);
    if lengths.is_empty() {
        return Ok(());
    }
    if let Some(out) = out {
        return steps(stage, out, into, radix).await;
    }
    if size == 1 {
        return Ok(());
    }
    let temp = ep.temp(lengths.total())?;
    let copy = Packed { ep, span: temp.span(), lengths: &lengths };
    for member in 0..size {
        let to = Plain { ep, span: temp.span().slice(lengths.get(member)) };
        transfer(ep, &Block { blocks: into, member }, &to)?;
    }
    steps(stage, &copy, into, radix).await
}

async fn steps<E: Endpoint, O: Blocks, I: Blocks>(stage: &Stage<'_, E>, out: &O, into: &I, radix: u32) -> Result<()> {
    let (ep, me, size) = (stage.ep(), stage.me(), stage.size());
    transfer(ep, &Block { blocks: out, member: me }, &Block { blocks: into, member: me })?;
    let len = into.len(me);
    let bruck = Bruck::new(size, radix);
    // What waits in slot j came, or will have come, from j members before.
    let place = |slot: usize| Block { blocks: into, member: (me + size - slot) % size };
    let (leaving, arriving) = (ep.temp(bruck.widest() * len)?, ep.temp(bruck.widest() * len)?);
    for weight in bruck.weights() {
        let mut posts: Posts<E> = SmallVec::new();
        let mut at = 0;
        for hop in bruck.hops(weight) {
            let start = at;
            for slot in hop.slots() {
                let to = leaving.span().slice(at..at + len);
                if hop.untouched(slot) {
                    read(ep, &Block { blocks: out, member: (me + slot) % size }, 0, to)?;
                } else {
                    read(ep, &place(slot), 0, to)?;
                }
                at += len;
            }
            let (to, from) = ((me + hop.distance()) % size, (me + size - hop.distance()) % size);
            posts.push(stage.recv(from, arriving.span().slice(start..at)));
            posts.push(stage.send(to, leaving.span().slice(start..at)));
        }
        join(posts).await?;
        for (i, slot) in bruck.hops(weight).flat_map(Hop::slots).enumerate() {
            write(ep, &place(slot), 0, arriving.span().slice(i * len..(i + 1) * len))?;
        }
    }
    Ok(())
}
