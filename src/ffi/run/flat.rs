// SPDX-License-Identifier: BSD-3-Clause
//! The operations that move or combine a block for each rank, and the prefix reductions, by messages in one
//! group of all ranks.

use crate::algo::data::Role;
use crate::algo::scan::Scan as Ends;
use crate::algo::{Stage, allgather, alltoall, gather, reduce_scatter, scan, scatter};
use crate::endpoint::{Blocks, Endpoint, Error, Result, Stream, Tag};
use crate::ffi::base::apart::apart;
use crate::ffi::base::error::UNSUPPORTED;
use crate::ffi::base::kind::Kind;
use crate::ffi::call::arguments::{Call, needed};
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::comm::state::Comm;
use crate::ffi::mpi::data::{HostBlocks, HostStream};
use crate::ffi::run::job::Run;
use crate::ffi::run::joined::{self, HostRole};
use crate::hier::central::What;
use crate::pattern::lengths::Lengths;
use crate::select::{Allgather, Alltoall, Choice, Gather, ReduceScatter, Scan, Scatter};
use crate::shm::exec::node::Node;

/// Runs a call by the algorithm that was decided on.
pub async fn run(ep: &HostEndpoint, comm: &Comm, call: &Call<'_>, node: Option<Node<'_>>) -> Result<()> {
    let tag = Tag { lane: 0, phase: 0, level: call.decision.level.index() };
    let stage = &Stage::new(ep, comm.ranks(), ep.rank() as usize, tag);
    let run = &Run { comm, call, node, stage };
    match call.decision.choice {
        Some(Choice::Gather(algorithm)) => gather(run, algorithm).await,
        Some(Choice::Scatter(algorithm)) => scatter(run, algorithm).await,
        Some(Choice::Allgather(algorithm)) => allgather(run, algorithm).await,
        Some(Choice::Alltoall(algorithm)) => alltoall(run, algorithm).await,
        Some(Choice::ReduceScatter(algorithm)) => reduce_scatter(run, algorithm).await,
        Some(Choice::Scan(algorithm)) => scan(run, algorithm).await,
        _ => Err(UNSUPPORTED),
    }
}

/// The lengths of the blocks in bytes, where all ranks know them.
fn lengths(stage: &Stage<'_, HostEndpoint>, call: &Call<'_>) -> Option<Lengths> {
    call.block().map(|block| Lengths::equal(block, stage.size()))
}

/// The caller's part in an operation with a root, who has `all` blocks.
fn role<'a>(all: &'a Option<HostBlocks<'a>>, own: &'a Option<HostStream>) -> Result<HostRole<'a>> {
    match (all, own) {
        (Some(all), own) => Ok(Role::Root { all, own: own.as_ref() }),
        (None, Some(own)) => Ok(Role::Other { own }),
        (None, None) => Err(UNSUPPORTED),
    }
}

/// An error where both sides of a call describe the same data, and differ.
fn alike(ep: &HostEndpoint, sent: Option<usize>, received: usize) {
    if sent.is_some_and(|sent| sent != received) {
        ep.note(Error::Lengths);
    }
}

async fn gather(run: &Run<'_>, algorithm: Gather) -> Result<()> {
    let &Run { call, node, stage, .. } = run;
    let own = call.send.as_ref().map(|side| side.stream());
    let all = call.receive.as_ref().map(HostBlocks::new);
    let role = role(&all, &own)?;
    let (root, lengths) = (call.root as usize, lengths(stage, call));
    match algorithm {
        Gather::Linear(posts) if node.is_some() => apart(|| joined::gather_at_once(run, role, posts)),
        Gather::Linear(posts) => apart(|| gather::linear::linear(stage, root, role, posts)),
        Gather::Knomial(radix) => apart(|| gather::knomial::knomial(stage, root, role, lengths.as_ref(), radix)),
        Gather::Hierarchical => apart(|| joined::gather(run, role)),
    }
    .await
}

async fn scatter(run: &Run<'_>, algorithm: Scatter) -> Result<()> {
    let &Run { call, node, stage, .. } = run;
    let all = call.send.as_ref().map(HostBlocks::new);
    let own = call.receive.as_ref().map(|side| side.stream());
    if let (Kind::Scatter, Some(all), Some(own)) = (call.kind, &all, &own) {
        alike(stage.ep(), Some(own.len()), all.len(0));
    }
    let role = role(&all, &own)?;
    let (root, lengths) = (call.root as usize, lengths(stage, call));
    match algorithm {
        Scatter::Linear(posts) if node.is_some() => apart(|| joined::scatter_at_once(run, role, posts)),
        Scatter::Linear(posts) => apart(|| scatter::linear::linear(stage, root, role, posts)),
        Scatter::Knomial(radix) => apart(|| scatter::knomial::knomial(stage, root, role, lengths.as_ref(), radix)),
        Scatter::Hierarchical => apart(|| joined::scatter(run, role)),
    }
    .await
}

async fn allgather(run: &Run<'_>, algorithm: Allgather) -> Result<()> {
    let &Run { call, stage, .. } = run;
    let own = call.send.as_ref().map(|side| side.stream());
    let (own, all) = (own.as_ref(), HostBlocks::new(needed(&call.receive)?));
    // The others get what is in the caller's block.
    alike(stage.ep(), own.map(Stream::len), all.len(stage.ep().rank() as usize));
    match algorithm {
        Allgather::Linear(posts) => apart(|| allgather::linear::linear(stage, own, &all, posts)),
        Allgather::Ring => apart(|| allgather::ring::ring(stage, own, &all)),
        Allgather::NeighborExchange => apart(|| allgather::neighbor_exchange::neighbor_exchange(stage, own, &all)),
        Allgather::RecursiveDoubling => apart(|| joined::doubling(run, own, &all)),
        Allgather::Bruck => apart(|| allgather::bruck::bruck(stage, own, &all)),
        Allgather::Hierarchical => apart(|| joined::allgather(run, own, &all)),
    }
    .await
}

async fn alltoall(run: &Run<'_>, algorithm: Alltoall) -> Result<()> {
    let &Run { call, stage, .. } = run;
    let out = call.send.as_ref().map(HostBlocks::new);
    let (out, into) = (out.as_ref(), HostBlocks::new(needed(&call.receive)?));
    if call.kind == Kind::Alltoall {
        alike(stage.ep(), out.map(|out| out.len(0)), into.len(0));
    }
    match algorithm {
        Alltoall::Linear(posts) => apart(|| alltoall::linear::linear(stage, out, &into, posts)),
        Alltoall::Pairwise => apart(|| alltoall::pairwise::pairwise(stage, out, &into)),
        Alltoall::Bruck(radix) => apart(|| alltoall::bruck::bruck(stage, out, &into, radix)),
        Alltoall::Spread => apart(|| joined::alltoall(run, out, &into, true)),
        Alltoall::Hierarchical => apart(|| joined::alltoall(run, out, &into, false)),
    }
    .await
}

async fn reduce_scatter(run: &Run<'_>, algorithm: ReduceScatter) -> Result<()> {
    let &Run { call, stage, .. } = run;
    let lengths = &match call.kind {
        Kind::ReduceScatterBlock => Lengths::equal(call.part(0), stage.size()),
        _ => Lengths::each((0..stage.size()).map(|rank| call.part(rank))),
    };
    let (mine, target) = (call.operand(), call.result());
    match algorithm {
        ReduceScatter::Hierarchical => apart(|| joined::reduce_scatter(run, lengths)),
        _ if call.decision.apart => apart(|| joined::at_one(run, What::ReduceScatter(algorithm, lengths))),
        ReduceScatter::Pairwise => apart(|| reduce_scatter::pairwise::pairwise(stage, mine, lengths, target)),
        ReduceScatter::ReduceScatterv(radix) => {
            apart(|| reduce_scatter::reduce_scatterv::reduce_scatterv(stage, mine, lengths, target, radix))
        }
        ReduceScatter::RecursiveHalving => {
            apart(|| reduce_scatter::recursive_halving::recursive_halving(stage, mine, lengths, target))
        }
        ReduceScatter::Ring => apart(|| reduce_scatter::ring::ring(stage, mine, lengths, target)),
    }
    .await
}

async fn scan(run: &Run<'_>, algorithm: Scan) -> Result<()> {
    let &Run { call, stage, .. } = run;
    let ends = if call.kind == Kind::Scan { Ends::Inclusive } else { Ends::Exclusive };
    match algorithm {
        _ if call.decision.apart => apart(|| joined::at_one(run, What::Scan(algorithm, ends))),
        Scan::Linear => apart(|| scan::linear::linear(stage, ends, call.operand(), call.result())),
        Scan::RecursiveDoubling => {
            apart(|| scan::recursive_doubling::recursive_doubling(stage, ends, call.operand(), call.result()))
        }
        Scan::Hierarchical => apart(|| joined::scan(run, ends)),
    }
    .await
}
