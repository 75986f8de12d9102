// SPDX-License-Identifier: BSD-3-Clause
//! A call: its arguments, and what all ranks know of them.

use crate::endpoint::Result as Step;
use crate::endpoint::{Rank, Span};
use crate::ffi::base::error::UNSUPPORTED;
use crate::ffi::base::glue::{
    self, CR_ERR_ARG, CR_ERR_INTERN, CR_ERR_OP, cr_call, cr_side, ompi_datatype_t, ompi_op_t,
};
use crate::ffi::base::kind::{Kind, has_equal_blocks};
use crate::ffi::base::messages;
use crate::ffi::comm::state::Comm;
use crate::ffi::comm::topology::Neighborhood;
use crate::ffi::mpi::data::{Datatype, Layout, Side};
use crate::ffi::mpi::device::Staging;
use crate::select::{Decision, Given};
use std::ptr;
use std::sync::Arc;

/// A collective call with what was found out about its arguments.
#[derive(Clone)]
pub struct Call<'a> {
    pub kind: Kind,
    pub root: Rank,
    pub is_root: bool,
    rank: usize,
    ranks: usize,
    /// What this rank sends. `None` where the operation ignores it, and in place: then the data are in
    /// `receive` (Scatter, Scatterv: in `send`).
    pub send: Option<Side<'a>>,
    /// What this rank receives, and Bcast's buffer. `None` where the operation ignores it.
    pub receive: Option<Side<'a>>,
    /// Null where nothing is reduced.
    pub op: *mut ompi_op_t,
    pub intrinsic: bool,
    extremum: bool,
    /// Whether some ranks wait for nobody in it, and so may run ahead of the others.
    pub one_way: bool,
    /// Whether all ranks are sure to make it. The same on all ranks that do.
    pub by_all: bool,
    /// What all ranks know of its data.
    pub given: Given,
    /// How it goes.
    pub decision: Decision,
    /// What its buffers stand for, where they do.
    pub staging: Option<Arc<Staging>>,
}

// SAFETY: the addresses of Open MPI's objects; the rest is Send by itself.
unsafe impl Send for Call<'_> {}
// SAFETY: as above.
unsafe impl Sync for Call<'_> {}

impl<'a> Call<'a> {
    /// Takes over a call from the shim. The user's arrays are borrowed: see [`own`](Call::own).
    ///
    /// # Safety
    /// The significant handles in `call` are live, and stay so until the operation is over, as do its
    /// buffers, which hold what it says; its arrays have an element for each block, and last as long as
    /// `call`.
    #[inline(always)] // moved to its place once, and not from hand to hand
    pub unsafe fn new(comm: &Comm, call: &'a cr_call) -> Result<Call<'a>, i32> {
        // SAFETY: by the caller's promise.
        unsafe { Call::decided(comm, call, |kind, given| comm.decide(kind, given)) }
    }

    /// One that goes to the component below: nothing is decided of it.
    ///
    /// # Safety
    /// As for [`new`](Call::new).
    pub unsafe fn passed(comm: &Comm, call: &'a cr_call) -> Result<Call<'a>, i32> {
        // SAFETY: by the caller's promise.
        unsafe { Call::decided(comm, call, |_, _| Ok(Decision::NONE)) }
    }

    /// As [`new`](Call::new), by this decision.
    #[inline(always)]
    unsafe fn decided(
        comm: &Comm,
        call: &'a cr_call,
        decide: impl FnOnce(Kind, Given) -> Result<Decision, i32>,
    ) -> Result<Call<'a>, i32> {
        let kind = Kind::from_number(call.kind).ok_or(CR_ERR_INTERN as i32)?;
        let root = Rank::try_from(call.root).map_err(|_| CR_ERR_ARG as i32)?;
        let is_root = root == comm.rank();
        let ranks = comm.size() as usize;
        let around = if kind.is_neighbor() { comm.neighborhood() } else { None };
        let degrees = around.map_or((ranks, ranks), Neighborhood::degrees);
        // SAFETY: by the caller's promise.
        let (receive, send) = unsafe { sides(kind, is_root, degrees, call) };
        let mut op = glue::cr_op_info::default();
        if !call.op.is_null() {
            let dtype = receive.as_ref().or(send.as_ref()).map_or(ptr::null_mut(), |side| side.dtype().handle);
            // SAFETY: live by the caller's promise; fills in ours.
            unsafe { glue::cr_op_info(call.op, dtype, &mut op) };
            if op.defined == 0 {
                messages::print("coll/rust: the reduction operation is not defined on elements of this datatype");
                return Err(CR_ERR_OP as i32);
            }
        }
        let data = given_by(kind, [&receive, &send], ranks, around, op.commutative != 0);
        Ok(Call {
            kind,
            root,
            is_root,
            rank: comm.rank() as usize,
            ranks,
            send,
            receive,
            op: call.op,
            intrinsic: op.intrinsic != 0,
            extremum: op.extremum != 0,
            one_way: around.map_or(kind.is_one_way(), Neighborhood::is_directed),
            by_all: true,
            given: data,
            decision: decide(kind, data)?,
            staging: None,
        })
    }

    /// Copies the user's arrays: the call may end before the operation does.
    pub fn own(self) -> Call<'static> {
        Call { send: self.send.map(Side::own), receive: self.receive.map(Side::own), ..self }
    }

    /// The side that describes the operation's data best: the receive side, if there is one.
    fn side(&self) -> Option<&Side<'a>> {
        self.receive.as_ref().or(self.send.as_ref())
    }

    /// The datatype of the elements that are reduced or broadcast.
    pub fn units(&self) -> Datatype {
        self.side().map_or(Datatype::BYTES, Side::dtype)
    }

    /// Elements that are reduced or broadcast, here; of Reduce_scatter, of all ranks together.
    pub fn count(&self) -> usize {
        self.side().map_or(0, Side::count)
    }

    /// The elements of a side.
    pub fn elements(&self, side: &Side) -> Span {
        // SAFETY: the user's buffer holds what the call says until the operation is over: see `Call::new`.
        unsafe { Span::new(side.buffer.cast(), self.count(), self.units().info.extent) }
    }

    /// Elements of the result of Reduce_scatter and Reduce_scatter_block that go to a rank.
    pub fn part(&self, rank: usize) -> usize {
        self.side().map_or(0, |side| side.part(rank))
    }

    /// Ranks of the communicator.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Whether this rank is the first one.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// The elements of what is combined: of all ranks' parts, where the result is scattered. In place, of the
    /// receive buffer.
    pub fn operand(&self) -> Span {
        let count = match self.kind {
            Kind::ReduceScatterBlock => self.count().saturating_mul(self.ranks),
            _ => self.count(),
        };
        let side = self.send.as_ref().or(self.receive.as_ref());
        // SAFETY: the user's buffer holds what the call says until the operation is over: see `Call::new`.
        side.map_or(Span::empty(), |side| unsafe { Span::new(side.buffer.cast(), count, self.units().info.extent) })
    }

    /// The elements of the result of an operation that combines and whose result goes to every rank, or its
    /// part of it.
    pub fn result(&self) -> Span {
        let count = match self.kind {
            Kind::ReduceScatter => self.part(self.rank),
            _ => self.count(),
        };
        let buffer = self.receive.as_ref().map_or(ptr::null_mut(), |side| side.buffer);
        // SAFETY: the user's buffer holds what the call says until the operation is over: see `Call::new`.
        unsafe { Span::new(buffer.cast(), count, self.units().info.extent) }
    }

    /// Packed bytes of one block, in the operations that have one of equal size for each rank. The same on
    /// all ranks.
    pub fn block(&self) -> Option<usize> {
        self.given.block
    }

    /// Packed bytes of the data: of Gather and Scatter, of the root's buffer; of the others, of the larger
    /// buffer of any rank. The same on all ranks; `None` where they cannot know, and for Barrier.
    pub fn bytes(&self) -> Option<usize> {
        self.given.bytes
    }

    /// Whether there is nothing to do, which every rank knows: Open MPI's bindings do not even call us at
    /// ranks that give a count of 0 (all counts, in Allgatherv and Reduce_scatter), whereas others may have
    /// described no data by elements of no size.
    pub fn is_empty(&self) -> bool {
        self.bytes() == Some(0)
    }

    /// Whether it is a neighbourhood operation that Open MPI's bindings may return from at once at ranks that
    /// describe no data as this one does.
    pub fn is_void(&self) -> bool {
        has_equal_blocks(self.kind)
            && self.send.iter().chain(&self.receive).all(|side| side.dtype().bytes(side.count()) == 0)
    }

    /// Whether it looks like a step of Open MPI's agreement on a context identifier: an allreduce of one int
    /// by MPI_MAX or MPI_MIN. The same on all ranks.
    pub fn is_like_agreement(&self) -> bool {
        self.kind == Kind::Allreduce && self.extremum && self.bytes() == Some(4)
    }

    /// Whether Open MPI retains an argument for the request after the call returns.
    pub fn has_derived_arguments(&self) -> bool {
        let derived = |side: &Side| match &side.layout {
            Layout::Equal { dtype, .. } | Layout::Vector { dtype, .. } => dtype.info.predefined == 0,
            // SAFETY: the handles of a significant side are live.
            Layout::Typed { .. } => side.dtypes().any(|handle| unsafe { Datatype::of(handle) }.info.predefined == 0),
        };
        (!self.op.is_null() && !self.intrinsic) || self.send.iter().chain(&self.receive).any(derived)
    }

    /// Keeps the user's datatypes and operation, which may be freed while a request needs them.
    ///
    /// # Safety
    /// They are alive.
    pub unsafe fn retain(&self) -> Retained {
        let dtypes = self.send.iter().chain(&self.receive).flat_map(Side::dtypes);
        Retained {
            // SAFETY: by the caller's promise.
            dtypes: dtypes.filter(|&handle| unsafe { glue::cr_dtype_retain(handle) } != 0).collect(),
            // SAFETY: as above.
            op: match !self.op.is_null() && unsafe { glue::cr_op_retain(self.op) } != 0 {
                true => self.op,
                false => ptr::null_mut(),
            },
        }
    }
}

/// A side that the operation needs.
pub fn needed<'s, 'a>(side: &'s Option<Side<'a>>) -> Step<&'s Side<'a>> {
    side.as_ref().ok_or(UNSUPPORTED)
}

/// The significant sides of a call of so many outgoing and incoming blocks: what is received, what is sent.
///
/// # Safety
/// As for [`Call::new`].
#[inline(always)]
pub(super) unsafe fn sides(
    kind: Kind,
    is_root: bool,
    (outgoing, incoming): (usize, usize),
    call: &cr_call,
) -> (Option<Side<'_>>, Option<Side<'_>>) {
    // Without any neighbour there are no arrays, and no datatype that counts.
    let given = |side: &cr_side, blocks: usize| side.in_place == 0 && (blocks > 0 || side.count > 0);
    let significant = kind.receives(is_root) && given(&call.recv, incoming);
    // SAFETY: significant, so live by the caller's promise.
    let receive = significant.then(|| unsafe { Side::new(&call.recv, incoming, None) });
    let significant = kind.sends(is_root) && given(&call.send, outgoing);
    let known = receive.as_ref().map(Side::dtype);
    // SAFETY: as above.
    let send = significant.then(|| unsafe { Side::new(&call.send, outgoing, known) });
    (receive, send)
}

/// What all ranks know of a call's data on so many ranks, or between neighbours `around`; the first of
/// `sides` that is there describes them best.
pub(super) fn given_by(
    kind: Kind,
    sides: [&Option<Side>; 2],
    ranks: usize,
    around: Option<&Neighborhood>,
    commutative: bool,
) -> Given {
    let side = sides[0].as_ref().or(sides[1].as_ref());
    let len = |side: &Side| side.dtype().bytes(side.count());
    let (block, bytes) = match kind {
        Kind::Alltoallv | Kind::Alltoallw | Kind::Gatherv | Kind::Scatterv => (None, None),
        // Only those at either end of an edge need give the same.
        _ if kind.is_neighbor() => (neighbor_block(kind, around, sides), None),
        _ if kind.has_equal_blocks() => {
            let block = side.map(len);
            (block, block.map(|block| block.saturating_mul(ranks)))
        }
        _ => (None, side.map(len)),
    };
    Given { block, bytes, commutative }
}

/// Objects of the user that a request keeps alive.
pub struct Retained {
    dtypes: Vec<*mut ompi_datatype_t>,
    /// Null: none.
    op: *mut ompi_op_t,
}

impl Drop for Retained {
    fn drop(&mut self) {
        for &handle in &self.dtypes {
            // SAFETY: retained in `Call::retain`.
            unsafe { glue::cr_dtype_release(handle) };
        }
        if !self.op.is_null() {
            // SAFETY: as above.
            unsafe { glue::cr_op_release(self.op) };
        }
    }
}

/// Bytes of each block, where both ends of every edge are sure to find the same: on grids, whose edges go
/// both ways, and where every rank has some, so that with the larger one of what a rank sends and what it
/// receives it does not matter if the two differ. The same on all ranks.
fn neighbor_block(kind: Kind, around: Option<&Neighborhood>, sides: [&Option<Side>; 2]) -> Option<usize> {
    let len = |side: &Side| side.dtype().bytes(side.count());
    (has_equal_blocks(kind) && around?.is_grid()).then(|| sides.into_iter().flatten().map(len).max().unwrap_or(0))
}
