// SPDX-License-Identifier: BSD-3-Clause
//! Reduce: from the lowest group up, each level by its own algorithm; within a node through shared memory.
//!
//! The root leads every group it is in, so the result is made where it is wanted. Where the operation does
//! not commute, the caller passes groups of consecutive ranks (`Hierarchy` built with `ordered`), and every
//! algorithm used keeps the order. Source: Kurnosov 2023 (coll/tcl); the root as leader, any operation and
//! segments on all levels at once are ours.

use super::{Job, Within, apart, lanes::lanes, phase};
use crate::algo::reduce::{
    Value, Work, chain::chain, flat::flat, knomial::knomial, reduce_scatter_gather::reduce_scatter_gather,
};
use crate::endpoint::{Endpoint, Result, Span};
use crate::select::{Reduce, Setting, Spec};
use crate::shm::op as shm;
use crate::topo::Group;

/// Reduces everybody's `input` into `target`, which only the root has. Units are elements; `job.groups` are
/// led by the root. Input in place: `input` is an owned value in `target` itself.
pub async fn reduce<E: Endpoint>(
    job: &Job<'_, E>,
    spec: &Spec<Reduce>,
    input: Value,
    target: Option<Span>,
) -> Result<()> {
    let total = input.span.len();
    lanes(total, job.segment, job.window, |lane, range| async move {
        let input = Value { span: input.span.slice(range.clone()), ..input };
        let target = target.map(|t| t.slice(range));
        let mut work = Work::new(job.ep, input.span.len(), job.commutative, target.filter(|_| !input.owned));
        let result = up(job, spec, lane, job.groups, input, &mut work, total).await?;
        if let (Some(value), Some(target)) = (result, target) {
            settle(job.ep, value, target);
            job.ep.made(target);
        }
        Ok(())
    })
    .await
}

/// Copies the result to where it is wanted, unless it lies there.
pub(super) fn settle<E: Endpoint>(ep: &E, value: Value, target: Span) {
    if value.span.ptr() != target.ptr() {
        ep.copy(value.span, target);
    }
}

/// One segment on its way up through `groups`; `Some` result where the caller led all of them.
pub(super) async fn up<'a, E: Endpoint>(
    job: &Job<'a, E>,
    spec: &Spec<Reduce>,
    lane: u8,
    groups: &'a [Group],
    input: Value,
    work: &mut Work<'a, E>,
    total: usize,
) -> Result<Option<Value>> {
    let mut value = input;
    for group in groups {
        let leader = group.leader;
        if let Some(node) = job.shared(group).filter(|_| spec.is_shared_within_node()) {
            let node = node.by_way(spec.way());
            let part = apart(async {
                let opened = job.open_reduction(&node, lane, value.span.len()).await?;
                let Some((turn, combine)) = opened else { return Ok(None) };
                combine.needs(value.span.ptr(), value.span.len() * combine.size())?;
                // The leader's value is combined where it lies, if it may be.
                let output = match group.me == leader {
                    false => Span::empty(),
                    true if value.owned => value.span,
                    true => work.take(true)?,
                };
                match node.tree_of(leader, value.span.len() * combine.size()) {
                    Some(tree) => shm::tree::reduce(turn, tree, &combine, value.span, output).await?,
                    None => shm::reduce::reduce(turn, leader, &combine, value.span, output).await?,
                }
                Ok(Some(output))
            });
            let within = job.within(&node, part).await;
            if !matches!(within, Within::Messages) {
                if group.me != leader {
                    work.give(value);
                    return Ok(None);
                }
                if let Within::Done(output) = within {
                    value = Value::owned(output);
                }
                continue;
            }
        }
        let stage = job.stage(group, lane, phase::UP);
        let result = match spec.choose(&job.facts(group, total)) {
            Reduce::Flat => flat(&stage, leader, value, work).await?,
            Reduce::Knomial(radix) => knomial(&stage, leader, value, work, radix).await?,
            Reduce::Chain => chain(&stage, leader, value, work).await?,
            Reduce::ReduceScatterGather => reduce_scatter_gather(&stage, leader, value, work).await?,
        };
        match result {
            Some(sum) => value = sum,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}
