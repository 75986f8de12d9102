// SPDX-License-Identifier: BSD-3-Clause
//! A clock that costs a few loads, and when one who waits is to ask what takes a system call.

/// Nanoseconds since some moment, up to a few milliseconds ago: without a system call, nor a look at the
/// counter of cycles.
#[cfg(not(loom))]
pub fn nanoseconds() -> u64 {
    // Nothing that happens by a simulated clock may depend on the real time.
    #[cfg(feature = "clock")]
    if crate::sync::timed::is_watched() {
        return 0;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// To the model checker, time stands still.
#[cfg(loom)]
pub fn nanoseconds() -> u64 {
    0
}

/// So many vain polls of a wait are only counted. Most waits are shorter, and read no clock.
pub const COUNTED: u32 = 16;

/// Milliseconds between two moments at which one who waits is to ask. By time and not by polls: on a busy
/// machine a poll that gives the core away may take as long as all other processes' turns.
const INTERVAL_MS: u32 = if cfg!(miri) { 0 } else { 100 };

/// Marks a time; below it are numbers of polls.
const TIME: u32 = 1 << 31;

/// The vain polls of a wait: their number, up to [`COUNTED`]; then the time at which it was last due to ask
/// whether the awaited process lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vain(u32);

impl Vain {
    /// None yet.
    pub const NONE: Vain = Vain(0);

    /// One more: whether it is time to ask.
    #[inline]
    pub fn more(&mut self) -> bool {
        if self.0 < COUNTED {
            self.0 += 1;
            return false;
        }
        self.is_due(((nanoseconds() / 1_000_000) as u32) | TIME)
    }

    /// The same at a time.
    fn is_due(&mut self, now: u32) -> bool {
        let is_first = self.0 < TIME;
        let due = !is_first && now.wrapping_sub(self.0) & (TIME - 1) >= INTERVAL_MS && !cfg!(loom);
        if is_first || due {
            self.0 = now;
        }
        due
    }

    /// How many there were, if they are still counted.
    #[inline]
    pub fn polls(self) -> Option<u32> {
        (self.0 < TIME).then_some(self.0)
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;

    #[test]
    fn polls_are_counted_and_then_it_is_a_matter_of_time() {
        let mut vain = Vain::NONE;
        for poll in 1..=COUNTED {
            assert!(!vain.more());
            assert_eq!(vain.polls(), Some(poll));
        }
        // Around the end of what the numbers hold, too.
        let at = |ms: u32| ms & (TIME - 1) | TIME;
        let start = TIME - 50;
        assert!(!vain.is_due(at(start)), "nothing to compare with yet");
        assert_eq!(vain.polls(), None);
        assert!(!vain.is_due(at(start + INTERVAL_MS - 1)));
        assert!(vain.is_due(at(start + INTERVAL_MS)));
        assert!(!vain.is_due(at(start + INTERVAL_MS)), "asked just now");
        assert!(vain.is_due(at(start + 9 * INTERVAL_MS)), "whatever few polls there were");
    }
}
