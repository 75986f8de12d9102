// SPDX-License-Identifier: BSD-3-Clause
//! Neighbourhood operations: the exchange along the edges of a communicator's process topology.

use crate::algo::data::Grouped;
use crate::algo::neighbor::{aggregated::aggregated, direct::direct, with_same};
use crate::endpoint::{Blocks, Error, Result, Stream};
use crate::ffi::base::apart::apart;
use crate::ffi::base::error::UNSUPPORTED;
use crate::ffi::base::kind::{has_equal_blocks, is_same};
use crate::ffi::call::arguments::Call;
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::comm::state::Comm;
use crate::ffi::comm::topology::{Among, Apart};
use crate::ffi::mpi::data::{HostBlocks, Side};
use crate::ffi::run::job::{Amount, job};
use crate::hier;
use crate::hier::gather::Tree;
use crate::hier::plans::Along;
use crate::pattern::bundles::Bundles;
use crate::pattern::neighborhood::Neighbors;
use crate::select::{Choice, Neighbor};
use crate::shm::exec::node::Node;
use crate::shm::op;
use crate::shm::protocol::turn::Turn;
use crate::shm::thresholds::Thresholds;

/// No data, of a rank without neighbours.
static NOTHING: Side<'static> = Side::NOTHING;

/// What a call sends and receives.
fn sides<'a>(call: &'a Call<'a>) -> (&'a Side<'a>, &'a Side<'a>) {
    (call.send.as_ref().unwrap_or(&NOTHING), call.receive.as_ref().unwrap_or(&NOTHING))
}

/// Runs the part of a neighbourhood operation within a node, through shared memory.
pub async fn within_node(turn: Turn<'_>, comm: &Comm, call: &Call<'_>, zero_copy: &Thresholds) -> Result<()> {
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
    call: &Call<'_>,
    node: Option<Node<'_>>,
    acknowledged: bool,
) -> Result<()> {
    let zero_copy = node.map_or(Thresholds::all(usize::MAX), |node| node.zero_copy());
    let within = |turn| within_node(turn, comm, call, &zero_copy);
    hier::neighbor::neighbor(node, within, |shared| messages(ep, comm, call, shared, acknowledged)).await
}

/// The edges that go by messages: all, or (`shared`) those to other nodes.
async fn messages(ep: &HostEndpoint, comm: &Comm, call: &Call<'_>, shared: bool, acknowledged: bool) -> Result<()> {
    let around = comm.neighborhood().ok_or(UNSUPPORTED)?;
    let (out, from) = sides(call);
    let into = HostBlocks::new(from);
    // Whoever has neighbours gives the same amount on both sides, or nothing on one that has none.
    let equal = has_equal_blocks(call.kind).then(|| out.stream().len().max(from.stream().len()));
    let Some(Choice::Neighbor(algorithm)) = call.decision.choice else { return Err(UNSUPPORTED) };
    let same = is_same(call.kind);
    if call.decision.apart {
        let Neighbor::Direct(posts) = algorithm else { return Err(UNSUPPORTED) };
        let apart = around.apart(comm, shared)?;
        if acknowledged {
            let plan = comm.plan(call.kind, Along::All, false, None).map_err(Error::Mpi)?;
            hier::barrier::synchronise(&job(ep, &plan, comm, Amount::NONE)).await?;
        }
        let way = Way { ep, plan: Plan::Direct(&apart.here), posts, acknowledged: false };
        return match same {
            true => {
                with_same(ep, &out.stream(), async |out| between_clusters(way, comm, call, apart, out, &into).await)
                    .await
            }
            false => between_clusters(way, comm, call, apart, &HostBlocks::new(out), &into).await,
        };
    }
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

/// The blocks for ranks of the own cluster by a message each, and those of others through its leader: all
/// ranks take part.
async fn between_clusters<O: Blocks>(
    way: Way<'_>,
    comm: &Comm,
    call: &Call<'_>,
    apart: &Apart,
    out: &O,
    into: &HostBlocks<'_>,
) -> Result<()> {
    let ep = way.ep;
    way.go(out, into).await?;
    let plan = comm.plan(call.kind, Along::All, false, None).map_err(Error::Mpi)?;
    let job = job(ep, &plan, comm, Amount { bytes: usize::MAX, ..Amount::NONE });
    let out = Grouped { ep, blocks: out, groups: &apart.out };
    let into = Grouped { ep, blocks: into, groups: &apart.into };
    hier::alltoall::alltoall(&job, plan.parts(), &Tree::auto, None, Some(&out), &into).await
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
