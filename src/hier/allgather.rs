// SPDX-License-Identifier: BSD-3-Clause
//! Allgather, Allgatherv: up to the leaders below the topmost group, an allgather among its members, a
//! broadcast down.
//!
//! Leaders collect in their own receive buffer, where every block has its place by rank, so any placement
//! will do and blocks that follow each other there are not copied.
//!
//! What the leaders exchange and broadcast, which is much more than what came up to them, is cut into
//! segments where it is large, and [`lanes`] of them are under way at a time: segment s is the s-th piece of
//! what every member of the topmost group stands for, so all of them send all the time, and the broadcast of
//! one segment runs beside the exchange of others.
//!
//! Cost: at each level below the topmost one message for each member that is no leader, with the blocks of
//! the ranks below it (see [`super::gather`]); and of each segment there what a broadcast of all pieces
//! costs, in one message where there is one segment, else in one for each member of the topmost group; at the
//! topmost, what the algorithm costs whose blocks are the pieces of the ranks below each member: with h
//! members each sends and receives all but those that it has. Memory: none where blocks are one run in memory
//! (bruck: one buffer of all); else all pieces of the segments under way. Requirements: none. All ranks know
//! all lengths. Source: Kurnosov 2023 (coll/tcl); Träff: Efficient Allgather for regular SMP clusters,
//! EuroPVM/MPI 2006; segments on all levels at once are ours.

use super::bcast::down;
use super::parts::{Parts, led, split};
use super::pieces::{Piece, Pieces, cuts};
use super::rooted::{Choose, Walk, Way};
use super::{Job, lanes::lanes, phase};
use crate::algo::Stage;
use crate::algo::allgather::{
    bruck::bruck, linear::linear, neighbor_exchange::neighbor_exchange, recursive_doubling::recursive_doubling,
    ring::ring,
};
use crate::algo::data::{Block, Grouped, Members, Several, transfer};
use crate::endpoint::{Blocks, Endpoint, Rank, Result, Stream, Tag, TempBuffer};
use crate::select::{Bcast, Facts, Spec};
use crate::topo::Group;

/// Messages that a member of the topmost group has under way at a time.
const POSTS: usize = 8;
/// Up to so many bytes in all, few steps count more than few copies.
const SHORT: usize = 64 << 10;

/// How the members of the topmost group exchange what they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// [`crate::algo::allgather::linear`]
    Linear,
    /// [`crate::algo::allgather::ring`]
    Ring,
    /// [`crate::algo::allgather::neighbor_exchange`]; [`Exchange::Ring`] with an odd number of members
    NeighborExchange,
    /// [`crate::algo::allgather::recursive_doubling`]; [`Exchange::Bruck`] with another number of members
    /// than a power of two
    RecursiveDoubling,
    /// [`crate::algo::allgather::bruck`]
    Bruck,
}

impl Exchange {
    /// The built-in choice.
    pub fn auto(facts: &Facts) -> Exchange {
        match facts.members {
            0..=2 => Exchange::RecursiveDoubling,
            // Messages of one piece each, which need no handshake.
            _ if facts.segments > 1 => Exchange::Ring,
            _ if facts.bytes <= SHORT => Exchange::RecursiveDoubling,
            members if members.is_multiple_of(2) => Exchange::NeighborExchange,
            _ => Exchange::Ring,
        }
    }

    /// What stands in for it among so many members.
    fn among(self, members: usize) -> Exchange {
        match self {
            Exchange::NeighborExchange if !members.is_multiple_of(2) => Exchange::Ring,
            Exchange::RecursiveDoubling if !members.is_power_of_two() => Exchange::Bruck,
            other => other,
        }
    }
}

/// The algorithms of an allgather.
pub struct Specs<'a, F, X> {
    /// The way up.
    pub trees: &'a F,
    /// The topmost group.
    pub exchange: &'a X,
    /// The way down.
    pub bcast: &'a Spec<Bcast>,
    /// The members of the topmost group in the order of which a [`recursive_doubling`] joins first those whom
    /// a slow link is between; empty: by rank.
    pub order: &'a [Rank],
}

/// Gathers everybody's data in everybody's `into`. `own` is none where it lies there already. `job.groups`
/// are led by the lowest ranks, `job.segment` is in bytes of what a member of the topmost group stands for;
/// `parts`: of the joined kind.
pub async fn allgather<E, S, B, F, X>(
    job: &Job<'_, E>,
    parts: &Parts,
    specs: &Specs<'_, F, X>,
    own: Option<&S>,
    into: &B,
) -> Result<()>
where
    E: Endpoint,
    S: Stream,
    B: Blocks,
    F: Choose,
    X: Fn(&Facts) -> Exchange + Sync,
{
    let (ep, me, size) = (job.ep, job.ep.rank() as usize, job.ep.size() as usize);
    if job.groups.is_empty() {
        return own.map_or(Ok(()), |own| transfer(ep, own, &Block { blocks: into, member: me }));
    }
    let (below, top) = split(job);
    let (inner, last) = below.split_at(led(below));
    let len = |rank| into.len(rank);
    let up = Walk::whole(job, parts, specs.trees, Way::Up, Some(&len));
    up.lead(inner, into, own.map(|own| own as _), |group| parts.ranks(group, &up.range)).await?;
    match own {
        _ if !inner.is_empty() => {
            let members = Members::List(parts.own());
            up.follow(last, &Several { ep, blocks: into, members }).await?;
        }
        Some(own) => up.follow(last, own).await?,
        None => up.follow(last, &Block { blocks: into, member: me }).await?,
    }
    // Who leads ranks has its own block in place now.
    let own = if inner.is_empty() { own } else { None };
    let total = |part: &Vec<usize>| part.iter().map(|&rank| into.len(rank)).sum();
    let longest = parts.top().iter().map(total).max().unwrap_or(0);
    lanes(longest, job.segment, job.window, |lane, range| async move {
        let whole = range.len() == longest;
        let cuts = cuts(parts.top(), |rank| into.len(rank), &range);
        let pieces = Pieces { blocks: into, cuts: &cuts };
        let segment = Segment { job, lane, longest };
        if let Some(group) = top {
            // Where the program is wrong, less than there is a place for.
            let cut = |own: &S| cuts[me].start.min(own.len())..cuts[me].end.min(own.len());
            let own = own.map(|own| Piece { stream: own, cut: cut(own) });
            segment.meet(specs, group, parts.top(), own.as_ref(), &pieces).await?;
        }
        if whole {
            return segment.spread(specs.bcast, &pieces, Members::Circle { first: 0, count: size, size }).await;
        }
        for part in parts.top() {
            segment.spread(specs.bcast, &pieces, Members::List(part)).await?;
        }
        Ok(())
    })
    .await
}

/// Gathers everybody's data in everybody's `into` by [`recursive_doubling`], from the topmost group down:
/// what crosses it is each rank's own block, and what a node sends or receives no more than with leaders, in
/// messages of all its ranks at the same time. No rank waits for a leader.
///
/// Cost: log₂ p messages per rank. Requirements: an order in [`Parts::across`].
/// Source: Träff, Hunold: Decomposing MPI collectives for exploiting multi-lane communication, CLUSTER 2020.
pub async fn side_by_side<E: Endpoint, S: Stream, B: Blocks>(
    ep: &E,
    parts: &Parts,
    tag: Tag,
    own: Option<&S>,
    into: &B,
) -> Result<()> {
    let groups = parts.across();
    let members: Vec<Rank> = groups.iter().map(|&[rank]| rank as Rank).collect();
    let me = members.iter().position(|&rank| rank == ep.rank()).unwrap_or_default();
    recursive_doubling(&Stage::new(ep, &members, me, tag), own, &Grouped { ep, blocks: into, groups }).await
}

/// A segment on its way.
struct Segment<'j, 'a, E> {
    job: &'j Job<'a, E>,
    lane: u8,
    /// Bytes of the longest part of a member of the topmost group.
    longest: usize,
}

impl<'a, E: Endpoint> Segment<'_, 'a, E> {
    /// Across the topmost group.
    async fn meet<S: Stream, B: Blocks, F, X: Fn(&Facts) -> Exchange + Sync>(
        &self,
        specs: &Specs<'_, F, X>,
        group: &'a Group,
        parts: &[Vec<usize>],
        own: Option<&S>,
        pieces: &B,
    ) -> Result<()> {
        let (job, ep) = (self.job, self.job.ep);
        let stage = job.stage(group, self.lane, phase::TOP);
        let blocks = &Grouped { ep, blocks: pieces, groups: parts };
        match (specs.exchange)(&job.facts(group, self.longest)).among(group.members.len()) {
            Exchange::Linear => linear(&stage, own, blocks, POSTS).await,
            Exchange::Ring => ring(&stage, own, blocks).await,
            Exchange::NeighborExchange => neighbor_exchange(&stage, own, blocks).await,
            Exchange::Bruck => bruck(&stage, own, blocks).await,
            Exchange::RecursiveDoubling if specs.order.is_empty() => recursive_doubling(&stage, own, blocks).await,
            Exchange::RecursiveDoubling => {
                let place = |rank: &Rank| group.members.binary_search(rank).unwrap_or_default();
                let places: Vec<usize> = specs.order.iter().map(place).collect();
                let groups: Vec<&[usize]> = places.iter().map(|&place| &parts[place][..]).collect();
                let me = places.iter().position(|&place| place == group.me).unwrap_or_default();
                let tag = Tag { lane: self.lane, phase: phase::TOP, level: group.level.index() };
                let stage = Stage::new(ep, specs.order, me, tag);
                recursive_doubling(&stage, own, &Grouped { ep, blocks: pieces, groups: &groups }).await
            }
        }
    }

    /// Down, to all below the members of the topmost group: the pieces of `members`.
    async fn spread<B: Blocks>(&self, spec: &Spec<Bcast>, into: &B, members: Members<'_>) -> Result<()> {
        let (ep, (below, top)) = (self.job.ep, split(self.job));
        let below = Job { groups: below, ..*self.job };
        let stream = Several { ep, blocks: into, members };
        if stream.is_empty() {
            return Ok(());
        }
        if let Some(data) = stream.direct() {
            return down(&below, spec, self.lane, data, self.longest).await;
        }
        let temp = ep.temp(stream.len())?;
        if top.is_some() {
            stream.pack(0, temp.span())?;
        }
        down(&below, spec, self.lane, temp.span(), self.longest).await?;
        if top.is_none() { stream.unpack(0, temp.span()) } else { Ok(()) }
    }
}
