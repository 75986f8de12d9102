//! Ratios with intervals.
//!
//! Two variants that alternate call by call give pairs of times. What disturbs both calls of a pair cancels in the logarithm of
//! their ratio; what is left is neither normal (single calls take ten times as long) nor independent (a disturbance lasts for many
//! calls). So the pairs are put together in blocks of neighbours, each block gives one robust number (the mean of the middle
//! half of its logarithms), and the interval is Student's over the blocks, the outermost tenth at each end trimmed, with the
//! winsorised error that goes with it. Blocks that were set up apart (buffers and communicators anew) also carry what such
//! a setup changes, which no number of calls within one setup shows.

use serde::{Deserialize, Serialize};

use super::student;
use super::summary::Trimmed;

/// A ratio of times, second over first, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The ratio.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; infinite where two blocks or fewer leave it open.
    #[serde(with = "super::finite")]
    pub high: f64,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Pairs of correct calls behind it.
    pub pairs: usize,
    /// Blocks that the interval was made of.
    pub blocks: usize,
}

/// Blocks that are wanted in all.
const BLOCKS: usize = 10;
/// Least pairs in a block that was cut out of a longer group.
const LEAST: usize = 3;
/// Trimmed within a block, and over the blocks.
const WITHIN: f64 = 0.25;
const OVER: f64 = 0.1;

/// The ratio second over first of pairs `(first, second)` in the order they were measured; one group for each setup. `None` where
/// there are fewer than three blocks of pairs.
pub fn paired(groups: &[Vec<(f64, f64)>], p: f64) -> Option<Ratio> {
    let wanted = BLOCKS.div_ceil(groups.len().max(1));
    let mut pairs = 0;
    let mut blocks = Vec::new();
    for group in groups {
        let logs: Vec<f64> = group.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| (b / a).ln()).collect();
        pairs += logs.len();
        let pieces = wanted.min(logs.len() / LEAST).max(1);
        for piece in 0..pieces {
            let (from, to) = (piece * logs.len() / pieces, (piece + 1) * logs.len() / pieces);
            blocks.extend(Trimmed::of(&logs[from..to], WITHIN).map(|block| block.mean));
        }
    }
    if blocks.len() < 3 { None } else { over_blocks(&blocks, pairs, p) }
}

/// The ratio second over first of the means of separate runs that alternated: run i of one and run i of the other are a pair.
/// `None` for fewer than two.
pub fn of_runs(runs: &[(f64, f64)], p: f64) -> Option<Ratio> {
    let logs: Vec<f64> = runs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| (b / a).ln()).collect();
    if logs.len() < 2 { None } else { over_blocks(&logs, logs.len(), p) }
}

fn over_blocks(blocks: &[f64], pairs: usize, p: f64) -> Option<Ratio> {
    let center = Trimmed::of(blocks, OVER)?;
    let kept = blocks.len() - 2 * center.cut;
    // With the usual kept − 1 identical variants are told apart a little too often (see the tests).
    let freedom = kept.saturating_sub(if center.cut > 0 { 2 } else { 1 });
    let half = student::factor(p, freedom) * center.error;
    Some(Ratio {
        ratio: center.mean.exp(),
        low: (center.mean - half).exp(),
        high: (center.mean + half).exp(),
        confidence: p,
        pairs,
        blocks: blocks.len(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn normal(random: &mut SmallRng) -> f64 {
        let (u, v): (f64, f64) = (random.random_range(1e-12..1.0), random.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Times of two variants on a machine that others disturb: a drift that both see, slower noise of each one's own
    /// (`own`, with correlation `memory` from call to call), single calls up to 20 times as long, and what each setup changes.
    struct Machine {
        memory: f64,
        own: f64,
        setup: f64,
        slower: f64,
    }

    impl Machine {
        fn group(&self, random: &mut SmallRng, pairs: usize) -> Vec<(f64, f64)> {
            let innovation = (1.0 - self.memory * self.memory).sqrt();
            let (mut drift, mut noise) = (0.0, [normal(random), normal(random)]);
            let setup = [normal(random) * self.setup, normal(random) * self.setup];
            let scale = [1.0, self.slower];
            (0..pairs)
                .map(|_| {
                    drift = 0.99 * drift + 0.03 * normal(random);
                    let mut time = |i: usize| {
                        noise[i] = self.memory * noise[i] + innovation * normal(random);
                        let outlier = if random.random_bool(0.05) { random.random_range(2.0..20.0) } else { 1.0 };
                        10e-6 * scale[i] * outlier * (drift + self.own * noise[i] + setup[i]).exp()
                    };
                    (time(0), time(1))
                })
                .collect()
        }

        /// The share of experiments whose interval leaves out 1.
        fn found(&self, groups: usize, pairs: usize) -> f64 {
            let mut random = SmallRng::seed_from_u64(7);
            let experiments = 3000;
            let found = (0..experiments).filter(|_| {
                let groups: Vec<_> = (0..groups).map(|_| self.group(&mut random, pairs)).collect();
                let ratio = paired(&groups, 0.99).unwrap();
                ratio.low > 1.0 || ratio.high < 1.0
            });
            found.count() as f64 / f64::from(experiments)
        }
    }

    #[test]
    fn identical_variants_are_not_told_apart() {
        for (memory, setup, groups, pairs) in
            [(0.0, 0.0, 1, 300), (0.8, 0.0, 1, 400), (0.5, 0.02, 10, 30), (0.95, 0.05, 10, 30), (0.5, 0.02, 5, 60)]
        {
            // Setups that differ are seen only if there are enough of them: five are cut in two, which are not independent.
            let setup = if groups < BLOCKS { 0.0 } else { setup };
            let share = Machine { memory, own: 0.1, setup, slower: 1.0 }.found(groups, pairs);
            // 3000 experiments tell a share of 0.01 to within ± 0.0018.
            assert!(share <= 0.0118, "memory {memory}, {groups} groups of {pairs}: {share} called different, not 0.01");
        }
    }

    #[test]
    fn five_percent_are_found() {
        let machine = Machine { memory: 0.5, own: 0.04, setup: 0.005, slower: 1.05 };
        let share = machine.found(10, 30);
        assert!(share > 0.95, "found in {share}");
        let mut random = SmallRng::seed_from_u64(3);
        let groups: Vec<_> = (0..10).map(|_| machine.group(&mut random, 30)).collect();
        let ratio = paired(&groups, 0.99).unwrap();
        assert!((ratio.ratio - 1.05).abs() < 0.02, "{ratio:?}");
        assert_eq!((ratio.pairs, ratio.blocks), (300, 10));
    }

    #[test]
    fn too_few_say_nothing() {
        assert_eq!(paired(&[], 0.99), None);
        assert_eq!(paired(&[vec![(1.0, 1.1); 8]], 0.99), None);
        assert_eq!(paired(&[vec![(1.0, 1.1)], vec![(1.0, 1.1)]], 0.99), None);
        assert!(paired(&[vec![(1.0, 1.1); 9]], 0.99).is_some());
        assert_eq!(of_runs(&[(1.0, 2.0)], 0.95), None);
    }

    #[test]
    fn runs_against_runs() {
        let ratio = of_runs(&[(1.0, 2.0), (1.1, 2.2), (0.9, 1.8)], 0.95).unwrap();
        assert!((ratio.ratio - 2.0).abs() < 1e-9 && ratio.high - ratio.low < 1e-6, "{ratio:?}");
        let wide = of_runs(&[(1.0, 2.0), (1.0, 1.0)], 0.95).unwrap();
        assert!(wide.low < 1.0 && wide.high > 2.0, "{wide:?}");
    }

    proptest! {
        #[test]
        fn swapping_inverts(times in proptest::collection::vec((1e-6f64..1e-3, 1e-6f64..1e-3), 12..80)) {
            let swapped: Vec<_> = times.iter().map(|(a, b)| (*b, *a)).collect();
            let (r, s) = (paired(&[times], 0.95).unwrap(), paired(&[swapped], 0.95).unwrap());
            prop_assert!((r.ratio * s.ratio - 1.0).abs() < 1e-9);
            prop_assert!((r.low * s.high - 1.0).abs() < 1e-9);
            prop_assert!(r.low <= r.ratio && r.ratio <= r.high);
        }
    }
}
