// SPDX-License-Identifier: BSD-3-Clause
//! The trees along which the processes of a node work in shared memory, where the levels say so.

use crate::endpoint::{Error, Rank, Result};
use crate::ffi::base::kind::Kind;
use crate::ffi::call::arguments::{Call, needed};
use crate::ffi::call::staged::Staged;
use crate::ffi::comm::state::Comm;
use crate::ffi::comm::trees::goes_unasked;
use crate::hier;
use crate::shm::op::Combine;
use crate::shm::op::tree::{self, Tree};
use crate::shm::policy::Way;
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::Turn;
use crate::shm::thresholds::Thresholds;
use crate::topo::TreeLevels;
use std::sync::Arc;

/// The caller's place in the tree of a call on its node, if that goes along one; led by the root, if that is
/// there.
pub fn tree(comm: &Comm, call: &Call<'_>, team: &Team) -> Option<Arc<Tree>> {
    let levels = comm.tree_levels(call.kind)?;
    let named = comm.config().algorithm(call.kind).way() == Some(Way::Tree);
    if levels.unasked && !named && !goes_unasked(call.kind, team) {
        return None;
    }
    let root = matches!(call.kind, Kind::Bcast | Kind::Reduce).then_some(call.root);
    // In a group operands are combined in the order of its members: that must be the order of all.
    let ordered = matches!(call.kind, Kind::Reduce | Kind::Allreduce) && !call.given.commutative;
    comm.trees().latest(call.kind, root, ordered, || make(comm, levels, root, ordered))
}

fn make(comm: &Comm, levels: &TreeLevels, root: Option<Rank>, ordered: bool) -> Option<Tree> {
    let plan = comm.plan_for(&levels.levels, ordered, root).ok()?;
    let place = comm.place().ok()?;
    let local: Vec<Rank> = place.local().iter().map(|&(rank, _)| rank).collect();
    let is_here = |rank: &Rank| local.binary_search(rank).is_ok();
    // Else the leader of the cluster leads what it is in, where there are several.
    let leader = place.clusters().map(|clusters| clusters.leader(comm.rank()));
    let chief = root.filter(is_here).or(leader.filter(is_here));
    hier::tree::tree(&plan.groups, &local, chief)
        .map(|tree| if levels.unasked { tree.unasked(local.len()) } else { tree })
}

/// Does a call on a communicator of one node along its tree, if it is not too long for that; else gives
/// `turn` back.
pub async fn perform<'t>(
    tree: &Tree,
    call: &Call<'_>,
    turn: Turn<'t>,
    slot: usize,
    thresholds: Thresholds,
) -> Result<Option<Turn<'t>>> {
    let (team, named) = (turn.team(), turn.named());
    let bytes = call.bytes().unwrap_or_default();
    match call.kind {
        Kind::Barrier if tree::suits_barrier(team, tree, named) => tree::barrier(turn, tree).await?,
        Kind::Bcast if tree::suits_bcast(team, tree, bytes, thresholds.bcast, named) => {
            tree::bcast(turn, tree, &needed(&call.receive)?.stream()).await?;
        }
        Kind::Reduce | Kind::Allreduce if tree::suits_reduction(team, tree, call.kind.of_ways(), bytes, named) => {
            let elements = Staged::of(call, true);
            let result = call.result();
            tree::reduce(turn, tree, &(&elements as &dyn Combine), call.operand(), result).await?;
            if call.kind == Kind::Allreduce {
                // It is open: this is the second operation of as many bytes.
                let turn = team.open(slot, 0, bytes > crate::shm::memory::layout::LINE).await?.ok_or(Error::Peer)?;
                tree::bcast_result(turn, tree, &result.bytes()).await?;
            }
        }
        _ => return Ok(Some(turn)),
    }
    Ok(None)
}
