// SPDX-License-Identifier: BSD-3-Clause
//! Unit types with gaps, and buffers that notice when a gap was written.

use crate::endpoint::Span;
use crate::relay::mail;

/// Pattern of a receive buffer from posting on, so that reading it too early shows.
pub(super) const POISON: u8 = 0xa5;
/// Pattern of a temporary buffer when it is lent.
const LENT: u8 = 0xc3;
/// Pattern of all bytes that nobody may write: gaps between units, and guards at both ends of a buffer.
const GUARD: u8 = 0x5a;
/// Bytes of guard at each end of a buffer.
const GUARD_LEN: usize = 16;

/// The memory of a message that goes by a gateway: its owner leaves it alone until the message is over.
pub(super) struct UnitMemory {
    unit: UnitType,
    span: Span,
}

impl UnitMemory {
    /// Of a post in flight.
    pub(super) fn new(unit: UnitType, span: Span) -> UnitMemory {
        UnitMemory { unit, span }
    }
}

impl mail::Memory for UnitMemory {
    fn bytes(&self) -> usize {
        self.span.len() * self.unit.size
    }

    fn read(&self, at: usize, to: &mut [u8]) -> Result<(), i32> {
        // SAFETY: the post is in flight, so its memory is valid, and not written.
        let data = unsafe { self.unit.gather(self.span) };
        to.copy_from_slice(&data[at..at + to.len()]);
        Ok(())
    }

    /// The error: somebody else has written there.
    fn write(&self, at: usize, from: &[u8]) -> Result<(), i32> {
        // SAFETY: the post is in flight, so its memory is valid, and for it alone.
        let mut data = unsafe { self.unit.gather(self.span) };
        let part = &mut data[at..at + from.len()];
        let untouched = part.iter().all(|&byte| byte == POISON);
        part.copy_from_slice(from);
        // SAFETY: as above.
        unsafe { self.unit.scatter(&data, self.span) };
        if untouched { Ok(()) } else { Err(1) }
    }
}

/// The layout of a unit: `size` bytes of data that begin `true_lb` bytes after its origin; the next unit's
/// origin is `extent` bytes further. This stands for a derived datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitType {
    /// Bytes of data.
    pub size: usize,
    /// Bytes from one unit to the next: not less than `size`, or negative and not more than `-size`.
    pub extent: isize,
    /// Where the data begin, seen from the origin; may be negative.
    pub true_lb: isize,
}

impl UnitType {
    /// A byte.
    pub const BYTE: UnitType = UnitType::plain(1);

    /// `size` bytes without gaps.
    pub const fn plain(size: usize) -> UnitType {
        UnitType { size, extent: size as isize, true_lb: 0 }
    }

    /// True when the data of many units are one run of bytes.
    const fn dense(self) -> bool {
        self.extent == self.size as isize
    }

    /// Where the data of `units` units lie, seen from the first origin: first byte and the one after the
    /// last.
    fn reach(self, units: usize) -> (isize, isize) {
        if units == 0 {
            return (0, 0);
        }
        let last = self.extent * (units as isize - 1);
        (last.min(0) + self.true_lb, last.max(0) + self.true_lb + self.size as isize)
    }

    /// The addresses between which the data of `span` lie.
    pub(super) fn hull(self, span: Span) -> (usize, usize) {
        let (low, high) = self.reach(span.len());
        (span.ptr().addr().wrapping_add_signed(low), span.ptr().addr().wrapping_add_signed(high))
    }

    /// Where the data of unit `i` of a span begin.
    fn unit(self, span: Span, i: usize) -> *mut u8 {
        span.ptr().wrapping_offset(self.extent * i as isize + self.true_lb)
    }

    /// The data of all units of `span`.
    ///
    /// # Safety
    /// The units are valid memory, initialised, and nobody writes them meanwhile.
    pub(super) unsafe fn gather(self, span: Span) -> Vec<u8> {
        let mut data = vec![0; span.len() * self.size];
        let (run, runs) = self.runs(span.len());
        for i in 0..runs {
            // SAFETY: the caller vouches for the span's units, run `i` is inside; `data` has run * runs
            // bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(self.unit(span, i).cast_const(), data.as_mut_ptr().add(i * run), run)
            };
        }
        data
    }

    /// Writes `data`, as `gather` gives them, to the units of `span`.
    ///
    /// # Safety
    /// The units are valid memory, and nobody accesses them meanwhile.
    pub(super) unsafe fn scatter(self, data: &[u8], span: Span) {
        assert_eq!(data.len(), span.len() * self.size, "data do not fit the span");
        let (run, runs) = self.runs(span.len());
        for i in 0..runs {
            // SAFETY: the caller vouches for the span's units; run `i` of `data` is inside by the assertion.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr().add(i * run), self.unit(span, i), run) };
        }
    }

    /// Bytes per run and number of runs of `units` units.
    fn runs(self, units: usize) -> (usize, usize) {
        if units == 0 || self.size == 0 {
            (0, 0)
        } else if self.dense() {
            (self.size * units, 1)
        } else {
            (self.size, units)
        }
    }
}

/// Bytes at a fixed address that are only ever accessed through raw pointers.
pub(super) struct Memory {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: Memory owns its bytes; who shares their address (a Span) keeps the rules of Span.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// These bytes.
    pub(super) fn new(bytes: Vec<u8>) -> Memory {
        let len = bytes.len();
        Memory { ptr: Box::into_raw(bytes.into_boxed_slice()).cast(), len }
    }

    /// Address of byte `at`, which may lie outside.
    pub(super) fn at(&self, at: isize) -> *mut u8 {
        self.ptr.wrapping_offset(at)
    }

    /// A copy of `len` bytes from `at` on.
    pub(super) fn read(&self, at: usize, len: usize) -> Vec<u8> {
        assert!(at <= self.len && len <= self.len - at, "{len} bytes at {at} of {}", self.len);
        let mut bytes = vec![0; len];
        // SAFETY: inside by the assertion; all bytes were initialised by `new`.
        unsafe { std::ptr::copy_nonoverlapping(self.ptr.add(at), bytes.as_mut_ptr(), len) };
        bytes
    }

    /// Writes `bytes` from `at` on.
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at, "{} bytes at {at} of {}", bytes.len(), self.len);
        // SAFETY: inside by the assertion; `self` owns the bytes and no reference to them exists.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr.add(at), bytes.len()) };
    }

    /// Number of bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `ptr` and `len` are those of the boxed slice that `new` took apart, and it is freed once.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.ptr, self.len)) });
    }
}

/// A buffer of units, with gaps as their type says and guards at both ends. Writing is through `&self`: the
/// buffer stands for memory of a user whose address an operation has.
pub struct UnitBuffer {
    unit: UnitType,
    units: usize,
    /// Where in `memory` the first unit's origin is.
    origin: isize,
    memory: Memory,
}

impl UnitBuffer {
    /// A buffer of `units` units, data zero.
    ///
    /// # Panics
    /// When the units would overlap each other.
    pub fn new(unit: UnitType, units: usize) -> UnitBuffer {
        assert!(units <= 1 || unit.extent.unsigned_abs() >= unit.size, "units overlap: {unit:?}");
        let (low, high) = unit.reach(units);
        let memory = Memory::new(vec![GUARD; (high - low) as usize + 2 * GUARD_LEN]);
        let buffer = UnitBuffer { unit, units, origin: GUARD_LEN as isize - low, memory };
        buffer.fill(0);
        buffer
    }

    /// A buffer whose data are `data`.
    ///
    /// # Panics
    /// When `data` are not whole units.
    pub fn with(unit: UnitType, data: &[u8]) -> UnitBuffer {
        let units = data.len().checked_div(unit.size).unwrap_or(0);
        let buffer = UnitBuffer::new(unit, units);
        buffer.set(data);
        buffer
    }

    /// Its layout.
    pub fn unit(&self) -> UnitType {
        self.unit
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.units
    }

    /// True without units.
    pub fn is_empty(&self) -> bool {
        self.units == 0
    }

    /// All units.
    pub fn span(&self) -> Span {
        // SAFETY: it is this memory, and the simulator checks every access.
        unsafe { Span::new(self.memory.at(self.origin), self.units, self.unit.extent) }
    }

    /// The data of all units, without gaps.
    pub fn data(&self) -> Vec<u8> {
        // SAFETY: the span is this buffer's own memory, initialised; the copy is over before anybody else
        // runs.
        unsafe { self.unit.gather(self.span()) }
    }

    /// Writes the data of all units.
    ///
    /// # Panics
    /// When `data` have another length.
    pub fn set(&self, data: &[u8]) {
        // SAFETY: the span is this buffer's own memory; the copy is over before anybody else runs.
        unsafe { self.unit.scatter(data, self.span()) };
    }

    /// Sets all data bytes to `byte`.
    pub fn fill(&self, byte: u8) {
        self.set(&vec![byte; self.units * self.unit.size]);
    }

    /// Prepares the buffer for lending: its data become a pattern.
    pub(super) fn lend(&self) {
        self.fill(LENT);
    }

    /// True when no byte outside the units' data was ever written: the check that gaps stay as they are.
    pub fn gaps_intact(&self) -> bool {
        let mut all = self.memory.read(0, self.memory.len());
        for i in 0..self.units {
            let at = (self.origin + self.unit.extent * i as isize + self.unit.true_lb) as usize;
            all[at..at + self.unit.size].fill(GUARD);
        }
        all.iter().all(|&byte| byte == GUARD)
    }
}
