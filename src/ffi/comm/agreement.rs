// SPDX-License-Identifier: BSD-3-Clause
//! What ranks find out together ([`crate::algo::neighbor::agreement`]): at the first operation that asks,
//! with tags of their own, so that it does not matter in which operation the others are met.

use crate::algo::neighbor::agreement;
use crate::endpoint::{Error, Rank, Result, Tag};
use crate::ffi::base::glue::CR_ERR_INTERN;
use crate::ffi::comm::core::Core;
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::mpi::data::Datatype;
use crate::pattern::neighborhood::Neighbors;
use crate::topo::Level;
use std::future::poll_fn;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

/// Lanes of the handshake's tags; the first one is for shared memory.
const CONNECTED: u8 = 1;
const LISTS: u8 = 2;

/// What the first who asks finds out, and others wait for.
pub struct Agreed<T> {
    begun: AtomicBool,
    found: OnceLock<Result<T>>,
}

impl<T> Default for Agreed<T> {
    fn default() -> Agreed<T> {
        Agreed { begun: AtomicBool::new(false), found: OnceLock::new() }
    }
}

/// If the search ends without a result (in a panic), that is an error: others wait for it.
struct Begun<'a, T>(&'a Agreed<T>);

impl<T> Drop for Begun<'_, T> {
    fn drop(&mut self) {
        // Kept where there is a result.
        let _ = self.0.found.set(Err(Error::Mpi(CR_ERR_INTERN as i32)));
    }
}

impl<T> Agreed<T> {
    /// What was found, or is by `find`.
    pub async fn get(&self, find: impl Future<Output = Result<T>>) -> Result<&T> {
        if self.found.get().is_none() && !self.begun.swap(true, Ordering::AcqRel) {
            let _begun = Begun(self);
            let _ = self.found.set(find.await);
        }
        let found = poll_fn(|_| self.found.get().map_or(Poll::Pending, Poll::Ready)).await;
        found.as_ref().map_err(|&error| error)
    }

    /// What was found, if it was.
    pub fn known(&self) -> Option<&T> {
        self.found.get().and_then(|found| found.as_ref().ok())
    }
}

fn endpoint(comm: &Core) -> HostEndpoint {
    HostEndpoint::new(comm, None, Datatype::BYTES, ptr::null_mut(), comm.identities.handshake())
}

/// Whether all ranks hang together by edges, `peers` being at the other ends of those of the caller.
pub async fn connected(comm: &Core, peers: &[Rank]) -> Result<bool> {
    let ep = endpoint(comm);
    let tag = Tag { lane: CONNECTED, phase: 0, level: Level::Cluster.index() };
    let found = agreement::connected(&ep, tag, peers).await;
    if found.is_err() {
        ep.settle().await;
    }
    found
}

/// The neighbourhoods of all ranks of the caller's node, ascending.
pub async fn lists(comm: &Core, mine: &Neighbors) -> Result<Vec<(usize, Neighbors)>> {
    let ranks: Vec<Rank> = comm.place().map_err(Error::Mpi)?.local().iter().map(|&(rank, _)| rank).collect();
    let ep = endpoint(comm);
    let tag = Tag { lane: LISTS, phase: 0, level: Level::Node.index() };
    let found = agreement::lists(&ep, tag, &ranks, mine).await;
    if found.is_err() {
        ep.settle().await;
    }
    found
}
