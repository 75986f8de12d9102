//! Copies between the user's buffers and shared memory.
//!
//! libc's memcpy does, but for one case: processors of AMD with fast short "rep movsb" copy 20 times as slowly by it where the target begins 1 to 31 bytes after the source,
//! counted within pages, and twice as slowly where it begins 32 to 63 bytes after it (measured on Zen 3; glibc's bug 30994 says the same of Zen 4). glibc of the time before that was mended (2.36 is)
//! copies 2 KiB to half a MiB by it. So that is copied by vectors here. It is no rare case: slots begin on pages, and a large block of malloc's 16 bytes after the beginning of one.

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
    #[cfg(test)]
    BYPASSED.set(BYPASSED.get() + if bypass { len } else { 0 });
    // SAFETY: by the caller's promise.
    unsafe { if bypass { past_the_cache(from, to, len) } else { bytes(from, to, len) } }
}

#[cfg(test)]
thread_local! {
    /// Bytes that this thread has read past the cache.
    pub(super) static BYPASSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// As memcpy, but the commonest tiny sizes need no call, and where it may be [slow](self) long ones go by vectors.
///
/// # Safety
/// As for [`write`](fn@write), for any memory.
#[inline(always)]
pub unsafe fn bytes(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        match len {
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            ..=VECTORS_UP_TO => std::ptr::copy_nonoverlapping(from, to, len),
            _ => long_bytes(from, to, len),
        }
    }
}

/// As [`bytes`], between places that may overlap, or be one and the same.
///
/// # Safety
/// Both are valid for so many bytes; nobody writes to `from`, or accesses `to`, meanwhile.
#[inline(always)]
pub unsafe fn within(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        match from.addr().abs_diff(to.addr()) {
            0 => {}
            apart if apart < len => std::ptr::copy(from, to, len),
            _ => bytes(from, to, len),
        }
    }
}

/// So many bytes glibc copies by vectors, and more than `REP_MOVSB_UP_TO` otherwise again, on those processors (from the size of the second cache on, which is half a MiB or one).
const VECTORS_UP_TO: usize = 2048;
const REP_MOVSB_UP_TO: usize = 1 << 20;

/// Whether "rep movsb" would be slow where it is [at all](self): measured on Zen 3 for each distance from -200 to 200 and ten places in a page.
fn is_behind(from: *const u8, to: *const u8) -> bool {
    const PAGE: usize = 4096;
    (1..64).contains(&(to.addr().wrapping_sub(from.addr()) % PAGE))
}

/// # Safety
/// As for [`bytes`].
#[inline(never)]
unsafe fn long_bytes(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        match len <= REP_MOVSB_UP_TO && is_behind(from, to) {
            true => by_vectors(from, to, len),
            false => std::ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Copies by loads and stores of 16 bytes. In assembly, for the compiler takes such a loop for a memcpy, and calls it.
///
/// # Safety
/// As for [`bytes`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn by_vectors(from: *const u8, to: *mut u8, len: usize) {
    const TURN: usize = 64;
    let whole = len - len % TURN;
    // SAFETY: the loop goes over the first `whole` bytes, the copy over the rest; SSE2 belongs to x86-64, and the direction flag is not used.
    unsafe {
        if whole > 0 {
            std::arch::asm!(
                "2:",
                "movdqu {a}, [{from} + {at}]",
                "movdqu {b}, [{from} + {at} + 16]",
                "movdqu {c}, [{from} + {at} + 32]",
                "movdqu {d}, [{from} + {at} + 48]",
                "movdqu [{to} + {at}], {a}",
                "movdqu [{to} + {at} + 16], {b}",
                "movdqu [{to} + {at} + 32], {c}",
                "movdqu [{to} + {at} + 48], {d}",
                "add {at}, 64",
                "jnz 2b",
                // From minus so many bytes on to 0, counted from the ends.
                from = in(reg) from.add(whole),
                to = in(reg) to.add(whole),
                at = inout(reg) whole.wrapping_neg() => _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack),
            );
        }
        std::ptr::copy_nonoverlapping(from.add(whole), to.add(whole), len - whole);
    }
}

/// As memcpy.
///
/// # Safety
/// As for [`bytes`].
#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn by_vectors(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
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
        let from: Vec<u8> = (0..2400).map(|i| (i * 7 + i / 256) as u8).collect();
        for len in
            (0..200).chain([255, 256, 257, 600, 2048, 2049, 2100, 2303, 2304]).step_by(if cfg!(miri) { 37 } else { 1 })
        {
            for shift in [0, 1, 15, 63] {
                for bypass in [false, true] {
                    let mut to = vec![0xee; 2500];
                    // SAFETY: both vectors are long enough.
                    unsafe { read(to.as_mut_ptr().add(shift), from.as_ptr().add(shift / 2), len, bypass) };
                    assert_eq!(to[shift..shift + len], from[shift / 2..shift / 2 + len]);
                    assert!(to[..shift].iter().chain(&to[shift + len..]).all(|&b| b == 0xee));
                }
            }
        }
    }

    #[test]
    fn vectors_make_the_whole() {
        const LENGTHS: [usize; 5] = [VECTORS_UP_TO, VECTORS_UP_TO + 1, 2112, 2 * VECTORS_UP_TO, 3 * VECTORS_UP_TO + 77];
        let original: Vec<u8> = (0..20_000).map(|i| (i * 11 + i / 251) as u8).collect();
        let check = |len: usize, behind: usize, way: unsafe fn(*const u8, *mut u8, usize)| {
            let (mut room, at) = (original.clone(), 2 * 4096 + behind);
            let start = room.as_mut_ptr();
            // SAFETY: both lie in the room, apart from each other.
            unsafe { way(start.add(7), start.add(7 + at), len) };
            assert_eq!(room[7 + at..][..len], original[7..][..len], "{len} bytes, {behind} behind");
            assert_eq!((&room[..7 + at], &room[7 + at + len..]), (&original[..7 + at], &original[7 + at + len..]));
        };
        for (len, behind) in LENGTHS.iter().flat_map(|len| [0, 1, 16, 31, 63, 64].map(|behind| (*len, behind))) {
            check(len, behind, bytes);
        }
        (0..200).for_each(|len| check(len, 16, by_vectors));
    }

    #[test]
    fn places_may_overlap() {
        let original: Vec<u8> = (0..6000).map(|i| (i * 11 + i / 251) as u8).collect();
        for (from, to, len) in [(0, 0, 5000), (0, 16, 5000), (16, 0, 5000), (0, 3000, 2500), (3000, 0, 3000)] {
            let mut room = original.clone();
            let start = room.as_mut_ptr();
            // SAFETY: both lie in the room.
            unsafe { within(start.add(from), start.add(to), len) };
            assert_eq!(room[to..][..len], original[from..][..len], "{from} to {to}");
        }
    }

    #[test]
    fn what_lies_a_little_behind_within_pages_is_copied_by_vectors() {
        for (from, to, behind) in [
            (4096, 8192 + 1, true),
            (4096, 8192 + 63, true),
            (8192 - 8, 4096 + 8, true),
            (4096, 8192, false),
            (4096, 8192 + 64, false),
            (4096 + 16, 8192, false),
            (4096 + 64, 8192 + 16, false),
        ] {
            let [from, to] = [from, to].map(std::ptr::without_provenance::<u8>);
            assert_eq!(is_behind(from, to), behind, "{from:?} to {to:?}");
        }
    }

    /// The shortest of many times of a copy of 16 KiB to so many bytes after the beginning of a page, from the beginning of one.
    #[cfg(not(any(miri, loom)))]
    fn shortest(after: usize) -> std::time::Duration {
        const LEN: usize = 16 << 10;
        let mut room = vec![0_u8; 4 * LEN];
        let start = room.as_mut_ptr().wrapping_add(room.as_ptr().align_offset(4096));
        let times = (0..200).map(|_| {
            let begin = std::time::Instant::now();
            // SAFETY: both lie in the room, apart from each other.
            unsafe { bytes(start, start.add(2 * LEN + after), LEN) };
            std::hint::black_box(&mut room);
            begin.elapsed()
        });
        times.min().unwrap()
    }

    #[test]
    #[cfg(not(any(miri, loom)))]
    fn copies_take_as_long_wherever_they_lie_in_pages() {
        let (even, behind) = (shortest(0), shortest(16));
        assert!(
            behind < 5 * even,
            "{behind:?} for 16 KiB to 16 bytes behind the beginning of a page, {even:?} to that"
        );
    }
}
