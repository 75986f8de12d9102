//! Calls on plain data, blocking and nonblocking ones. What they do is one future of the operation alone, on the caller's stack or in one piece of memory,
//! instead of one within the other for each branch that a call may take.

pub use super::plain::{PlainBlocks, blocks, stream};
use super::plain::{bytes, plain};
use super::{Elements, needs_queue, zero_copy};
use crate::endpoint::{Result, Span};
use crate::ffi::blocking::{self, InTeam};
use crate::ffi::comm::Comm;
use crate::ffi::engine::start_on_stream;
use crate::ffi::glue::{self, cr_call, cr_side, ompi_datatype_t, ompi_request_t};
use crate::ffi::kind::{Kind, Mode};
use crate::ffi::neighbor::has_equal_blocks;
use crate::ffi::{counters, operation};
use crate::shm::layout::LINE;
use crate::shm::op;
use crate::shm::rates::Thresholds;
use crate::shm::team::Team;
use crate::shm::turn::Turn;
use crate::shm::turn::waits::Blocks;
use crate::sync::wait::Patience;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// A call on plain data, and the door that it comes by: blocking or nonblocking.
#[derive(Clone, Copy)]
struct At<'c, const BLOCKING: bool> {
    comm: &'c Arc<Comm>,
    team: &'c Team,
    kind: Kind,
    /// Where the request goes, if it does not block.
    request: *mut *mut ompi_request_t,
}

/// Does an operation [`At`] a door, or starts it; `len`: as for [`needs_queue`]. A macro, since no function that is given the operation as an `async` closure
/// takes as little: a future within another took 40 instructions more, of a Bcast's 530.
macro_rules! go {
    ($at:ident, $len:expr, |$turn:ident| $operation:expr) => {
        if BLOCKING {
            let patience = Cell::default();
            let $turn = $at.turn($len, &patience)?;
            $at.finish($operation)
        } else {
            $at.begin($len, async move |$turn: Turn<'_>| $operation.await)
        }
    };
}

/// Does a blocking call on plain data, without looking at more than it must. `None`: by the way of all calls, please.
///
/// # Safety
/// As for [`Call::new`](crate::ffi::call::Call::new).
#[inline(always)]
pub unsafe fn quick(comm: &Arc<Comm>, call: &cr_call) -> Option<i32> {
    if !comm.is_quick(call.kind) {
        return None;
    }
    let (team, kind) = (comm.team.get()?, Kind::from_number(call.kind)?);
    // SAFETY: by the caller's promise.
    unsafe { At::<true> { comm, team, kind, request: ptr::null_mut() }.through(call) }
}

/// Starts a nonblocking call likewise; stores its request. Those of vector forms, whose arrays would have to be copied, and of the other reductions go
/// by the way of all calls.
///
/// # Safety
/// As for [`engine::start`](crate::ffi::engine::start).
#[inline(always)]
pub unsafe fn start(comm: &Arc<Comm>, call: &cr_call, request: *mut *mut ompi_request_t) -> Option<i32> {
    if !comm.is_quick(call.kind) {
        return None;
    }
    let (team, kind) = (comm.team.get()?, Kind::from_number(call.kind)?);
    match kind {
        Kind::Barrier | Kind::Bcast | Kind::Reduce | Kind::Allreduce => {}
        Kind::Gather | Kind::Scatter | Kind::Allgather | Kind::Alltoall => {}
        _ => return None,
    }
    // SAFETY: by the caller's promise.
    unsafe { At::<false> { comm, team, kind, request }.through(call) }
}

impl<'c, const BLOCKING: bool> At<'c, BLOCKING> {
    #[inline(always)]
    fn needs_queue(self, len: usize) -> bool {
        needs_queue(self.kind, Some(len), self.team.size())
    }

    /// The next turn on the stream of blocking operations.
    #[inline(always)]
    fn turn<'p>(self, len: usize, patience: &'p Cell<Patience>) -> Option<Turn<'c, Blocks<InTeam<'p>>>>
    where
        'c: 'p,
    {
        self.team
            .turn(0, 0, self.needs_queue(len))
            .map(|turn| turn.waiting(Blocks(InTeam { team: self.team, patience })))
    }

    /// Does a blocking operation.
    #[inline(always)]
    fn finish(self, operation: impl Future<Output = Result<()>>) -> Option<i32> {
        counters::handled(self.kind, Mode::Blocking);
        // SAFETY: those of `op` are async blocks, or functions that only await such, and wait as the turn says.
        let result = unsafe { blocking::finish(operation, self.team) };
        Some(result.map_or_else(operation::code, |()| 0))
    }

    /// Starts one that does not block, if there is memory for it.
    #[inline(always)]
    fn begin(self, len: usize, operation: impl AsyncFnOnce(Turn<'_>) -> Result<()> + Send + 'static) -> Option<i32> {
        let queue = self.needs_queue(len);
        let number = self.comm.team.number_for(|slot| self.team.is_open(slot, 0, queue))?;
        // SAFETY: it may be written by the promise of `start`'s caller. Operations hold numbers and addresses of the user's buffers across their awaits, which
        // last as long as the request; no arrays.
        Some(unsafe { start_on_stream(self.comm, (self.kind, number, queue), self.request, operation) })
    }

    /// From how many bytes on data are read from another process' memory. `len`: bytes of each block, or of all data, where all members know them. Not looked up
    /// where those travel in a line in any case.
    #[inline(always)]
    fn zero_copy(self, len: Option<usize>, of: impl FnOnce(&Thresholds) -> usize) -> usize {
        match len {
            Some(..=LINE) => usize::MAX,
            _ => of(&zero_copy(self.comm, self.team, BLOCKING || self.comm.team.has_learned(), BLOCKING)),
        }
    }

    /// Whether data of this type may come by this door: not of a derived one where Open MPI's binding retains it for the request.
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
    unsafe fn blocks(self, side: &cr_side) -> Option<PlainBlocks> {
        // SAFETY: by the caller's promise.
        unsafe { if self.admits(side.dtype) { blocks(side) } else { None } }
    }

    /// Does the call, or starts it.
    ///
    /// # Safety
    /// As for [`quick`] and [`start`].
    #[inline(always)]
    unsafe fn through(self, call: &cr_call) -> Option<i32> {
        match self.kind {
            Kind::Barrier => go!(self, 0, |turn| op::barrier::barrier(turn)),
            Kind::Bcast => {
                // SAFETY: significant, so live by the caller's promise.
                let data = unsafe { self.stream(&call.recv) }?;
                let (root, zero_copy) = (call.root as usize, self.zero_copy(Some(data.len()), |from| from.bcast));
                go!(self, data.len(), |turn| op::bcast::bcast(turn, root, &data, zero_copy))
            }
            // SAFETY: by the caller's promise.
            Kind::Gather | Kind::Gatherv | Kind::Scatter | Kind::Scatterv => unsafe { self.rooted(call) },
            // SAFETY: as above.
            Kind::Allgather | Kind::Allgatherv | Kind::Alltoall | Kind::Alltoallv => unsafe { self.unrooted(call) },
            Kind::Alltoallw | Kind::NeighborAlltoallw => None, // of several datatypes
            // SAFETY: as above.
            kind if kind.is_neighbor() => unsafe { self.neighbor(call) },
            // SAFETY: as above.
            _ => unsafe { self.reduction(call) },
        }
    }

    /// Gather and Scatter and their vector forms.
    ///
    /// # Safety
    /// As for [`through`](At::through).
    unsafe fn rooted(self, call: &cr_call) -> Option<i32> {
        let (root, is_root) = (call.root as usize, call.root as u32 == self.comm.rank());
        let gathers = matches!(self.kind, Kind::Gather | Kind::Gatherv);
        let (all, own) = if gathers { (&call.recv, &call.send) } else { (&call.send, &call.recv) };
        // SAFETY: significant, so live by the caller's promise; as below.
        let all = if is_root { Some(unsafe { self.blocks(all) }?) } else { None };
        // SAFETY: as above.
        let own = if own.in_place != 0 { None } else { Some(unsafe { self.stream(own) }?) };
        let each = all.as_ref().map(|all| all.each).or(own.as_ref().map(|own| own.len()))?;
        let known = (self.kind == Kind::Gather).then_some(each);
        let zero_copy = self.zero_copy(known, |from| if gathers { from.gather } else { from.scatter });
        match (all, own, gathers) {
            (Some(all), own, true) => go!(self, each, |turn| op::gather::receive(turn, own.as_ref(), &all, zero_copy)),
            (Some(all), own, false) => go!(self, each, |turn| op::scatter::send(turn, &all, own.as_ref(), zero_copy)),
            (None, Some(own), true) => go!(self, each, |turn| op::gather::send(turn, root, &own, zero_copy)),
            (None, Some(own), false) => go!(self, each, |turn| op::scatter::receive(turn, root, &own, zero_copy)),
            (None, None, _) => None,
        }
    }

    /// Allgather and Alltoall and their vector forms.
    ///
    /// # Safety
    /// As for [`through`](At::through).
    unsafe fn unrooted(self, call: &cr_call) -> Option<i32> {
        let in_place = call.send.in_place != 0;
        // SAFETY: significant, so live by the caller's promise; as below.
        let into = unsafe { self.blocks(&call.recv) }?;
        let each = into.each;
        if matches!(self.kind, Kind::Allgather | Kind::Allgatherv) {
            // SAFETY: as above.
            let own = if in_place { None } else { Some(unsafe { self.stream(&call.send) }?) };
            let known = (self.kind == Kind::Allgather).then_some(each);
            let zero_copy = self.zero_copy(known, |from| from.allgather);
            return go!(self, each, |turn| op::allgather::allgather(turn, own.as_ref(), &into, zero_copy));
        }
        // SAFETY: as above.
        let out = if in_place { None } else { Some(unsafe { self.blocks(&call.send) }?) };
        let zero_copy = self.zero_copy(None, |from| from.alltoall);
        go!(self, each, |turn| op::alltoall::alltoall(turn, out.as_ref(), &into, zero_copy))
    }

    /// The reductions.
    ///
    /// # Safety
    /// As for [`through`](At::through).
    unsafe fn reduction(self, call: &cr_call) -> Option<i32> {
        let (team, kind) = (self.team, self.kind);
        let is_target = kind != Kind::Reduce || call.root as u32 == self.comm.rank();
        let side = if is_target { &call.recv } else { &call.send };
        // SAFETY: live by the caller's promise, as below.
        let size = unsafe { if self.admits(side.dtype) { plain(side.dtype) } else { None } }?;
        // Asked before there is a turn: one that is dropped fails the team.
        // SAFETY: as above.
        if unsafe { glue::cr_op_is_plain(call.op, side.dtype) } == 0 || !team.fits(size) {
            return None;
        }
        let counts = |member: usize| match side.counts.is_null() {
            true => side.count,
            false => usize::try_from(PlainBlocks::of(side.counts, member)).unwrap_or(0),
        };
        let count = match kind {
            Kind::ReduceScatter | Kind::ReduceScatterBlock => {
                (0..team.size()).map(counts).try_fold(0, usize::checked_add)?
            }
            _ => side.count,
        };
        let output = bytes(call.recv.buf, size, count)?;
        let input = if call.send.in_place != 0 { output } else { bytes(call.send.buf, size, count)? };
        let (len, root) = (input.len(), call.root as usize);
        let elements = Elements { dtype: side.dtype, op: call.op, size };
        let units = |span: Span| Span::new(span.ptr(), count, size as isize);
        let (input, output) = (units(input), units(output));
        match kind {
            Kind::Reduce => go!(self, len, |turn| op::reduce::reduce(turn, root, &elements, input, output)),
            Kind::Scan | Kind::Exscan => {
                let exclusive = kind == Kind::Exscan;
                go!(self, len, |turn| op::scan::scan(turn, exclusive, &elements, input, output))
            }
            Kind::ReduceScatter | Kind::ReduceScatterBlock => {
                let patience = Cell::default();
                let turn = self.turn(len, &patience)?;
                self.finish(op::reduce_scatter::reduce_scatter(turn, &elements, input, counts, output))
            }
            // SAFETY: as above.
            _ if !BLOCKING && len == 4 && unsafe { is_extremum(&elements) } => None, // maybe Open MPI's own: see `Call::is_like_agreement`
            _ => {
                let zero_copy = self.zero_copy(Some(len), |from| from.allreduce);
                go!(self, len, |turn| op::allreduce::allreduce(turn, &elements, input, output, zero_copy))
            }
        }
    }

    /// The neighbourhood operations, which take a turn with a queue whatever their lengths.
    ///
    /// # Safety
    /// As for [`through`](At::through).
    unsafe fn neighbor(self, call: &cr_call) -> Option<i32> {
        let around = self.comm.neighborhood()?;
        // Without neighbours on one side there are no arrays.
        if (has_equal_blocks(self.kind) && around.known_connected() != Some(true))
            || around.degrees().0.min(around.degrees().1) == 0
        {
            return None;
        }
        let edges = around.known_within()?;
        let patience = Cell::default();
        // SAFETY: significant, so live by the caller's promise; as below.
        let into = unsafe { blocks(&call.recv) }?;
        if matches!(self.kind, Kind::NeighborAllgather | Kind::NeighborAllgatherv) {
            // SAFETY: as above.
            let own = unsafe { stream(&call.send) }?;
            let zero_copy = self.zero_copy(None, |from| from.allgather);
            return self.finish(op::neighbor::spread(self.turn(0, &patience)?, edges, &own, &into, zero_copy));
        }
        // SAFETY: as above.
        let out = unsafe { blocks(&call.send) }?;
        let zero_copy = self.zero_copy(None, |from| from.alltoall);
        self.finish(op::neighbor::exchange(self.turn(0, &patience)?, edges, &out, &into, zero_copy))
    }
}

/// Whether a reduction is by MPI_MAX or MPI_MIN.
///
/// # Safety
/// The operation and the datatype are live.
unsafe fn is_extremum(elements: &Elements) -> bool {
    let mut op = glue::cr_op_info::default();
    // SAFETY: by the caller's promise; fills in ours.
    unsafe { glue::cr_op_info(elements.op, elements.dtype, &mut op) };
    op.extremum != 0
}
