// SPDX-License-Identifier: BSD-3-Clause
//! What a collective algorithm runs over, and nothing of MPI in it.
//!
//! An [`Endpoint`] is one rank's view of one operation: it sends and receives [`Span`]s of *units* (bytes,
//! when data is only moved; elements, when it is reduced), combines them, and lends temporary buffers. The
//! real one posts to Open MPI's point-to-point layer (`ffi::comm::host`), the simulated one ([`crate::sim`])
//! delivers in an adversarial order.
//!
//! Posting is immediate, waiting is a future: `send` and `recv` post before they return, and what they return
//! only waits. So "post all, then wait for each in turn" is the way to have many messages in flight.

use std::future::Future;
use std::ops::Range;

/// The number of a process in its communicator.
pub type Rank = u32;

/// A raw run of `len` units at `ptr`, `extent` bytes from one unit to the next.
///
/// Not a slice: a peer or a posted receive may write the memory, and units may have gaps. Copying a `Span`
/// copies no data.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    ptr: *mut u8,
    len: usize,
    extent: isize,
}

// SAFETY: a Span is an address; every access goes through an Endpoint, whose caller has exclusive use of the
// operation.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

impl Span {
    /// `len` units at `ptr`, `extent` bytes apart. `ptr` may be anything when `len` is 0.
    ///
    /// # Safety
    /// The units are valid memory until whoever gets the span is done: an [`Endpoint`], until the operation's
    /// is gone. What is said there about who may read and write it is kept.
    pub const unsafe fn new(ptr: *mut u8, len: usize, extent: isize) -> Span {
        Span { ptr, len, extent }
    }

    /// No units.
    pub const fn empty() -> Span {
        Span { ptr: std::ptr::null_mut(), len: 0, extent: 0 }
    }

    /// The units `range` of this span.
    ///
    /// # Panics
    /// When the range leaves the span: an error of the algorithm.
    #[inline]
    pub fn slice(self, range: Range<usize>) -> Span {
        if range.start > range.end || range.end > self.len {
            outside(self.len, range.start, range.end);
        }
        Span {
            ptr: self.ptr.wrapping_offset(self.extent.wrapping_mul(range.start as isize)),
            len: range.len(),
            extent: self.extent,
        }
    }

    /// The same memory as bytes. For units without gaps.
    #[inline]
    pub fn bytes(self) -> Span {
        Span { ptr: self.ptr, len: self.len * self.extent.unsigned_abs(), extent: 1 }
    }

    /// Address of the first unit's origin.
    #[inline]
    pub fn ptr(self) -> *mut u8 {
        self.ptr
    }

    /// Number of units.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// True without units.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Bytes from one unit to the next.
    #[inline]
    pub fn extent(self) -> isize {
        self.extent
    }
}

/// Of its own, as what is to be printed would be written to the stack in each short call.
#[cold]
#[inline(never)]
fn outside(len: usize, start: usize, end: usize) -> ! {
    mismatch(&format!("span of {len} sliced at {start}..{end}"))
}

/// What a rank whose operation has failed sends in place of these units: none, or a byte in place of none.
pub fn instead_of(data: Span) -> Span {
    static BYTE: u8 = 0;
    match data.is_empty() {
        // SAFETY: it lives for ever, and who sends reads only.
        true if data.extent() == 1 || data.ptr().is_null() => unsafe { Span::new((&raw const BYTE).cast_mut(), 1, 1) },
        _ => Span::empty(),
    }
}

/// Ends an operation that has come to where it can only be if ranks have given different lengths for the same
/// data, an error of the program: unwinds, without a panic's message, and whoever runs the operation reports
/// [`Error::Lengths`]. In tests of our own, where no program is to blame, it is a panic.
#[cold]
#[inline(never)]
pub fn mismatch(what: &str) -> ! {
    if cfg!(debug_assertions) {
        panic!("{what}");
    }
    std::panic::resume_unwind(Box::new(Mismatch))
}

/// What unwinds then.
#[derive(Clone, Copy, Debug)]
pub struct Mismatch;

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An MPI error code of the layer below.
    Mpi(i32),
    /// A temporary buffer of this many bytes could not be had.
    NoMemory(usize),
    /// A process of the group has died, or has failed in an operation of the group.
    Peer,
    /// Another process' memory could not be read, with this error number of the system.
    Fetch(i32),
    /// Members have described the same data by different lengths: an error of the program.
    Lengths,
}

/// Result of a step of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Which stream of messages of the operation a message belongs to. Two messages between the same pair of
/// ranks with equal tags are matched in the order of posting; an algorithm uses a tag sequentially, or not at
/// all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The pipeline lane: a lane handles every `lanes`-th segment, one after the other.
    pub lane: u8,
    /// The phase of the operation, below [`PHASES`].
    pub phase: u8,
    /// Index of the topology level, for the counters of messages and bytes; not part of the matching.
    pub level: u8,
}

/// Phases that an operation may use in a lane (one tag each).
pub const PHASES: u8 = 8;
/// The most lanes that an operation may use.
pub const MAX_LANES: u8 = 8;

/// One rank's view of one operation.
///
/// The same trait serves the host (Open MPI), the simulator, and later shared memory. Rules for
/// implementations:
/// * matching between a pair of ranks is by (lane, phase), in the order of posting;
/// * dropping a [`Post`](Endpoint::Post) before it is done is not cancelling: the endpoint still owns what
///   was posted;
/// * `poll` of a post never makes progress by itself: the executor does.
pub trait Endpoint: Sync {
    /// Waits for one posted message.
    type Post<'a>: Future<Output = Result<()>> + Send + Unpin
    where
        Self: 'a;
    /// A temporary buffer; dropping it gives it back to the endpoint.
    type Temp<'a>: TempBuffer + Send + Sync
    where
        Self: 'a;

    /// The caller's rank in the communicator.
    fn rank(&self) -> Rank;
    /// Number of ranks in the communicator.
    fn size(&self) -> u32;

    /// Posts a send of all units of `data`, which stay unchanged until the post is done.
    fn send(&self, to: Rank, tag: Tag, data: Span) -> Self::Post<'_>;
    /// The same, of numbers that stay true after an error ([`note`](Endpoint::note)): how long other messages
    /// are, or would be. Who awaits those goes by them.
    fn tell(&self, to: Rank, tag: Tag, data: Span) -> Self::Post<'_> {
        self.send(to, tag, data)
    }
    /// Posts a receive into all units of `data`, which are not touched until the post is done. The message
    /// has exactly that many units.
    fn recv(&self, from: Rank, tag: Tag, data: Span) -> Self::Post<'_>;

    /// `right[i] = left[i] ⊕ right[i]` for all units: the operand order is that of the ranks. The spans have
    /// as many units, which is checked here, so that no endpoint goes without.
    #[inline(always)]
    fn reduce(&self, left: Span, right: Span) {
        if self.alike(left, right) {
            self.reduce_units(left, right);
        }
    }
    /// Copies all units of `from` over those of `to`, which are as many, likewise; the spans do not overlap.
    #[inline(always)]
    fn copy(&self, from: Span, to: Span) {
        if self.alike(from, to) {
            self.copy_units(from, to);
        }
    }
    /// Whether two spans have as many units; if not, the operation fails, as ranks have given different
    /// lengths for the same data.
    #[inline(always)]
    fn alike(&self, one: Span, other: Span) -> bool {
        let alike = one.len() == other.len();
        if !alike {
            self.note(Error::Lengths);
        }
        alike
    }
    /// Notes why the operation fails. It goes on, so that nobody waits for this rank, and gives the first
    /// error in the end. Messages that it sends from now on have a [wrong length](instead_of): so their
    /// receivers note an error, too, and what is wrong goes no further. The endpoint notes any message of
    /// another length than its receiver has room for.
    fn note(&self, error: Error);
    /// The first error noted. To be asked before what has come is believed: where it is a length, or goes to
    /// others by another way than messages.
    fn noted(&self) -> Result<()>;
    /// [`reduce`](Endpoint::reduce), which alone calls it.
    fn reduce_units(&self, left: Span, right: Span);
    /// [`copy`](Endpoint::copy), which alone calls it.
    fn copy_units(&self, from: Span, to: Span);
    /// Copies bytes over all units of `to`, which are bytes and as many.
    fn write(&self, bytes: &[u8], to: Span) {
        // SAFETY: they are copied before this returns, and only read.
        self.copy(unsafe { Span::new(bytes.as_ptr().cast_mut(), bytes.len(), 1) }, to);
    }
    /// Copies all units of `from`, which are bytes, over as many bytes.
    fn read(&self, from: Span, bytes: &mut [u8]) {
        // SAFETY: as above; they are only written.
        self.copy(from, unsafe { Span::new(bytes.as_mut_ptr(), bytes.len(), 1) });
    }
    /// Units of the operation's result are final, which is said once of each, if at all: their owner may have
    /// something to do with them.
    fn made(&self, data: Span) {
        let _ = data;
    }
    /// A buffer for `units` units, contents undefined.
    fn temp(&self, units: usize) -> Result<Self::Temp<'_>>;
}

/// A temporary buffer lent by an endpoint.
pub trait TempBuffer {
    /// Its memory, valid while the buffer lives (and, for messages posted on it, as long as the endpoint).
    fn span(&self) -> Span;
}

/// The user's data of an operation that only moves bytes, as the packed stream of its datatype.
///
/// Segments are byte ranges of that stream, so ranks with equal signatures but other counts and datatypes
/// segment alike.
pub trait Stream: Send + Sync {
    /// Bytes in the stream.
    fn len(&self) -> usize;
    /// True without bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The whole stream, where it lies in memory as one run of bytes: then neither `pack` nor `unpack` is
    /// called.
    fn direct(&self) -> Option<Span>;
    /// Writes bytes `at..at + to.len()` of the stream to `to`.
    fn pack(&self, at: usize, to: Span) -> Result<()>;
    /// Reads bytes `at..at + from.len()` of the stream from `from`.
    fn unpack(&self, at: usize, from: Span) -> Result<()>;
}

impl<S: Stream + ?Sized> Stream for &S {
    #[inline(always)]
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline(always)]
    fn direct(&self) -> Option<Span> {
        (**self).direct()
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        (**self).pack(at, to)
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        (**self).unpack(at, from)
    }
}

/// A span of bytes.
impl Stream for Span {
    #[inline(always)]
    fn len(&self) -> usize {
        Span::len(*self)
    }

    #[inline(always)]
    fn direct(&self) -> Option<Span> {
        Some(*self)
    }

    fn pack(&self, _: usize, _: Span) -> Result<()> {
        Ok(()) // never called: `direct` says so
    }

    fn unpack(&self, _: usize, _: Span) -> Result<()> {
        Ok(())
    }
}

/// The user's data of an operation that moves a block of bytes per member: each block is the packed stream of
/// its own datatype. Where the blocks lie, in which order and with which gaps, is the implementation's
/// business.
pub trait Blocks: Send + Sync {
    /// Bytes in a member's block.
    fn len(&self, member: usize) -> usize;
    /// Bytes in every block, where it is known that all are as long.
    #[inline(always)]
    fn each(&self) -> Option<usize> {
        None
    }
    /// The blocks of these members, where they lie in memory in this order as one run of bytes. For a block
    /// that is direct by itself, neither `pack` nor `unpack` is called.
    fn direct(&self, members: Range<usize>) -> Option<Span>;
    /// Writes bytes `at..at + to.len()` of a member's block to `to`.
    fn pack(&self, member: usize, at: usize, to: Span) -> Result<()>;
    /// Reads bytes `at..at + from.len()` of a member's block from `from`.
    fn unpack(&self, member: usize, at: usize, from: Span) -> Result<()>;
}

impl<B: Blocks + ?Sized> Blocks for &B {
    #[inline(always)]
    fn len(&self, member: usize) -> usize {
        (**self).len(member)
    }

    #[inline(always)]
    fn each(&self) -> Option<usize> {
        (**self).each()
    }

    #[inline(always)]
    fn direct(&self, members: Range<usize>) -> Option<Span> {
        (**self).direct(members)
    }

    fn pack(&self, member: usize, at: usize, to: Span) -> Result<()> {
        (**self).pack(member, at, to)
    }

    fn unpack(&self, member: usize, at: usize, from: Span) -> Result<()> {
        (**self).unpack(member, at, from)
    }
}
