// SPDX-License-Identifier: BSD-3-Clause
//! One row of numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::student;

/// Which percentiles a [`Summary`] holds.
pub const PERCENTILES: [u8; 6] = [5, 25, 50, 75, 95, 99];

/// One row of numbers; times in seconds. What one sample cannot tell (errors, interval) is infinite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Calls that counted.
    pub correct: usize,
    /// Calls left after trimming.
    pub kept: usize,
    /// Mean of the kept.
    pub mean: f64,
    /// Standard error of the mean of the kept, σ/√n. Too small for an interval: trimming took the spread
    /// away.
    #[serde(with = "super::finite")]
    #[schemars(with = "Option<f64>")]
    pub error: f64,
    /// The same before trimming: of the plain mean of all correct calls.
    #[serde(with = "super::finite")]
    #[schemars(with = "Option<f64>")]
    pub error_untrimmed: f64,
    /// Half width of the confidence interval of the trimmed mean: Student's factor for the kept calls times
    /// the standard error after Tukey and McLaughlin (winsorised variance), which knows what was trimmed.
    #[serde(with = "super::finite")]
    #[schemars(with = "Option<f64>")]
    pub interval: f64,
    /// Of the kept.
    pub min: f64,
    /// Of the kept.
    pub max: f64,
    /// Percentiles 5, 25, 50, 75, 95, 99 of all correct calls.
    pub percentiles: [f64; 6],
}

impl Summary {
    /// Percentile 50.
    pub fn median(&self) -> f64 {
        self.percentiles[2]
    }
}

/// Trims `trim` (0.25) of the smallest and of the largest, and summarises at confidence `p`. `None` without
/// any sample.
pub fn summarise(times: &[f64], trim: f64, p: f64) -> Option<Summary> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let center = Trimmed::of_sorted(&sorted, trim)?;
    let kept = &sorted[center.cut..sorted.len() - center.cut];
    Some(Summary {
        correct: sorted.len(),
        kept: kept.len(),
        mean: center.mean,
        error: standard_error(kept),
        error_untrimmed: standard_error(&sorted),
        interval: student::factor(p, kept.len() - 1) * center.error,
        min: kept[0],
        max: kept[kept.len() - 1],
        percentiles: PERCENTILES.map(|percent| percentile(&sorted, f64::from(percent) / 100.0)),
    })
}

/// A trimmed mean and its standard error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trimmed {
    /// Values cut at each end.
    pub cut: usize,
    /// Mean of the rest.
    pub mean: f64,
    /// Its standard error by the winsorised variance; infinite where one value is left.
    pub error: f64,
}

impl Trimmed {
    /// Of ascending values; `share` (below one half) of them is cut at each end. `None` without any.
    pub fn of_sorted(sorted: &[f64], share: f64) -> Option<Trimmed> {
        let n = sorted.len();
        let last = n.checked_sub(1)?;
        let cut = ((n as f64 * share.max(0.0)) as usize).min(last / 2);
        let kept = &sorted[cut..n - cut];
        let error = if kept.len() < 2 {
            f64::INFINITY
        } else {
            let winsorised: Vec<f64> = sorted.iter().map(|v| v.clamp(kept[0], kept[kept.len() - 1])).collect();
            standard_error(&winsorised) * n as f64 / kept.len() as f64
        };
        Some(Trimmed { cut, mean: mean(kept), error })
    }

    /// Of values in any order.
    pub fn of(values: &[f64], share: f64) -> Option<Trimmed> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Trimmed::of_sorted(&sorted, share)
    }
}

/// The arithmetic mean; NaN of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// σ/√n of the mean, infinite for fewer than two values.
pub(super) fn standard_error(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::INFINITY;
    }
    let (n, mean) = (values.len() as f64, mean(values));
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt()
}

/// The quantile at `share` (0.5: the median) of ascending values, linear between neighbours; NaN of nothing.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let low = place as usize;
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64)
}

/// The median of values in any order; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| percentile(&sorted, 0.5))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn trims_a_quarter_at_each_end() {
        let times = [8.0, 1.0, 5.0, 3.0, 4.0, 1000.0, 6.0, 2.0];
        let s = summarise(&times, 0.25, 0.95).unwrap();
        assert_eq!((s.correct, s.kept, s.min, s.max), (8, 4, 3.0, 6.0));
        assert_eq!(s.mean, 4.5);
        assert!((s.error - (5.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12, "{}", s.error);
        assert!(s.error_untrimmed > 100.0);
        // Winsorised: 3 3 3 4 5 6 6 6, variance 2, n = 8, half kept; Student with 3 degrees of freedom.
        assert!((s.interval - 3.182446 * (2.0f64 / 8.0).sqrt() * 2.0).abs() < 1e-5, "{}", s.interval);
        assert_eq!(s.median(), 4.5);
    }

    #[test]
    fn nothing_and_one() {
        assert_eq!(summarise(&[], 0.25, 0.95), None);
        let s = summarise(&[2.0], 0.25, 0.95).unwrap();
        assert_eq!((s.correct, s.kept, s.mean), (1, 1, 2.0));
        assert!(s.error.is_infinite() && s.error_untrimmed.is_infinite() && s.interval.is_infinite());
        let text = serde_json::to_string(&s).unwrap();
        assert!(text.contains("\"interval\":null"), "{text}");
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), s);
    }

    #[test]
    fn percentiles_of_a_ramp() {
        let ramp: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(summarise(&ramp, 0.25, 0.9).unwrap().percentiles, [5.0, 25.0, 50.0, 75.0, 95.0, 99.0]);
        assert_eq!(percentile(&[1.0, 2.0], 0.5), 1.5);
    }

    /// The share of 95 % intervals that miss the true mean, over many experiments of 30 calls.
    fn misses(mut draw: impl FnMut(&mut SmallRng) -> f64, truth: f64) -> f64 {
        let mut random = SmallRng::seed_from_u64(1);
        let experiments = 4000;
        let missed = (0..experiments).filter(|_| {
            let times: Vec<f64> = (0..30).map(|_| draw(&mut random)).collect();
            let s = summarise(&times, 0.25, 0.95).unwrap();
            (s.mean - truth).abs() > s.interval
        });
        missed.count() as f64 / f64::from(experiments)
    }

    #[test]
    fn intervals_cover_what_they_say() {
        let flat = misses(|r| r.random_range(0.0..2.0), 1.0);
        assert!((0.02..0.065).contains(&flat), "uniform times: {flat}");
        let spiky = misses(|r| 1.0 + r.random_range(-0.1..0.1) * if r.random_bool(0.1) { 30.0 } else { 1.0 }, 1.0);
        assert!((0.005..0.065).contains(&spiky), "with outliers: {spiky}");
    }

    proptest! {
        #[test]
        fn order_and_bounds(mut times in proptest::collection::vec(1e-9f64..1.0, 1..200), trim in 0.0f64..0.49) {
            let s = summarise(&times, trim, 0.95).unwrap();
            times.reverse();
            prop_assert_eq!(summarise(&times, trim, 0.95).unwrap(), s.clone());
            let slack = 1e-12 * s.max;
            prop_assert!(s.min - slack <= s.mean && s.mean <= s.max + slack);
            prop_assert!(s.percentiles.is_sorted());
            prop_assert!(s.kept >= 1 && s.kept <= s.correct && s.correct == times.len());
        }

        #[test]
        fn scales(times in proptest::collection::vec(0.1f64..1.0, 2..50), unit in 1e-6f64..1e3) {
            let scaled: Vec<f64> = times.iter().map(|t| t * unit).collect();
            let (a, b) = (summarise(&times, 0.25, 0.99).unwrap(), summarise(&scaled, 0.25, 0.99).unwrap());
            prop_assert!((a.mean * unit - b.mean).abs() <= 1e-9 * b.mean);
            if a.interval.is_finite() {
                prop_assert!((a.interval * unit - b.interval).abs() <= 1e-6 * b.mean);
            } else {
                prop_assert!(b.interval.is_infinite());
            }
        }
    }
}
