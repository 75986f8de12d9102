// SPDX-License-Identifier: BSD-3-Clause
//! Buffers of the members, and a reduction.

use crate::endpoint::{Blocks, Result, Span};
use crate::shm::op::Combine;
use crate::sync::timed::tell;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;

/// Where buffers begin: nothing depends on where the allocator happens to put them.
const ALIGN: usize = 4096;

/// Memory of a member's own.
pub struct Buffer {
    at: *mut u8,
    layout: Layout,
}

impl Buffer {
    /// So many bytes, zeros.
    pub fn new(len: usize) -> Buffer {
        // A panic ends the tool, not an MPI program: the component itself predicts nothing.
        let layout = Layout::from_size_align(len.max(1), ALIGN).expect("a size");
        // SAFETY: not of size 0.
        let at = unsafe { alloc_zeroed(layout) };
        if at.is_null() {
            handle_alloc_error(layout);
        }
        Buffer { at, layout }
    }

    /// All of it.
    pub fn span(&self, len: usize) -> Span {
        assert!(len <= self.layout.size());
        // SAFETY: whoever uses the span does so while the buffer lives: works are dropped before buffers.
        unsafe { Span::new(self.at, len, 1) }
    }

    /// The same as numbers of eight bytes.
    pub fn numbers(&self, len: usize) -> Span {
        assert!(len <= self.layout.size());
        // SAFETY: as above.
        unsafe { Span::new(self.at, len / 8, 8) }
    }

    /// Fills it with numbers that depend on `seed`.
    pub fn fill(&self, seed: u64) {
        for i in 0..self.layout.size() / 8 {
            // SAFETY: within the buffer, which no operation uses now.
            unsafe { self.at.cast::<u64>().add(i).write(value(seed, i)) };
        }
    }

    /// The number at place i.
    pub fn at(&self, i: usize) -> u64 {
        assert!((i + 1) * 8 <= self.layout.size());
        // SAFETY: within the buffer, which no operation uses now.
        unsafe { self.at.cast::<u64>().add(i).read() }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.at, self.layout) };
    }
}

/// What a buffer filled with `seed` holds at place i.
pub fn value(seed: u64, i: usize) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i as u64)
}

/// Blocks of one length, one after the other.
pub struct Rows {
    /// All of them.
    pub all: Span,
    /// Bytes of each.
    pub each: usize,
}

impl Blocks for Rows {
    fn len(&self, _: usize) -> usize {
        self.each
    }

    fn each(&self) -> Option<usize> {
        Some(self.each)
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        Some(self.all.slice(members.start * self.each..members.end * self.each))
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(()) // never called: `direct` says so
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(())
    }
}

/// Adds numbers of eight bytes, and tells the clock.
pub struct Sum;

impl Combine for Sum {
    fn size(&self) -> usize {
        8
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        tell(|watch| watch.combine(count * 8));
        for i in 0..count {
            // SAFETY: by the caller's promise.
            unsafe {
                let sum = left.cast::<u64>().add(i).read_unaligned();
                let at = right.cast::<u64>().add(i);
                at.write_unaligned(at.read_unaligned().wrapping_add(sum));
            }
        }
    }
}
