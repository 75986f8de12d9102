// SPDX-License-Identifier: BSD-3-Clause
//! Sleeping in the kernel until one half of a shared word changes, for a limited time.

use crate::sync::shared::SharedU64;

/// The 32 bits of a word that the kernel compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Bits 0 to 31.
    Low,
    /// Bits 32 to 63.
    High,
}

impl Half {
    /// This half of `word`.
    pub fn of(self, word: u64) -> u32 {
        match self {
            Half::Low => word as u32,
            Half::High => (word >> 32) as u32,
        }
    }
}

#[cfg(not(any(loom, miri)))]
fn address(word: &SharedU64, half: Half) -> *const u32 {
    let upper = (half == Half::High) == cfg!(target_endian = "little");
    std::ptr::from_ref(word).cast::<u32>().wrapping_add(usize::from(upper))
}

/// Sleeps at most `nanoseconds`, unless that half of the word differs from that of `seen`. May return early.
#[cfg(not(any(loom, miri)))]
pub fn wait(word: &SharedU64, half: Half, seen: u64, nanoseconds: u32) {
    let limit = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds.min(999_999_999).into() };
    // SAFETY: FUTEX_WAIT reads four bytes of the word, which is alive, and the limit. The key is that of the
    // shared page: other processes map it elsewhere.
    unsafe { libc::syscall(libc::SYS_futex, address(word, half), libc::FUTEX_WAIT, half.of(seen), &raw const limit) };
}

/// Wakes all that sleep on that half of the word.
#[cfg(not(any(loom, miri)))]
pub fn wake(word: &SharedU64, half: Half) {
    // SAFETY: FUTEX_WAKE only looks the address up.
    unsafe { libc::syscall(libc::SYS_futex, address(word, half), libc::FUTEX_WAKE, i32::MAX) };
}

/// As above, but returns early: to Miri, the half that the kernel reads would be a racing access of another
/// size, which the memory model of programs does not allow.
#[cfg(miri)]
pub fn wait(word: &SharedU64, half: Half, seen: u64, _nanoseconds: u32) {
    if half.of(word.load(crate::sync::shared::Ordering::Relaxed)) == half.of(seen) {
        std::thread::yield_now();
    }
}

/// As above.
#[cfg(miri)]
pub fn wake(_word: &SharedU64, _half: Half) {}

/// As above, without a limit of time.
#[cfg(loom)]
pub fn wait(word: &SharedU64, half: Half, seen: u64, _nanoseconds: u32) {
    let now = || word.load(crate::sync::shared::Ordering::Relaxed);
    crate::sync::model::sleep_unless(|| half.of(now()) != half.of(seen));
}

/// As above.
#[cfg(loom)]
pub fn wake(_word: &SharedU64, _half: Half) {
    crate::sync::model::wake_all();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    #[test]
    fn a_changed_half_does_not_sleep_and_an_unchanged_one_ends() {
        let word = SharedU64::new(7 << 32 | 9);
        wait(&word, Half::Low, 8, 999_999_999);
        wait(&word, Half::High, 6 << 32 | 9, 999_999_999);
        wait(&word, Half::High, 7 << 32, 1_000_000);
        wait(&word, Half::Low, 9, 1_000_000);
    }

    #[test]
    #[cfg_attr(miri, ignore = "measures time")]
    fn a_wake_up_ends_the_sleep() {
        for (half, next) in [(Half::Low, 1), (Half::High, 1 << 32)] {
            let word = SharedU64::new(0);
            let slept = std::thread::scope(|scope| {
                let sleeper = scope.spawn(|| {
                    let start = Instant::now();
                    while word.load(Ordering::Acquire) == 0 {
                        wait(&word, half, 0, 900_000_000);
                    }
                    start.elapsed()
                });
                std::thread::sleep(Duration::from_millis(20));
                word.store(next, Ordering::Release);
                wake(&word, half);
                sleeper.join().unwrap()
            });
            assert!(slept < Duration::from_millis(800), "{slept:?}");
        }
    }
}
