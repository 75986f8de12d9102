// SPDX-License-Identifier: BSD-3-Clause
//! Barrier: members arrive group by group on the way up, the topmost group meets, and everybody is released
//! on the way down.

use super::{Job, Within, apart, phase};
use crate::algo::barrier::dissemination::dissemination;
use crate::algo::barrier::tree::{arrive, release};
use crate::endpoint::{Endpoint, Result};
use crate::select::{Barrier, Setting, Spec};
use crate::shm::op as shm;
use crate::topo::Group;

/// The radix of arrival and release where the parameter names dissemination, which has none.
const RADIX: u32 = 4;

/// Returns when every process of the communicator has called.
pub async fn barrier<E: Endpoint>(job: &Job<'_, E>, spec: &Spec<Barrier>) -> Result<()> {
    let mut released_from = job.groups.len();
    for (i, group) in job.groups.iter().enumerate() {
        if arrive_in_node(job, spec, group).await {
            continue;
        }
        match spec.choose(&job.facts(group, 0)) {
            Barrier::Dissemination => {
                dissemination(&job.stage(group, 0, phase::UP)).await?;
                if group.top {
                    released_from = i;
                }
            }
            Barrier::Tree(radix) => arrive(&job.stage(group, 0, phase::UP), group.leader, radix).await?,
        }
    }
    for group in job.groups[..released_from].iter().rev() {
        if release_in_node(job, spec, group).await {
            continue;
        }
        let radix = match spec.choose(&job.facts(group, 0)) {
            Barrier::Dissemination => RADIX,
            Barrier::Tree(radix) => radix,
        };
        release(&job.stage(group, 0, phase::DOWN), group.leader, radix).await?;
    }
    Ok(())
}

/// The barrier that flow control puts in front of a rooted operation, with tags of its own.
pub async fn synchronise<E: Endpoint>(job: &Job<'_, E>) -> Result<()> {
    for group in job.groups {
        if arrive_in_node(job, &Spec::AUTO, group).await {
            continue;
        }
        arrive(&job.stage(group, 0, phase::SYNC), group.leader, RADIX).await?;
    }
    for group in job.groups.iter().rev() {
        if release_in_node(job, &Spec::AUTO, group).await {
            continue;
        }
        release(&job.stage(group, 0, phase::SYNC + 1), group.leader, RADIX).await?;
    }
    Ok(())
}

/// The way up through shared memory; false: the group has none, or another algorithm.
async fn arrive_in_node<E: Endpoint>(job: &Job<'_, E>, spec: &Spec<Barrier>, group: &Group) -> bool {
    let Some(node) = job.shared(group).filter(|_| spec.is_shared_within_node()) else { return false };
    let part = apart(async {
        let Some(turn) = job.open(&node, 0, 0).await? else { return Ok(None) };
        match node.tree_of(group.leader, 0) {
            Some(tree) => shm::tree::arrive(turn, tree).await.map(Some),
            None => shm::barrier::arrive(turn, group.leader).await.map(Some),
        }
    });
    !matches!(job.within(&node, part).await, Within::Messages)
}

/// The way down, likewise.
async fn release_in_node<E: Endpoint>(job: &Job<'_, E>, spec: &Spec<Barrier>, group: &Group) -> bool {
    let Some(node) = job.shared(group).filter(|_| spec.is_shared_within_node()) else { return false };
    let part = apart(async {
        let Some(turn) = job.open(&node, 0, 0).await? else { return Ok(None) };
        match node.tree_of(group.leader, 0) {
            Some(tree) => shm::tree::release(turn, tree).await.map(Some),
            None => shm::barrier::release(turn, group.leader).await.map(Some),
        }
    });
    !matches!(job.within(&node, part).await, Within::Messages)
}
