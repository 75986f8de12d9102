// SPDX-License-Identifier: BSD-3-Clause
//! Scan, Exscan: totals go up to the leaders below the topmost group, its members find what comes before each
//! of them, and that goes down.
//!
//! Groups must be of consecutive ranks (a hierarchy built with `ordered`; where the placement is another one,
//! that is one group of all ranks in rank order). Large vectors are cut into segments, [`lanes`] of which are
//! under way at a time.
//!
//! Within a node that shares memory the total is a reduction to the leader, and what each has before it an
//! exclusive scan, in which what comes before the node counts as a part of the leader's own.
//!
//! Cost, of n units: at each level below the topmost one message up and one down for each member that is no
//! leader, n units each; on top what an exclusive scan costs: recursive doubling ⌈log₂ h⌉ steps among h
//! members; linear h − 1 steps and messages. Memory, of a segment: a vector for each child in the trees and
//! up to six. Requirements: none; order is kept.
//! Source: Sanders, Träff: Parallel prefix (scan) algorithms for MPI, EuroPVM/MPI 2006, for nodes of several
//! processes; more levels are ours.

use super::parts::split;
use super::{Job, Within, lanes::lanes, phase};
use crate::algo::reduce::{Value, Work};
use crate::algo::scan::{Scan, linear::linear, recursive_doubling::recursive_doubling, tree};
use crate::endpoint::{Endpoint, Error, Result, Span};
use crate::select::Facts;
use crate::shm::op as shm;
use crate::topo::Group;

/// What the members of the topmost group do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// [`crate::algo::scan::linear`]
    Linear,
    /// [`crate::algo::scan::recursive_doubling`]
    RecursiveDoubling,
}

impl Prefix {
    /// The built-in choice: a stream of segments runs along the members.
    pub fn auto(facts: &Facts) -> Prefix {
        if facts.segments >= 2 * facts.members { Prefix::Linear } else { Prefix::RecursiveDoubling }
    }
}

/// Leaves in `target` the combination of the `mine` of this and all lower ranks, or only of the lower ones
/// (rank 0: its target as it is). In place, `mine` is `target`. `radix`: of the trees below the topmost
/// group.
pub async fn scan<E: Endpoint>(
    job: &Job<'_, E>,
    choose: &(impl Fn(&Facts) -> Prefix + Sync),
    radix: u32,
    kind: Scan,
    mine: Span,
    target: Span,
) -> Result<()> {
    let total = mine.len();
    if total == 0 {
        return Ok(());
    }
    lanes(total, job.segment, job.window, |lane, range| async move {
        let (mine, target) = (mine.slice(range.clone()), target.slice(range));
        let way = Way { job, lane, radix, total };
        let mut work = Work::new(job.ep, mine.len(), false, None);
        let before = way.run(choose, mine, &mut work).await?;
        if kind == Scan::Inclusive && mine.ptr() != target.ptr() {
            job.ep.copy(mine, target);
        }
        match (before, kind) {
            (Some(before), Scan::Inclusive) => job.ep.reduce(before.span, target),
            (Some(before), Scan::Exclusive) => job.ep.copy(before.span, target),
            (None, _) => {}
        }
        job.ep.made(target);
        Ok(())
    })
    .await
}

/// What the way up leaves for the way down.
enum Risen {
    Tree(tree::Risen),
    /// Through shared memory, of this value.
    InNode(Value),
}

/// A segment on its way.
struct Way<'j, 'a, E> {
    job: &'j Job<'a, E>,
    lane: u8,
    radix: u32,
    /// Units of the whole operation.
    total: usize,
}

impl<'a, E: Endpoint> Way<'_, 'a, E> {
    /// What comes before the caller; nothing for rank 0.
    async fn run(
        &self,
        choose: &(impl Fn(&Facts) -> Prefix + Sync),
        mine: Span,
        work: &mut Work<'a, E>,
    ) -> Result<Option<Value>> {
        let Way { job, lane, radix, total } = *self;
        let (below, top) = split(job);
        let mut value = Value::borrowed(mine);
        let mut risen = Vec::with_capacity(below.len());
        for group in below {
            let (sum, state) = self.rise(group, value, work).await?;
            risen.push((group, state));
            value = sum.unwrap_or(value);
        }
        let mut before = None;
        if let Some(group) = top {
            let stage = job.stage(group, lane, phase::TOP);
            let span = work.take(false)?;
            match choose(&job.facts(group, total)) {
                Prefix::Linear => linear(&stage, Scan::Exclusive, value.span, span).await?,
                Prefix::RecursiveDoubling => recursive_doubling(&stage, Scan::Exclusive, value.span, span).await?,
            }
            before = (group.me > 0).then_some(Value::owned(span));
        }
        for (group, state) in risen.into_iter().rev() {
            before = match state {
                Risen::Tree(state) => {
                    tree::sink(&job.stage(group, lane, phase::DOWN), state, before, work, radix).await?
                }
                Risen::InNode(value) => self.sink_in_node(group, value, before, work).await?,
            };
        }
        Ok(before)
    }

    /// The way up in a group: its leader gets the total.
    async fn rise(&self, group: &'a Group, value: Value, work: &mut Work<'a, E>) -> Result<(Option<Value>, Risen)> {
        let Way { job, lane, radix, .. } = *self;
        if let Some(node) = job.shared(group) {
            let leads = group.me == group.leader;
            let part = async {
                let opened = job.open_reduction(&node, lane, value.span.len()).await?;
                let Some((turn, combine)) = opened else { return Ok(None) };
                combine.needs(value.span.ptr(), value.span.len() * combine.size())?;
                let total = if leads { Some(work.take(false)?) } else { None };
                shm::reduce::reduce(turn, group.leader, &combine, value.span, total.unwrap_or(Span::empty())).await?;
                Ok(Some(total))
            };
            match job.within(&node, part).await {
                Within::Done(total) => return Ok((total.map(Value::owned), Risen::InNode(value))),
                Within::Failed => return Ok((None, Risen::InNode(value))),
                Within::Messages => {}
            }
        }
        let (sum, state) = tree::rise(&job.stage(group, lane, phase::UP), value, work, radix).await?;
        Ok((sum, Risen::Tree(state)))
    }

    /// The way down within a node: what comes `before` the node counts as a part of the leader's own, which
    /// is the first one.
    async fn sink_in_node(
        &self,
        group: &Group,
        own: Value,
        before: Option<Value>,
        work: &mut Work<'a, E>,
    ) -> Result<Option<Value>> {
        let Some(node) = self.job.shared(group) else { return Err(Error::Peer) };
        let part = async {
            // All have opened the same on the way up.
            let Some((turn, combine)) = self.job.open_reduction(&node, self.lane, own.span.len()).await? else {
                return Err(Error::Peer);
            };
            combine.needs(own.span.ptr(), own.span.len() * combine.size())?;
            if group.me != group.leader {
                let span = work.take(false)?;
                shm::scan::scan(turn, true, &combine, own.span, span).await?;
                return Ok(Some(Some(Value::owned(span))));
            }
            let input = match before {
                Some(before) => work.combine_in_order(Value::borrowed(before.span), Value::borrowed(own.span))?,
                None => own,
            };
            shm::scan::scan(turn, true, &combine, input.span, Span::empty()).await?;
            Ok(Some(before))
        };
        match self.job.within(&node, part).await {
            Within::Done(before) => Ok(before),
            _ => Ok(None),
        }
    }
}
