//! The operations that move or combine a block for each rank, and the prefix reductions, by messages in one group of all ranks.

use super::apart::apart;
use super::call::Call;
use super::comm::Comm;
use super::data::HostBlocks;
use super::host::HostEndpoint;
use super::joined;
use super::kind::Kind;
use super::operation::{UNSUPPORTED, needed};
use crate::algo::data::Role;
use crate::algo::scan::Scan as Ends;
use crate::algo::{Stage, allgather, alltoall, gather, reduce_scatter, scan, scatter};
use crate::endpoint::{Endpoint, Error, Rank, Result, Tag};
use crate::pattern::lengths::Lengths;
use crate::select::{Allgather, Alltoall, Gather, ReduceScatter, Scan, Scatter, Whole};
use crate::shm::node::Node;
use crate::topo::Level;
use smallvec::SmallVec;

/// Runs a call by the algorithm that the parameters, or the facts, say.
pub async fn run(ep: &HostEndpoint, comm: &Comm, call: &Call, node: Option<Node<'_>>) -> Result<()> {
    let ranks: SmallVec<[Rank; 64]> = (0..ep.size()).collect();
    let whole = whole(comm, call)?;
    let level = if whole.shape.nodes > 1 { Level::Cluster } else { Level::Node };
    let stage = &Stage::new(ep, &ranks, ep.rank() as usize, Tag { lane: 0, phase: 0, level: level.index() });
    let config = comm.config();
    match call.kind {
        Kind::Gather => gather(stage, comm, call, node, config.gather.choose(&whole)).await,
        Kind::Gatherv => gather(stage, comm, call, node, config.gatherv.choose(&whole)).await,
        Kind::Scatter => scatter(stage, comm, call, node, config.scatter.choose(&whole)).await,
        Kind::Scatterv => scatter(stage, comm, call, node, config.scatterv.choose(&whole)).await,
        Kind::Allgather => allgather(stage, comm, call, node, config.allgather.choose(&whole)).await,
        Kind::Allgatherv => allgather(stage, comm, call, node, config.allgatherv.choose(&whole)).await,
        Kind::Alltoall => alltoall(stage, comm, call, node, config.alltoall.choose(&whole)).await,
        Kind::Alltoallv => alltoall(stage, comm, call, node, config.alltoallv.choose(&whole)).await,
        Kind::Alltoallw => alltoall(stage, comm, call, node, config.alltoallw.choose(&whole)).await,
        Kind::ReduceScatter => reduce_scatter(stage, comm, call, node, config.reduce_scatter.choose(&whole)).await,
        Kind::ReduceScatterBlock => {
            reduce_scatter(stage, comm, call, node, config.reduce_scatter_block.choose(&whole)).await
        }
        Kind::Scan => scan(stage, comm, call, node, Ends::Inclusive, config.scan.choose(&whole)).await,
        Kind::Exscan => scan(stage, comm, call, node, Ends::Exclusive, config.exscan.choose(&whole)).await,
        Kind::Allreduce | Kind::Barrier | Kind::Bcast | Kind::Reduce => Err(UNSUPPORTED),
        Kind::NeighborAllgather | Kind::NeighborAllgatherv => Err(UNSUPPORTED),
        Kind::NeighborAlltoall | Kind::NeighborAlltoallv | Kind::NeighborAlltoallw => Err(UNSUPPORTED),
    }
}

/// Whether what an operation with blocks, or a prefix reduction, does within each of several nodes may go through shared memory: its algorithm
/// leaves that open. The same on all ranks.
pub fn shares_in_nodes(comm: &Comm, call: &Call) -> bool {
    let config = comm.config();
    // In shared memory, values are combined in another order than by messages.
    let any_order = !(call.kind.reduces() && config.reproducible);
    let Ok(whole) = whole(comm, call) else { return false };
    // An algorithm that is asked for by name is taken at its word.
    let chosen = config.algorithm(call.kind).is_shared_within_node();
    let gather = |choice| matches!(choice, Gather::Hierarchical) || (chosen && matches!(choice, Gather::Linear(_)));
    let scatter = |choice| matches!(choice, Scatter::Hierarchical) || (chosen && matches!(choice, Scatter::Linear(_)));
    let alltoall = |choice| matches!(choice, Alltoall::Hierarchical | Alltoall::Spread);
    let leaves_it = || match call.kind {
        Kind::Gather => gather(config.gather.choose(&whole)),
        Kind::Gatherv => gather(config.gatherv.choose(&whole)),
        Kind::Scatter => scatter(config.scatter.choose(&whole)),
        Kind::Scatterv => scatter(config.scatterv.choose(&whole)),
        Kind::Allgather => config.allgather.choose(&whole) == Allgather::Hierarchical,
        Kind::Allgatherv => config.allgatherv.choose(&whole) == Allgather::Hierarchical,
        Kind::Alltoall => alltoall(config.alltoall.choose(&whole)),
        Kind::Alltoallv => alltoall(config.alltoallv.choose(&whole)),
        Kind::Alltoallw => alltoall(config.alltoallw.choose(&whole)),
        Kind::ReduceScatter => config.reduce_scatter.choose(&whole) == ReduceScatter::Hierarchical,
        Kind::ReduceScatterBlock => config.reduce_scatter_block.choose(&whole) == ReduceScatter::Hierarchical,
        Kind::Scan => config.scan.choose(&whole) == Scan::Hierarchical,
        Kind::Exscan => config.exscan.choose(&whole) == Scan::Hierarchical,
        _ => false,
    };
    any_order && comm.levels(call.kind).is_auto() && leaves_it()
}

/// What all ranks know of a call.
pub(super) fn whole(comm: &Comm, call: &Call) -> Result<Whole> {
    Ok(Whole {
        operation: call.kind,
        members: comm.size() as usize,
        shape: comm.plan(call.kind, false, None).map_err(Error::Mpi)?.shape,
        shared: comm.is_shared_in_nodes() && comm.levels(call.kind).is_auto(),
        block: call.block(),
        bytes: call.bytes(),
        commutative: call.commutative,
        reproducible: comm.config().reproducible,
    })
}

/// The lengths of the blocks in bytes, where all ranks know them.
fn lengths(stage: &Stage<'_, HostEndpoint>, call: &Call) -> Option<Lengths> {
    call.block().map(|block| Lengths::equal(block, stage.size()))
}

async fn gather(
    stage: &Stage<'_, HostEndpoint>,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    algorithm: Gather,
) -> Result<()> {
    let own = call.send.as_ref().map(|side| side.stream());
    let all = call.receive.as_ref().map(HostBlocks::new);
    let role = match (&all, &own) {
        (Some(all), own) => Role::Root { all, own: own.as_ref() },
        (None, Some(own)) => Role::Other { own },
        (None, None) => return Err(UNSUPPORTED),
    };
    let (root, lengths) = (call.root as usize, lengths(stage, call));
    match algorithm {
        Gather::Linear(posts) if node.is_some() => {
            apart(|| joined::gather_at_once(stage, comm, call, node, role, posts))
        }
        Gather::Linear(posts) => apart(|| gather::linear::linear(stage, root, role, posts)),
        Gather::Knomial(radix) => apart(|| gather::knomial::knomial(stage, root, role, lengths.as_ref(), radix)),
        Gather::Hierarchical => apart(|| joined::gather(stage.ep(), comm, call, node)),
    }
    .await
}

async fn scatter(
    stage: &Stage<'_, HostEndpoint>,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    algorithm: Scatter,
) -> Result<()> {
    let all = call.send.as_ref().map(HostBlocks::new);
    let own = call.receive.as_ref().map(|side| side.stream());
    let role = match (&all, &own) {
        (Some(all), own) => Role::Root { all, own: own.as_ref() },
        (None, Some(own)) => Role::Other { own },
        (None, None) => return Err(UNSUPPORTED),
    };
    let (root, lengths) = (call.root as usize, lengths(stage, call));
    match algorithm {
        Scatter::Linear(posts) if node.is_some() => {
            apart(|| joined::scatter_at_once(stage, comm, call, node, role, posts))
        }
        Scatter::Linear(posts) => apart(|| scatter::linear::linear(stage, root, role, posts)),
        Scatter::Knomial(radix) => apart(|| scatter::knomial::knomial(stage, root, role, lengths.as_ref(), radix)),
        Scatter::Hierarchical => apart(|| joined::scatter(stage.ep(), comm, call, node)),
    }
    .await
}

async fn allgather(
    stage: &Stage<'_, HostEndpoint>,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    algorithm: Allgather,
) -> Result<()> {
    let own = call.send.as_ref().map(|side| side.stream());
    let (own, all) = (own.as_ref(), HostBlocks::new(needed(&call.receive)?));
    match algorithm {
        Allgather::Linear(posts) => apart(|| allgather::linear::linear(stage, own, &all, posts)),
        Allgather::Ring => apart(|| allgather::ring::ring(stage, own, &all)),
        Allgather::NeighborExchange => apart(|| allgather::neighbor_exchange::neighbor_exchange(stage, own, &all)),
        Allgather::RecursiveDoubling => apart(|| joined::doubling(stage, comm, call, own, &all)),
        Allgather::Bruck => apart(|| allgather::bruck::bruck(stage, own, &all)),
        Allgather::Hierarchical => apart(|| joined::allgather(stage.ep(), comm, call, node)),
    }
    .await
}

async fn alltoall(
    stage: &Stage<'_, HostEndpoint>,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    algorithm: Alltoall,
) -> Result<()> {
    let out = call.send.as_ref().map(HostBlocks::new);
    let (out, into) = (out.as_ref(), HostBlocks::new(needed(&call.receive)?));
    match algorithm {
        Alltoall::Linear(posts) => apart(|| alltoall::linear::linear(stage, out, &into, posts)),
        Alltoall::Pairwise => apart(|| alltoall::pairwise::pairwise(stage, out, &into)),
        Alltoall::Bruck(radix) => apart(|| alltoall::bruck::bruck(stage, out, &into, radix)),
        Alltoall::Spread => apart(|| joined::alltoall(stage.ep(), comm, call, node, true)),
        Alltoall::Hierarchical => apart(|| joined::alltoall(stage.ep(), comm, call, node, false)),
    }
    .await
}

async fn reduce_scatter(
    stage: &Stage<'_, HostEndpoint>,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    algorithm: ReduceScatter,
) -> Result<()> {
    let lengths = &match call.kind {
        Kind::ReduceScatterBlock => Lengths::equal(call.part(0), stage.size()),
        _ => Lengths::each((0..stage.size()).map(|rank| call.part(rank))),
    };
    let (mine, target) = (call.operand(), call.result());
    match algorithm {
        ReduceScatter::Pairwise => apart(|| reduce_scatter::pairwise::pairwise(stage, mine, lengths, target)),
        ReduceScatter::ReduceScatterv(radix) => {
            apart(|| reduce_scatter::reduce_scatterv::reduce_scatterv(stage, mine, lengths, target, radix))
        }
        ReduceScatter::RecursiveHalving => {
            apart(|| reduce_scatter::recursive_halving::recursive_halving(stage, mine, lengths, target))
        }
        ReduceScatter::Ring => apart(|| reduce_scatter::ring::ring(stage, mine, lengths, target)),
        ReduceScatter::Hierarchical => apart(|| joined::reduce_scatter(stage.ep(), comm, call, node, lengths)),
    }
    .await
}

async fn scan(
    stage: &Stage<'_, HostEndpoint>,
    comm: &Comm,
    call: &Call,
    node: Option<Node<'_>>,
    ends: Ends,
    algorithm: Scan,
) -> Result<()> {
    match algorithm {
        Scan::Linear => apart(|| scan::linear::linear(stage, ends, call.operand(), call.result())),
        Scan::RecursiveDoubling => {
            apart(|| scan::recursive_doubling::recursive_doubling(stage, ends, call.operand(), call.result()))
        }
        Scan::Hierarchical => apart(|| joined::scan(stage.ep(), comm, call, node)),
    }
    .await
}
