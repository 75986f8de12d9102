// SPDX-License-Identifier: BSD-3-Clause
//! The user's buffers: datatypes as units, as packed streams, and as blocks of such streams.

mod arrays;

pub use arrays::{Array, Counts, Starts};

use crate::endpoint::{Blocks, Error, Result, Span, Stream};
use crate::ffi::base::glue::{self, CR_BIG_COUNTS, cr_dtype_info, cr_side, ompi_datatype_t};
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

/// A datatype with what the component needs to know of it. Null: bytes.
#[derive(Clone, Copy, Debug)]
pub struct Datatype {
    /// Open MPI's object; null for bytes.
    pub handle: *mut ompi_datatype_t,
    /// Its sizes.
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
        info: cr_dtype_info {
            size: 1,
            lb: 0,
            extent: 1,
            true_lb: 0,
            true_extent: 1,
            gapless: 1,
            tiles: 1,
            predefined: 1,
        },
    };

    /// Asks Open MPI about `handle`. Null: bytes.
    ///
    /// # Safety
    /// `handle` is a live datatype, or null.
    pub unsafe fn of(handle: *mut ompi_datatype_t) -> Datatype {
        if handle.is_null() {
            return Datatype::BYTES;
        }
        let mut info = cr_dtype_info::default();
        // SAFETY: live by the caller's promise; `info` is ours.
        unsafe { glue::cr_dtype_info(handle, &mut info) };
        Datatype { handle, info }
    }

    /// Packed bytes of `count` elements.
    pub fn bytes(&self, count: usize) -> usize {
        self.info.size.saturating_mul(count)
    }

    /// Whether `count` elements are one run of bytes, which starts at the true lower bound.
    pub fn is_run(&self, count: usize) -> bool {
        self.info.tiles != 0 || (count <= 1 && self.info.gapless != 0)
    }

    /// Bytes of memory that `count` elements reach over, from the lowest byte used to the highest; `None` on
    /// overflow.
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
    /// It lies in a device's memory, which only the convertor may access.
    device: bool,
}

// SAFETY: an address; accesses follow the rules of the operation that owns the buffer for its duration.
unsafe impl Send for HostStream {}
// SAFETY: as above.
unsafe impl Sync for HostStream {}

impl HostStream {
    /// The stream of `count` elements at `buffer`.
    pub fn new(dtype: Datatype, count: usize, buffer: *mut c_void) -> HostStream {
        HostStream { dtype, count, buffer, len: dtype.bytes(count), device: false }
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
        // SAFETY: the user's buffer holds so many elements, which are one run.
        (self.dtype.is_run(self.count) && !self.device).then(|| unsafe { Span::new(start, self.len, 1) })
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        // SAFETY: the user's buffer holds `count` elements, `to` is `to.len()` bytes of ours, and the two do
        // not overlap.
        check(unsafe { glue::cr_pack(self.dtype.handle, self.count, self.buffer, at, to.ptr().cast(), to.len()) })
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        // SAFETY: as in `pack`, the other way.
        check(unsafe { glue::cr_unpack(self.dtype.handle, self.count, self.buffer, at, from.ptr().cast(), from.len()) })
    }
}

/// How the data of a buffer lie in it. A block is for each rank, or for each neighbour.
#[derive(Clone, Debug)]
pub enum Layout<'a> {
    /// Elements; where there are blocks, so many for each, one block after the other.
    Equal { dtype: Datatype, count: usize },
    /// Blocks: so many elements, from so many extents on. Without displacements, one block after the other.
    Vector { dtype: Datatype, counts: Counts<'a>, displs: Option<Starts<'a>> },
    /// Blocks: so many elements of a datatype of its own, from so many bytes on.
    Typed { dtypes: Array<'a, *mut ompi_datatype_t>, counts: Counts<'a>, starts: Starts<'a> },
}

/// The data that a call sends, or those that it receives; with the user's arrays, or copies of them.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// The user's buffer.
    pub buffer: *mut c_void,
    /// What lies in it.
    pub layout: Layout<'a>,
    /// It lies in a device's memory: nobody reads or writes it but the convertor.
    pub device: bool,
}

// SAFETY: addresses of the user's buffer and of Open MPI's objects; accesses follow the rules of the
// operation that owns the buffer for its duration.
unsafe impl Send for Side<'_> {}
// SAFETY: as above.
unsafe impl Sync for Side<'_> {}

impl<'a> Side<'a> {
    /// No data.
    pub const NOTHING: Side<'static> =
        Side { buffer: ptr::null_mut(), layout: Layout::Equal { dtype: Datatype::BYTES, count: 0 }, device: false };

    /// Takes over what a call says, of so many blocks where it has arrays. `known`: a datatype that was asked
    /// for before, maybe the same.
    ///
    /// # Safety
    /// The side is significant: its handles are live, and its arrays have so many elements, and last as long
    /// as `side`.
    #[inline]
    pub unsafe fn new(side: &'a cr_side, blocks: usize, known: Option<Datatype>) -> Side<'a> {
        let dtype = match known {
            Some(known) if known.handle == side.dtype => known,
            // SAFETY: live by the caller's promise; null where every block has its own.
            _ => unsafe { Datatype::of(side.dtype) },
        };
        // SAFETY: by the caller's promise, of the arrays that there are.
        let (counts, starts, dtypes) = unsafe {
            let counts = match side.big as u32 & CR_BIG_COUNTS {
                0 => Counts::Ints(Array::borrowed(side.counts, blocks)),
                _ => Counts::Big(Array::borrowed(side.counts.cast(), blocks)),
            };
            let starts = match side.wide.is_null() {
                true => Starts::Narrow(Array::borrowed(side.displs, blocks)),
                false => Starts::Wide(Array::borrowed(side.wide, blocks)),
            };
            (counts, starts, Array::borrowed(side.dtypes, blocks))
        };
        let given = !(side.displs.is_null() && side.wide.is_null());
        let layout = match (side.counts.is_null(), side.dtypes.is_null()) {
            (true, _) => Layout::Equal { dtype, count: side.count },
            (false, true) => Layout::Vector { dtype, counts, displs: given.then_some(starts) },
            (false, false) => Layout::Typed { dtypes, counts, starts },
        };
        Side { buffer: side.buf, layout, device: false }
    }

    /// Copies the arrays: the call may end before the operation does.
    pub fn own(self) -> Side<'static> {
        let layout = match self.layout {
            Layout::Equal { dtype, count } => Layout::Equal { dtype, count },
            Layout::Vector { dtype, counts, displs } => {
                Layout::Vector { dtype, counts: counts.own(), displs: displs.map(Starts::own) }
            }
            Layout::Typed { dtypes, counts, starts } => {
                Layout::Typed { dtypes: dtypes.own(), counts: counts.own(), starts: starts.own() }
            }
        };
        Side { buffer: self.buffer, layout, device: self.device }
    }

    /// The datatype of all elements; bytes where every block has its own.
    pub fn dtype(&self) -> Datatype {
        match self.layout {
            Layout::Equal { dtype, .. } | Layout::Vector { dtype, .. } => dtype,
            Layout::Typed { .. } => Datatype::BYTES,
        }
    }

    /// Every datatype in it.
    pub fn dtypes(&self) -> impl Iterator<Item = *mut ompi_datatype_t> {
        let (one, several) = match &self.layout {
            Layout::Equal { dtype, .. } | Layout::Vector { dtype, .. } => (Some(dtype.handle), &[][..]),
            Layout::Typed { dtypes, .. } => (None, dtypes.all()),
        };
        one.into_iter().chain(several.iter().copied()).filter(|handle| !handle.is_null())
    }

    /// All elements, of a side without blocks, as one stream.
    pub fn stream(&self) -> HostStream {
        HostStream { device: self.device, ..HostStream::new(self.dtype(), self.count(), self.buffer) }
    }

    /// So many elements, so many bytes from the origin of the buffer.
    fn stream_at(&self, dtype: Datatype, count: usize, shift: isize) -> HostStream {
        let buffer = self.buffer.cast::<u8>().wrapping_offset(shift).cast();
        HostStream { device: self.device, ..HostStream::new(dtype, count, buffer) }
    }

    /// If they are one run: elements from number `before` on, so many.
    fn run(&self, dtype: Datatype, before: usize, count: usize) -> Option<Span> {
        match self.stream_at(dtype, count, dtype.info.extent.wrapping_mul(before as isize)) {
            block if block.is_empty() => Some(Span::empty()),
            block => block.direct(),
        }
    }

    /// Elements in the block of a rank; 0 where every block has a datatype of its own.
    pub fn part(&self, rank: usize) -> usize {
        match &self.layout {
            Layout::Equal { count, .. } => *count,
            Layout::Vector { counts, .. } => counts.of(rank),
            Layout::Typed { .. } => 0,
        }
    }

    /// Elements, without regard to blocks; 0 where every block has a datatype of its own.
    pub fn count(&self) -> usize {
        match &self.layout {
            Layout::Equal { count, .. } => *count,
            Layout::Vector { counts, .. } => counts.before(counts.blocks()),
            Layout::Typed { .. } => 0,
        }
    }
}

/// A buffer with a block for each rank, or for each neighbour, each block as the packed stream of its
/// datatype.
pub struct HostBlocks<'s> {
    side: &'s Side<'s>,
    /// All blocks, where every one has a datatype of its own: Open MPI is asked about each only once.
    typed: Vec<HostStream>,
}

impl HostBlocks<'_> {
    /// The blocks of a side.
    pub fn new<'s>(side: &'s Side<'s>) -> HostBlocks<'s> {
        let Layout::Typed { dtypes, counts, starts } = &side.layout else {
            return HostBlocks { side, typed: Vec::new() };
        };
        let mut dtype = Datatype::BYTES;
        let all = dtypes.all().iter().enumerate();
        let block = |(number, &handle): (usize, &*mut ompi_datatype_t)| {
            if handle != dtype.handle {
                // SAFETY: the handles of a significant side are live.
                dtype = unsafe { Datatype::of(handle) };
            }
            side.stream_at(dtype, counts.of(number), starts.of(number))
        };
        HostBlocks { side, typed: all.map(block).collect() }
    }

    /// The block of a rank.
    #[inline]
    pub fn block(&self, rank: usize) -> HostStream {
        let apart = |dtype: &Datatype, count: usize| dtype.info.extent.wrapping_mul(count as isize);
        let (dtype, count, shift) = match &self.side.layout {
            Layout::Equal { dtype, count } => (*dtype, *count, apart(dtype, rank.saturating_mul(*count))),
            Layout::Vector { dtype, counts, displs: Some(displs) } => {
                (*dtype, counts.of(rank), dtype.info.extent.wrapping_mul(displs.of(rank)))
            }
            Layout::Vector { dtype, counts, displs: None } => {
                (*dtype, counts.of(rank), apart(dtype, counts.before(rank)))
            }
            Layout::Typed { .. } => return self.typed[rank],
        };
        self.side.stream_at(dtype, count, shift)
    }
}

impl Blocks for HostBlocks<'_> {
    #[inline]
    fn len(&self, member: usize) -> usize {
        match &self.side.layout {
            Layout::Equal { dtype, count } => dtype.bytes(*count),
            Layout::Vector { dtype, counts, .. } => dtype.bytes(counts.of(member)),
            Layout::Typed { .. } => self.typed[member].len(),
        }
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        if let Layout::Equal { dtype, count } = self.side.layout {
            return self.side.run(dtype, members.start.saturating_mul(count), members.len().saturating_mul(count));
        }
        let mut run = Span::empty();
        for member in members {
            let block = self.block(member);
            if block.is_empty() {
                continue;
            }
            let next = block.direct()?;
            run = match run.is_empty() {
                true => next,
                false if run.ptr().wrapping_add(run.len()) == next.ptr() => {
                    // SAFETY: the user's buffer holds so many elements, which are one run.
                    unsafe { Span::new(run.ptr(), run.len() + next.len(), 1) }
                }
                false => return None,
            };
        }
        Some(run)
    }

    fn pack(&self, member: usize, at: usize, to: Span) -> Result<()> {
        self.block(member).pack(at, to)
    }

    fn unpack(&self, member: usize, at: usize, from: Span) -> Result<()> {
        self.block(member).unpack(at, from)
    }
}
