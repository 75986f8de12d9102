// SPDX-License-Identifier: BSD-3-Clause
//! The operations that move data, with the user's data as streams and blocks.

use crate::endpoint::Result;
use crate::ffi::call::arguments::{Call, needed};
use crate::ffi::mpi::data::HostBlocks;
use crate::shm::op;
use crate::shm::protocol::turn::Turn;
use crate::shm::thresholds::Reads;

/// The root's data, to all.
pub async fn bcast(turn: Turn<'_>, call: &Call<'_>, zero_copy: usize) -> Result<()> {
    let data = needed(&call.receive)?.stream();
    op::bcast::bcast(turn, call.root as usize, &data, zero_copy).await
}

/// A block of each rank's, to the root.
pub async fn gather(turn: Turn<'_>, call: &Call<'_>, zero_copy: usize) -> Result<()> {
    match &call.receive {
        Some(all) => {
            let own = call.send.as_ref().map(|side| side.stream());
            op::gather::receive(turn, own.as_ref(), &HostBlocks::new(all), zero_copy).await
        }
        None => op::gather::send(turn, call.root as usize, &needed(&call.send)?.stream(), zero_copy).await,
    }
}

/// A block of the root's, to each rank.
pub async fn scatter(turn: Turn<'_>, call: &Call<'_>, zero_copy: usize) -> Result<()> {
    match &call.send {
        Some(all) => {
            let own = call.receive.as_ref().map(|side| side.stream());
            op::scatter::send(turn, &HostBlocks::new(all), own.as_ref(), zero_copy).await
        }
        None => op::scatter::receive(turn, call.root as usize, &needed(&call.receive)?.stream(), zero_copy).await,
    }
}

/// A block of each rank's, to all.
pub async fn allgather(turn: Turn<'_>, call: &Call<'_>, zero_copy: usize) -> Result<()> {
    let own = call.send.as_ref().map(|side| side.stream());
    op::allgather::allgather(turn, own.as_ref(), &HostBlocks::new(needed(&call.receive)?), zero_copy).await
}

/// A block from each rank to each.
pub async fn alltoall(turn: Turn<'_>, call: &Call<'_>, zero_copy: Reads) -> Result<()> {
    let into = HostBlocks::new(needed(&call.receive)?);
    let out = call.send.as_ref().map(HostBlocks::new);
    op::alltoall::alltoall(turn, out.as_ref(), &into, zero_copy).await
}
