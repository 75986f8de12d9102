// SPDX-License-Identifier: BSD-3-Clause
//! Calls on plain data, blocking and nonblocking ones. A short one that blocks is a plain function; else it
//! is one future of the operation alone, on the caller's stack or in one piece of memory, instead of one
//! within the other for each branch that a call may take.

mod blocking_only;
mod reduction;

use crate::endpoint::{Result, Span};
use crate::ffi::base::error;
use crate::ffi::base::glue::{self, cr_call, cr_side, ompi_datatype_t, ompi_request_t};
use crate::ffi::base::kind::{Kind, Mode};
use crate::ffi::call::eligible::needs_queue;
use crate::ffi::call::plain::{EqualBlocks, PlainSide, stream};
use crate::ffi::comm::state::Comm;
use crate::ffi::exec::blocking::{self, InTeam};
use crate::ffi::exec::engine::start_on_stream;
use crate::ffi::process::counters;
use crate::shm::memory::layout::LINE;
use crate::shm::op;
use crate::shm::op::block::all_lengths;
use crate::shm::op::peers::Everybody;
use crate::shm::op::short::exchange::Allgather;
use crate::shm::op::short::rooted::{Barrier, Bcast, Collect, Deal, Give, Take};
use crate::shm::op::short::{self, Short};
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::Turn;
use crate::shm::thresholds::Thresholds;
use std::cell::Cell;
use std::pin::pin;
use std::ptr;
use std::sync::Arc;

/// A door that calls on plain data come by, of a communicator with a team.
#[derive(Clone, Copy)]
pub struct At<'c, const BLOCKING: bool> {
    comm: &'c Arc<Comm>,
    team: &'c Team,
    kind: Kind,
    /// Where the request goes, if it does not block.
    request: *mut *mut ompi_request_t,
}

/// The door for blocking calls on plain data, by which they are done without looking at more than they must.
/// `None`: by the way of all calls, please.
#[inline(always)]
pub fn at(comm: &Arc<Comm>, kind: Kind) -> Option<At<'_, true>> {
    let team = comm.quick(kind as i32)?;
    team.bring();
    Some(At { comm, team, kind, request: ptr::null_mut() })
}

/// Starts a nonblocking call likewise; stores its request. Those of vector forms, whose arrays would have to
/// be copied, and of the other reductions go by the way of all calls.
///
/// # Safety
/// As for [`start_any`](crate::ffi::exec::engine::start_any).
#[inline(always)]
pub unsafe fn start(comm: &Arc<Comm>, call: &cr_call, request: *mut *mut ompi_request_t) -> Option<i32> {
    let (team, kind) = (comm.quick(call.kind)?, Kind::from_number(call.kind)?);
    let at = At::<false> { comm, team, kind, request };
    // SAFETY: by the caller's promise.
    unsafe {
        match kind {
            Kind::Barrier => at.barrier(call),
            Kind::Bcast => at.bcast(call),
            Kind::Reduce => at.reduce(call),
            Kind::Allreduce => at.allreduce(call),
            Kind::Gather => at.gather(call),
            Kind::Scatter => at.scatter(call),
            Kind::Allgather => at.allgather(call),
            Kind::Alltoall => at.alltoall(call),
            _ => None,
        }
    }
}

impl<'c, const BLOCKING: bool> At<'c, BLOCKING> {
    #[inline(always)]
    fn needs_queue(self, len: usize) -> bool {
        needs_queue(self.kind, Some(len), self.team)
    }

    /// Does an operation on plain data, or starts it. `len`: as for [`needs_queue`]; `still`:
    /// whether all that the caller sends and gets [lies still](Team::lies_still); `limit`: from how many
    /// bytes on data are read elsewhere, which is not asked of those.
    ///
    /// A door contains no more of blocking calls: so they are short, lie close together, and keep the
    /// operation in registers. On a Zen 4 short calls of two ranks took 0.81 to 1.04 of the time before
    /// (docs/design/short-calls.md, "Operations in registers").
    #[inline(always)]
    fn go<L: From<usize>, O: Short + 'static>(
        self,
        len: usize,
        still: bool,
        limit: impl FnOnce() -> L,
        operation: impl FnOnce(L) -> O,
    ) -> Option<i32> {
        if !BLOCKING {
            return self.begin(len, operation(limit()));
        }
        if still {
            let turn = self.turn(len)?.of_what_lies_still();
            return self.end(self.now(turn, &operation(usize::MAX.into())));
        }
        out_of_line(move || self.finish(len, operation(limit())))
    }

    /// Does a blocking one, whether it is short or not.
    #[inline(always)]
    fn finish(self, len: usize, operation: impl Short) -> Option<i32> {
        let turn = self.turn(len)?;
        self.end(match operation.fits(&turn) {
            true => self.now(turn, &operation),
            false => blocking::drive_long(pin!(operation.long(turn)), self.team),
        })
    }

    /// Does a short one.
    #[inline(always)]
    fn now(self, turn: Turn<'_>, operation: &impl Short) -> Result<()> {
        let patience = Cell::default();
        short::now(turn, InTeam { team: self.team, patience: &patience }, operation)
    }

    /// The next turn on the stream of blocking operations: the call is taken.
    #[inline(always)]
    fn turn(self, len: usize) -> Option<Turn<'c>> {
        let turn = self.team.turn(0, 0, self.needs_queue(len))?;
        counters::handled(self.kind, Mode::Blocking);
        Some(turn)
    }

    /// The end of a blocking operation.
    #[inline(always)]
    fn end(self, result: Result<()>) -> Option<i32> {
        Some(result.map_or_else(error::code, |()| 0))
    }

    /// Starts one that does not block, if there is memory for it.
    #[inline(always)]
    fn begin(self, len: usize, operation: impl Short + 'static) -> Option<i32> {
        let queue = self.needs_queue(len);
        let number = self.comm.team.number_for(|slot| self.team.is_open(slot, 0, queue))?;
        // SAFETY: it may be written by the promise of `start`'s caller. Operations hold numbers and addresses
        // of the user's buffers across their awaits, which last as long as the request; no arrays (`blocks`).
        Some(unsafe { start_on_stream(self.comm, (self.kind, number, queue), self.request, operation) })
    }

    /// From how many bytes on data are read from another process' memory. `len`: bytes of each block, or of
    /// all data, where all whom they concern know them. Not looked up where those travel in a line, whatever
    /// the answer.
    #[inline(always)]
    fn zero_copy(self, len: Option<usize>, of: impl FnOnce(&Thresholds) -> usize) -> usize {
        match len {
            Some(..=LINE) => usize::MAX,
            _ => of(self.thresholds()),
        }
    }

    /// From how many bytes on which operations read.
    #[inline(always)]
    fn thresholds(self) -> &'c Thresholds {
        self.team.thresholds(BLOCKING || self.comm.team.has_learned(), BLOCKING)
    }

    /// Whether all blocks [lie still](Team::lies_still) that travel as wholes. (The caller's own does not,
    /// but is asked, too.)
    #[inline(always)]
    fn all_lie_still(self, blocks: &impl PlainSide) -> bool {
        all_lengths(blocks, 0..self.team.size(), |len| self.team.lies_still(len))
    }

    /// The same where all have a [share](Team::share_lies_still) of a slot.
    #[inline(always)]
    fn shares_lie_still(self, blocks: &impl PlainSide) -> bool {
        all_lengths(blocks, 0..self.team.size(), |len| self.team.share_lies_still(len))
    }

    /// Whether data of this type may come by this door: not of a derived one where Open MPI's binding retains
    /// it for the request.
    ///
    /// # Safety
    /// The datatype is live.
    #[inline(always)]
    unsafe fn admits(self, dtype: *mut ompi_datatype_t) -> bool {
        // SAFETY: by the caller's promise.
        BLOCKING || unsafe { glue::cr_dtype_is_predefined(dtype) } != 0
    }

    /// The elements of a side without blocks; `None` where they may not come by this door, and without any.
    ///
    /// # Safety
    /// The side is significant: its datatype is live.
    #[inline(always)]
    unsafe fn stream(self, side: &cr_side) -> Option<Span> {
        // SAFETY: by the caller's promise.
        unsafe { if self.admits(side.dtype) { stream(side) } else { None } }
    }

    /// The blocks of a side, likewise.
    ///
    /// # Safety
    /// As for [`stream`](At::stream).
    #[inline(always)]
    unsafe fn blocks<B: PlainSide>(self, side: &cr_side) -> Option<B> {
        const { assert!(BLOCKING || !B::BORROWS, "what does not block must not use the user's arrays") };
        // SAFETY: by the caller's promise.
        unsafe { if self.admits(side.dtype) { B::of(side) } else { None } }
    }

    /// Barrier.
    ///
    /// # Safety
    /// As for [`Call::new`](crate::ffi::call::arguments::Call::new), and, where it does not block, [`start`].
    #[inline(always)]
    pub unsafe fn barrier(self, _: &cr_call) -> Option<i32> {
        self.go(0, true, || usize::MAX, |_| Barrier)
    }

    /// Bcast.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn bcast(self, call: &cr_call) -> Option<i32> {
        // SAFETY: significant, so live by the caller's promise.
        let data = unsafe { self.stream(&call.recv) }?;
        let (root, len) = (call.root as usize, data.len());
        let (still, limit) = (self.team.lies_still(len), || self.zero_copy(Some(len), |from| from.bcast));
        self.go(len, still, limit, |zero_copy| Bcast { root, data, zero_copy, divide: true })
    }

    /// Gather.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn gather(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.gather_of::<EqualBlocks>(call) }
    }

    /// Gather, and its vector form.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    unsafe fn gather_of<B: PlainSide>(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        let (all, own, each) = unsafe { self.rooted::<B>(call, &call.recv, &call.send) }?;
        // A member of the vector form only needs to know its own block.
        let known = (self.kind == Kind::Gather || all.is_none()).then_some(each);
        let root = call.root as usize;
        let limit = || self.zero_copy(known, |from| from.gather);
        match (all, own) {
            (Some(all), own) => {
                self.go(each, self.all_lie_still(&all), limit, |zero_copy| Collect { own, all, zero_copy })
            }
            (None, Some(own)) => {
                self.go(each, self.team.lies_still(own.len()), limit, |zero_copy| Give { root, own, zero_copy })
            }
            (None, None) => None,
        }
    }

    /// Scatter.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn scatter(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.scatter_of::<EqualBlocks>(call) }
    }

    /// Scatter, and its vector form.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    unsafe fn scatter_of<B: PlainSide>(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        let (all, own, each) = unsafe { self.rooted::<B>(call, &call.send, &call.recv) }?;
        let root = call.root as usize;
        let limit = || self.zero_copy(None, |from| from.scatter);
        match (all, own) {
            (Some(all), own) => {
                self.go(each, self.shares_lie_still(&all), limit, |zero_copy| Deal { all, own, zero_copy })
            }
            (None, Some(own)) => {
                self.go(each, self.team.share_lies_still(own.len()), limit, |zero_copy| Take { root, own, zero_copy })
            }
            (None, None) => None,
        }
    }

    /// All blocks, of an operation with a root, where the caller is the root, its own one, unless that is in
    /// place, and the bytes of a block.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    unsafe fn rooted<B: PlainSide>(
        self,
        call: &cr_call,
        all: &cr_side,
        own: &cr_side,
    ) -> Option<(Option<B>, Option<Span>, usize)> {
        let is_root = call.root as u32 == self.comm.rank();
        // SAFETY: significant, so live by the caller's promise; as below.
        let all = if is_root { Some(unsafe { self.blocks::<B>(all) }?) } else { None };
        // SAFETY: as above.
        let own = if own.in_place != 0 { None } else { Some(unsafe { self.stream(own) }?) };
        let each = all.as_ref().map(|all| all.each().unwrap_or(0)).or(own.as_ref().map(|own| own.len()))?;
        Some((all, own, each))
    }

    /// Allgather.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn allgather(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.allgather_of::<EqualBlocks>(call) }
    }

    /// Allgather, and its vector form.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    unsafe fn allgather_of<B: PlainSide>(self, call: &cr_call) -> Option<i32> {
        // SAFETY: significant, so live by the caller's promise; as below.
        let into = unsafe { self.blocks::<B>(&call.recv) }?;
        // SAFETY: as above.
        let own = if call.send.in_place != 0 { None } else { Some(unsafe { self.stream(&call.send) }?) };
        let (known, each) = (into.each(), into.each().unwrap_or(0));
        let (still, peers) = (self.all_lie_still(&into), Everybody::of(self.team));
        let limit = || self.zero_copy(known, |from| from.allgather);
        self.go(each, still, limit, |zero_copy| Allgather { own, all: into, peers, zero_copy })
    }

    /// Alltoall.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn alltoall(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        unsafe { self.alltoall_of::<EqualBlocks>(call) }
    }

    /// Alltoall, and its vector form.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    unsafe fn alltoall_of<B: PlainSide>(self, call: &cr_call) -> Option<i32> {
        // SAFETY: significant, so live by the caller's promise; as below.
        let into = unsafe { self.blocks::<B>(&call.recv) }?;
        let each = into.each().unwrap_or(0);
        // SAFETY: as above.
        let out = if call.send.in_place != 0 { None } else { Some(unsafe { self.blocks::<B>(&call.send) }?) };
        let still = out.as_ref().is_some_and(|out| self.shares_lie_still(out)) && self.shares_lie_still(&into);
        let (peers, limit) = (Everybody::of(self.team), || self.thresholds().alltoall);
        self.go(each, still, limit, |zero_copy| op::alltoall::among(peers, out, into, zero_copy))
    }
}

/// Not a part of the caller.
#[inline(never)]
fn out_of_line<R>(long: impl FnOnce() -> R) -> R {
    long()
}
