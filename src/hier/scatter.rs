//! Scatter, Scatterv: from the topmost group down. A leader gets the blocks of the ranks below it in one message and hands
//! them on, so between groups of a level there is one message for each group, whatever the number of processes in it.
//!
//! The root leads every group it is in: what goes to a group leaves its buffer as it lies where the ranks follow each other
//! there; no rank has an extra hop. Leaders keep blocks by ascending rank ([`super::parts`]). Where only the root knows the
//! lengths (Scatterv), a leader first tells each member that has other ranks below it the lengths of all of those.
//!
//! A large operation is cut into runs of ranks, as [`super::gather`] does.
//!
//! Cost, of a segment, at each level: linear: one message for each member that is no leader and has data below it, with the
//! blocks of the ranks below it; k-nomial: as many messages, the blocks of the group's member number m (from the leader) as
//! many times as m has non-zero digits in base k. Announcements: a message of 8 bytes per rank below for each member that is no
//! leader and has two or more ranks below it; k-nomial tells totals itself.
//! Memory: at a leader the blocks below it.
//! Source: Träff: Hierarchical gather/scatter algorithms with graceful degradation, IPDPS 2004; Kurnosov 2023 (coll/tcl)
//! for the levels; segments of whole blocks are ours.

use super::gather::{Choose, Known, POSTS, Tree, ranks_of, totals};
use super::parts::{Parts, led};
use super::{Job, lanes::lanes, phase};
use crate::algo::data::{Grouped, Packed, Plain, Role, announced, numbers};
use crate::algo::scatter::{knomial, linear};
use crate::algo::{Posts, join};
use crate::endpoint::{Blocks, Endpoint, Result, Span, Stream, TempBuffer};
use crate::pattern::lengths::Lengths;
use crate::topo::Group;
use std::ops::Range;

/// Scatters the root's blocks. `job.groups` and `parts` are those of the root; `equal`: the length of all blocks, where they have the
/// same one, which all know then. Segments (`job.segment`, in bytes) only with that.
pub async fn scatter<E: Endpoint, S: Stream, B: Blocks>(
    job: &Job<'_, E>,
    parts: &Parts,
    choose: &impl Choose,
    equal: Option<usize>,
    role: &Role<'_, S, B>,
) -> Result<()> {
    let size = job.ep.size() as usize;
    let told = match (equal, role) {
        (Some(_), _) => Vec::new(),
        (None, Role::Root { all, .. }) => announce(job, parts, (0..size).map(|rank| all.len(rank)).collect()).await?,
        (None, Role::Other { own }) => announce(job, parts, vec![own.len()]).await?,
    };
    let own_len = |place: usize| equal.unwrap_or_else(|| told[place]);
    let len = |_| equal.unwrap_or_default();
    let known = equal.and(Some::<&Known<'_>>(&len));
    lanes(size, ranks_of(job, equal, size), job.window, |lane, range| async move {
        let down = Down { job, parts, choose, lane, range, known };
        let own = match role {
            Role::Root { all, own } => {
                return down.hand_out(job.groups, *all, *own, |group| parts.ranks(group, &down.range)).await;
            }
            Role::Other { own } => *own,
        };
        let (below, last) = job.groups.split_at(led(job.groups));
        if below.is_empty() {
            return match down.range.contains(&(job.ep.rank() as usize)) {
                true => down.take(last, own).await,
                false => down.take(last, &Plain { ep: job.ep, span: Span::empty() }).await,
            };
        }
        let inside = |(place, rank): (usize, &usize)| if down.range.contains(rank) { own_len(place) } else { 0 };
        let lengths = Lengths::each(parts.own().iter().enumerate().map(inside));
        let temp = job.ep.temp(lengths.total())?;
        down.take(last, &Plain { ep: job.ep, span: temp.span() }).await?;
        let all = Packed { ep: job.ep, span: temp.span(), lengths: &lengths };
        down.hand_out(below, &all, Some(own), |group| parts.places(group, &down.range)).await
    })
    .await
}

/// The way down of the blocks of some ranks.
pub(super) struct Down<'j, 'a, E, F> {
    pub job: &'j Job<'a, E>,
    pub parts: &'j Parts,
    pub choose: &'j F,
    pub lane: u8,
    pub range: Range<usize>,
    /// The length of each rank's block, where all ranks know them.
    pub known: Option<&'j Known<'j>>,
}

impl<'a, E: Endpoint, F: Choose> Down<'_, 'a, E, F> {
    /// Receives `own`, the blocks below the caller, from the leader of the last of its groups, if it does not lead that.
    pub async fn take<S: Stream>(&self, last: &'a [Group], own: &S) -> Result<()> {
        let Some(group) = last.first() else { return Ok(()) };
        let role: Role<'_, S, Packed<'_, E>> = Role::Other { own };
        self.run(led(self.job.groups), group, role).await
    }

    /// Hands out along `groups`, which the caller leads, what `members` says: the blocks of each member of a group in `all`.
    pub async fn hand_out<'m, S: Stream, B: Blocks>(
        &self,
        groups: &'a [Group],
        all: &B,
        own: Option<&S>,
        members: impl Fn(usize) -> Vec<&'m [usize]>,
    ) -> Result<()> {
        let mine = self.range.contains(&(self.job.ep.rank() as usize));
        for (i, group) in groups.iter().enumerate().rev() {
            let members = members(i);
            let grouped = Grouped { ep: self.job.ep, blocks: all, groups: &members };
            // In the lowest group the own block is the caller's alone.
            let own = if i == 0 && mine { own } else { None };
            self.run(i, group, Role::Root { all: &grouped, own }).await?;
        }
        Ok(())
    }

    async fn run<S: Stream, B: Blocks>(&self, i: usize, group: &'a Group, role: Role<'_, S, B>) -> Result<()> {
        let stage = self.job.stage(group, self.lane, phase::DOWN);
        match (self.choose)(&self.job.facts(group, 1)) {
            Tree::Linear => linear::linear(&stage, group.leader, role, POSTS).await,
            Tree::Knomial(radix) => {
                let lengths = self.known.map(|len| totals(self.parts, i, &self.range, len));
                knomial::knomial(&stage, group.leader, role, lengths.as_ref(), radix).await
            }
        }
    }
}

/// Tells leaders the lengths of the blocks below them; returns those of the ranks that the caller stands for. `lens`: the root gives
/// all, the others their own.
async fn announce<E: Endpoint>(job: &Job<'_, E>, parts: &Parts, lens: Vec<usize>) -> Result<Vec<usize>> {
    let whole = 0..job.ep.size() as usize;
    let (below, last) = job.groups.split_at(led(job.groups));
    let mut lens = lens;
    if let Some(group) = last.first().filter(|_| !below.is_empty()) {
        let message = announced(job.ep, parts.own().len())?;
        job.stage(group, 0, phase::DOWN).second().recv(group.leader, message.span()).await?;
        lens = message.get().into_vec();
    }
    let mut messages = Vec::new();
    let mut posts: Posts<'_, E> = Posts::<E>::new();
    for (i, group) in below.iter().enumerate().rev() {
        let stage = job.stage(group, 0, phase::DOWN).second();
        for (member, places) in parts.places(i, &whole).into_iter().enumerate() {
            if member != group.me && places.len() > 1 {
                let message = numbers(job.ep, places.iter().map(|&place| lens[place]))?;
                posts.push(stage.send(member, message.span()));
                messages.push(message);
            }
        }
    }
    join(posts).await?;
    Ok(lens)
}
