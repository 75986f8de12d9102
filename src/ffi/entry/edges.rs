// SPDX-License-Identifier: BSD-3-Clause
//! Blocking calls along edges, on plain data, whose messages all go at once: in as little code and memory as
//! they need, where the way of all calls has room for all other ways. What comes after a pause, or while
//! processes take turns on a core, finds nothing of that in the caches (docs/design/several-nodes.md).
//!
//! Other ranks may come to the same operation by the way of all calls: the messages are the same.

use crate::algo::neighbor::{Same, direct};
use crate::endpoint::Blocks;
use crate::ffi::base::apart::apart;
use crate::ffi::base::error;
use crate::ffi::base::glue::cr_call;
use crate::ffi::base::kind::{Kind, Mode};
use crate::ffi::base::kind::{has_equal_blocks, is_same};
use crate::ffi::call::plain::{PlainBlocks, blocks, stream};
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::comm::state::Comm;
use crate::ffi::comm::topology::Neighborhood;
use crate::ffi::exec::blocking;
use crate::ffi::mpi::data::Datatype;
use crate::ffi::process::counters;
use crate::select::{Choice, Given, Neighbor};
use std::pin::pin;
use std::ptr;

/// Does such a call. `None`, and nothing has happened: by the way of all calls, please.
///
/// # Safety
/// As for [`Call::new`](crate::ffi::call::arguments::Call::new).
#[inline(always)]
pub unsafe fn quick(comm: &Comm, call: &cr_call) -> Option<i32> {
    let kind = Kind::from_number(call.kind).filter(|kind| kind.is_neighbor())?;
    // SAFETY: by the caller's promise.
    unsafe { along_edges(comm, kind, call) }
}

/// As [`quick`], of an operation along edges.
///
/// # Safety
/// As for [`quick`].
#[inline(never)]
unsafe fn along_edges(comm: &Comm, kind: Kind, call: &cr_call) -> Option<i32> {
    let in_place = call.send.in_place != 0 || call.recv.in_place != 0;
    if kind == Kind::NeighborAlltoallw || in_place || comm.config().algorithm(kind).below() {
        return None;
    }
    let around = comm.neighborhood()?;
    // Without neighbours on one side there are no arrays.
    if around.degrees().0.min(around.degrees().1) == 0 {
        return None;
    }
    // SAFETY: significant, so live by the caller's promise; as below.
    let into = unsafe { blocks(&call.recv) }?;
    if is_same(kind) {
        // SAFETY: as above.
        let own = unsafe { stream(&call.send) }?;
        return exchange(comm, kind, around, own.len(), &Same(own), &into);
    }
    // SAFETY: as above.
    let out = unsafe { blocks(&call.send) }?;
    exchange(comm, kind, around, out.each, &out, &into)
}

/// Sends the blocks of `out`, of which each is `len` bytes long where all are of one length, and receives
/// those of `into`.
#[inline(always)]
fn exchange<O: Blocks>(
    comm: &Comm,
    kind: Kind,
    around: &Neighborhood,
    len: usize,
    out: &O,
    into: &PlainBlocks,
) -> Option<i32> {
    let equal = has_equal_blocks(kind);
    let by_all = !equal || around.known_connected()?;
    // As `neighbor::block` has it.
    let block = (equal && around.is_grid()).then(|| len.max(into.each));
    let given = Given { block, bytes: None, commutative: false };
    let decision = comm.decide(kind, given).ok()?;
    let Some(Choice::Neighbor(Neighbor::Direct(posts))) = decision.choice else { return None };
    if decision.apart || (by_all && decision.shares) {
        return None;
    }
    counters::handled(kind, Mode::Blocking);
    let first_tag = comm.identities.blocking(kind);
    let acknowledged = comm.synchronises(kind, around.is_directed(), by_all);
    let ep = HostEndpoint::new(comm, Some(kind), Datatype::BYTES, ptr::null_mut(), first_tag);
    let among = around.plain();
    let stage = among.stage(&ep);
    let exchange = async {
        if !acknowledged && let Some(done) = direct::at_once(&stage, &among.plan, out, into, posts).await {
            return done;
        }
        apart(|| direct::direct(&stage, &among.plan, out, into, posts, acknowledged)).await
    };
    let done = blocking::drive(pin!(ep.settled(exchange)), || comm.team.get());
    Some(done.map_or_else(error::code, |()| 0))
}
