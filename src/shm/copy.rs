//! Copies between the user's buffers and shared memory.

use crate::endpoint::{Result, Span, Stream};
use crate::sync::shared::{will_read, will_write};

/// Copies `len` bytes of private memory to shared memory of the caller's own.
///
/// # Safety
/// Both are valid for so many bytes, do not overlap, and nobody else accesses them meanwhile.
#[inline(always)]
pub unsafe fn write(to: *mut u8, from: *const u8, len: usize) {
    will_write(to, len);
    // SAFETY: by the caller's promise.
    unsafe { bytes(from, to, len) }
}

/// Copies `len` bytes of shared memory to private memory; `bypass`: past the cache.
///
/// # Safety
/// Both are valid for so many bytes, do not overlap, and nobody writes them meanwhile.
#[inline(always)]
pub unsafe fn read(to: *mut u8, from: *const u8, len: usize, bypass: bool) {
    will_read(from, len);
    // SAFETY: by the caller's promise.
    unsafe { if bypass { past_the_cache(from, to, len) } else { bytes(from, to, len) } }
}

/// As memcpy, but the commonest tiny sizes need no call.
///
/// # Safety
/// As for [`write`].
#[inline(always)]
unsafe fn bytes(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        match len {
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            _ => std::ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Copies with stores that do not go through the cache, where the machine has them.
///
/// # Safety
/// As for [`read`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn past_the_cache(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    let head = to.align_offset(64).min(len);
    let lines = (len - head) / 64;
    let tail = head + lines * 64;
    // SAFETY: head, lines and tail make up the `len` bytes; the streamed stores are aligned; SSE2 belongs to x86-64. The fence orders
    // them before any later publication.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for line in 0..lines {
            let (source, target) = (from.add(head + line * 64).cast::<__m128i>(), to.add(head + line * 64));
            let [a, b, c, d] = std::array::from_fn(|i| _mm_loadu_si128(source.add(i)));
            for (i, part) in [a, b, c, d].into_iter().enumerate() {
                _mm_stream_si128(target.cast::<__m128i>().add(i), part);
            }
        }
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail);
        _mm_sfence();
    }
}

/// As memcpy.
///
/// # Safety
/// As for [`read`].
#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn past_the_cache(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

/// Copies bytes `at..at + len` of a stream to shared memory of the caller's own.
///
/// # Safety
/// `to` is valid for so many bytes, which nobody else accesses meanwhile.
#[inline(always)]
pub unsafe fn pack<S: Stream + ?Sized>(data: &S, at: usize, len: usize, to: *mut u8) -> Result<()> {
    match data.direct() {
        Some(span) => {
            let from = span.slice(at..at + len);
            // SAFETY: who made the span promised valid memory; `to` by the caller's promise.
            unsafe { write(to, from.ptr(), len) };
            Ok(())
        }
        None => {
            will_write(to, len);
            data.pack(at, Span::new(to, len, 1))
        }
    }
}

/// Copies shared memory to bytes `at..at + len` of a stream.
///
/// # Safety
/// `from` is valid for so many bytes, which nobody writes meanwhile.
#[inline(always)]
pub unsafe fn unpack<S: Stream + ?Sized>(data: &S, at: usize, len: usize, from: *const u8, bypass: bool) -> Result<()> {
    match data.direct() {
        Some(span) => {
            let to = span.slice(at..at + len);
            // SAFETY: as in `pack`, the other way.
            unsafe { read(to.ptr(), from, len, bypass) };
            Ok(())
        }
        None => {
            will_read(from, len);
            data.unpack(at, Span::new(from.cast_mut(), len, 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_copies_all_and_nothing_else() {
        let from: Vec<u8> = (0..700).map(|i| (i * 7 + i / 256) as u8).collect();
        for len in (0..200).chain([255, 256, 257, 600]).step_by(if cfg!(miri) { 37 } else { 1 }) {
            for shift in [0, 1, 15, 63] {
                for bypass in [false, true] {
                    let mut to = vec![0xee; 800];
                    // SAFETY: both vectors are long enough.
                    unsafe { read(to.as_mut_ptr().add(shift), from.as_ptr().add(shift / 2), len, bypass) };
                    assert_eq!(to[shift..shift + len], from[shift / 2..shift / 2 + len]);
                    assert!(to[..shift].iter().chain(&to[shift + len..]).all(|&b| b == 0xee));
                }
            }
        }
    }
}
