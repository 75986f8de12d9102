// SPDX-License-Identifier: BSD-3-Clause
//! Plain data: runs of bytes, and blocks of them.

use crate::endpoint::{Blocks, Result, Span};
use crate::ffi::base::glue::{self, cr_count, cr_displ, cr_side, ompi_datatype_t};
use std::ffi::c_void;
use std::ops::Range;

/// Blocks of plain data: of equal length and one after the other, or as the user's arrays say.
pub struct PlainBlocks {
    buffer: *mut u8,
    /// Bytes of an element.
    size: usize,
    /// Bytes of each block where there are no `counts`.
    pub each: usize,
    counts: *const cr_count,
    displs: *const cr_displ,
}

// SAFETY: addresses of the user's buffer and arrays; accesses follow the rules of the operation that owns
// them for its duration.
unsafe impl Sync for PlainBlocks {}
// SAFETY: as above.
unsafe impl Send for PlainBlocks {}

impl PlainBlocks {
    /// An element of one of the user's arrays.
    ///
    /// # Safety
    /// The array has an element for the member.
    #[inline(always)]
    pub unsafe fn entry(array: *const i32, member: usize) -> isize {
        // SAFETY: by the caller's promise.
        unsafe { *array.add(member) as isize }
    }
}

/// How many these are: of a range that is not turned round, so that the compiler knows it of one member.
#[inline(always)]
fn count(members: &Range<usize>) -> usize {
    members.end.wrapping_sub(members.start)
}

impl Blocks for PlainBlocks {
    #[inline(always)]
    fn len(&self, member: usize) -> usize {
        match self.counts.is_null() {
            true => self.each,
            // SAFETY: the arrays of a side have an element for each member, and last as long as these blocks:
            // the promise of `blocks`.
            false => usize::try_from(unsafe { Self::entry(self.counts, member) }).unwrap_or(0) * self.size,
        }
    }

    #[inline(always)]
    fn each(&self) -> Option<usize> {
        self.counts.is_null().then_some(self.each)
    }

    /// Of one member, or of several where blocks are equal: others are not asked for in shared memory.
    #[inline(always)]
    fn direct(&self, members: Range<usize>) -> Option<Span> {
        let (member, many) = (members.start, count(&members));
        let (shift, len) = match self.displs.is_null() {
            true => ((member * self.each) as isize, many * self.each),
            false if many == 1 => {
                // SAFETY: as in `len`.
                let start = unsafe { Self::entry(self.displs, member) };
                (start * self.size as isize, self.len(member))
            }
            false => return None,
        };
        // SAFETY: the user's buffer holds these blocks: the promise of `blocks`.
        Some(unsafe { Span::new(self.buffer.wrapping_offset(shift), len, 1) })
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(()) // never called, as above
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(())
    }
}

/// Blocks of equal length, one after the other. Of a type of their own: a short call asks for each block
/// several times where it is.
pub struct EqualBlocks {
    buffer: *mut u8,
    /// Bytes of each.
    each: usize,
}

// SAFETY: as for `PlainBlocks`.
unsafe impl Sync for EqualBlocks {}
// SAFETY: as above.
unsafe impl Send for EqualBlocks {}

impl Blocks for EqualBlocks {
    #[inline(always)]
    fn len(&self, _: usize) -> usize {
        self.each
    }

    #[inline(always)]
    fn each(&self) -> Option<usize> {
        Some(self.each)
    }

    #[inline(always)]
    fn direct(&self, members: Range<usize>) -> Option<Span> {
        let start = self.buffer.wrapping_add(members.start * self.each);
        // SAFETY: the user's buffer holds these blocks: the promise of `PlainSide::of`.
        Some(unsafe { Span::new(start, count(&members) * self.each, 1) })
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(()) // never called, as all are direct
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(())
    }
}

/// The blocks of an operation: which type they have depends on whether it is a vector form.
pub trait PlainSide: Blocks + Send + Sized + 'static {
    /// Whether they use the user's arrays, which last as long as the call: not for what goes on behind it.
    const BORROWS: bool;

    /// The blocks of a side; `None` where they are not plain, and, where they are equal, without any element.
    ///
    /// # Safety
    /// As for [`blocks`].
    unsafe fn of(side: &cr_side) -> Option<Self>;
}

impl PlainSide for EqualBlocks {
    const BORROWS: bool = false;

    #[inline(always)]
    unsafe fn of(side: &cr_side) -> Option<EqualBlocks> {
        // SAFETY: by the caller's promise.
        let each = unsafe { plain(side.dtype) }?.checked_mul(side.count).filter(|&each| each > 0)?;
        Some(EqualBlocks { buffer: side.buf.cast(), each })
    }
}

impl PlainSide for PlainBlocks {
    const BORROWS: bool = true;

    #[inline(always)]
    unsafe fn of(side: &cr_side) -> Option<PlainBlocks> {
        // SAFETY: by the caller's promise.
        unsafe { blocks(side) }
    }
}

/// Bytes of an element of a datatype without gaps; `None` for others, and where it has none.
///
/// # Safety
/// The datatype is live.
#[inline(always)]
pub unsafe fn plain(dtype: *mut ompi_datatype_t) -> Option<usize> {
    // SAFETY: by the caller's promise.
    let size = unsafe { glue::cr_dtype_plain(dtype) };
    (size > 0).then_some(size)
}

/// `count` elements; `None` without any.
///
/// # Safety
/// The buffer holds them until the operation is over.
#[inline(always)]
pub unsafe fn bytes(buffer: *mut c_void, size: usize, count: usize) -> Option<Span> {
    let len = size.checked_mul(count).filter(|&len| len > 0)?;
    // SAFETY: by the caller's promise.
    Some(unsafe { Span::new(buffer.cast(), len, 1) })
}

/// The elements of a side without blocks; `None` where they are not plain, and without any.
///
/// # Safety
/// The side is significant: its datatype is live, and its buffer is the caller's until the operation is over.
#[inline(always)]
pub unsafe fn stream(side: &cr_side) -> Option<Span> {
    // SAFETY: by the caller's promise.
    unsafe { bytes(side.buf, plain(side.dtype)?, side.count) }
}

/// The blocks of a side; `None` where they are not plain, where arrays are not of ints, and, where they are
/// equal, without any element.
///
/// # Safety
/// As for [`stream`]; and its arrays, which have an element for each member, last as long as the blocks.
#[inline(always)]
pub unsafe fn blocks(side: &cr_side) -> Option<PlainBlocks> {
    // SAFETY: by the caller's promise.
    let size = unsafe { plain(side.dtype) }?;
    let each = match side.counts.is_null() {
        true => size.checked_mul(side.count).filter(|&each| each > 0)?,
        false if side.big != 0 => return None,
        false => 0,
    };
    Some(PlainBlocks { buffer: side.buf.cast(), size, each, counts: side.counts, displs: side.displs })
}
