// SPDX-License-Identifier: BSD-3-Clause
//! Bcast: from the topmost group down, each level by its own algorithm; within a node through shared memory.
//!
//! The root leads every group it is in, so it starts the topmost level itself: no hop to rank 0 first.
//! Source: Kurnosov 2023 (coll/tcl); the root as leader and segments on all levels at once are ours.

use super::lanes::{lanes, segments};
use super::{Job, Within, apart, phase};
use crate::algo::bcast::{chain::chain, flat::flat, knomial::knomial, scatter_allgather::scatter_allgather};
use crate::endpoint::{Endpoint, Result, Span, Stream, TempBuffer};
use crate::select::{Bcast, Setting, Spec};
use crate::shm::op as shm;

/// Broadcasts the root's stream. Units are bytes of the packed stream; `job.groups` are led by the root.
pub async fn bcast<E: Endpoint>(
    job: &Job<'_, E>,
    spec: &Spec<Bcast>,
    stream: &impl Stream,
    is_root: bool,
) -> Result<()> {
    let total = stream.len();
    lanes(total, job.segment, job.window, |lane, range| async move {
        if let Some(data) = stream.direct() {
            return down(job, spec, lane, data.slice(range), total).await;
        }
        let temp = job.ep.temp(range.len())?;
        if is_root {
            stream.pack(range.start, temp.span())?;
        }
        down(job, spec, lane, temp.span(), total).await?;
        if !is_root {
            stream.unpack(range.start, temp.span())?;
        }
        Ok(())
    })
    .await
}

/// One segment, `data`, on its way down through all groups. `total`: units of the whole operation.
pub(super) async fn down<E: Endpoint>(
    job: &Job<'_, E>,
    spec: &Spec<Bcast>,
    lane: u8,
    data: Span,
    total: usize,
) -> Result<()> {
    for group in job.groups.iter().rev() {
        let alone = segments(total, job.segment) == 1;
        if let Some(node) = job.shared(group).filter(|_| spec.is_shared_within_node()) {
            let node = node.by_way(spec.way()).reading_if(alone);
            let part = apart(async {
                let Some(turn) = job.open(&node, lane, data.bytes().len()).await? else { return Ok(None) };
                let zero_copy = node.zero_copy().bcast;
                // What is reduced has no gaps, where there is shared memory for it.
                let data = data.bytes();
                match node.tree_from(group.leader, data.len(), zero_copy) {
                    Some(tree) => shm::tree::bcast(turn, tree, &data).await.map(Some),
                    None => shm::bcast::bcast(turn, group.leader, &data, zero_copy).await.map(Some),
                }
            });
            match job.within(&node, part).await {
                Within::Done(()) | Within::Failed => continue,
                Within::Messages => {}
            }
        }
        let stage = job.stage(group, lane, phase::DOWN);
        match spec.choose(&job.facts(group, total)) {
            Bcast::Flat => flat(&stage, group.leader, data).await?,
            Bcast::Knomial(radix) => knomial(&stage, group.leader, data, radix).await?,
            Bcast::ScatterAllgather => scatter_allgather(&stage, group.leader, data).await?,
            Bcast::Chain => chain(&stage, group.leader, data).await?,
        }
    }
    Ok(())
}
