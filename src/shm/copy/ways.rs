// SPDX-License-Identifier: BSD-3-Clause
//! Ways to copy that the compiler would not choose, for x86-64; elsewhere, and under Miri, they are memcpy.

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub use x86::{past_the_cache, prefers_vectors, ticks, vectors};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::x86_64::{__cpuid, __m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128, _rdtsc};
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    /// The time stamp counter.
    #[inline(always)]
    pub fn ticks() -> Option<u64> {
        // SAFETY: belongs to x86-64; only a program that has forbidden it to itself (PR_SET_TSC) is stopped
        // by it.
        Some(unsafe { _rdtsc() })
    }

    /// Whether [`vectors`] is the way to copy 2 KiB to 1 MiB here.
    #[inline(always)]
    pub fn prefers_vectors() -> bool {
        const NO: u8 = 1;
        const YES: u8 = 2;
        static FOUND: AtomicU8 = AtomicU8::new(0);
        #[cold]
        // Newer compilers know it as safe.
        #[allow(unused_unsafe)]
        fn find() -> bool {
            // SAFETY: all x86-64 processors have leaf 0.
            let maker = unsafe { __cpuid(0) };
            let maker = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
            let found = is_theirs(maker.as_flattened()) && is_x86_feature_detected!("avx");
            FOUND.store(if found { YES } else { NO }, Relaxed);
            found
        }
        match FOUND.load(Relaxed) {
            NO => false,
            YES => true,
            _ => find(),
        }
    }

    /// Whether "rep movsb" is [slow at times](crate::shm::copy) on processors of this maker.
    pub fn is_theirs(maker: &[u8]) -> bool {
        [b"AuthenticAMD", b"HygonGenuine"].iter().any(|theirs| *theirs == maker)
    }

    /// Copies by loads and stores of 32 bytes. In assembly, for the compiler takes such a loop for a memcpy,
    /// and calls it.
    ///
    /// # Safety
    /// Both are valid for so many bytes, and do not overlap; the processor [knows](prefers_vectors) AVX.
    #[target_feature(enable = "avx")]
    pub unsafe fn vectors(from: *const u8, to: *mut u8, len: usize) {
        const TURN: usize = 128;
        let whole = len - len % TURN;
        // SAFETY: the loop goes over the first `whole` bytes, the copy over the rest; the direction flag is
        // not used.
        unsafe {
            if whole > 0 {
                std::arch::asm!(
                    "2:",
                    "vmovdqu ymm0, [{from} + rax]",
                    "vmovdqu ymm1, [{from} + rax + 32]",
                    "vmovdqu ymm2, [{from} + rax + 64]",
                    "vmovdqu ymm3, [{from} + rax + 96]",
                    "vmovdqu [{to} + rax], ymm0",
                    "vmovdqu [{to} + rax + 32], ymm1",
                    "vmovdqu [{to} + rax + 64], ymm2",
                    "vmovdqu [{to} + rax + 96], ymm3",
                    "add rax, 128",
                    "jnz 2b",
                    // What follows may be SSE code, which upper halves in use slow down.
                    "vzeroupper",
                    from = in(reg) from.add(whole),
                    to = in(reg) to.add(whole),
                    // From minus so many bytes on to 0, counted from the ends.
                    inout("rax") whole.wrapping_neg() => _,
                    // All vector registers among them, whose upper halves are gone.
                    clobber_abi("C"),
                    options(nostack),
                );
            }
            std::ptr::copy_nonoverlapping(from.add(whole), to.add(whole), len - whole);
        }
    }

    /// Copies with stores that do not go through the cache. They are visible to others before any later store
    /// of the caller's is.
    ///
    /// # Safety
    /// Both are valid for so many bytes, and do not overlap.
    pub unsafe fn past_the_cache(from: *const u8, to: *mut u8, len: usize) {
        let head = to.align_offset(64).min(len);
        let lines = (len - head) / 64;
        let tail = head + lines * 64;
        // SAFETY: head, lines and tail make up the `len` bytes; the streamed stores are aligned; SSE2 belongs
        // to x86-64. The fence orders them before any later publication.
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

    #[cfg(test)]
    mod tests {
        use super::is_theirs;

        #[test]
        fn makers_are_told_apart() {
            let makers: [&[u8]; 4] = [b"AuthenticAMD", b"HygonGenuine", b"GenuineIntel", b"CentaurHauls"];
            assert_eq!(makers.map(is_theirs), [true, true, false, false]);
        }
    }
}

/// There is none.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub fn ticks() -> Option<u64> {
    None
}

/// Memcpy is.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub fn prefers_vectors() -> bool {
    false
}

/// Memcpy.
///
/// # Safety
/// Both are valid for so many bytes, and do not overlap.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub unsafe fn vectors(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

/// Memcpy.
///
/// # Safety
/// Both are valid for so many bytes, and do not overlap.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub unsafe fn past_the_cache(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}
