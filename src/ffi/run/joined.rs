// SPDX-License-Identifier: BSD-3-Clause
//! The operations that move or combine a block for each rank, and the prefix reductions, along the groups of
//! the communicator.

use crate::algo::allgather::recursive_doubling::recursive_doubling;
use crate::algo::data::Role;
use crate::algo::scan::Scan;
use crate::endpoint::{Error, Rank, Result, Tag};
use crate::ffi::call::arguments::Call;
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::comm::state::Comm;
use crate::ffi::mpi::data::{HostBlocks, HostStream};
use crate::ffi::run::job::{Amount, Run, job};
use crate::ffi::run::middle::{in_the_middle, is_central};
use crate::hier::allgather::{self, Exchange};
use crate::hier::central::{self, What};
use crate::hier::gather::Tree;
use crate::hier::plans::{Along, Plan};
use crate::hier::reduce_scatter::{self, Halves};
use crate::hier::scan::Prefix;
use crate::hier::{Job, alltoall, gather, inside, scan, scatter};
use crate::pattern::lengths::Lengths;
use crate::select::{Facts, ReduceScatter, segment_size};
use crate::topo::Level;
use std::sync::Arc;

/// From so many bytes on Gather and Scatter run in segments of so many.
const LONG: usize = 4 << 20;
const SEGMENT: usize = 1 << 20;
/// Most segments of Allgather under way at a time: data that go both ways over one link hold up each other's
/// acknowledgements, the more of them wait there.
const BOTH_WAYS: u8 = 4;
/// Radix of the trees of Scan.
const RADIX: u32 = 4;

/// The caller's part in an operation with a root.
pub type HostRole<'a> = Role<'a, HostStream, HostBlocks<'a>>;

/// The groups of an operation that moves blocks. Where the levels are left to the component: nodes, and with
/// `switches` what is above them. Within a node a block would be copied once more at each level.
fn plan(run: &Run<'_>, switches: bool, root: Option<Rank>) -> Result<Arc<Plan>> {
    let kind = run.call.kind;
    let along = match run.comm.levels(kind).is_auto() {
        true if switches => Along::FromNodeUp,
        true => Along::Node,
        false => Along::All,
    };
    run.comm.plan(kind, along, false, root).map_err(Error::Mpi)
}

/// As every level sees an operation that moves blocks. No bytes of more than one block are known of a v form.
fn blocks_job<'a>(run: &Run<'a>, plan: &'a Plan, segment: usize) -> Job<'a, HostEndpoint> {
    let amount = Amount { bytes: run.call.bytes().unwrap_or(usize::MAX), segment, ..Amount::NONE };
    Job { node: run.node, ..job(run.stage.ep(), plan, run.comm, amount) }
}

/// Gather, Gatherv.
pub async fn gather(run: &Run<'_>, role: HostRole<'_>) -> Result<()> {
    let call = run.call;
    let plan = plan(run, true, Some(call.root))?;
    let job = blocks_job(run, &plan, rooted_segment(call));
    gather::gather(&job, plan.parts(), &Tree::auto, call.block(), call.root, &role).await
}

/// Scatter, Scatterv.
pub async fn scatter(run: &Run<'_>, role: HostRole<'_>) -> Result<()> {
    let call = run.call;
    let plan = plan(run, true, Some(call.root))?;
    let job = blocks_job(run, &plan, rooted_segment(call));
    scatter::scatter(&job, plan.parts(), &Tree::auto, call.block(), &role).await
}

/// Gather and Gatherv with a message from each rank of another node, and through the shared memory of the
/// root's.
pub async fn gather_at_once(run: &Run<'_>, role: HostRole<'_>, posts: usize) -> Result<()> {
    let call = run.call;
    let plan = plan(run, true, Some(call.root))?;
    let job = blocks_job(run, &plan, usize::MAX);
    inside::gather(&job, run.stage, call.root, role, call.block(), posts).await
}

/// Scatter and Scatterv, likewise.
pub async fn scatter_at_once(run: &Run<'_>, role: HostRole<'_>, posts: usize) -> Result<()> {
    let call = run.call;
    let plan = plan(run, true, Some(call.root))?;
    let job = blocks_job(run, &plan, usize::MAX);
    inside::scatter(&job, run.stage, call.root, role, call.block(), posts).await
}

fn rooted_segment(call: &Call<'_>) -> usize {
    if call.bytes().is_some_and(|bytes| bytes >= LONG) { SEGMENT } else { usize::MAX }
}

/// Allgather, Allgatherv.
pub async fn allgather(run: &Run<'_>, own: Option<&HostStream>, all: &HostBlocks<'_>) -> Result<()> {
    let &Run { comm, call, .. } = run;
    let across = call.decision.across;
    // Without groups between nodes and all; who knows of the switches is the communicator's own hierarchy.
    let plan = plan(run, !across, None)?;
    let whole = across.then(|| comm.plan(call.kind, Along::All, false, None)).transpose().map_err(Error::Mpi)?;
    let order = whole.as_ref().map_or(&[][..], |plan| plan.parts().leaders());
    let bcast = &comm.config().bcast;
    let bytes = call.bytes().unwrap_or(usize::MAX);
    let segment = match across {
        true => usize::MAX,
        false => segment_size(bcast.segment_size, bytes, comm.size() as usize, plan.shape, true),
    };
    let job = blocks_job(run, &plan, segment);
    let job = Job { window: job.window.min(BOTH_WAYS), ..job };
    let exchange = |facts: &Facts| if across { Exchange::RecursiveDoubling } else { Exchange::auto(facts) };
    let specs = allgather::Specs { trees: &Tree::auto, exchange: &exchange, bcast: &bcast.algorithm, order };
    allgather::allgather(&job, plan.parts(), &specs, own, all).await
}

/// Allgather, Allgatherv by recursive doubling, from the topmost level down where there is such an order,
/// else in the order of `stage`.
pub async fn doubling(run: &Run<'_>, own: Option<&HostStream>, all: &HostBlocks<'_>) -> Result<()> {
    let stage = run.stage;
    let plan = run.comm.plan(run.call.kind, Along::All, false, None).map_err(Error::Mpi)?;
    if !plan.shape.even {
        return recursive_doubling(stage, own, all).await;
    }
    let tag = Tag { lane: 0, phase: 0, level: Level::Cluster.index() };
    allgather::side_by_side(stage.ep(), plan.parts(), tag, own, all).await
}

/// Alltoall, Alltoallv, Alltoallw; `spread`: with a message for each pair of ranks.
pub async fn alltoall(run: &Run<'_>, out: Option<&HostBlocks<'_>>, into: &HostBlocks<'_>, spread: bool) -> Result<()> {
    let call = run.call;
    let plan = plan(run, false, None)?;
    let job = blocks_job(run, &plan, usize::MAX);
    let parts = plan.parts();
    match spread {
        true => alltoall::spread(&job, parts, call.block(), out, into).await,
        false => alltoall::alltoall(&job, parts, &Tree::auto, call.block(), out, into).await,
    }
}

/// The amount of an operation that combines `count` elements. User-defined operations are never cut.
fn combined(comm: &Comm, call: &Call<'_>, count: usize, plan: &Plan, chain: bool) -> Amount {
    let size = call.units().info.size.max(1);
    let bytes = count * size;
    let segment = match call.intrinsic {
        true => segment_size(None, bytes, comm.size() as usize, plan.shape, chain) / size,
        false => count,
    };
    Amount { bytes, segment: segment.max(1), commutative: call.given.commutative, divisible: call.intrinsic }
}

/// Reduce_scatter, Reduce_scatter_block.
pub async fn reduce_scatter(run: &Run<'_>, lengths: &Lengths) -> Result<()> {
    let &Run { comm, call, node, stage } = run;
    if is_central(comm, call, None)? {
        return at_one(run, What::ReduceScatter(ReduceScatter::Pairwise, lengths)).await;
    }
    let plan = comm.plan(call.kind, Along::over(node.is_some()), !call.given.commutative, None).map_err(Error::Mpi)?;
    let mine = call.operand();
    let job = Job { node, ..job(stage.ep(), &plan, comm, combined(comm, call, mine.len(), &plan, false)) };
    let reduce = &comm.config().reduce.algorithm;
    let specs = reduce_scatter::Specs { reduce, halves: &Halves::auto, trees: &Tree::auto };
    reduce_scatter::reduce_scatter(&job, plan.parts(), &specs, mine, lengths, call.result()).await
}

/// Reduce_scatter, Reduce_scatter_block and prefix reductions between clusters, where no groups do: by this
/// algorithm, in one process.
pub async fn at_one(run: &Run<'_>, what: What<'_>) -> Result<()> {
    let &Run { comm, call, node, stage } = run;
    let middle = central::middle(comm.place().map_err(Error::Mpi)?);
    in_the_middle(stage.ep(), comm, call, node, middle, what, call.operand(), Some(call.result())).await
}

/// Scan, Exscan.
pub async fn scan(run: &Run<'_>, ends: Scan) -> Result<()> {
    let &Run { comm, call, node, stage } = run;
    if call.decision.apart {
        return at_one(run, What::Scan(crate::select::Scan::Linear, ends)).await;
    }
    let plan = comm.plan(call.kind, Along::over(node.is_some()), true, None).map_err(Error::Mpi)?;
    let mine = call.operand();
    let amount = Amount { commutative: false, ..combined(comm, call, mine.len(), &plan, true) };
    let job = Job { node, ..job(stage.ep(), &plan, comm, amount) };
    scan::scan(&job, &Prefix::auto, RADIX, ends, mine, call.result()).await
}
