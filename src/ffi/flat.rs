//! The operations that the component has for one node only, where its processes have no shared memory after all, or where that does
//! not serve (user-defined operations, elements with gaps): point-to-point, in one group of all ranks.

use super::call::Call;
use super::data::HostBlocks;
use super::host::HostEndpoint;
use super::kind::Kind;
use super::operation::{UNSUPPORTED, needed};
use crate::algo::data::Role;
use crate::algo::scan::Scan;
use crate::algo::{Stage, allgather, alltoall, gather, reduce_scatter, scan, scatter};
use crate::endpoint::{Endpoint, Rank, Result, Tag};
use crate::pattern::lengths::Lengths;
use crate::topo::Level;
use smallvec::SmallVec;

/// Messages that a rank has under way at a time, each way, in algorithms with one message per pair of ranks.
const POSTS: usize = 8;
/// Up to so many bytes in all, Allgather takes few steps rather than few copies.
const SHORT: usize = 64 << 10;

/// Runs an operation that moves or combines a block for each rank, or a prefix reduction.
pub async fn run(ep: &HostEndpoint, call: &Call) -> Result<()> {
    let ranks: SmallVec<[Rank; 64]> = (0..ep.size()).collect();
    let tag = Tag { lane: 0, phase: 0, level: Level::Node.index() };
    let stage = Stage::new(ep, &ranks, ep.rank() as usize, tag);
    match call.kind {
        Kind::Gather | Kind::Gatherv => gather(&stage, call).await,
        Kind::Scatter | Kind::Scatterv => scatter(&stage, call).await,
        Kind::Allgather | Kind::Allgatherv => allgather(&stage, call).await,
        Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw => {
            let out = call.send.as_ref().map(HostBlocks::new);
            alltoall::linear::linear(&stage, out.as_ref(), &HostBlocks::new(needed(&call.receive)?), POSTS).await
        }
        Kind::ReduceScatter | Kind::ReduceScatterBlock => {
            let lengths = Lengths::each((0..stage.size()).map(|rank| call.part(rank)));
            reduce_scatter::pairwise::pairwise(&stage, call.operand(), &lengths, call.result()).await
        }
        Kind::Scan => {
            scan::recursive_doubling::recursive_doubling(&stage, Scan::Inclusive, call.operand(), call.result()).await
        }
        Kind::Exscan => {
            scan::recursive_doubling::recursive_doubling(&stage, Scan::Exclusive, call.operand(), call.result()).await
        }
        _ => Err(UNSUPPORTED),
    }
}

async fn gather(stage: &Stage<'_, HostEndpoint>, call: &Call) -> Result<()> {
    let own = call.send.as_ref().map(|side| side.stream());
    let all = call.receive.as_ref().map(HostBlocks::new);
    let role = match (&all, &own) {
        (Some(all), own) => Role::Root { all, own: own.as_ref() },
        (None, Some(own)) => Role::Other { own },
        (None, None) => return Err(UNSUPPORTED),
    };
    gather::linear::linear(stage, call.root as usize, role, POSTS).await
}

async fn scatter(stage: &Stage<'_, HostEndpoint>, call: &Call) -> Result<()> {
    let all = call.send.as_ref().map(HostBlocks::new);
    let own = call.receive.as_ref().map(|side| side.stream());
    let role = match (&all, &own) {
        (Some(all), own) => Role::Root { all, own: own.as_ref() },
        (None, Some(own)) => Role::Other { own },
        (None, None) => return Err(UNSUPPORTED),
    };
    scatter::linear::linear(stage, call.root as usize, role, POSTS).await
}

async fn allgather(stage: &Stage<'_, HostEndpoint>, call: &Call) -> Result<()> {
    let own = call.send.as_ref().map(|side| side.stream());
    let all = HostBlocks::new(needed(&call.receive)?);
    match call.bytes() {
        Some(bytes) if bytes <= SHORT => allgather::bruck::bruck(stage, own.as_ref(), &all).await,
        _ => allgather::ring::ring(stage, own.as_ref(), &all).await,
    }
}
