//! Calls on plain data, blocking and nonblocking ones. What they do is one future of the operation alone, on
//! the caller's stack or in one piece of memory, instead of one within the other for each branch that a call
//! may take; or, of some short ones that block, a plain function.

mod blocking_only;
mod go;
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
use crate::shm::layout::LINE;
use crate::shm::op;
use crate::shm::op::block::all_lengths;
use crate::shm::team::Team;
use crate::shm::thresholds::Thresholds;
use crate::shm::turn::Turn;
use crate::shm::turn::waits::Blocks;
use crate::sync::wait::Patience;
use go::{go, out_of_line};
use reduction::Reduction;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// A door that calls on plain data come by, of a communicator with a team: of blocking ones, each [`Kind`]
/// has its own; nonblocking ones share one ([`ANY`]).
#[derive(Clone, Copy)]
pub struct At<'c, const BLOCKING: bool, const DOOR: i32> {
    comm: &'c Arc<Comm>,
    team: &'c Team,
    kind: Kind,
    /// Where the request goes, if it does not block.
    request: *mut *mut ompi_request_t,
}

/// The door of all nonblocking calls.
const ANY: i32 = -1;

/// The door for blocking calls on plain data, by which they are done without looking at more than they must.
/// `None`: by the way of all calls, please.
#[inline(always)]
pub fn at<const DOOR: i32>(comm: &Arc<Comm>, kind: Kind) -> Option<At<'_, true, DOOR>> {
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
    let at = At::<false, ANY> { comm, team, kind, request };
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

impl<'c, const BLOCKING: bool, const DOOR: i32> At<'c, BLOCKING, DOOR> {
    #[inline(always)]
    fn needs_queue(self, len: usize) -> bool {
        needs_queue(self.kind, Some(len), self.team)
    }

    /// The next turn on the stream of blocking operations: the call is taken.
    #[inline(always)]
    fn turn<'p, const STILL: bool>(
        self,
        len: usize,
        patience: &'p Cell<Patience>,
    ) -> Option<Turn<'c, Blocks<InTeam<'p>, DOOR, STILL>>>
    where
        'c: 'p,
    {
        let turn = self.team.turn(0, 0, self.needs_queue(len))?;
        counters::handled(self.kind, Mode::Blocking);
        Some(turn.waiting(Blocks(InTeam { team: self.team, patience })))
    }

    /// Does a blocking operation.
    #[inline(always)]
    fn finish(self, operation: impl Future<Output = Result<()>>) -> Option<i32> {
        // SAFETY: those of `op` are async blocks, or functions that only await such, and wait as the turn
        // says.
        self.end(unsafe { blocking::finish(operation, self.team) })
    }

    /// The end of a blocking operation.
    #[inline(always)]
    fn end(self, result: Result<()>) -> Option<i32> {
        Some(result.map_or_else(error::code, |()| 0))
    }

    /// Starts one that does not block, if there is memory for it.
    #[inline(always)]
    fn begin(self, len: usize, operation: impl AsyncFnOnce(Turn<'_>) -> Result<()> + Send + 'static) -> Option<i32> {
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
        go!(self, 0, |turn| op::barrier::barrier(turn))
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
        go!(
            self,
            len,
            self.team.lies_still(len),
            self.zero_copy(Some(len), |from| from.bcast),
            |turn, zero_copy| op::bcast::bcast_now(turn, root, &data, zero_copy),
            else op::bcast::bcast(turn, root, &data, zero_copy)
        )
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
        match (all, own) {
            (Some(all), own) => go!(
                self,
                each,
                self.all_lie_still(&all),
                self.zero_copy(known, |from| from.gather),
                |turn, zero_copy| op::gather::receive_now(turn, own.as_ref(), &all, zero_copy),
                else op::gather::receive(turn, own.as_ref(), &all, zero_copy)
            ),
            (None, Some(own)) => go!(
                self,
                each,
                self.team.lies_still(own.len()),
                self.zero_copy(known, |from| from.gather),
                |turn, zero_copy| op::gather::send(turn, root, &own, zero_copy)
            ),
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
        match (all, own) {
            (Some(all), own) => go!(
                self,
                each,
                self.shares_lie_still(&all),
                self.zero_copy(None, |from| from.scatter),
                |turn, zero_copy| op::scatter::send(turn, &all, own.as_ref(), zero_copy)
            ),
            (None, Some(own)) => go!(
                self,
                each,
                self.team.share_lies_still(own.len()),
                self.zero_copy(None, |from| from.scatter),
                |turn, zero_copy| op::scatter::receive(turn, root, &own, zero_copy)
            ),
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
        go!(self, each, self.all_lie_still(&into), self.zero_copy(known, |from| from.allgather), |turn, zero_copy| {
            op::allgather::allgather(turn, own.as_ref(), &into, zero_copy)
        })
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
        go!(
            self,
            each,
            |turn| op::alltoall::alltoall_still(turn, out.as_ref(), &into),
            else self.thresholds().alltoall,
            |zero_copy| op::alltoall::alltoall_now(turn, out.as_ref(), &into, zero_copy),
            else op::alltoall::alltoall(turn, out.as_ref(), &into, zero_copy)
        )
    }
}
