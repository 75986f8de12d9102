// SPDX-License-Identifier: BSD-3-Clause
//! What a number cannot be trusted below.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Ratio;

/// What may be wrong with a mean, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Uncertainty of the clock offsets: the same in every call, so that no number of calls makes it smaller.
    pub clock: f64,
    /// Resolution of the timer.
    pub resolution: f64,
    /// Half width of the confidence interval; infinite if there is none.
    #[serde(with = "super::finite")]
    #[schemars(with = "Option<f64>")]
    pub sampling: f64,
}

impl Budget {
    /// The worst case: all of them in one direction.
    pub fn total(&self) -> f64 {
        self.systematic() + self.sampling
    }

    /// What more calls do not help against.
    pub fn systematic(&self) -> f64 {
        self.clock + self.resolution
    }
}

/// What is said about the second variant against the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It takes less time.
    Faster,
    /// It takes more time.
    Slower,
    /// The interval of the ratio holds 1.
    NoDifference,
    /// There is a difference, but below what clock and timer can tell.
    Unresolved,
    /// Too few pairs of correct calls to say anything.
    NoData,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference shown",
            Verdict::Unresolved => "unresolved",
            Verdict::NoData => "no valid calls",
        })
    }
}

/// Judges `ratio` (second over first) where the first takes `first` seconds and differences below `floor`
/// seconds (the systematic part of the error budget) mean nothing.
pub fn judge(ratio: Option<&Ratio>, first: f64, floor: f64) -> Verdict {
    let Some(ratio) = ratio else { return Verdict::NoData };
    if ratio.low <= 1.0 && ratio.high >= 1.0 {
        return Verdict::NoDifference;
    }
    match (ratio.ratio - 1.0) * first {
        difference if difference.abs() <= floor => Verdict::Unresolved,
        difference if difference < 0.0 => Verdict::Faster,
        _ => Verdict::Slower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, ratio: f64, high: f64) -> Ratio {
        Ratio { ratio, low, high, confidence: 0.99, pairs: 100, blocks: 10 }
    }

    #[test]
    fn verdicts() {
        let (first, floor) = (10e-6, 100e-9);
        let of = |low, middle, high| judge(Some(&ratio(low, middle, high)), first, floor);
        assert_eq!(of(1.03, 1.05, 1.07), Verdict::Slower);
        assert_eq!(of(0.93, 0.95, 0.97), Verdict::Faster);
        assert_eq!(of(0.99, 1.05, 1.11), Verdict::NoDifference);
        assert_eq!(of(1.003, 1.005, 1.007), Verdict::Unresolved, "50 ns of 10 µs, and clocks within 100 ns");
        assert_eq!(judge(None, first, floor), Verdict::NoData);
        assert_eq!(judge(Some(&ratio(0.0, 1.2, f64::INFINITY)), first, floor), Verdict::NoDifference);
    }

    #[test]
    fn adds_up() {
        let budget = Budget { clock: 3.0, resolution: 1.0, sampling: 2.0 };
        assert_eq!((budget.total(), budget.systematic()), (6.0, 4.0));
    }
}
