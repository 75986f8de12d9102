//! The operations that move or combine a block for each rank, and the prefix reductions, along the groups of the communicator.

use super::call::Call;
use super::comm::{Comm, PlanRef};
use super::data::{HostBlocks, HostStream};
use super::flat::whole;
use super::host::HostEndpoint;
use super::kind::Kind;
use super::operation::{Amount, UNSUPPORTED, job, needed};
use crate::algo::Stage;
use crate::algo::allgather::recursive_doubling::recursive_doubling;
use crate::algo::data::Role;
use crate::algo::scan::Scan;
use crate::endpoint::{Blocks, Error, Result, Stream, Tag};
use crate::hier::allgather::{self, Exchange};
use crate::hier::gather::Tree;
use crate::hier::reduce_scatter::{self, Halves};
use crate::hier::scan::Prefix;
use crate::hier::{Job, alltoall, gather, inside, scan, scatter};
use crate::pattern::lengths::Lengths;
use crate::select::{Facts, cost, segment_size};
use crate::shm::node::Node;
use crate::topo::{Level, LevelSpec, SWITCH_LAYERS};

/// From so many bytes on Gather and Scatter run in segments of so many.
const LONG: usize = 4 << 20;
const SEGMENT: usize = 1 << 20;
/// Most segments of Allgather under way at a time: data that go both ways over one link hold up each other's acknowledgements, the
/// more of them wait there.
const BOTH_WAYS: u8 = 4;
/// Radix of the trees of Scan.
const RADIX: u32 = 4;

/// The groups of an operation that moves blocks. Where the levels are left to the component: nodes, and with `switches` what is above
/// them. Within a node a block would be copied once more at each level.
fn plan<'c>(comm: &'c Comm, call: &Call, switches: bool, rooted: bool) -> Result<PlanRef<'c>> {
    let levels = comm.levels(call.kind);
    let root = rooted.then_some(call.root);
    let found = if levels.is_auto() {
        let above = (1..=SWITCH_LAYERS).map(Level::Switch).filter(|_| switches);
        comm.plan_for(&LevelSpec::List(std::iter::once(Level::Node).chain(above).collect()), false, root)
    } else {
        comm.plan(call.kind, false, root)
    };
    found.map_err(Error::Mpi)
}

/// No bytes of more than one block are known of a v form.
fn moved(call: &Call, segment: usize) -> Amount {
    Amount { bytes: call.bytes().unwrap_or(usize::MAX), segment, ..Amount::NONE }
}

/// Gather, Gatherv.
pub async fn gather(ep: &HostEndpoint, comm: &Comm, call: &Call, node: Option<Node<'_>>) -> Result<()> {
    let own = call.send.as_ref().map(|side| side.stream());
    let all = call.receive.as_ref().map(HostBlocks::new);
    let role = match (&all, &own) {
        (Some(all), own) => Role::Root { all, own: own.as_ref() },
        (None, Some(own)) => Role::Other { own },
        (None, None) => return Err(UNSUPPORTED),
    };
    let plan = plan(comm, call, true, true)?;
    let job = Job { node, ..job(ep, &plan, comm, moved(call, rooted_segment(call))) };
    gather::gather(&job, comm.parts(&plan), &Tree::auto, call.block(), call.root, &role).await
}

/// Scatter, Scatterv.
pub async fn scatter(ep: &HostEndpoint, comm: &Comm, call: &Call, node: Option<Node<'_>>) -> Result<()> {
    let all = call.send.as_ref().map(HostBlocks::new);
    let own = call.receive.as_ref().map(|side| side.stream());
    let role = match (&all, &own) {
        (Some(all), own) => Role::Root { all, own: own.as_ref() },
        (None, Some(own)) => Role::Other { own },
        (None, None) => return Err(UNSUPPORTED),
    };
    let plan = plan(comm, call, true, true)?;
    let job = Job { node, ..job(ep, &plan, comm, moved(call, rooted_segment(call))) };
    scatter::scatter(&job, comm.parts(&plan), &Tree::auto, call.block(), &role).await
}

/// Gather and Gatherv with a message from each rank of another node, and through the shared memory of the root's.
pub async fn gather_at_once<S: Stream, B: Blocks>(
    stage: &Stage<'_, HostEndpoint>,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    role: Role<'_, S, B>,
    posts: usize,
) -> Result<()> {
    let plan = plan(comm, call, true, true)?;
    let job = Job { node, ..job(stage.ep(), &plan, comm, moved(call, usize::MAX)) };
    inside::gather(&job, stage, call.root, role, call.block(), posts).await
}

/// Scatter and Scatterv, likewise.
pub async fn scatter_at_once<S: Stream, B: Blocks>(
    stage: &Stage<'_, HostEndpoint>,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    role: Role<'_, S, B>,
    posts: usize,
) -> Result<()> {
    let plan = plan(comm, call, true, true)?;
    let job = Job { node, ..job(stage.ep(), &plan, comm, moved(call, usize::MAX)) };
    inside::scatter(&job, stage, call.root, role, call.block(), posts).await
}

fn rooted_segment(call: &Call) -> usize {
    if call.bytes().is_some_and(|bytes| bytes >= LONG) { SEGMENT } else { usize::MAX }
}

/// Allgather, Allgatherv.
pub async fn allgather(ep: &HostEndpoint, comm: &Comm, call: &Call, node: Option<Node<'_>>) -> Result<()> {
    let own = call.send.as_ref().map(|side| side.stream());
    let all = HostBlocks::new(needed(&call.receive)?);
    let whole = whole(comm, call)?;
    let across = cost::is_across_nodes(&whole);
    // Without groups between nodes and all; who knows of the switches is the communicator's own hierarchy.
    let plan = plan(comm, call, !across, false)?;
    let own_plan = comm.plan(call.kind, false, None).map_err(Error::Mpi)?;
    let order = if across { comm.parts(&own_plan).leaders() } else { &[] };
    let bcast = &comm.config().bcast;
    let bytes = call.bytes().unwrap_or(usize::MAX);
    let segment = match across {
        true => usize::MAX,
        false => segment_size(bcast.segment_size, bytes, comm.size() as usize, plan.shape, true),
    };
    let job = job(ep, &plan, comm, moved(call, segment));
    let job = Job { node, window: job.window.min(BOTH_WAYS), ..job };
    let exchange = |facts: &Facts| if across { Exchange::RecursiveDoubling } else { Exchange::auto(facts) };
    let specs = allgather::Specs { trees: &Tree::auto, exchange: &exchange, bcast: &bcast.algorithm, order };
    allgather::allgather(&job, comm.parts(&plan), &specs, own.as_ref(), &all).await
}

/// Allgather, Allgatherv by recursive doubling, from the topmost level down where there is such an order, else in the order of `stage`.
pub async fn doubling(
    stage: &Stage<'_, HostEndpoint>,
    comm: &Comm,
    call: &Call,
    own: Option<&HostStream>,
    all: &HostBlocks<'_>,
) -> Result<()> {
    let plan = comm.plan(call.kind, false, None).map_err(Error::Mpi)?;
    if !plan.shape.even {
        return recursive_doubling(stage, own, all).await;
    }
    let tag = Tag { lane: 0, phase: 0, level: Level::Cluster.index() };
    allgather::side_by_side(stage.ep(), comm.parts(&plan), tag, own, all).await
}

/// Alltoall, Alltoallv, Alltoallw; `spread`: with a message for each pair of ranks.
pub async fn alltoall(ep: &HostEndpoint, comm: &Comm, call: &Call, node: Option<Node<'_>>, spread: bool) -> Result<()> {
    let out = call.send.as_ref().map(HostBlocks::new);
    let (out, into) = (out.as_ref(), HostBlocks::new(needed(&call.receive)?));
    let plan = plan(comm, call, false, false)?;
    let job = Job { node, ..job(ep, &plan, comm, moved(call, usize::MAX)) };
    let parts = comm.parts(&plan);
    match spread {
        true => alltoall::spread(&job, parts, call.block(), out, &into).await,
        false => alltoall::alltoall(&job, parts, &Tree::auto, call.block(), out, &into).await,
    }
}

/// The amount of an operation that combines `count` elements. User-defined operations are never cut.
fn combined(comm: &Comm, call: &Call, count: usize, plan: &PlanRef<'_>, chain: bool) -> Amount {
    let size = call.units().info.size.max(1);
    let bytes = count * size;
    let segment = match call.intrinsic {
        true => segment_size(None, bytes, comm.size() as usize, plan.shape, chain) / size,
        false => count,
    };
    Amount { bytes, segment: segment.max(1), commutative: call.commutative, divisible: call.intrinsic }
}

/// Reduce_scatter, Reduce_scatter_block.
pub async fn reduce_scatter(
    ep: &HostEndpoint,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    lengths: &Lengths,
) -> Result<()> {
    let plan = comm.plan_over(call.kind, !call.commutative, node.is_some(), None).map_err(Error::Mpi)?;
    let mine = call.operand();
    let job = Job { node, ..job(ep, &plan, comm, combined(comm, call, mine.len(), &plan, false)) };
    let reduce = &comm.config().reduce.algorithm;
    let specs = reduce_scatter::Specs { reduce, halves: &Halves::auto, trees: &Tree::auto };
    reduce_scatter::reduce_scatter(&job, comm.parts(&plan), &specs, mine, lengths, call.result()).await
}

/// Scan, Exscan.
pub async fn scan(ep: &HostEndpoint, comm: &Comm, call: &Call, node: Option<Node<'_>>) -> Result<()> {
    let kind = if call.kind == Kind::Scan { Scan::Inclusive } else { Scan::Exclusive };
    let plan = comm.plan_over(call.kind, true, node.is_some(), None).map_err(Error::Mpi)?;
    let mine = call.operand();
    let amount = Amount { commutative: false, ..combined(comm, call, mine.len(), &plan, true) };
    let job = Job { node, ..job(ep, &plan, comm, amount) };
    scan::scan(&job, &Prefix::auto, RADIX, kind, mine, call.result()).await
}
