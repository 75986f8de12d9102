// SPDX-License-Identifier: BSD-3-Clause
//! Short ways of reductions.

use super::At;
use crate::endpoint::Span;
use crate::ffi::base::glue::{self, cr_call, cr_side};
use crate::ffi::base::kind::Kind;
use crate::ffi::call::plain::{bytes, plain};
use crate::ffi::mpi::elements::Elements;
use crate::shm::op::short::reductions::{AtRoot, Prefix, Reduction, Role, ToAll, ToRoot};
use crate::shm::policy::choose::PASSED_ON;

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
        if call.root as u32 == self.comm.rank() {
            // SAFETY: significant, by the caller's promise; as below.
            return self.combine(unsafe { self.reduction(AtRoot, call, &call.recv, call.recv.count) }?, usize::MAX);
        }
        let role = ToRoot(call.root as usize);
        // SAFETY: as above.
        self.combine(unsafe { self.reduction(role, call, &call.send, call.send.count) }?, usize::MAX)
    }

    /// Allreduce.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn allreduce(self, call: &cr_call) -> Option<i32> {
        // SAFETY: by the caller's promise.
        let all = unsafe { self.reduction((), call, &call.recv, call.recv.count) }?;
        let bytes = all.bytes();
        // SAFETY: as above.
        if !BLOCKING && bytes == 4 && unsafe { is_extremum(&all.op) } {
            return None; // maybe Open MPI's own: see `Call::is_like_agreement`
        }
        let (still, limit) = (self.team.lies_still(bytes), || self.zero_copy(Some(bytes), |from| from.allreduce));
        let Reduction { op, input, output, .. } = all;
        self.go(bytes, still, limit, |zero_copy| Reduction { role: ToAll { zero_copy }, op, input, output })
    }

    /// Scan and Exscan.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub unsafe fn scan(self, call: &cr_call) -> Option<i32> {
        let role = Prefix { exclusive: self.kind == Kind::Exscan };
        // SAFETY: by the caller's promise.
        self.combine(unsafe { self.reduction(role, call, &call.recv, call.recv.count) }?, PASSED_ON)
    }

    /// Does or starts a reduction that reads nothing elsewhere. `most`: so many bytes do not lie still.
    #[inline(always)]
    fn combine<R>(self, reduction: Reduction<Elements, R>, most: usize) -> Option<i32>
    where
        R: Role<Elements> + Send + 'static,
    {
        let bytes = reduction.bytes();
        self.go(bytes, self.team.lies_still(bytes) && bytes < most, || usize::MAX, |_| reduction)
    }

    /// A reduction of so many elements of the significant `side`.
    ///
    /// # Safety
    /// As for [`barrier`](At::barrier).
    #[inline(always)]
    pub(super) unsafe fn reduction<R>(
        self,
        role: R,
        call: &cr_call,
        side: &cr_side,
        count: usize,
    ) -> Option<Reduction<Elements, R>> {
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
        let op = Elements { dtype: side.dtype, op: call.op, size };
        // SAFETY: the same memory, in elements.
        let units = |span: Span| unsafe { Span::new(span.ptr(), count, size as isize) };
        Some(Reduction { role, op, input: units(input), output: units(output) })
    }
}
