// SPDX-License-Identifier: BSD-3-Clause
//! Reductions of several clusters whose ranks must be combined in an order along which no groups lie: all
//! vectors come to one process, which runs the algorithm for all ranks ([`super::local`]), and what each gets
//! goes out again.
//!
//! That is so where an operation does not commute and the clusters are not runs of consecutive ranks, or the
//! root may not have messages with other clusters; for prefix reductions; and in reproducible mode, where the
//! algorithm is the one that would run over all ranks, so that results have the same bits.
//!
//! Cost, of n units: up, at each level one message for each member that is no leader, with the vectors of all
//! ranks below it; down the same with what they get, or a broadcast. Between clusters one message per other
//! cluster and way. Memory: the process in the middle p · n units, twice that for prefixes, at most
//! [`AT_ONCE`] bytes at a time where vectors may be cut. Requirements: none; order is kept.

use super::bcast::down;
use super::gather::Tree;
use super::parts::{Parts, led};
use super::rooted::{Walk, Way, rooted};
use super::{Job, local};
use crate::algo::Stage;
use crate::algo::data::{Packed, Plain, Role};
use crate::algo::reduce::knomial::knomial;
use crate::algo::reduce::{Value, Work};
use crate::algo::reduce_scatter::{
    pairwise::pairwise, recursive_halving::recursive_halving, reduce_scatterv::reduce_scatterv, ring::ring,
};
use crate::algo::scan::{Scan as Ends, linear, recursive_doubling};
use crate::endpoint::{Endpoint, Rank, Result, Span, Tag, TempBuffer};
use crate::pattern::lengths::Lengths;
use crate::select::{Bcast, ReduceScatter, Scan, Spec};
use crate::topo::{Level, Placement};

/// Bytes of all vectors together that are gathered at a time, where they may be cut.
pub const AT_ONCE: usize = 16 << 20;

/// Whether a reduction goes this way. `ordered`: whether ranks must be combined in their order.
pub fn is_due(place: &Placement, joined: bool, ordered: bool, reproducible: bool, root: Option<Rank>) -> bool {
    let Some(clusters) = place.clusters() else { return false };
    reproducible || (ordered && (!joined || root.is_some_and(|root| !clusters.may_cross(root))))
}

/// The process in the middle of operations without a root. The same on all ranks.
pub fn middle(place: &Placement) -> Rank {
    place.clusters().map_or(0, |clusters| clusters.leader(0))
}

/// What is computed.
#[derive(Clone, Copy, Debug)]
pub enum What<'w> {
    /// The combination, for the process in the middle.
    Reduce,
    /// The same for all, who get it by this broadcast.
    Allreduce(&'w Spec<Bcast>),
    /// A block of it, of these lengths, for each.
    ReduceScatter(ReduceScatter, &'w Lengths),
    /// What comes before each.
    Scan(Scan, Ends),
}

/// Combines everybody's `mine` at `middle`, whose groups and `parts` those of the job are. In place, `target`
/// is `mine`, or lies at its beginning.
pub async fn central<E: Endpoint>(
    job: &Job<'_, E>,
    parts: &Parts,
    middle: Rank,
    what: What<'_>,
    mine: Span,
    target: Option<Span>,
) -> Result<()> {
    let (size, units) = (job.ep.size() as usize, mine.len());
    let whole = !job.divisible || matches!(what, What::ReduceScatter(..));
    let each = (job.bytes / units.max(1)).max(1).saturating_mul(size);
    let step = if whole { units } else { AT_ONCE / each }.max(1);
    let job = Job { segment: usize::MAX, ..*job };
    for start in (0..units).step_by(step) {
        let range = start..units.min(start.saturating_add(step));
        let cut = |span: Span| if matches!(what, What::ReduceScatter(..)) { span } else { span.slice(range.clone()) };
        segment(&job, parts, middle, what, cut(mine), target.map(cut)).await?;
    }
    Ok(())
}

async fn segment<E: Endpoint>(
    job: &Job<'_, E>,
    parts: &Parts,
    middle: Rank,
    what: What<'_>,
    mine: Span,
    target: Option<Span>,
) -> Result<()> {
    let (ep, size, units) = (job.ep, job.ep.size() as usize, mine.len());
    let own = Plain { ep, span: mine };
    let is_middle = ep.rank() == middle;
    let given = Lengths::equal(units, size);
    let taken = what.taken(units, size);
    let (all, results) = match is_middle {
        true => (Some(ep.temp(given.total())?), Some(ep.temp(taken.total())?)),
        false => (None, None),
    };
    let (all, results) = (all.as_ref().map(TempBuffer::span), results.as_ref().map(TempBuffer::span));
    if let Some(span) = all {
        let role = Role::Root { all: &Packed { ep, span, lengths: &given }, own: Some(&own) };
        rooted(job, parts, &Tree::auto, Way::Up, (Some(units), &[]), &role).await?;
    } else {
        let role: Role<'_, Plain<'_, E>, Packed<'_, E>> = Role::Other { own: &own };
        rooted(job, parts, &Tree::auto, Way::Up, (Some(units), &[]), &role).await?;
    }
    if let (Some(all), Some(results)) = (all, results) {
        play(ep, middle, what, (all, &given), (results, &taken))?;
    }
    let target = target.unwrap_or(Span::empty());
    if let What::Reduce | What::Allreduce(_) = what {
        if let Some(results) = results {
            ep.copy(results, target);
        }
        if let What::Allreduce(spec) = what {
            down(job, spec, 0, target, units).await?;
        }
    } else {
        let own = Plain { ep, span: if taken.len(ep.rank() as usize) == 0 { Span::empty() } else { target } };
        hand_out(job, parts, results, &taken, &own).await?;
    }
    ep.made(target);
    Ok(())
}

/// The way down: of `results` in the middle each gets its part, of a length that all know.
async fn hand_out<E: Endpoint>(
    job: &Job<'_, E>,
    parts: &Parts,
    results: Option<Span>,
    taken: &Lengths,
    own: &Plain<'_, E>,
) -> Result<()> {
    let ep = job.ep;
    let len = |rank: usize| taken.len(rank);
    let walk = Walk::whole(job, parts, &Tree::auto, Way::Down, Some(&len));
    if let Some(span) = results {
        let all = Packed { ep, span, lengths: taken };
        return walk.lead(job.groups, &all, Some(own), |group| parts.ranks(group, &walk.range)).await;
    }
    let (below, last) = job.groups.split_at(led(job.groups));
    if below.is_empty() {
        return walk.follow(last, own).await;
    }
    let lengths = Lengths::each(parts.own().iter().map(|&rank| taken.len(rank)));
    let temp = ep.temp(lengths.total())?;
    walk.follow(last, &Plain { ep, span: temp.span() }).await?;
    let all = Packed { ep, span: temp.span(), lengths: &lengths };
    walk.lead(below, &all, Some(own), |group| parts.places(group, &walk.range)).await
}

impl What<'_> {
    /// The lengths of what the ranks get from the process in the middle: in one vector where it is for all.
    fn taken(&self, units: usize, size: usize) -> Lengths {
        match self {
            What::Reduce | What::Allreduce(_) => Lengths::equal(units, 1),
            What::ReduceScatter(_, lengths) => (*lengths).clone(),
            What::Scan(_, Ends::Inclusive) => Lengths::equal(units, size),
            // The first one gets nothing.
            What::Scan(_, Ends::Exclusive) => Lengths::each((0..size).map(|rank| if rank == 0 { 0 } else { units })),
        }
    }
}

/// Runs the algorithm for all ranks: from the vectors in `all` to what they get, in `results`.
fn play<E: Endpoint>(
    ep: &E,
    middle: Rank,
    what: What<'_>,
    (all, given): (Span, &Lengths),
    (results, taken): (Span, &Lengths),
) -> Result<()> {
    let local = local::Local::new(ep);
    let ranks: Vec<Rank> = (0..ep.size()).collect();
    let players: Vec<_> = ranks.iter().map(|&rank| local.rank(rank)).collect();
    let tag = Tag { lane: 0, phase: 0, level: Level::Node.index() };
    let mut futures: Vec<local::Run<'_>> = Vec::with_capacity(players.len());
    for (me, player) in players.iter().enumerate() {
        let stage = Stage::new(player, &ranks, me, tag);
        let mine = all.slice(given.get(me));
        let target = match what {
            What::Reduce | What::Allreduce(_) => results,
            _ => results.slice(taken.get(me)),
        };
        futures.push(Box::pin(rank(stage, middle as usize, what, mine, target)));
    }
    local::run(futures)
}

/// One rank of the algorithm.
async fn rank<E: Endpoint>(stage: Stage<'_, E>, middle: usize, what: What<'_>, mine: Span, target: Span) -> Result<()> {
    match what {
        What::Reduce | What::Allreduce(_) => {
            let mut work = Work::new(stage.ep(), mine.len(), false, None);
            if let Some(sum) = knomial(&stage, middle, Value::owned(mine), &mut work, 2).await? {
                stage.ep().copy(sum.span, target);
            }
            Ok(())
        }
        What::ReduceScatter(algorithm, lengths) => match algorithm {
            ReduceScatter::Pairwise | ReduceScatter::Hierarchical => pairwise(&stage, mine, lengths, target).await,
            ReduceScatter::ReduceScatterv(radix) => reduce_scatterv(&stage, mine, lengths, target, radix).await,
            ReduceScatter::RecursiveHalving => recursive_halving(&stage, mine, lengths, target).await,
            ReduceScatter::Ring => ring(&stage, mine, lengths, target).await,
        },
        What::Scan(Scan::Linear | Scan::Hierarchical, ends) => linear::linear(&stage, ends, mine, target).await,
        What::Scan(Scan::RecursiveDoubling, ends) => {
            recursive_doubling::recursive_doubling(&stage, ends, mine, target).await
        }
    }
}
