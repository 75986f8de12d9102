//! Allgather, Allgatherv: up to the leaders below the topmost group, an allgather among its members, a broadcast down.
//!
//! Leaders collect in their own receive buffer, where every block has its place by rank, so any placement will do and blocks that
//! follow each other there are not copied. The broadcast goes through all lower levels at once, in segments.
//!
//! Cost, at each level below the topmost: one message for each member that is no leader, with the blocks of the ranks below it
//! (see [`super::gather`]), and what a broadcast of all blocks costs; at the topmost, what the algorithm costs whose blocks are
//! those of the ranks below each member: with h members each sends and receives all blocks but those that it has.
//! Memory: none where blocks are one run in memory (bruck: one buffer of all); else all blocks once for each segment under way.
//! Requirements: none. All ranks know all lengths.
//! Source: Kurnosov 2023 (coll/tcl); Träff: Efficient Allgather for regular SMP clusters, EuroPVM/MPI 2006.

use super::bcast::bcast;
use super::gather::{Choose, Up};
use super::parts::{Parts, led, split};
use super::{Job, phase};
use crate::algo::allgather::{
    bruck::bruck, linear::linear, neighbor_exchange::neighbor_exchange, recursive_doubling::recursive_doubling,
    ring::ring,
};
use crate::algo::data::{Block, Grouped, Members, Several, transfer};
use crate::endpoint::{Blocks, Endpoint, Result, Stream};
use crate::select::{Bcast, Facts, Spec};

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
    /// [`crate::algo::allgather::recursive_doubling`]; [`Exchange::Bruck`] with another number of members than a power of two
    RecursiveDoubling,
    /// [`crate::algo::allgather::bruck`]
    Bruck,
}

impl Exchange {
    /// The built-in choice.
    pub fn auto(facts: &Facts) -> Exchange {
        match facts.members {
            0..=2 => Exchange::RecursiveDoubling,
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
}

/// Gathers everybody's data in everybody's `into`. `own` is none where it lies there already. `job.groups` are led by the lowest ranks,
/// `job.segment` is that of the way down, in bytes; `parts`: of the joined kind.
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
    let (below, top) = split(job);
    let (inner, last) = below.split_at(led(below));
    if job.groups.is_empty() {
        return own.map_or(Ok(()), |own| transfer(ep, own, &Block { blocks: into, member: me }));
    }
    let len = |rank| into.len(rank);
    let up = Up { job, parts, choose: specs.trees, lane: 0, range: 0..size, known: Some(&len) };
    up.collect(inner, into, own, |group| parts.ranks(group, &up.range)).await?;
    match own {
        _ if !inner.is_empty() => {
            let members = Members::List(parts.own());
            up.hand_in(last, &Several { ep, blocks: into, members }).await?;
        }
        Some(own) => up.hand_in(last, own).await?,
        None => up.hand_in(last, &Block { blocks: into, member: me }).await?,
    }
    if let Some(group) = top {
        let stage = job.stage(group, 0, phase::TOP);
        let blocks = Grouped { ep, blocks: into, groups: parts.top() };
        let own = if inner.is_empty() { own } else { None };
        match (specs.exchange)(&job.facts(group, 1)).among(group.members.len()) {
            Exchange::Linear => linear(&stage, own, &blocks, POSTS).await?,
            Exchange::Ring => ring(&stage, own, &blocks).await?,
            Exchange::NeighborExchange => neighbor_exchange(&stage, own, &blocks).await?,
            Exchange::RecursiveDoubling => recursive_doubling(&stage, own, &blocks).await?,
            Exchange::Bruck => bruck(&stage, own, &blocks).await?,
        }
    }
    let all = Several { ep, blocks: into, members: Members::Circle { first: 0, count: size, size } };
    bcast(&Job { groups: below, ..*job }, specs.bcast, &all, top.is_some()).await
}
