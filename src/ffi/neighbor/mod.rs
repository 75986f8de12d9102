//! Neighbourhood operations: the exchange along the edges of a communicator's process topology.

mod agreement;
pub mod quick;
mod topology;

pub use topology::Neighborhood;

use super::apart::apart;
use super::blocking;
use super::call::Call;
use super::comm::Comm;
use super::data::{HostBlocks, Side};
use super::host::HostEndpoint;
use super::kind::Kind;
use super::operation::{self, UNSUPPORTED};
use crate::algo::neighbor::{aggregated::aggregated, direct::direct, with_same};
use crate::endpoint::{Blocks, Result, Stream};
use crate::hier;
use crate::pattern::bundles::Bundles;
use crate::pattern::neighborhood::Neighbors;
use crate::select::{Choice, Neighbor};
use crate::shm::node::Node;
use crate::shm::op;
use crate::shm::thresholds::Thresholds;
use crate::shm::turn::Turn;
use std::pin::pin;
use topology::Among;

/// No data, of a rank without neighbours.
static NOTHING: Side = Side::NOTHING;

/// What a call sends and receives.
fn sides(call: &Call) -> (&Side, &Side) {
    (call.send.as_ref().unwrap_or(&NOTHING), call.receive.as_ref().unwrap_or(&NOTHING))
}

/// Whether every neighbour gets the same.
fn is_same(kind: Kind) -> bool {
    matches!(kind, Kind::NeighborAllgather | Kind::NeighborAllgatherv)
}

/// Bytes of each block, where both ends of every edge are sure to find the same: on grids, whose edges go
/// both ways, and where every rank has some, so that with the larger one of what a rank sends and what it
/// receives it does not matter if the two differ. The same on all ranks.
pub fn block(kind: Kind, around: Option<&Neighborhood>, sides: [&Option<Side>; 2]) -> Option<usize> {
    let len = |side: &Side| side.dtype().bytes(side.count());
    (has_equal_blocks(kind) && around?.is_grid()).then(|| sides.into_iter().flatten().map(len).max().unwrap_or(0))
}

/// Whether each edge has as much data as any other edge of the same rank.
pub fn has_equal_blocks(kind: Kind) -> bool {
    matches!(kind, Kind::NeighborAllgather | Kind::NeighborAlltoall)
}

/// Whether all ranks are sure to make a blocking call that this one makes. Open MPI's bindings return from
/// Neighbor_allgather and Neighbor_alltoall at once at ranks that describe no data: that all have the same
/// amount follows from the edges, as far as ranks hang together by them. The same on all ranks that make the
/// call; the first time, it takes messages.
pub fn is_made_by_all(comm: &Comm, kind: Kind) -> std::result::Result<bool, i32> {
    if !has_equal_blocks(kind) {
        return Ok(true);
    }
    let Some(around) = comm.neighborhood() else { return Ok(true) };
    if let Some(known) = around.known_connected() {
        return Ok(known);
    }
    let mut found = false;
    let find = async {
        found = around.is_connected(comm).await?;
        Ok(())
    };
    blocking::drive(pin!(find), || None).map_err(operation::code)?;
    Ok(found)
}

/// Runs the part of a neighbourhood operation within a node, through shared memory.
pub async fn within_node(turn: Turn<'_>, comm: &Comm, call: &Call, zero_copy: &Thresholds) -> Result<()> {
    let edges = &comm.neighborhood().ok_or(UNSUPPORTED)?.within(comm)?.edges;
    let (out, from) = sides(call);
    let into = HostBlocks::new(from);
    match is_same(call.kind) {
        true => op::neighbor::spread(turn, edges, &out.stream(), &into, zero_copy.allgather).await,
        false => op::neighbor::exchange(turn, edges, &HostBlocks::new(out), &into, zero_copy.alltoall.from).await,
    }
}

/// Runs a neighbourhood operation: along the edges within the `node` through its shared memory, where it has
/// some; along the others by the algorithm that the parameters, or the facts, say. `acknowledged`: so that no
/// rank runs ahead.
pub async fn run(
    ep: &HostEndpoint,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    acknowledged: bool,
) -> Result<()> {
    let zero_copy = node.map_or(Thresholds::all(usize::MAX), |node| node.zero_copy());
    let within = async |turn| within_node(turn, comm, call, &zero_copy).await;
    hier::neighbor::neighbor(node, within, async |shared| messages(ep, comm, call, shared, acknowledged).await).await
}

/// The edges that go by messages: all, or (`shared`) those to other nodes.
async fn messages(ep: &HostEndpoint, comm: &Comm, call: &Call, shared: bool, acknowledged: bool) -> Result<()> {
    let around = comm.neighborhood().ok_or(UNSUPPORTED)?;
    let (out, from) = sides(call);
    let into = HostBlocks::new(from);
    // Whoever has neighbours gives the same amount on both sides, or nothing on one that has none.
    let equal = has_equal_blocks(call.kind).then(|| out.stream().len().max(from.stream().len()));
    let Some(Choice::Neighbor(algorithm)) = call.decision.choice else { return Err(UNSUPPORTED) };
    let same = is_same(call.kind);
    let plain = || -> Result<_> { Ok(Plan::Direct(if shared { &around.within(comm)?.rest } else { around.plain() })) };
    let (posts, plan) = match algorithm {
        Neighbor::Direct(posts) => (posts, plain()?),
        // Ranks that each only know their own edges must all take part when they tell each other.
        Neighbor::Aggregated(posts) if acknowledged || (around.is_directed() && !call.by_all) => (posts, plain()?),
        Neighbor::Aggregated(posts) => {
            (posts, Plan::Aggregated(apart(|| around.bundles(comm, same, shared)).await?, equal))
        }
    };
    let way = Way { ep, plan, posts, acknowledged };
    match same {
        true => with_same(ep, &out.stream(), async |out| way.go(out, &into).await).await,
        false => way.go(&HostBlocks::new(out), &into).await,
    }
}

/// How the blocks go.
struct Way<'a> {
    ep: &'a HostEndpoint,
    plan: Plan<'a>,
    posts: usize,
    acknowledged: bool,
}

/// To whom.
enum Plan<'a> {
    Direct(&'a Among<Neighbors>),
    /// And how long all blocks are, where that is known.
    Aggregated(&'a Among<Bundles>, Option<usize>),
}

impl Way<'_> {
    async fn go<O: Blocks>(&self, out: &O, into: &HostBlocks<'_>) -> Result<()> {
        let &Way { ep, ref plan, posts, acknowledged } = self;
        match *plan {
            Plan::Aggregated(among, equal) => {
                let stage = among.stage(ep);
                apart(|| aggregated(&stage, &among.plan, equal, out, into, posts)).await
            }
            Plan::Direct(among) => {
                let stage = among.stage(ep);
                apart(|| direct(&stage, &among.plan, out, into, posts, acknowledged)).await
            }
        }
    }
}
