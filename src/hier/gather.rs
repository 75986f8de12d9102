// SPDX-License-Identifier: BSD-3-Clause
//! Gather, Gatherv: from the lowest group up. A leader collects the blocks of the ranks below it and sends
//! them on in one message, so between groups of a level there is one message for each group, whatever the
//! number of processes in it.
//!
//! The root leads every group it is in: what a group's leader sends lies in the root's buffer at once where
//! its ranks follow each other there; no rank has an extra hop. Leaders keep blocks by ascending rank
//! ([`super::parts`]), so any placement will do. Where only the root knows the lengths (Gatherv), every
//! member first tells its leader those of the ranks below it, unless that is the root.
//!
//! A large operation is cut into runs of ranks, [`lanes`](super::lanes::lanes) of which are under way at a
//! time: a segment has whole blocks, which keep their places, and bounds the memory of leaders and the
//! messages that the root has not asked for yet.
//!
//! Cost, of a segment, at each level: linear: one message for each member that is no leader and has data
//! below it, with the blocks of the ranks below it; k-nomial: as many messages, the blocks of the group's
//! member number m (from the leader) as many times as m has non-zero digits in base k; within a node that
//! shares memory none. Announcements: a message of 8 bytes per rank below for each member that is no leader,
//! where that is not the root's group; k-nomial tells totals itself (see [`crate::algo::gather::knomial`]).
//! Memory: at a leader the blocks below it. Source: Träff: Hierarchical gather/scatter algorithms with
//! graceful degradation, IPDPS 2004; Kurnosov 2023 (coll/tcl) for the levels; segments of whole blocks are
//! ours.

pub use super::rooted::{Choose, Tree};

use super::parts::Parts;
use super::rooted::{Way, rooted};
use super::{Job, Within, phase};
use crate::algo::data::{Packed, Plain, Role, announced, numbers};
use crate::algo::join;
use crate::endpoint::{Blocks, Endpoint, Rank, Result, Stream, TempBuffer};
use crate::pattern::lengths::Lengths;
use crate::shm::op as shm;
use crate::topo::Group;

/// Gathers everybody's block at `root`. `job.groups` and `parts` are those of the root; `equal`: the length
/// of all blocks, where they have the same one, which all know then. Segments (`job.segment`, in bytes) only
/// with that.
pub async fn gather<E: Endpoint, S: Stream, B: Blocks>(
    job: &Job<'_, E>,
    parts: &Parts,
    choose: &impl Choose,
    equal: Option<usize>,
    root: Rank,
    role: &Role<'_, S, B>,
) -> Result<()> {
    let told = match (equal, role) {
        (None, Role::Other { own }) => announce(job, parts, own.len(), root).await?,
        _ => Vec::new(),
    };
    rooted(job, parts, choose, Way::Up, (equal, &told), role).await
}

/// Tells the lengths of blocks up to those that the root hears from; returns those of the ranks that the
/// caller stands for.
async fn announce<E: Endpoint>(job: &Job<'_, E>, parts: &Parts, own: usize, root: Rank) -> Result<Vec<usize>> {
    let whole = 0..job.ep.size() as usize;
    let mut lens = vec![own; parts.own().len()];
    for (i, group) in job.groups.iter().enumerate() {
        let stage = job.stage(group, 0, phase::UP).second();
        if group.members[group.leader] != root
            && let Some(told) = announce_in_node(job, group, own).await?
        {
            let places = parts.places(i, &whole).into_iter().flatten();
            places.zip(told).for_each(|(&place, len)| lens[place] = len);
            continue;
        }
        if group.me != group.leader {
            if group.members[group.leader] != root {
                let message = numbers(job.ep, lens.iter().copied())?;
                stage.tell(group.leader, message.span()).await?;
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
                places.iter().zip(message.told()).for_each(|(&place, len)| lens[place] = len);
            }
        }
        result?;
    }
    Ok(lens)
}

/// The same within a node through shared memory, if the group has any: the leader gets everybody's length, in
/// the order of the members, the others nothing.
async fn announce_in_node<E: Endpoint>(job: &Job<'_, E>, group: &Group, own: usize) -> Result<Option<Vec<usize>>> {
    let Some(node) = job.shared(group) else { return Ok(None) };
    let message = numbers(job.ep, [own])?;
    let mine = Plain { ep: job.ep, span: message.span() };
    let all = announced(job.ep, group.members.len())?;
    let part = async {
        // Also after an error, as lengths are told all the same.
        let Some(turn) = node.open(0, mine.len()).await? else { return Ok(None) };
        if group.me != group.leader {
            shm::gather::send(turn, group.leader, &mine, usize::MAX).await?;
            return Ok(Some(Vec::new()));
        }
        let lengths = Lengths::equal(mine.len(), group.members.len());
        let blocks = Packed { ep: job.ep, span: all.span(), lengths: &lengths };
        shm::gather::receive(turn, Some(&mine), &blocks, usize::MAX).await?;
        Ok(Some(all.told().into_vec()))
    };
    match job.within(&node, part).await {
        Within::Done(lengths) => Ok(Some(lengths)),
        Within::Messages => Ok(None),
        Within::Failed if group.me != group.leader => Ok(Some(Vec::new())),
        // The root knows: it waits for a message if any has data.
        Within::Failed => Ok(Some((0..group.members.len()).map(|m| if m == group.me { own } else { 1 }).collect())),
    }
}
