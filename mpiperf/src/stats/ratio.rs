// SPDX-License-Identifier: BSD-3-Clause
//! Ratios with intervals.
//!
//! Two variants that alternate call by call give pairs of times. What disturbs both calls of a pair cancels
//! in the logarithm of their ratio; what is left is neither normal (single calls take ten times as long) nor
//! independent: a disturbance lasts for many calls, and what a setup (buffers, communicators) happens to be
//! like lasts as long as the setup. So the variants are set up anew several times, each setup gives one
//! robust number (the mean of the middle half of its logarithms), and the interval is Student's over the
//! setups, from ten on with the outermost tenth at each end trimmed and the winsorised error that goes with
//! it. A setup is never cut into pieces: they would share what the setup is like, and count as if they did
//! not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::student;
use super::summary::Trimmed;

/// A ratio of times, second over first, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The ratio.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; infinite where it is open.
    #[serde(with = "super::finite")]
    #[schemars(with = "Option<f64>")]
    pub high: f64,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Pairs of correct calls behind it.
    pub pairs: usize,
    /// Setups, or runs, that the interval was made of.
    pub blocks: usize,
}

/// Setups below which nothing is said.
pub const LEAST: usize = 3;
/// Trimmed within a setup, and over the setups.
const WITHIN: f64 = 0.25;
const OVER: f64 = 0.1;

/// The ratio second over first of pairs `(first, second)`; one group for each setup. `None` where fewer than
/// three setups have pairs.
pub fn paired(groups: &[Vec<(f64, f64)>], p: f64) -> Option<Ratio> {
    let mut pairs = 0;
    let mut blocks = Vec::new();
    for group in groups {
        let logs: Vec<f64> = group.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| (b / a).ln()).collect();
        pairs += logs.len();
        blocks.extend(Trimmed::of(&logs, WITHIN).map(|block| block.mean));
    }
    if blocks.len() < LEAST { None } else { over_blocks(&blocks, pairs, p) }
}

/// The ratio second over first of the means of separate runs that alternated: run i of one and run i of the
/// other are a pair. `None` for fewer than two.
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

    /// Times of two variants on a machine that others disturb: a drift that both see, slower noise of each
    /// one's own (`own`, with correlation `memory` from call to call), single calls up to 20 times as long,
    /// and what each setup changes.
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
        /// The share of experiments whose interval leaves out 1, over several seeds.
        fn found(&self, groups: usize, pairs: usize) -> f64 {
            let experiments = 3000;
            let seeds = [7, 101, 202, 303];
            let mut found = 0;
            for seed in seeds {
                let mut random = SmallRng::seed_from_u64(seed);
                for _ in 0..experiments {
                    let groups: Vec<_> = (0..groups).map(|_| self.group(&mut random, pairs)).collect();
                    let ratio = paired(&groups, 0.99).unwrap();
                    found += u32::from(ratio.low > 1.0 || ratio.high < 1.0);
                }
            }
            f64::from(found) / (experiments * seeds.len()) as f64
        }
    }

    #[test]
    fn identical_variants_are_not_told_apart() {
        for (memory, setup, groups, pairs) in [
            (0.0, 0.0, 10, 30),
            (0.5, 0.02, 3, 30),
            (0.5, 0.05, 5, 60),
            (0.5, 0.02, 9, 30),
            (0.95, 0.05, 10, 30),
            (0.5, 0.02, 20, 30),
        ] {
            let share = Machine { memory, own: 0.1, setup, slower: 1.0 }.found(groups, pairs);
            println!("memory {memory}, setups differ by {setup}, {groups} of {pairs} pairs: {share:.4}");
            // A share of 0.01 is told by 12000 experiments to within ± 0.0009; two of that are allowed for.
            assert!(share <= 0.0118, "memory {memory}, {groups} setups of {pairs}: {share} called different, not 0.01");
        }
    }

    #[test]
    fn five_percent_are_found() {
        for (own, setup, least) in [(0.04, 0.005, 0.98), (0.05, 0.01, 0.88)] {
            let share = Machine { memory: 0.5, own, setup, slower: 1.05 }.found(10, 30);
            println!("calls differ by {own}, setups by {setup}: {share:.3} found");
            assert!(share > least, "calls differ by {own}, setups by {setup}: found in {share}");
        }
        let machine = Machine { memory: 0.5, own: 0.04, setup: 0.005, slower: 1.05 };
        let mut random = SmallRng::seed_from_u64(3);
        let groups: Vec<_> = (0..10).map(|_| machine.group(&mut random, 30)).collect();
        let ratio = paired(&groups, 0.99).unwrap();
        assert!((ratio.ratio - 1.05).abs() < 0.02, "{ratio:?}");
        assert_eq!((ratio.pairs, ratio.blocks), (300, 10));
    }

    #[test]
    fn too_few_say_nothing() {
        assert_eq!(paired(&[], 0.99), None);
        assert_eq!(paired(&[vec![(1.0, 1.1); 800]], 0.99), None, "one setup, however long");
        assert_eq!(paired(&[vec![(1.0, 1.1)], vec![(1.0, 1.1)], vec![]], 0.99), None);
        assert!(paired(&[vec![(1.0, 1.1)], vec![(1.0, 1.1)], vec![(1.0, 1.1)]], 0.99).is_some());
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
            let cut = |all: Vec<(f64, f64)>| all.chunks(4).map(<[_]>::to_vec).collect::<Vec<_>>();
            let swapped: Vec<_> = times.iter().map(|(a, b)| (*b, *a)).collect();
            let (r, s) = (paired(&cut(times), 0.95).unwrap(), paired(&cut(swapped), 0.95).unwrap());
            prop_assert!((r.ratio * s.ratio - 1.0).abs() < 1e-9);
            prop_assert!((r.low * s.high - 1.0).abs() < 1e-9);
            prop_assert!(r.low <= r.ratio && r.ratio <= r.high);
        }
    }
}
