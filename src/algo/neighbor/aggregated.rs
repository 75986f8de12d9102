// SPDX-License-Identifier: BSD-3-Clause
//! Neighbourhood exchange in bundles: the blocks from one node to another one travel in one message, between
//! leaders ([`Bundles`]); the other edges have a message each ([`super::direct`]).
//!
//! All receives are posted before anything is waited for, but for those whose length a leader has to be told
//! first; so nobody waits in a circle.
//!
//! Cost: a message between two nodes each way, as long as the blocks between them; within a node a message
//! from each member to the leader and one from it, for each other node that the member has edges with, but
//! for leaders' own. With different lengths one more to the leader, of 8 bytes per block. 3 steps, or 4.
//! Memory: at a leader, both bundles, and one of them again for handing out. Requirements: all members of a
//! node know each other's edges; where `equal` is given, it is the length of all blocks. Source: Bienz,
//! Gropp, Olson: Node aware sparse matrix-vector multiplication, JPDC 2019; Ghazimirsaeed, Mirsadeghi,
//! Afsahi: An efficient collaborative communication mechanism for MPI neighborhood collectives, IPDPS 2019.

use super::direct::direct;
use crate::algo::data::{Block, announced, numbers, read, write};
use crate::algo::{Posts, Stage, both, join};
use crate::endpoint::{Blocks, Endpoint, Result, Span, TempBuffer};
use crate::pattern::bundles::{Bundles, Led, Via};
use crate::pattern::lengths::Lengths;
use smallvec::SmallVec;
use std::pin::pin;

/// Phases, after that of the direct messages.
const TOLD: u8 = 2;
const UP: u8 = 3;
const ACROSS: u8 = 4;
const DOWN: u8 = 5;

/// Sends the blocks of `out` to the destinations, and receives those of `into` from the sources, with up to
/// `posts` direct messages at a time.
pub async fn aggregated<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    bundles: &Bundles,
    equal: Option<usize>,
    out: &O,
    into: &I,
    posts: usize,
) -> Result<()> {
    let plain = direct(stage, &bundles.plain, out, into, posts, false);
    both(pin!(bundled(stage, bundles, equal, out, into)), pin!(plain)).await
}

/// What a leader knows of the lengths: of what each share hands in, and of each block that arrives.
struct Sizes {
    parts: Lengths,
    arriving: Lengths,
}

async fn bundled<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    bundles: &Bundles,
    equal: Option<usize>,
    out: &O,
    into: &I,
) -> Result<()> {
    let (ep, me) = (stage.ep(), stage.me());
    let mut temps = Vec::new();
    let mut sends: Posts<'_, E> = SmallVec::new();
    let others = || bundles.vias.iter().filter(|via| via.leader != me);
    if equal.is_none() {
        for via in others() {
            let told = numbers(ep, lengths(via, out, into))?;
            sends.push(stage.phase(TOLD).tell(via.leader, told.span()));
            temps.push(told);
        }
    }
    let mut takes: SmallVec<[_; 4]> = SmallVec::new();
    for via in others() {
        let len = via.out.iter().map(|&slot| out.len(slot)).sum();
        let temp = ep.temp(len)?;
        collect(ep, via, out, temp.span())?;
        sends.extend(stage.phase(UP).send_some(via.leader, temp.span()));
        temps.push(temp);
        let temp = ep.temp(via.into.iter().map(|slots| into.len(slots[0])).sum())?;
        takes.push((via, stage.phase(DOWN).recv_some(via.leader, temp.span()), temp));
    }
    let sizes = sizes(stage, bundles, equal, out, into).await?;

    let mut leads: SmallVec<[_; 4]> = SmallVec::new();
    for (led, sizes) in bundles.led.iter().zip(&sizes) {
        let (leaving, arriving) = (ep.temp(sizes.parts.total())?, ep.temp(sizes.arriving.total())?);
        let arrival = stage.phase(ACROSS).recv_some(led.peer, arriving.span());
        let mut parts: Posts<'_, E> = SmallVec::new();
        for (i, share) in led.shares.iter().enumerate() {
            let part = leaving.span().slice(sizes.parts.get(i));
            match share.member == me {
                true => collect(ep, &bundles.vias[led.own], out, part)?,
                false => parts.extend(stage.phase(UP).recv_some(share.member, part)),
            }
        }
        leads.push((led, sizes, leaving, arriving, arrival, parts));
    }
    for (led, _, leaving, _, _, parts) in &mut leads {
        join(std::mem::take(parts)).await?;
        sends.extend(stage.phase(ACROSS).send_some(led.peer, leaving.span()));
    }
    for (led, sizes, _, arriving, arrival, _) in &mut leads {
        join(arrival.take()).await?;
        let block = |number: &usize| arriving.span().slice(sizes.arriving.get(*number));
        for share in &led.shares {
            if share.member == me {
                hand_out(ep, &bundles.vias[led.own], into, share.into.iter().map(block))?;
                continue;
            }
            let temp = ep.temp(share.into.iter().map(|number| block(number).len()).sum())?;
            let mut at = 0;
            for from in share.into.iter().map(block) {
                ep.copy(from, temp.span().slice(at..at + from.len()));
                at += from.len();
            }
            sends.extend(stage.phase(DOWN).send_some(share.member, temp.span()));
            temps.push(temp);
        }
    }
    for (via, post, temp) in takes {
        join(post).await?;
        let lens = Lengths::each(via.into.iter().map(|slots| into.len(slots[0])));
        hand_out(ep, via, into, (0..via.into.len()).map(|i| temp.span().slice(lens.get(i))))?;
    }
    join(sends).await
}

/// Lengths of what a member hands in, then of what it gets.
fn lengths<O: Blocks, I: Blocks>(via: &Via, out: &O, into: &I) -> SmallVec<[usize; 16]> {
    via.out.iter().map(|&slot| out.len(slot)).chain(via.into.iter().map(|slots| into.len(slots[0]))).collect()
}

/// Puts what a member hands in one after the other.
fn collect<E: Endpoint, O: Blocks>(ep: &E, via: &Via, out: &O, to: Span) -> Result<()> {
    let mut at = 0;
    for &slot in &via.out {
        let len = out.len(slot);
        read(ep, &Block { blocks: out, member: slot }, 0, to.slice(at..at + len))?;
        at += len;
    }
    Ok(())
}

/// Puts the blocks that a member gets into their slots.
fn hand_out<E: Endpoint, I: Blocks>(ep: &E, via: &Via, into: &I, blocks: impl Iterator<Item = Span>) -> Result<()> {
    for (slots, block) in via.into.iter().zip(blocks) {
        for &slot in slots {
            write(ep, &Block { blocks: into, member: slot }, 0, block)?;
        }
    }
    Ok(())
}

/// The lengths of all that the caller leads: known, or told by the members.
async fn sizes<E: Endpoint, O: Blocks, I: Blocks>(
    stage: &Stage<'_, E>,
    bundles: &Bundles,
    equal: Option<usize>,
    out: &O,
    into: &I,
) -> Result<SmallVec<[Sizes; 4]>> {
    let me = stage.me();
    if let Some(len) = equal {
        let known = |led: &Led| Sizes {
            parts: Lengths::each(led.shares.iter().map(|share| share.out * len)),
            arriving: Lengths::equal(len, led.arriving()),
        };
        return Ok(bundles.led.iter().map(known).collect());
    }
    let mut messages: SmallVec<[_; 4]> = SmallVec::new();
    for led in &bundles.led {
        for share in led.shares.iter().filter(|share| share.member != me) {
            let message = announced(stage.ep(), share.out + share.into.len())?;
            let span = message.span();
            messages.push((message, stage.phase(TOLD).recv(share.member, span)));
        }
    }
    let mut told = messages.into_iter().peekable();
    let mut all = SmallVec::new();
    for led in &bundles.led {
        let mut arriving = vec![0; led.arriving()];
        let mut parts = Vec::with_capacity(led.shares.len());
        for share in &led.shares {
            let lens: SmallVec<[usize; 16]> = match told.next_if(|_| share.member != me) {
                Some((message, post)) => {
                    post.await?;
                    message.told().into_iter().collect()
                }
                None => lengths(&bundles.vias[led.own], out, into),
            };
            let (outs, ins) = lens.split_at(share.out.min(lens.len()));
            parts.push(outs.iter().sum());
            share.into.iter().zip(ins).for_each(|(&number, &len)| arriving[number] = len);
        }
        all.push(Sizes { parts: Lengths::each(parts), arriving: Lengths::each(arriving) });
    }
    Ok(all)
}
