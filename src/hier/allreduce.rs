// SPDX-License-Identifier: BSD-3-Clause
//! Allreduce: up, across the top, and down.
//!
//! * *reduce_bcast*: a hierarchical reduce to the leader of all, then a hierarchical broadcast.
//! * *reduce_allreduce_bcast*: a reduce on every level but the topmost, an allreduce among the members of the
//!   topmost group, a broadcast down.
//!
//! Every segment goes its whole way alone, so the way up of one overlaps with the way down of another.
//! Source: Kurnosov 2023 (coll/tcl); segments on all levels at once are ours.

use super::bcast::down;
use super::reduce::{settle, up};
use super::{Job, lanes::lanes, phase};
use crate::algo::allreduce::{rabenseifner::rabenseifner, recursive_doubling::recursive_doubling, ring::ring};
use crate::algo::reduce::{Value, Work};
use crate::endpoint::{Endpoint, Result, Span};
use crate::select::{Allreduce, Bcast, Reduce, Spec};
use crate::topo::Group;

/// The algorithms of an allreduce.
pub struct Specs<'a> {
    /// The composition and the topmost group.
    pub allreduce: &'a Spec<Allreduce>,
    /// The way up.
    pub reduce: &'a Spec<Reduce>,
    /// The way down.
    pub bcast: &'a Spec<Bcast>,
}

/// Combines everybody's `input` into everybody's `target`. Units are elements; `job.groups` are led by the
/// lowest ranks. Input in place: `input` is an owned value in `target` itself.
pub async fn allreduce<E: Endpoint>(job: &Job<'_, E>, specs: &Specs<'_>, input: Value, target: Span) -> Result<()> {
    let total = input.span.len();
    let (below, top) = match job.groups.split_last() {
        Some((last, below)) if last.top => (below, Some(last)),
        _ => (job.groups, None),
    };
    lanes(total, job.segment, job.window, |lane, range| async move {
        let input = Value { span: input.span.slice(range.clone()), ..input };
        let target = target.slice(range);
        segment(job, specs, lane, (below, top), input, target, total).await?;
        job.ep.made(target);
        Ok(())
    })
    .await
}

/// One segment on its way up, across and down. `total`: units of the whole operation.
async fn segment<'a, E: Endpoint>(
    job: &Job<'a, E>,
    specs: &Specs<'_>,
    lane: u8,
    (below, top): (&'a [Group], Option<&'a Group>),
    input: Value,
    target: Span,
    total: usize,
) -> Result<()> {
    let mut work = Work::new(job.ep, target.len(), job.commutative, (!input.owned).then_some(target));
    let partial = up(job, specs.reduce, lane, below, input, &mut work, total).await?;

    // Who is not in the topmost group has handed in its value and waits for the way down.
    let (Some(value), Some(group)) = (partial, top) else {
        if let Some(value) = partial {
            settle(job.ep, value, target); // a communicator of one
        }
        return down(job, specs.bcast, lane, target, total).await;
    };
    let stage = job.stage(group, lane, phase::TOP);
    let result = match specs.allreduce.choose(&job.facts(group, total)) {
        Allreduce::ReduceBcast => {
            let groups = std::slice::from_ref(group);
            if let Some(sum) = up(job, specs.reduce, lane, groups, value, &mut work, total).await? {
                settle(job.ep, sum, target);
            }
            return down(job, specs.bcast, lane, target, total).await;
        }
        Allreduce::RecursiveDoubling => recursive_doubling(&stage, value, &mut work).await?,
        Allreduce::Rabenseifner => rabenseifner(&stage, value, &mut work).await?,
        Allreduce::Ring => ring(&stage, value, &mut work).await?,
    };
    settle(job.ep, result, target);
    let below = Job { groups: below, ..*job };
    down(&below, specs.bcast, lane, target, total).await
}

/// Allreduce as a reduction along `job.groups` to rank 0 and a broadcast along other groups, `down_groups`
/// (led by rank 0 too). Used where the expression that is computed is fixed but the way down is not.
pub async fn two_trees<E: Endpoint>(
    job: &Job<'_, E>,
    down_groups: &[Group],
    reduce: &Spec<Reduce>,
    bcast: &Spec<Bcast>,
    input: Value,
    target: Span,
) -> Result<()> {
    let total = input.span.len();
    lanes(total, job.segment, job.window, |lane, range| async move {
        let input = Value { span: input.span.slice(range.clone()), ..input };
        let target = target.slice(range);
        let mut work = Work::new(job.ep, target.len(), job.commutative, (!input.owned).then_some(target));
        if let Some(sum) = up(job, reduce, lane, job.groups, input, &mut work, total).await? {
            settle(job.ep, sum, target);
        }
        down(&Job { groups: down_groups, ..*job }, bcast, lane, target, total).await?;
        job.ep.made(target);
        Ok(())
    })
    .await
}
