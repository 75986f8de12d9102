//! Nonblocking calls on plain data: as [`quick`](super::quick), on the stream of the operation's slot. One future of the operation alone, in one piece
//! of memory, instead of one within the other for each branch that a call may take.

use super::quick::{Plain, blocks, bytes, plain, stream};
use super::{Elements, needs_queue, zero_copy};
use crate::endpoint::{Result, Span};
use crate::ffi::comm::Comm;
use crate::ffi::engine::start_on_stream;
use crate::ffi::glue::{self, cr_call, cr_side, ompi_request_t};
use crate::ffi::kind::Kind;
use crate::ffi::team::Slot;
use crate::shm::op;
use crate::shm::rates::Thresholds;
use crate::shm::team::Team;
use crate::shm::turn::Turn;
use std::sync::Arc;

/// Where a call is made.
struct At<'c> {
    comm: &'c Arc<Comm>,
    team: &'c Team,
    kind: Kind,
    zero_copy: Thresholds,
    request: *mut *mut ompi_request_t,
}

/// Starts a nonblocking call on plain data of predefined types, without looking at more than it must; stores its request. `None`: by the way of all
/// calls, please. So go those with arrays, which have to be copied, and operations that are not named here.
///
/// # Safety
/// As for [`engine::start`](crate::ffi::engine::start).
#[inline(always)]
pub unsafe fn start(comm: &Arc<Comm>, call: &cr_call, request: *mut *mut ompi_request_t) -> Option<i32> {
    if !comm.is_quick(call.kind) {
        return None;
    }
    let (team, kind) = (comm.team.get()?, Kind::from_number(call.kind)?);
    // Of a slot, only whether it is that of blocking operations matters.
    let zero_copy = zero_copy(comm, team, Slot::Nonblocking { number: 0, late: comm.team.has_learned() });
    let at = At { comm, team, kind, zero_copy, request };
    match kind {
        Kind::Barrier => at.go(0, async |turn: Turn<'_>| op::barrier::barrier(turn).await),
        Kind::Bcast => {
            // SAFETY: live by the caller's promise.
            let data = unsafe { predefined(&call.recv) }?;
            let (root, zero_copy) = (call.root as usize, at.zero_copy.bcast);
            at.go(data.0.len(), async move |turn: Turn<'_>| op::bcast::bcast(turn, root, &data, zero_copy).await)
        }
        // SAFETY: by the caller's promise, as below.
        Kind::Reduce | Kind::Allreduce => unsafe { at.reduction(call) },
        // SAFETY: as above.
        Kind::Gather | Kind::Scatter => unsafe { at.rooted(call) },
        // SAFETY: as above.
        Kind::Allgather | Kind::Alltoall => unsafe { at.unrooted(call) },
        _ => None,
    }
}

/// The elements of a side without blocks; `None` where they are not plain, or of a derived type, which Open MPI's binding retains for the request.
///
/// # Safety
/// The side is significant: its datatype is live.
unsafe fn predefined(side: &cr_side) -> Option<Plain> {
    // SAFETY: by the caller's promise.
    unsafe { if glue::cr_dtype_is_predefined(side.dtype) != 0 { stream(side) } else { None } }
}

impl At<'_> {
    /// Starts it, if there is memory for it; `len`: as for [`needs_queue`].
    #[inline(always)]
    fn go(&self, len: usize, operation: impl AsyncFnOnce(Turn<'_>) -> Result<()> + Send + 'static) -> Option<i32> {
        let queue = needs_queue(self.kind, Some(len), self.team.size());
        let number = self.comm.team.number_for(|slot| self.team.is_open(slot, 0, queue))?;
        // SAFETY: it may be written by the promise of `start`'s caller. Operations hold numbers and addresses of the user's buffers across their awaits, which
        // last as long as the request; no arrays.
        Some(unsafe { start_on_stream(self.comm, (self.kind, number, queue), self.request, operation) })
    }

    /// Gather and Scatter.
    ///
    /// # Safety
    /// As for [`start`].
    unsafe fn rooted(&self, call: &cr_call) -> Option<i32> {
        let (root, is_root) = (call.root as usize, call.root as u32 == self.comm.rank());
        let gathers = self.kind == Kind::Gather;
        let (all, own) = if gathers { (&call.recv, &call.send) } else { (&call.send, &call.recv) };
        // SAFETY: significant, so live by the caller's promise; as below.
        let all = if is_root { Some(unsafe { predefined(all).and_then(|_| blocks(all)) }?) } else { None };
        // SAFETY: as above.
        let own = if own.in_place != 0 { None } else { Some(unsafe { predefined(own) }?) };
        let each = all.as_ref().map(|all| all.each).or(own.as_ref().map(|own| own.0.len()))?;
        let zero_copy = if gathers { self.zero_copy.gather } else { self.zero_copy.scatter };
        match (all, own, gathers) {
            (Some(all), own, true) => self
                .go(each, async move |turn: Turn<'_>| op::gather::receive(turn, own.as_ref(), &all, zero_copy).await),
            (Some(all), own, false) => {
                self.go(each, async move |turn: Turn<'_>| op::scatter::send(turn, &all, own.as_ref(), zero_copy).await)
            }
            (None, Some(own), true) => {
                self.go(each, async move |turn: Turn<'_>| op::gather::send(turn, root, &own, zero_copy).await)
            }
            (None, Some(own), false) => {
                self.go(each, async move |turn: Turn<'_>| op::scatter::receive(turn, root, &own, zero_copy).await)
            }
            (None, None, _) => None,
        }
    }

    /// Allgather and Alltoall.
    ///
    /// # Safety
    /// As for [`start`].
    unsafe fn unrooted(&self, call: &cr_call) -> Option<i32> {
        let in_place = call.send.in_place != 0;
        // SAFETY: significant, so live by the caller's promise; as below.
        let into = unsafe { predefined(&call.recv).and_then(|_| blocks(&call.recv)) }?;
        // SAFETY: as above.
        let own = if in_place { None } else { Some(unsafe { predefined(&call.send) }?) };
        if self.kind == Kind::Allgather {
            let zero_copy = self.zero_copy.allgather;
            return self.go(into.each, async move |turn: Turn<'_>| {
                op::allgather::allgather(turn, own.as_ref(), &into, zero_copy).await
            });
        }
        // SAFETY: as above.
        let out = if in_place { None } else { Some(unsafe { blocks(&call.send) }?) };
        let zero_copy = self.zero_copy.alltoall;
        self.go(into.each, async move |turn: Turn<'_>| {
            op::alltoall::alltoall(turn, out.as_ref(), &into, zero_copy).await
        })
    }

    /// Reduce and Allreduce.
    ///
    /// # Safety
    /// As for [`start`].
    unsafe fn reduction(&self, call: &cr_call) -> Option<i32> {
        let is_target = self.kind == Kind::Allreduce || call.root as u32 == self.comm.rank();
        let side = if is_target { &call.recv } else { &call.send };
        // SAFETY: live by the caller's promise, as below.
        let size = unsafe { if glue::cr_dtype_is_predefined(side.dtype) != 0 { plain(side.dtype) } else { None } }?;
        let count = side.count;
        let output = bytes(call.recv.buf, size, count)?.0;
        let input = if call.send.in_place != 0 { output } else { bytes(call.send.buf, size, count)?.0 };
        // Asked before there is a turn: one that is dropped fails the team.
        // SAFETY: as above.
        if unsafe { glue::cr_op_is_plain(call.op, side.dtype) } == 0 || !self.team.fits(size) {
            return None;
        }
        let len = input.len();
        let units = |span: Span| Span::new(span.ptr(), count, size as isize);
        let (input, output) = (units(input), units(output));
        let elements = Elements { dtype: side.dtype, op: call.op, size };
        if self.kind == Kind::Reduce {
            let root = call.root as usize;
            return self
                .go(len, async move |turn: Turn<'_>| op::reduce::reduce(turn, root, &elements, input, output).await);
        }
        let mut op = glue::cr_op_info::default();
        if size * count == 4 {
            // SAFETY: live, as above; fills in ours.
            unsafe { glue::cr_op_info(call.op, side.dtype, &mut op) };
        }
        if op.extremum != 0 {
            return None; // it may be Open MPI's own: see `Call::is_like_agreement`
        }
        let zero_copy = self.zero_copy.allreduce;
        self.go(len, async move |turn: Turn<'_>| {
            op::allreduce::allreduce(turn, &elements, input, output, zero_copy).await
        })
    }
}
