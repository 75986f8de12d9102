//! What short ways know of a reduction.

use super::Elements;
use crate::endpoint::Span;
use crate::ffi::glue;

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
pub(super) unsafe fn is_extremum(elements: &Elements) -> bool {
    let mut op = glue::cr_op_info::default();
    // SAFETY: by the caller's promise; fills in ours.
    unsafe { glue::cr_op_info(elements.op, elements.dtype, &mut op) };
    op.extremum != 0
}
