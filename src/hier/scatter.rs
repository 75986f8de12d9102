// SPDX-License-Identifier: BSD-3-Clause
//! Scatter, Scatterv: from the topmost group down. A leader gets the blocks of the ranks below it in one
//! message and hands them on, so between groups of a level there is one message for each group, whatever the
//! number of processes in it.
//!
//! The root leads every group it is in: what goes to a group leaves its buffer as it lies where the ranks
//! follow each other there; no rank has an extra hop. Leaders keep blocks by ascending rank
//! ([`super::parts`]). Where only the root knows the lengths (Scatterv), a leader first tells each member
//! that has other ranks below it the lengths of all of those.
//!
//! A large operation is cut into runs of ranks, as [`super::gather`] does.
//!
//! Cost, of a segment, at each level: linear: one message for each member that is no leader and has data
//! below it, with the blocks of the ranks below it; k-nomial: as many messages, the blocks of the group's
//! member number m (from the leader) as many times as m has non-zero digits in base k; within a node that
//! shares memory none. Announcements: a message of 8 bytes per rank below for each member that is no leader
//! and has two or more ranks below it; k-nomial tells totals itself. Memory: at a leader the blocks below it.
//! Source: Träff: Hierarchical gather/scatter algorithms with graceful degradation, IPDPS 2004; Kurnosov 2023
//! (coll/tcl) for the levels; segments of whole blocks are ours.

use super::parts::{Parts, led};
use super::rooted::{Choose, Way, rooted};
use super::{Job, phase};
use crate::algo::data::{Role, announced, numbers};
use crate::algo::{Posts, join};
use crate::endpoint::{Blocks, Endpoint, Result, Stream, TempBuffer};

/// Scatters the root's blocks. `job.groups` and `parts` are those of the root; `equal`: the length of all
/// blocks, where they have the same one, which all know then. Segments (`job.segment`, in bytes) only with
/// that.
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
    rooted(job, parts, choose, Way::Down, (equal, &told), role).await
}

/// Tells leaders the lengths of the blocks below them; returns those of the ranks that the caller stands for.
/// `lens`: the root gives all, the others their own.
async fn announce<E: Endpoint>(job: &Job<'_, E>, parts: &Parts, lens: Vec<usize>) -> Result<Vec<usize>> {
    let whole = 0..job.ep.size() as usize;
    let (below, last) = job.groups.split_at(led(job.groups));
    let mut lens = lens;
    if let Some(group) = last.first().filter(|_| !below.is_empty()) {
        let message = announced(job.ep, parts.own().len())?;
        job.stage(group, 0, phase::DOWN).second().recv(group.leader, message.span()).await?;
        lens = message.told().into_vec();
    }
    let mut messages = Vec::new();
    let mut posts: Posts<'_, E> = Posts::<E>::new();
    for (i, group) in below.iter().enumerate().rev() {
        let stage = job.stage(group, 0, phase::DOWN).second();
        for (member, places) in parts.places(i, &whole).into_iter().enumerate() {
            if member != group.me && places.len() > 1 {
                let message = numbers(job.ep, places.iter().map(|&place| lens[place]))?;
                posts.push(stage.tell(member, message.span()));
                messages.push(message);
            }
        }
    }
    join(posts).await?;
    Ok(lens)
}
