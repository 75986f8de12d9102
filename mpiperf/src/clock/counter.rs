// SPDX-License-Identifier: BSD-3-Clause
//! The processor's time stamp counter.

use crate::error::{Error, Result};

/// Whether the counter can be used as a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Runs at one rate in all power states, and the system has found it synchronous across cores.
    Full,
    /// Runs at one rate, but the system does not offer it as a clock source: cores may disagree.
    Doubted,
    /// None here, or its rate changes.
    None,
}

/// Reads the counter once everything before it is done.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn read() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has both instructions. The fence keeps the reading from being taken
    // early.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Reads the counter once everything before it is done.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub fn read() -> u64 {
    let ticks: u64;
    // SAFETY: the virtual counter is readable from user space on Linux; the barrier orders the reading.
    unsafe { std::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// No counter: never reached, since [`trust`] says so.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn read() -> u64 {
    0
}

/// Whether the counter can be used as a clock.
pub fn trust() -> Trust {
    if !invariant() {
        return Trust::None;
    }
    let path = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    judge(std::fs::read_to_string(path).ok().as_deref())
}

/// Linux takes a counter out of the list when its watchdog finds it unstable. Unreadable list: nothing is
/// known against it.
fn judge(available: Option<&str>) -> Trust {
    let names = ["tsc", "arch_sys_counter"];
    match available {
        Some(list) if !list.split_whitespace().any(|source| names.contains(&source)) => Trust::Doubted,
        _ => Trust::Full,
    }
}

/// CPUID leaf 0x80000007, EDX bit 8: the rate is constant in all P-, C- and T-states.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)]
fn invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    // SAFETY: every x86-64 processor has CPUID; leaf 0x80000000 says which extended leaves there are.
    unsafe { __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0 }
}

/// The generic timer's rate is fixed by the architecture.
#[cfg(target_arch = "aarch64")]
fn invariant() -> bool {
    true
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn invariant() -> bool {
    false
}

/// One clock of the system, in nanoseconds.
pub fn system(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a local; both clocks used exist on every Linux since 2.6.28.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The counter and the system's clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// The counter.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC_RAW`, which nothing slews, in nanoseconds.
    pub nanos: u64,
}

impl Anchor {
    /// Reads both, the system's clock between two readings of the counter; the narrowest of several attempts.
    pub fn take() -> Anchor {
        let attempt = || {
            let before = read();
            let nanos = system(libc::CLOCK_MONOTONIC_RAW);
            let gap = read().wrapping_sub(before);
            (gap, Anchor { ticks: before.wrapping_add(gap / 2), nanos })
        };
        (0..32).map(|_| attempt()).fold(attempt(), |best, next| if next.0 < best.0 { next } else { best }).1
    }

    /// Seconds from `self` to `later` by the system's clock.
    pub fn span(&self, later: &Anchor) -> f64 {
        later.nanos.wrapping_sub(self.nanos) as f64 * 1e-9
    }

    /// Seconds per tick between `self` and `later`.
    pub fn period(&self, later: &Anchor) -> Result<f64> {
        let ticks = later.ticks.wrapping_sub(self.ticks);
        if ticks == 0 || ticks > u64::MAX / 2 {
            return Err(Error::Measure("the time stamp counter does not advance: use --timer monotonic".into()));
        }
        Ok(self.span(later) / ticks as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_clock_sources_decides() {
        assert_eq!(judge(Some("tsc kvm-clock acpi_pm \n")), Trust::Full);
        assert_eq!(judge(Some("hpet acpi_pm\n")), Trust::Doubted);
        assert_eq!(judge(Some("arch_sys_counter")), Trust::Full);
        assert_eq!(judge(None), Trust::Full);
    }

    #[test]
    fn period_is_time_over_ticks() {
        let early = Anchor { ticks: u64::MAX - 10, nanos: 5 };
        let late = Anchor { ticks: 2_999_999_989, nanos: 1_000_000_005 };
        let period = early.period(&late).unwrap();
        assert!((period * 3e9 - 1.0).abs() < 1e-12, "{period}");
        assert!(late.period(&early).is_err());
        assert!(late.period(&late).is_err());
    }
}
