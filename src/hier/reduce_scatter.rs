// SPDX-License-Identifier: BSD-3-Clause
//! Reduce_scatter, Reduce_scatter_block: a reduction to the leaders below the topmost group, a reduce-scatter
//! among its members, in which each gets what the ranks below it want, and a scatter down.
//!
//! Where the blocks of the ranks below a member do not follow each other, leaders first put the vector in
//! that order. An operation that does not commute comes with groups of consecutive ranks (or with one group
//! of all): then nothing is moved and every algorithm keeps the order.
//!
//! Cost, of n units: at each level below the topmost what a reduction of n units costs (n for each member
//! that is no leader), and one message for each member that is no leader, with the blocks of the ranks below
//! it; on top what the algorithm costs, with blocks for each member: n − (its own block) sent by each,
//! whatever the number of ranks below it. Memory: at a leader two vectors, one more where ranks do not follow
//! each other, and what the algorithms need. Requirements: none.
//! Source: Kurnosov 2023 (coll/tcl) for the levels; the reduce-scatter on top is ours.

use super::parts::{Parts, led, split};
use super::reduce::{reduce, settle};
use super::rooted::{Choose, Walk, Way};
use super::{Job, phase};
use crate::algo::data::{Packed, Plain};
use crate::algo::reduce::Value;
use crate::algo::reduce_scatter::{
    pairwise::pairwise, recursive_halving::recursive_halving, reduce_scatterv::reduce_scatterv, ring::ring,
};
use crate::endpoint::{Endpoint, Result, Span, TempBuffer};
use crate::pattern::lengths::Lengths;
use crate::select::{Facts, Reduce, Spec};

/// From so many bytes on the blocks are combined at their owners.
const LARGE: usize = 512 << 10;

/// What the members of the topmost group do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// [`crate::algo::reduce_scatter::pairwise`]
    Pairwise,
    /// [`crate::algo::reduce_scatter::reduce_scatterv`], binary
    ReduceScatterv,
    /// [`crate::algo::reduce_scatter::recursive_halving`]; [`Halves::Pairwise`] where operands must not be
    /// exchanged
    RecursiveHalving,
    /// [`crate::algo::reduce_scatter::ring`]; [`Halves::Pairwise`] where operands must not be exchanged
    Ring,
}

impl Halves {
    /// The built-in choice.
    pub fn auto(facts: &Facts) -> Halves {
        match facts.members {
            0..=2 => Halves::Pairwise,
            _ if facts.bytes >= LARGE => Halves::Pairwise,
            _ if facts.commutative => Halves::RecursiveHalving,
            _ if facts.bytes <= 1 << 10 => Halves::ReduceScatterv,
            _ => Halves::Pairwise,
        }
    }
}

/// The algorithms of a reduce-scatter.
pub struct Specs<'a, F, X> {
    /// The way up.
    pub reduce: &'a Spec<Reduce>,
    /// The topmost group.
    pub halves: &'a X,
    /// The way down.
    pub trees: &'a F,
}

/// Combines all ranks' `mine`, and leaves the own block of the result in `target`. `lengths`: of all ranks'
/// blocks, in units. In place, `target` lies at the beginning of `mine`. `job.groups` are led by the lowest
/// ranks; `parts`: of the joined kind.
pub async fn reduce_scatter<E, F, X>(
    job: &Job<'_, E>,
    parts: &Parts,
    specs: &Specs<'_, F, X>,
    mine: Span,
    lengths: &Lengths,
    target: Span,
) -> Result<()>
where
    E: Endpoint,
    F: Choose,
    X: Fn(&Facts) -> Halves + Sync,
{
    let ep = job.ep;
    if job.groups.is_empty() {
        settle(ep, Value::borrowed(mine), target);
        return Ok(());
    }
    if lengths.is_empty() {
        return Ok(());
    }
    let (below, top) = split(job);
    let (inner, last) = below.split_at(led(below));
    let up = Job { groups: below, ..*job };
    let len = |rank| lengths.len(rank);
    let down = Walk::whole(job, parts, specs.trees, Way::Down, Some(&len));
    let own = Plain { ep, span: target };
    let sum = match top {
        Some(_) if !inner.is_empty() => Some(ep.temp(mine.len())?),
        _ => None,
    };
    if !below.is_empty() {
        reduce(&up, specs.reduce, Value::borrowed(mine), sum.as_ref().map(TempBuffer::span)).await?;
    }
    if inner.is_empty() && top.is_none() {
        return down.follow(last, &own).await;
    }
    let blocks = Lengths::each(parts.own().iter().map(|&rank| lengths.len(rank)));
    let result = if inner.is_empty() { None } else { Some(ep.temp(blocks.total())?) };
    let into = result.as_ref().map_or(target, TempBuffer::span);
    match top {
        None => down.follow(last, &Plain { ep, span: into }).await?,
        Some(group) => {
            let value = sum.as_ref().map_or(mine, TempBuffer::span);
            let ordered = arrange(ep, parts, lengths, value)?;
            let value = ordered.as_ref().map_or(value, TempBuffer::span);
            let total = |part: &Vec<usize>| part.iter().map(|&rank| lengths.len(rank)).sum();
            let members = Lengths::each(parts.top().iter().map(total));
            let stage = job.stage(group, 0, phase::TOP);
            match (specs.halves)(&job.facts(group, 1)) {
                Halves::RecursiveHalving if job.commutative => recursive_halving(&stage, value, &members, into).await?,
                Halves::Ring if job.commutative => ring(&stage, value, &members, into).await?,
                Halves::ReduceScatterv => reduce_scatterv(&stage, value, &members, into, 2).await?,
                _ => pairwise(&stage, value, &members, into).await?,
            }
        }
    }
    let all = Packed { ep, span: into, lengths: &blocks };
    down.lead(inner, &all, Some(&own), |group| parts.places(group, &down.range)).await
}

/// The vector in the order of [`Parts::order`]; none where it is in it.
fn arrange<'a, E: Endpoint>(ep: &'a E, parts: &Parts, lengths: &Lengths, value: Span) -> Result<Option<E::Temp<'a>>> {
    if parts.order().is_sorted() {
        return Ok(None);
    }
    let temp = ep.temp(value.len())?;
    let mut at = 0;
    for &rank in parts.order().iter().filter(|&&rank| lengths.len(rank) > 0) {
        let block = value.slice(lengths.get(rank));
        ep.copy(block, temp.span().slice(at..at + block.len()));
        at += block.len();
    }
    Ok(Some(temp))
}
