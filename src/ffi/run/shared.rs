// SPDX-License-Identifier: BSD-3-Clause
//! Operations through the shared memory of a communicator's team.
//!
//! Whether an operation goes this way is decided by what all ranks know: the communicator, the operation, the
//! parameters, and whether there is a team. Ranks may well come by different doors: `ffi::entry::quick`
//! serves calls on plain data, [`run`] all others.

use crate::endpoint::{Result, Span};
use crate::ffi::base::apart::apart;
use crate::ffi::base::error::UNSUPPORTED;
use crate::ffi::base::kind::Kind;
use crate::ffi::call::arguments::Call;
use crate::ffi::call::eligible::needs_queue;
use crate::ffi::call::packed::{Packed, is_packed};
use crate::ffi::call::staged::{Staged, elements_of};
use crate::ffi::comm::slot::Slot;
use crate::ffi::comm::state::Comm;
use crate::ffi::comm::team;
use crate::ffi::process::pool;
use crate::ffi::run::{decisions, moves, neighbor, trees};
use crate::shm::exec::node::Node;
use crate::shm::memory::layout::LINE;
use crate::shm::op::tree::Tree;
use crate::shm::op::{self, Combine};
use crate::shm::policy::{Groups, Way};
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::Turn;
use crate::shm::thresholds::Thresholds;
use std::sync::Arc;

/// The part of an eligible call's operation that happens on this node, which is one of several; it lasts
/// until the operation ends.
pub struct Part<'c> {
    team: &'c Team,
    slot: usize,
    zero_copy: Thresholds,
    elements: Option<Staged<'c>>,
    tree: Option<Arc<Tree>>,
    named: Option<Way>,
    _turn: Option<team::Turn<'c>>,
}

impl Part<'_> {
    /// For the composition of levels.
    pub fn node(&self) -> Node<'_> {
        let combine = self.elements.as_ref().map(|elements| elements as &dyn Combine);
        Node::new(self.team, self.slot, self.zero_copy, combine).along(self.tree.as_deref()).by_way(self.named)
    }

    /// The operation has failed here: nobody on the node must wait for it.
    pub fn fail(&self) {
        self.team.fail();
    }
}

/// The part of an eligible call on this node, where there is shared memory for it: on all ranks of the node
/// or none.
pub async fn part<'c>(comm: &'c Comm, call: &'c Call<'c>, slot: Slot) -> Result<Option<Part<'c>>> {
    let turn = match slot {
        Slot::Nonblocking { number, .. } => Some(comm.team.turn(number).await),
        _ => None,
    };
    let elements = (!call.op.is_null()).then(|| Staged::of(call, false));
    let team = comm.team.team(comm, slot.is_blocking()).await?;
    Ok(team.map(|team| Part {
        team,
        slot: slot.number(),
        zero_copy: *team.thresholds(slot.late(), slot.is_blocking()),
        elements,
        tree: trees::tree(comm, call, team),
        named: comm.config().algorithm(call.kind).way(),
        _turn: turn,
    }))
}

/// How an eligible call has gone.
pub enum Answer {
    /// It is done.
    Done,
    /// There is no shared memory for it, on any rank. It synchronises first, for flow control, or not.
    Refused { synchronise: bool },
}

/// Does an eligible call, if there is shared memory for it.
pub async fn run(comm: &Comm, call: &Call<'_>, slot: Slot) -> Result<Answer> {
    let _turn = match slot {
        Slot::Nonblocking { number, .. } => Some(comm.team.turn(number).await),
        _ => None,
    };
    if let Some(turn) = open(comm, call, slot).await? {
        let thresholds = *turn.team().thresholds(slot.late(), slot.is_blocking());
        let tree = if is_packed(call) { None } else { trees::tree(comm, call, turn.team()) };
        let groups = tree.as_ref().map_or(Groups::None, |tree| tree.groups());
        decisions::within_node(comm, call, &turn, &thresholds, groups);
        if turn.named().is_some() {
            decisions::count_short(call, &turn, &thresholds, groups);
        }
        let left = match tree {
            Some(tree) => apart(|| trees::perform(&tree, call, turn, slot.number(), thresholds)).await?,
            None => Some(turn),
        };
        if let Some(turn) = left {
            perform(comm, call, turn, thresholds).await?;
        }
        return Ok(Answer::Done);
    }
    let synchronise = call.one_way && comm.team.refuse(slot, comm.config().flow_limit);
    Ok(Answer::Refused { synchronise })
}

/// The next operation on the slot's stream; `None`: on no rank.
async fn open<'c>(comm: &'c Comm, call: &Call<'_>, slot: Slot) -> Result<Option<Turn<'c>>> {
    let Some(team) = comm.team.team(comm, slot.is_blocking()).await? else { return Ok(None) };
    if comm.team.is_settled() {
        comm.open_quickly();
    }
    let packed = is_packed(call);
    if !call.op.is_null() && !packed && !team.fits(call.units().info.extent as usize) {
        return Ok(None);
    }
    let len = match call.kind {
        Kind::Gather | Kind::Scatter | Kind::Allgather | Kind::Alltoall => call.block(),
        _ => call.bytes(),
    };
    let turn = team.open(slot.number(), 0, needs_queue(call.kind, len, team)).await?;
    if turn.is_none() {
        pool::tell_refusal();
    }
    // Packed operands are not cut, whatever way a parameter names.
    let named = if packed { None } else { comm.config().algorithm(call.kind).way() };
    Ok(turn.map(|turn| turn.by_way(named)))
}

async fn perform(comm: &Comm, call: &Call<'_>, turn: Turn<'_>, zero_copy: Thresholds) -> Result<()> {
    match call.kind {
        Kind::Barrier => apart(|| op::barrier::barrier(turn)),
        Kind::Bcast => apart(|| moves::bcast(turn, call, zero_copy.bcast)),
        Kind::Gather | Kind::Gatherv => apart(|| moves::gather(turn, call, zero_copy.gather)),
        Kind::Scatter | Kind::Scatterv => apart(|| moves::scatter(turn, call, zero_copy.scatter)),
        Kind::Allgather | Kind::Allgatherv => apart(|| moves::allgather(turn, call, zero_copy.allgather)),
        Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw => apart(|| moves::alltoall(turn, call, zero_copy.alltoall)),
        kind if kind.is_neighbor() => apart(|| neighbor::within_node(turn, comm, call, &zero_copy)),
        _ => apart(|| reduce(call, turn, zero_copy)),
    }
    .await
}

/// As [`perform`], of the reductions.
async fn reduce(call: &Call<'_>, turn: Turn<'_>, zero_copy: Thresholds) -> Result<()> {
    if is_packed(call) {
        return apart(|| reduce_packed(call, turn, zero_copy)).await;
    }
    let data = (call.operand(), call.result());
    let Some(staging) = &call.staging else { return combine(call, turn, zero_copy, &elements_of(call), data).await };
    let longest = turn.team().config().whole as usize;
    if turn.is_still() || call.units().bytes(call.operand().len()) <= longest.max(LINE) {
        staging.needs_all()?; // it may go in a single step
    }
    let staged = Staged::of(call, true);
    apart(|| async move { combine(call, turn, zero_copy, &(&staged as &dyn Combine), data).await }).await
}

/// As [`reduce`], of packed operands.
async fn reduce_packed(call: &Call<'_>, turn: Turn<'_>, zero_copy: Thresholds) -> Result<()> {
    if let Some(staging) = &call.staging {
        staging.needs_all()?;
    }
    let packed = Packed::of(call);
    let (operand, result) = (call.operand(), call.result());
    let mut room = if packed.tiles() { Vec::new() } else { packed.room() };
    let start = if packed.tiles() { operand.ptr() } else { room.as_mut_ptr().cast() };
    if !packed.tiles() {
        // SAFETY: the room is for the operand.
        unsafe { packed.pack(operand.ptr(), start) };
        // A turn that is dropped tells the others.
        packed.ended()?;
    }
    // SAFETY: the operand lies in the room, or in the user's buffer: see `Call::new`.
    let input = unsafe { packed.span(start) };
    // Only its address counts, and only where there is a result.
    // SAFETY: no bytes.
    let output = unsafe { Span::new(result.ptr(), 0, 1) };
    combine(call, turn, zero_copy, &(&packed as &dyn Combine), (input, output)).await?;
    packed.ended()
}

/// The same, by a reduction operation on elements: of an operand, to a result.
async fn combine<C: Combine>(
    call: &Call<'_>,
    turn: Turn<'_>,
    zero_copy: Thresholds,
    elements: &C,
    (input, output): (Span, Span),
) -> Result<()> {
    match call.kind {
        Kind::Reduce => apart(|| op::reduce::reduce(turn, call.root as usize, elements, input, output)),
        Kind::Allreduce => apart(|| op::allreduce::allreduce(turn, elements, input, output, zero_copy.allreduce)),
        Kind::Scan => apart(|| op::scan::scan(turn, false, elements, input, output)),
        Kind::Exscan => apart(|| op::scan::scan(turn, true, elements, input, output)),
        Kind::ReduceScatter | Kind::ReduceScatterBlock => {
            let counts = |member| call.part(member);
            apart(|| op::reduce_scatter::reduce_scatter(turn, elements, input, counts, output))
        }
        _ => return Err(UNSUPPORTED),
    }
    .await
}
