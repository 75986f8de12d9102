//! The user's buffers: datatypes as units, and as packed streams.

use super::glue::{self, cr_dtype_info, ompi_datatype_t};
use crate::endpoint::{Error, Result, Span, Stream};
use std::ffi::c_void;
use std::ptr;

/// A datatype with what the component needs to know of it. Null: bytes.
#[derive(Clone, Copy, Debug)]
pub struct Datatype {
    /// Open MPI's object; null for bytes.
    pub handle: *mut ompi_datatype_t,
    /// Its sizes, for the count it was asked for.
    pub info: cr_dtype_info,
}

// SAFETY: an address of an object that Open MPI shares between threads, and numbers.
unsafe impl Send for Datatype {}
// SAFETY: as above.
unsafe impl Sync for Datatype {}

impl Datatype {
    /// Units of one byte.
    pub const BYTES: Datatype = Datatype {
        handle: ptr::null_mut(),
        info: cr_dtype_info { size: 1, lb: 0, extent: 1, true_lb: 0, true_extent: 1, contiguous: 1, predefined: 1 },
    };

    /// Asks Open MPI about `count` elements of `handle`.
    ///
    /// # Safety
    /// `handle` is a live datatype.
    pub unsafe fn of(handle: *mut ompi_datatype_t, count: usize) -> Datatype {
        let mut info = cr_dtype_info::default();
        // SAFETY: live by the caller's promise; `info` is ours.
        unsafe { glue::cr_dtype_info(handle, count, &mut info) };
        Datatype { handle, info }
    }

    /// Bytes of memory that `count` elements reach over, from the lowest byte used to the highest; `None` on overflow.
    pub fn reach(&self, count: usize) -> Option<usize> {
        if count == 0 {
            return Some(0);
        }
        let steps = isize::try_from(count - 1).ok()?.checked_mul(self.info.extent)?.unsigned_abs();
        steps.checked_add(usize::try_from(self.info.true_extent).ok()?)
    }

    /// From the lowest byte used by `count` elements to the origin of element 0.
    pub fn origin(&self, count: usize) -> isize {
        let last = self.info.extent.wrapping_mul(count.saturating_sub(1) as isize);
        -(self.info.true_lb.wrapping_add(last.min(0)))
    }
}

/// `count` elements at `buffer` as the packed stream of their datatype.
#[derive(Clone, Copy, Debug)]
pub struct HostStream {
    dtype: Datatype,
    count: usize,
    buffer: *mut c_void,
    len: usize,
}

// SAFETY: an address; accesses follow the rules of the operation that owns the buffer for its duration.
unsafe impl Send for HostStream {}
// SAFETY: as above.
unsafe impl Sync for HostStream {}

impl HostStream {
    /// The stream of `count` elements at `buffer`.
    pub fn new(dtype: Datatype, count: usize, buffer: *mut c_void) -> HostStream {
        HostStream { dtype, count, buffer, len: dtype.info.size.saturating_mul(count) }
    }
}

fn check(code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::Mpi(code)) }
}

impl Stream for HostStream {
    fn len(&self) -> usize {
        self.len
    }

    fn direct(&self) -> Option<Span> {
        let start = self.buffer.cast::<u8>().wrapping_offset(self.dtype.info.true_lb);
        (self.dtype.info.contiguous != 0).then(|| Span::new(start, self.len, 1))
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        // SAFETY: the user's buffer holds `count` elements, `to` is `to.len()` bytes of ours, and the two do not overlap.
        check(unsafe { glue::cr_pack(self.dtype.handle, self.count, self.buffer, at, to.ptr().cast(), to.len()) })
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        // SAFETY: as in `pack`, the other way.
        check(unsafe { glue::cr_unpack(self.dtype.handle, self.count, self.buffer, at, from.ptr().cast(), from.len()) })
    }
}
