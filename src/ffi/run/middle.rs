// SPDX-License-Identifier: BSD-3-Clause
//! Reductions between clusters that go through one process ([`crate::hier::central`]).

use crate::endpoint::{Error, Rank, Result, Span};
use crate::ffi::call::arguments::Call;
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::comm::state::Comm;
use crate::ffi::run::decisions;
use crate::ffi::run::job::{Amount, job};
use crate::hier::Job;
use crate::hier::central::{self, What};
use crate::hier::plans::Along;
use crate::shm::exec::node::Node;

/// Whether a reduction goes through one process, as between clusters it may have to.
pub fn is_central(comm: &Comm, call: &Call<'_>, root: Option<Rank>) -> Result<bool> {
    if !call.decision.apart {
        return Ok(false);
    }
    let ordered = !call.given.commutative;
    let joined = comm.plan(call.kind, Along::All, ordered, root).map_err(Error::Mpi)?.shape.joined;
    let place = comm.place().map_err(Error::Mpi)?;
    Ok(central::is_due(place, joined, ordered, comm.config().reproducible, root))
}

/// A reduction through one process.
#[allow(clippy::too_many_arguments)] // they are what it combines
pub async fn in_the_middle(
    ep: &HostEndpoint,
    comm: &Comm,
    call: &Call<'_>,
    node: Option<Node<'_>>,
    middle: Rank,
    what: What<'_>,
    mine: Span,
    target: Option<Span>,
) -> Result<()> {
    let plan = comm.plan(call.kind, Along::over(node.is_some()), false, Some(middle)).map_err(Error::Mpi)?;
    let bytes = call.units().bytes(mine.len());
    let amount = Amount { bytes, segment: usize::MAX, commutative: false, divisible: call.intrinsic };
    let job = Job { node, ..job(ep, &plan, comm, amount) };
    if decisions::is_due(call) {
        decisions::by_level(comm, call, &format!("gathered by rank {middle}, which combines"));
    }
    central::central(&job, plan.parts(), middle, what, mine, target).await
}
