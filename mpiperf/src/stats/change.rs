// SPDX-License-Identifier: BSD-3-Clause
//! What changed between two sets of runs that did not alternate: by Welch's test on the logarithms.
//!
//! Calls of one run say nothing of how runs differ: where memory lies and what else the machine does changes
//! from job to job. So three runs or more of a side tell its error by their differences. A side of fewer runs
//! borrows that from the other side, if it has as many; if neither has, only the errors within runs are
//! known.

use super::{Ratio, student};

/// What one run says of one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Logarithm of its time, or of its ratio.
    pub log: f64,
    /// Standard error of that, as far as the run itself can tell.
    pub error: f64,
    /// Degrees of freedom behind the error.
    pub freedom: usize,
    /// Calls, or pairs of calls, behind it.
    pub calls: usize,
}

impl Run {
    /// Of a value, the half width of its interval at confidence `p`, and the degrees of freedom behind it.
    /// `None` where that is no number above 0, or its interval is open.
    pub fn new(value: f64, half: f64, p: f64, freedom: usize, calls: usize) -> Option<Run> {
        let error = half / value / student::factor(p, freedom);
        let good = value > 0.0 && half.is_finite() && error.is_finite();
        good.then(|| Run { log: value.ln(), error, freedom, calls })
    }
}

/// Runs from which on their differences count.
pub const RUNS: usize = 3;

fn mean(runs: &[Run]) -> f64 {
    runs.iter().map(|run| run.log).sum::<f64>() / runs.len() as f64
}

/// A variance of a mean, and its degrees of freedom.
#[derive(Debug, Clone, Copy)]
struct Variance {
    square: f64,
    freedom: f64,
}

impl Variance {
    /// By the errors within the runs.
    fn within(runs: &[Run]) -> Variance {
        let n = runs.len() as f64;
        let square = runs.iter().map(|run| run.error.powi(2)).sum::<f64>() / (n * n);
        Variance { square, freedom: runs.iter().map(|run| run.freedom).sum::<usize>() as f64 }
    }

    /// By the differences between the runs; `None` for too few.
    fn between(runs: &[Run]) -> Option<Variance> {
        let (n, mean) = (runs.len() as f64, mean(runs));
        let squares: f64 = runs.iter().map(|run| (run.log - mean).powi(2)).sum();
        (runs.len() >= RUNS).then(|| Variance { square: squares / (n - 1.0) / n, freedom: n - 1.0 })
    }

    /// Of the difference of two independent means (Welch and Satterthwaite).
    fn of_difference(self, other: Variance) -> Variance {
        let square = self.square + other.square;
        let share = |one: Variance| one.square.powi(2) / one.freedom.max(1.0);
        let freedom = if square > 0.0 { square.powi(2) / (share(self) + share(other)) } else { 1.0 };
        Variance { square, freedom: freedom.max(1.0) }
    }

    /// The variance of a difference, of which one side of `n` runs is this one, and the other one has `m`
    /// runs of the same kind.
    fn lent(self, n: usize, m: usize) -> Variance {
        Variance { square: self.square * (1.0 + n as f64 / m as f64), ..self }
    }
}

/// The new runs' time over the old ones', with an interval at confidence `p`. `None` where a side has no run.
pub fn change(old: &[Run], new: &[Run], p: f64) -> Option<Ratio> {
    if old.is_empty() || new.is_empty() {
        return None;
    }
    let within = Variance::within(old).of_difference(Variance::within(new));
    let between = match (Variance::between(old), Variance::between(new)) {
        (Some(a), Some(b)) => Some(a.of_difference(b)),
        (Some(a), None) => Some(a.lent(old.len(), new.len())),
        (None, Some(b)) => Some(b.lent(new.len(), old.len())),
        (None, None) => None,
    };
    // Runs that are equal by chance do not make the calls exact.
    let variance = between.filter(|between| between.square >= within.square).unwrap_or(within);
    let middle = mean(new) - mean(old);
    let half = student::factor(p, variance.freedom as usize) * variance.square.sqrt();
    Some(Ratio {
        ratio: middle.exp(),
        low: (middle - half).exp(),
        high: (middle + half).exp(),
        confidence: p,
        pairs: new.iter().map(|run| run.calls).sum(),
        blocks: old.len() + new.len(),
    })
}

/// The confidence of each of `cases` intervals, so that with confidence `p` all of them hold together
/// (Bonferroni).
pub fn of_each(p: f64, cases: usize) -> f64 {
    1.0 - (1.0 - p) / cases.max(1) as f64
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn run(value: f64, half: f64) -> Run {
        Run::new(value, half, 0.95, 14, 30).unwrap()
    }

    #[test]
    fn errors_within_runs_make_the_interval() {
        let ratio = change(&[run(1.0, 0.02)], &[run(1.5, 0.03)], 0.95).unwrap();
        assert!((ratio.ratio - 1.5).abs() < 1e-12);
        // Both have an error of 2 % / 2.145, 28 degrees of freedom together: 2.048 times √2 of that.
        assert!((ratio.high.ln() - 1.5f64.ln() - 0.02 / 2.1448 * 2f64.sqrt() * 2.0484).abs() < 1e-4, "{ratio:?}");
        assert_eq!((ratio.pairs, ratio.blocks), (30, 2));
        assert_eq!(change(&[], &[run(1.0, 0.1)], 0.95), None);
        assert_eq!(Run::new(0.0, 0.1, 0.95, 3, 3), None);
        assert_eq!(Run::new(1.0, f64::INFINITY, 0.95, 0, 1), None);
    }

    #[test]
    fn runs_that_differ_widen_it_for_both_sides() {
        let old: Vec<Run> = [1.0, 1.2, 0.9, 1.1, 1.05].map(|value| run(value, 0.001)).to_vec();
        let ratio = change(&old, &[run(1.2, 0.001)], 0.95).unwrap();
        assert!(ratio.low < 1.0 && ratio.high > 1.3, "{ratio:?}");
        let within = change(&old[..2], &[run(1.2, 0.001)], 0.95).unwrap();
        assert!(within.low > 1.05, "two runs tell nothing of their differences: {within:?}");
    }

    /// How often an unchanged program is called different, and one that takes 1.5 times as long, where runs
    /// differ by 5 %.
    #[test]
    fn what_is_the_same_is_seldom_called_different() {
        let mut random = SmallRng::seed_from_u64(11);
        let mut normal = |spread: f64| {
            let (u, v): (f64, f64) = (random.random_range(1e-12..1.0), random.random());
            spread * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        };
        let mut runs = |n: usize, slower: f64| -> Vec<Run> {
            (0..n).map(|_| run(slower * (normal(0.05) + normal(0.005)).exp(), 0.01)).collect()
        };
        let experiments = 4000;
        for (before, after) in [(3, 1), (5, 1), (5, 5), (10, 1)] {
            let mut found = [0, 0];
            for _ in 0..experiments {
                for (slower, found) in [1.0, 1.5].into_iter().zip(&mut found) {
                    let ratio = change(&runs(before, 1.0), &runs(after, slower), 0.99).unwrap();
                    *found += u32::from(ratio.low > 1.0 || ratio.high < 1.0);
                }
            }
            let [same, slowed] = found.map(|n| f64::from(n) / f64::from(experiments));
            println!("{before} runs against {after}: the same called different in {same}, 1.5 found in {slowed}");
            assert!(same < 0.015, "{before} runs against {after}: {same} called different, not 0.01");
            assert!(before < 5 || slowed > 0.8, "{before} runs against {after}: 1.5 times found in {slowed}");
        }
    }

    #[test]
    fn all_hold_together() {
        assert!((of_each(0.99, 10) - 0.999).abs() < 1e-12);
        assert_eq!(of_each(0.99, 0), 0.99);
    }
}
