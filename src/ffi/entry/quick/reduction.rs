//! Short ways of reductions.

use super::At;
use crate::endpoint::Span;
use crate::ffi::base::glue::{self, cr_call, cr_side};
use crate::ffi::base::kind::Kind;
use crate::ffi::call::plain::{bytes, plain};
use crate::ffi::mpi::elements::Elements;
use crate::shm::op::short::reductions::{Allreduce, Contribute, Reduce, Scan};
use crate::shm::policy::choose::PASSED_ON;

/// What a reduction is about: elements, as the units of both spans.
pub(super) struct Reduction {
    pub elements: Elements,
    pub input: Span,
    pub output: Span,
    /// Bytes of each.
    pub bytes: usize,
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

impl<const BLOCKING: bool> At<'_, BLOCKING> {
    /// Reduce.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn reduce(self, call: &cr_call) -> Option<i32> {
        let root = call.root as usize;
        let side = if call.root as u32 == self.comm.rank() { &call.recv } else { &call.send };
        // SAFETY: significant, by the caller's promise.
        let Reduction { elements, input, output, bytes } = unsafe { self.reduction(call, side, side.count) }?;
        let still = self.team.lies_still(bytes);
        let reduce = Reduce { root, op: elements, input, output };
        match call.root as u32 == self.comm.rank() {
            true => self.go(bytes, still, || usize::MAX, |_| reduce),
            false => self.go(bytes, still, || usize::MAX, |_| Contribute(reduce)),
        }
    }

    /// Allreduce.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn allreduce(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        let Reduction { elements, input, output, bytes } =
            unsafe { self.reduction(call, &call.recv, call.recv.count) }?;
        // SAFETY: as above.
        if !BLOCKING && bytes == 4 && unsafe { is_extremum(&elements) } {
            return None; // maybe Open MPI's own: see `Call::is_like_agreement`
        }
        let (still, limit) = (self.team.lies_still(bytes), || self.zero_copy(Some(bytes), |from| from.allreduce));
        self.go(bytes, still, limit, |zero_copy| Allreduce { op: elements, input, output, zero_copy })
    }

    /// Scan and Exscan.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn scan(self, call: &cr_call) -> Option<i32> {
        let exclusive = self.kind == Kind::Exscan;
        // SAFETY: by the caller's promise.
        let Reduction { elements, input, output, bytes } =
            unsafe { self.reduction(call, &call.recv, call.recv.count) }?;
        let still = self.team.lies_still(bytes) && bytes < PASSED_ON;
        self.go(bytes, still, || usize::MAX, |_| Scan { exclusive, op: elements, input, output })
    }

    /// The elements of a reduction: so many of the significant `side`.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub(super) unsafe fn reduction(self, call: &cr_call, side: &cr_side, count: usize) -> Option<Reduction> {
        // SAFETY: live by the caller's promise, as below.
        let size = unsafe { if self.admits(side.dtype) { plain(side.dtype) } else { None } }?;
        // Asked before there is a turn: one that is dropped fails the team.
        // SAFETY: as above.
        if unsafe { glue::cr_op_is_plain(call.op, side.dtype) } == 0 || !self.team.fits(size) {
            return None;
        }
        // SAFETY: the buffers are the caller's until the operation is over, by its promise; as below.
        let output = unsafe { bytes(call.recv.buf, size, count) }?;
        // SAFETY: as above.
        let input = if call.send.in_place != 0 { output } else { unsafe { bytes(call.send.buf, size, count) }? };
        let elements = Elements { dtype: side.dtype, op: call.op, size };
        // SAFETY: the same memory, in elements.
        let units = |span: Span| unsafe { Span::new(span.ptr(), count, size as isize) };
        Some(Reduction { elements, input: units(input), output: units(output), bytes: input.len() })
    }
}
