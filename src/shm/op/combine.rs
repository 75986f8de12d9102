// SPDX-License-Identifier: BSD-3-Clause
//! Combining operands in the order of the members.

use crate::endpoint::Result;
use crate::shm::copy;
use crate::sync::shared::{will_read, will_write};

/// A reduction operation on contiguous elements.
///
/// The expression is x₀ ⊕ (x₁ ⊕ (x₂ ⊕ …)), whoever computes it: members agree bitwise, for every root. From
/// the right, since then each operand is combined from where its owner has put it, without a copy.
pub trait Combine: Send + Sync {
    /// Bytes of an element, not 0.
    fn size(&self) -> usize;

    /// Whether nobody may cut operands: then all that combine take all of them, out of one room.
    #[inline(always)]
    fn is_whole(&self) -> bool {
        false
    }

    /// Before `bytes` from `at` on of the caller's operand, which may not be there yet, are read: sees to it
    /// that they are. Operations of several steps say so; before one of a single step, all has to be there.
    ///
    /// # Errors
    /// They cannot be had.
    #[inline(always)]
    fn needs(&self, at: *const u8, bytes: usize) -> Result<()> {
        let _ = (at, bytes);
        Ok(())
    }

    /// `bytes` from `at` on of the caller's result are final; said of each at most once.
    #[inline(always)]
    fn made(&self, at: *const u8, bytes: usize) {
        let _ = (at, bytes);
    }

    /// Combines all `count` elements of `members` operands, where [nobody may cut](Combine::is_whole) them.
    ///
    /// # Safety
    /// The operands hold so many elements, and nobody writes them meanwhile. `out` is the caller's output,
    /// and the last or the last but one of them, or overlaps none.
    unsafe fn fold_whole(&self, members: usize, count: usize, operand: &dyn Fn(usize) -> *const u8, out: *mut u8) {
        // SAFETY: by the caller's promise.
        unsafe { fold(&self, members, count, operand, out) };
    }

    /// `right[i] = left[i] ⊕ right[i]` for `count` elements.
    ///
    /// # Safety
    /// Both hold so many elements, do not overlap, and nobody else writes them, or reads `right`.
    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize);

    /// `out[i] = left[i] ⊕ right[i]` for `count` elements. `out` may be `left` or `right`, but not overlap
    /// them otherwise.
    ///
    /// # Safety
    /// As for [`reduce`](Combine::reduce).
    unsafe fn reduce_into(&self, left: *const u8, right: *const u8, out: *mut u8, count: usize) {
        let size = self.size();
        // SAFETY: by the caller's promise; copies are between places that do not overlap.
        unsafe {
            if !std::ptr::eq(out, left) {
                if !std::ptr::eq(out, right) {
                    copy::bytes(right, out, count * size);
                }
                return self.reduce(left, out, count);
            }
            let chunk = (4096 / size).clamp(1, count.max(1));
            let mut room = vec![0_u128; (chunk * size).div_ceil(16)];
            let room = room.as_mut_ptr().cast::<u8>();
            for start in (0..count).step_by(chunk) {
                let (at, now) = (start * size, chunk.min(count - start));
                copy::bytes(right.add(at), room, now * size);
                self.reduce(left.add(at), room, now);
                copy::bytes(room, out.add(at), now * size);
            }
        }
    }
}

impl<C: Combine + ?Sized> Combine for &C {
    unsafe fn fold_whole(&self, members: usize, count: usize, operand: &dyn Fn(usize) -> *const u8, out: *mut u8) {
        // SAFETY: by the caller's promise.
        unsafe { (**self).fold_whole(members, count, operand, out) };
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    #[inline(always)]
    fn is_whole(&self) -> bool {
        (**self).is_whole()
    }

    #[inline(always)]
    fn needs(&self, at: *const u8, bytes: usize) -> Result<()> {
        (**self).needs(at, bytes)
    }

    #[inline(always)]
    fn made(&self, at: *const u8, bytes: usize) {
        (**self).made(at, bytes);
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        unsafe { (**self).reduce(left, right, count) };
    }

    unsafe fn reduce_into(&self, left: *const u8, right: *const u8, out: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        unsafe { (**self).reduce_into(left, right, out, count) };
    }
}

/// Combines `count` elements of `members` operands. `out` may be the last or the last but one of them, but
/// not overlap any otherwise.
///
/// # Safety
/// The operands and `out` hold so many elements; nobody writes the operands meanwhile, or accesses `out`.
#[inline(always)]
pub(super) unsafe fn fold<C: Combine>(
    op: &C,
    members: usize,
    count: usize,
    operand: impl Fn(usize) -> *const u8,
    out: *mut u8,
) {
    if cfg!(any(loom, feature = "clock")) {
        (0..members).for_each(|member| will_read(operand(member), count * op.size()));
    }
    will_write(out, count * op.size());
    // SAFETY: by the caller's promise.
    unsafe {
        if members == 1 {
            copy::within(operand(0), out, count * op.size());
            return;
        }
        op.reduce_into(operand(members - 2), operand(members - 1), out, count);
        for member in (0..members - 2).rev() {
            op.reduce(operand(member), out, count);
        }
    }
}
