// SPDX-License-Identifier: BSD-3-Clause
//! Computation beside a nonblocking operation, and how much of the operation it hides.

use super::{Call, Case};
use crate::error::Result;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// The share of the operation's time that computation hides:
/// `max(0, min(1, 1 − (t_total − t_compute) / t_pure))`.
///
/// `t_pure`: the operation alone; `t_compute`: the computation alone; `t_total`: start, computation, wait.
/// `None` where a time is missing or the operation took none.
pub fn hidden(t_pure: f64, t_compute: f64, t_total: f64) -> Option<f64> {
    let share = 1.0 - (t_total - t_compute) / t_pure;
    (t_pure > 0.0 && share.is_finite()).then(|| share.clamp(0.0, 1.0))
}

/// The computation alone, as a case: how long it takes where the operation has its processes and cores.
pub struct Alone(
    /// As for [`compute`].
    pub f64,
);

impl Case for Alone {
    fn prepare(&mut self, _: Call) -> Result<()> {
        rate();
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        compute(self.0);
        Ok(())
    }

    fn verify(&mut self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> usize {
        0
    }
}

/// Computes in registers, without touching memory, for about so many seconds of an undisturbed core.
pub fn compute(seconds: f64) {
    spin((seconds * rate()) as u64);
}

/// Steps of computation per second: the best of many short tries, so that other work on the core does not
/// count. Found once.
pub fn rate() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(present_rate)
}

/// As [`rate`], but as it is now: cores change their frequency, and virtual ones lose theirs.
fn present_rate() -> f64 {
    const TRIES: u32 = 50;
    const STEPS: u64 = 50_000;
    let mut best = 0f64;
    for _ in 0..TRIES {
        let start = Instant::now();
        spin(STEPS);
        best = best.max(STEPS as f64 / start.elapsed().as_secs_f64().max(1e-9));
    }
    best
}

/// A chain of dependent steps, which neither the compiler nor the core can shorten, in a register.
#[inline(never)]
fn spin(steps: u64) {
    let mut x = black_box(1u64);
    for _ in 0..steps {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
    }
    black_box(x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(hidden(10.0, 10.0, 10.0), Some(1.0));
        assert_eq!(hidden(10.0, 10.0, 20.0), Some(0.0));
        assert_eq!(hidden(10.0, 10.0, 15.0), Some(0.5));
        assert_eq!(hidden(10.0, 10.0, 35.0), Some(0.0));
        assert_eq!(hidden(10.0, 10.0, 5.0), Some(1.0));
        assert_eq!(hidden(0.0, 10.0, 10.0), None);
        assert_eq!(hidden(f64::NAN, 10.0, 10.0), None);
    }

    /// Each try is held against the rate found right before it; one that fits is enough, as the core may be
    /// lost or change its frequency in between, but not in each of them by the same factor.
    #[test]
    fn computing_takes_its_time() {
        const SECONDS: f64 = 2e-3;
        let known = rate();
        let tries: Vec<f64> = (0..20)
            .map(|_| {
                let wanted = SECONDS * known / present_rate();
                let start = Instant::now();
                compute(SECONDS);
                start.elapsed().as_secs_f64() / wanted
            })
            .collect();
        assert!(tries.iter().any(|share| (0.8..1.25).contains(share)), "{tries:?}");
    }
}
