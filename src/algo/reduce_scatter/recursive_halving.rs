// SPDX-License-Identifier: BSD-3-Clause
//! Reduce-scatter, recursive halving: players ([`crate::pattern::pof2`]) halve the range of blocks that they
//! work on, each time sending one half to a partner and combining the other.
//!
//! Extras hand their vector to their proxies first, and get their block at the end.
//!
//! Cost: ⌊log₂ p⌋ (+ 2) steps; per player one message a step, and all units but those of its own blocks, sent
//! and combined; per extra its vector and its block. Memory: three quarters of the vector, and a proxy a
//! whole vector more, with equal blocks; with others, up to two vectors and a proxy three. Requirements: a
//! commutative operation. Source: Thakur, Rabenseifner, Gropp, IJHPCA 2005.

use super::settle;
use crate::algo::{Stage, join};
use crate::endpoint::{Endpoint, Result, Span, TempBuffer};
use crate::pattern::lengths::Lengths;
use crate::pattern::pof2::{Part, Players, Proxy};

/// Combines all members' `mine`, and leaves the own block of the result in `target`. Uses two phases.
pub async fn recursive_halving<E: Endpoint>(
    stage: &Stage<'_, E>,
    mine: Span,
    lengths: &Lengths,
    target: Span,
) -> Result<()> {
    let (ep, me) = (stage.ep(), stage.me());
    let players = Players::new(stage.size(), Proxy::Lower);
    let second = stage.second();
    let (id, extra) = match players.part(me) {
        Part::Extra { proxy } => {
            join(stage.send_some(proxy, mine)).await?;
            return join(second.recv_some(proxy, target)).await;
        }
        Part::Player { id, extra } => (id, extra),
    };
    if lengths.is_empty() {
        return Ok(());
    }
    // The partial result, and which of the units it is.
    let (mut partial, mut start) = (mine, 0);
    let whole = if extra.is_some() { Some(ep.temp(mine.len())?) } else { None };
    if let (Some(extra), Some(whole)) = (extra, &whole) {
        stage.recv(extra, whole.span()).await?;
        ep.reduce(mine, whole.span());
        partial = whole.span();
    }
    // Each range is part of the one before, so the buffer of two steps before is large enough for it.
    let mut buffers: [Option<E::Temp<'_>>; 2] = [None, None];
    let (mut low, mut width) = (0, players.count());
    while width > 1 {
        width /= 2;
        let units = |first: usize| lengths.span(players.members(first).start..players.members(first + width - 1).end);
        let (keep, away) = if id & width == 0 { (low, low + width) } else { (low + width, low) };
        let (kept, sent) = (units(keep), units(away));
        let part = |range: &std::ops::Range<usize>| partial.slice(range.start - start..range.end - start);
        let arriving = match &buffers[0] {
            Some(buffer) => buffer.span().slice(0..kept.len()),
            None => buffers[0].insert(ep.temp(kept.len())?).span(),
        };
        let partner = players.member(id ^ width);
        stage.exchange_some(partner, part(&sent), partner, arriving).await?;
        if !kept.is_empty() {
            ep.reduce(part(&kept), arriving);
        }
        (partial, start, low) = (arriving, kept.start, keep);
        buffers.swap(0, 1);
    }
    let block = |member: usize| partial.slice(lengths.start(member) - start..lengths.start(member + 1) - start);
    if let Some(extra) = extra {
        join(second.send_some(extra, block(extra))).await?;
    }
    settle(ep, block(me), target);
    Ok(())
}
