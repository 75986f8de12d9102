//! Gather, Gatherv: from the lowest group up. A leader collects the blocks of the ranks below it and sends them on in one
//! message, so between groups of a level there is one message for each group, whatever the number of processes in it.
//!
//! The root leads every group it is in: what a group's leader sends lies in the root's buffer at once where its ranks follow
//! each other there; no rank has an extra hop. Leaders keep blocks by ascending rank ([`super::parts`]), so any placement
//! will do. Where only the root knows the lengths (Gatherv), every member first tells its leader those of the ranks below
//! it, unless that is the root.
//!
//! A large operation is cut into runs of ranks, [`lanes`] of which are under way at a time: a segment has whole blocks, which
//! keep their places, and bounds the memory of leaders and the messages that the root has not asked for yet.
//!
//! Cost, of a segment, at each level: linear: one message for each member that is no leader and has data below it, with the
//! blocks of the ranks below it; k-nomial: as many messages, the blocks of the group's member number m (from the leader) as
//! many times as m has non-zero digits in base k. Announcements: a message of 8 bytes per rank below for each member that is no
//! leader, where that is not the root's group; k-nomial tells totals itself (see [`knomial`](mod@knomial)).
//! Memory: at a leader the blocks below it.
//! Source: Träff: Hierarchical gather/scatter algorithms with graceful degradation, IPDPS 2004; Kurnosov 2023 (coll/tcl)
//! for the levels; segments of whole blocks are ours.

use super::parts::{Parts, led};
use super::{Job, lanes::lanes, phase};
use crate::algo::data::{Grouped, Packed, Plain, Role, announced, numbers};
use crate::algo::gather::{knomial, linear};
use crate::algo::join;
use crate::endpoint::{Blocks, Endpoint, Rank, Result, Span, Stream, TempBuffer};
use crate::pattern::lengths::Lengths;
use crate::select::Facts;
use crate::topo::{Group, Level};
use std::ops::Range;

/// Messages that a leader has under way at a time.
pub(super) const POSTS: usize = 16;

/// How blocks go to a group's leader, and from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// [`crate::algo::gather::linear`], [`crate::algo::scatter::linear`]
    Linear,
    /// [`crate::algo::gather::knomial`], [`crate::algo::scatter::knomial`] of this radix
    Knomial(u32),
}

impl Tree {
    /// The built-in choice. Within a node a leader takes messages faster than a tree passes them on; between many leaders, short
    /// blocks gain from few steps.
    pub fn auto(facts: &Facts) -> Tree {
        match facts.members {
            9.. if facts.level > Level::Node && facts.bytes <= 64 << 10 => Tree::Knomial(4),
            _ => Tree::Linear,
        }
    }
}

/// How the trees of an operation are chosen.
pub trait Choose: Fn(&Facts) -> Tree + Sync {}

impl<F: Fn(&Facts) -> Tree + Sync> Choose for F {}

/// Gathers everybody's block at `root`. `job.groups` and `parts` are those of the root; `equal`: the length of all blocks, where they
/// have the same one, which all know then. Segments (`job.segment`, in bytes) only with that.
pub async fn gather<E: Endpoint, S: Stream, B: Blocks>(
    job: &Job<'_, E>,
    parts: &Parts,
    choose: &impl Choose,
    equal: Option<usize>,
    root: Rank,
    role: &Role<'_, S, B>,
) -> Result<()> {
    let size = job.ep.size() as usize;
    let told = match (equal, role) {
        (None, Role::Other { own }) => announce(job, parts, own.len(), root).await?,
        _ => Vec::new(),
    };
    let own_len = |place: usize| equal.unwrap_or_else(|| told[place]);
    let len = |_| equal.unwrap_or_default();
    let known = equal.and(Some::<&Known<'_>>(&len));
    lanes(size, ranks_of(job, equal, size), job.window, |lane, range| async move {
        let up = Up { job, parts, choose, lane, range, known };
        let own = match role {
            Role::Root { all, own } => {
                return up.collect(job.groups, *all, *own, |group| parts.ranks(group, &up.range)).await;
            }
            Role::Other { own } => *own,
        };
        let (below, last) = job.groups.split_at(led(job.groups));
        if below.is_empty() {
            return match up.range.contains(&(job.ep.rank() as usize)) {
                true => up.hand_in(last, own).await,
                false => up.hand_in(last, &Plain { ep: job.ep, span: Span::empty() }).await,
            };
        }
        let inside = |(place, rank): (usize, &usize)| if up.range.contains(rank) { own_len(place) } else { 0 };
        let lengths = Lengths::each(parts.own().iter().enumerate().map(inside));
        let temp = job.ep.temp(lengths.total())?;
        let all = Packed { ep: job.ep, span: temp.span(), lengths: &lengths };
        up.collect(below, &all, Some(own), |group| parts.places(group, &up.range)).await?;
        up.hand_in(last, &Plain { ep: job.ep, span: temp.span() }).await
    })
    .await
}

/// How many ranks make a segment.
pub(super) fn ranks_of<E>(job: &Job<'_, E>, equal: Option<usize>, size: usize) -> usize {
    equal.map_or(size, |len| job.segment / len.max(1)).clamp(1, size.max(1))
}

/// The way up of the blocks of some ranks.
pub(super) struct Up<'j, 'a, E, F> {
    pub job: &'j Job<'a, E>,
    pub parts: &'j Parts,
    pub choose: &'j F,
    pub lane: u8,
    pub range: Range<usize>,
    /// The length of each rank's block, where all ranks know them.
    pub known: Option<&'j Known<'j>>,
}

impl<'a, E: Endpoint, F: Choose> Up<'_, 'a, E, F> {
    /// Collects along `groups`, which the caller leads, what `members` says: the blocks of each member of a group in `all`.
    pub async fn collect<'m, S: Stream, B: Blocks>(
        &self,
        groups: &'a [Group],
        all: &B,
        own: Option<&S>,
        members: impl Fn(usize) -> Vec<&'m [usize]>,
    ) -> Result<()> {
        let mine = self.range.contains(&(self.job.ep.rank() as usize));
        for (i, group) in groups.iter().enumerate() {
            let members = members(i);
            let grouped = Grouped { ep: self.job.ep, blocks: all, groups: &members };
            // The own block lies in `all` once the first group is done.
            let own = if i == 0 && mine { own } else { None };
            self.run(i, group, Role::Root { all: &grouped, own }).await?;
        }
        Ok(())
    }

    /// Sends `own`, the blocks below the caller, to the leader of the last of its groups, if it does not lead that.
    pub async fn hand_in<S: Stream>(&self, last: &'a [Group], own: &S) -> Result<()> {
        let Some(group) = last.first() else { return Ok(()) };
        let role: Role<'_, S, Packed<'_, E>> = Role::Other { own };
        self.run(led(self.job.groups), group, role).await
    }

    async fn run<S: Stream, B: Blocks>(&self, i: usize, group: &'a Group, role: Role<'_, S, B>) -> Result<()> {
        let stage = self.job.stage(group, self.lane, phase::UP);
        match (self.choose)(&self.job.facts(group, 1)) {
            Tree::Linear => linear::linear(&stage, group.leader, role, POSTS).await,
            Tree::Knomial(radix) => {
                let lengths = self.known.map(|len| totals(self.parts, i, &self.range, len));
                knomial::knomial(&stage, group.leader, role, lengths.as_ref(), radix).await
            }
        }
    }
}

/// The lengths of blocks by rank.
pub(super) type Known<'k> = dyn Fn(usize) -> usize + Sync + 'k;

/// The lengths of what the members of a group stand for.
pub(super) fn totals(parts: &Parts, group: usize, range: &Range<usize>, len: &Known<'_>) -> Lengths {
    Lengths::each(parts.ranks(group, range).iter().map(|part| part.iter().map(|&rank| len(rank)).sum()))
}

/// Tells the lengths of blocks up to those that the root hears from; returns those of the ranks that the caller stands for.
async fn announce<E: Endpoint>(job: &Job<'_, E>, parts: &Parts, own: usize, root: Rank) -> Result<Vec<usize>> {
    let whole = 0..job.ep.size() as usize;
    let mut lens = vec![own; parts.own().len()];
    for (i, group) in job.groups.iter().enumerate() {
        let stage = job.stage(group, 0, phase::UP).second();
        if group.me != group.leader {
            if group.members[group.leader] != root {
                let message = numbers(job.ep, lens.iter().copied())?;
                stage.send(group.leader, message.span()).await?;
            }
            break;
        }
        let mut open = Vec::with_capacity(group.members.len());
        for (member, places) in parts.places(i, &whole).into_iter().enumerate().filter(|(m, _)| *m != group.me) {
            let message = announced(job.ep, places.len())?;
            let span = message.span();
            open.push((message, places, stage.recv(member, span)));
        }
        let mut result = Ok(());
        for (message, places, post) in open {
            result = result.and(join([post]).await);
            if result.is_ok() {
                places.iter().zip(message.get()).for_each(|(&place, len)| lens[place] = len);
            }
        }
        result?;
    }
    Ok(lens)
}
