// SPDX-License-Identifier: BSD-3-Clause
//! Reductions of elements without gaps.

use crate::ffi::base::glue::{self, ompi_datatype_t, ompi_op_t};
use crate::shm::op::Combine;

/// Elements of a predefined type, or of one made of one, and a predefined operation on them.
pub struct Elements {
    /// The type.
    pub dtype: *mut ompi_datatype_t,
    /// The operation.
    pub op: *mut ompi_op_t,
    /// Bytes of an element.
    pub size: usize,
}

// SAFETY: addresses of Open MPI's objects, which any thread may use, and numbers.
unsafe impl Send for Elements {}
// SAFETY: as above.
unsafe impl Sync for Elements {}

impl Combine for Elements {
    #[inline(always)]
    fn size(&self) -> usize {
        self.size
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        unsafe { glue::cr_op_reduce(self.op, left.cast(), right.cast(), count, self.dtype) };
    }

    unsafe fn reduce_into(&self, left: *const u8, right: *const u8, out: *mut u8, count: usize) {
        // SAFETY: by the caller's promise; element by element, so `out` may be an operand.
        unsafe {
            glue::cr_op_reduce_into(self.op, left.cast(), right.cast(), out.cast(), count, self.dtype);
        }
    }
}
