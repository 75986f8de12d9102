// SPDX-License-Identifier: BSD-3-Clause
//! The local clock of one process.

use super::Source;
use super::counter::{self, Anchor, Trust};
use super::fit::Affine;
use crate::error::{Error, Result};
use crate::mpi::ffi;

/// How long the counter is compared with the system's clock at first, seconds.
const CALIBRATION: f64 = 0.05;
/// By which factor the time since must have grown before the comparison is repeated.
const REFINEMENT: f64 = 10.0;

/// A local timer; seconds since it was made, as `f64` (0.1 ns of resolution after a day).
#[derive(Debug, Clone, Copy)]
pub struct Timer {
    source: Source,
    origin: Origin,
    calibration: Calibration,
    resolution: f64,
    cost: f64,
}

/// What turns a counter's readings into seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Origin {
    /// The reading at time 0.
    pub zero: u64,
    /// Seconds per count.
    pub period: f64,
}

impl Origin {
    /// The seconds of reading `raw`.
    #[inline(always)]
    pub fn seconds(&self, raw: u64) -> f64 {
        raw.wrapping_sub(self.zero) as i64 as f64 * self.period
    }

    /// What turns times by `self` into times by `new`.
    pub fn change(&self, new: &Origin) -> Affine {
        Affine { ratio: new.period / self.period, shift: new.seconds(self.zero) }
    }

    /// The same time at reading `raw`, another rate.
    fn retuned(&self, raw: u64, period: f64) -> Origin {
        let back = (self.seconds(raw) / period).round() as i64;
        Origin { zero: raw.wrapping_sub(back as u64), period }
    }
}

/// The comparison of a counter with the system's clock.
#[derive(Debug, Clone, Copy)]
struct Calibration {
    start: Anchor,
    span: f64,
}

impl Timer {
    /// A timer over `source`.
    pub fn new(source: Source) -> Result<Timer> {
        let source = match (source, counter::trust()) {
            (Source::Auto, Trust::Full) => Source::Tsc,
            (Source::Auto, _) => Source::Monotonic,
            (Source::Tsc, Trust::None) => {
                let text = "this processor has no time stamp counter of constant rate: use --timer monotonic";
                return Err(Error::usage(text));
            }
            (other, _) => other,
        };
        let start = Anchor::take();
        let mut period = 1e-9;
        if source == Source::Tsc {
            std::thread::sleep(std::time::Duration::from_secs_f64(CALIBRATION));
            period = start.period(&Anchor::take())?;
        }
        let origin = Origin { zero: raw(source), period };
        let calibration = Calibration { start, span: CALIBRATION };
        let mut timer = Timer { source, origin, calibration, resolution: 0.0, cost: 0.0 };
        (timer.resolution, timer.cost) = timer.examine()?;
        Ok(timer)
    }

    /// Seconds since the timer was made.
    #[inline(always)]
    pub fn now(&self) -> f64 {
        self.origin.seconds(raw(self.source))
    }

    /// Smallest step seen between two readings, seconds.
    pub fn resolution(&self) -> f64 {
        self.resolution
    }

    /// How long a reading takes, seconds.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// What it reads; never [`Source::Auto`].
    pub fn source(&self) -> Source {
        self.source
    }

    /// Where its time begins and how fast it runs.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Whether all processes of a node read the same counter. (`MPI_Wtime` may begin at 0 in each process.)
    pub(super) fn shareable(&self) -> bool {
        matches!(self.source, Source::Tsc | Source::Monotonic)
    }

    /// Counts from another origin from now on; what turns earlier times into the new ones.
    pub(super) fn adopt(&mut self, origin: Origin) -> Affine {
        let change = self.origin.change(&origin);
        self.origin = origin;
        change
    }

    /// Compares the counter with the system's clock over all the time since the timer was made, if that is
    /// now many times longer than at the last comparison. Time stays continuous.
    pub(super) fn refine(&mut self) -> Result<()> {
        if self.source != Source::Tsc {
            return Ok(());
        }
        let now = Anchor::take();
        let span = self.calibration.start.span(&now);
        if span < REFINEMENT * self.calibration.span {
            return Ok(());
        }
        self.calibration.span = span;
        self.origin = self.origin.retuned(now.ticks, self.calibration.start.period(&now)?);
        Ok(())
    }

    /// Smallest step and mean time of a reading.
    fn examine(&self) -> Result<(f64, f64)> {
        const STEPS: usize = 1000;
        // A clock that stands still for a tenth of a second is none.
        const PATIENCE: u64 = 100_000_000;
        let begun = counter::system(libc::CLOCK_MONOTONIC);
        let (mut step, mut readings, mut steps) = (f64::INFINITY, 0u64, 0);
        let first = self.now();
        let mut last = first;
        while steps < STEPS {
            let now = self.now();
            readings += 1;
            if now > last {
                step = step.min(now - last);
                steps += 1;
                last = now;
            } else if readings % 1024 == 0 && counter::system(libc::CLOCK_MONOTONIC) - begun > PATIENCE {
                break;
            }
        }
        if steps == 0 {
            return Err(Error::Measure(format!("the timer {} does not advance", self.source.name())));
        }
        Ok((step, (last - first) / readings as f64))
    }
}

#[inline(always)]
fn raw(source: Source) -> u64 {
    match source {
        Source::Tsc => counter::read(),
        Source::Wtime => {
            // SAFETY: needs nothing but MPI to be initialised, which the caller of `Timer::new` has done.
            let seconds = unsafe { ffi::MPI_Wtime() };
            (seconds * 1e9) as u64
        }
        Source::Monotonic | Source::Auto => counter::system(libc::CLOCK_MONOTONIC),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_advances_like_the_system() {
        let timer = Timer::new(Source::Monotonic).unwrap();
        let (wall, start) = (std::time::Instant::now(), timer.now());
        std::thread::sleep(std::time::Duration::from_millis(5));
        let (took, real) = (timer.now() - start, wall.elapsed().as_secs_f64());
        assert!(took >= 0.005 && took <= real, "{took} {real}");
        assert!(timer.resolution() > 0.0 && timer.resolution() < 1e-4);
        assert!(timer.cost() > 0.0 && timer.cost() < 1e-4);
    }

    #[test]
    fn counter_agrees_with_the_system() {
        if counter::trust() == Trust::None {
            assert!(Timer::new(Source::Tsc).is_err());
            return;
        }
        let mut timer = Timer::new(Source::Tsc).unwrap();
        let (begin, wall) = (timer.now(), std::time::Instant::now());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (real, took) = (wall.elapsed().as_secs_f64(), timer.now() - begin);
        assert!((took / real - 1.0).abs() < 0.01, "{took} {real}");
        timer.calibration.span = 1e-4;
        let before = timer.now();
        timer.refine().unwrap();
        let step = timer.now() - before;
        assert!(timer.calibration.span > 0.02 && (0.0..0.05).contains(&step), "{step}");
    }

    #[test]
    fn change_of_origin_keeps_moments() {
        let old = Origin { zero: 1000, period: 0.5 };
        let new = Origin { zero: 900, period: 0.25 };
        let change = old.change(&new);
        for raw in [0u64, 900, 1000, 123_456] {
            assert!((change.apply(old.seconds(raw)) - new.seconds(raw)).abs() < 1e-9);
        }
        let tuned = old.retuned(5000, 0.501);
        assert!((tuned.seconds(5000) - old.seconds(5000)).abs() < 0.501);
    }
}
