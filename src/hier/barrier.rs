//! Barrier: members arrive group by group on the way up, the topmost group meets, and everybody is released on the way down.

use super::{Job, phase};
use crate::algo::barrier::dissemination::dissemination;
use crate::algo::barrier::tree::{arrive, release};
use crate::endpoint::{Endpoint, Result};
use crate::select::{Barrier, Spec};

/// The radix of arrival and release where the parameter names dissemination, which has none.
const RADIX: u32 = 4;

/// Returns when every process of the communicator has called.
pub async fn barrier<E: Endpoint>(job: &Job<'_, E>, spec: &Spec<Barrier>) -> Result<()> {
    let mut released_from = job.groups.len();
    for (i, group) in job.groups.iter().enumerate() {
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
        arrive(&job.stage(group, 0, phase::SYNC), group.leader, RADIX).await?;
    }
    for group in job.groups.iter().rev() {
        release(&job.stage(group, 0, phase::SYNC + 1), group.leader, RADIX).await?;
    }
    Ok(())
}
