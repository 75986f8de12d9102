// SPDX-License-Identifier: BSD-3-Clause
//! Offset and drift out of several measurements of the offset. Pure.

/// `ratio · t + shift`: from one way to count seconds to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// Factor.
    pub ratio: f64,
    /// Summand, seconds.
    pub shift: f64,
}

impl Affine {
    /// Changes nothing.
    pub const IDENTITY: Affine = Affine { ratio: 1.0, shift: 0.0 };

    /// The time `t` in the new way.
    pub fn apply(&self, t: f64) -> f64 {
        self.ratio * t + self.shift
    }
}

/// The global clock at one moment of the local one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Local time, seconds.
    pub local: f64,
    /// Global time at that moment, seconds.
    pub global: f64,
    /// Bound of the error of `global`, seconds.
    pub error: f64,
}

/// From local to global time: `global + rate · (t − local)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Map {
    /// Local time of the reference, seconds.
    pub local: f64,
    /// Global time of the reference, seconds.
    pub global: f64,
    /// Global seconds per local second.
    pub rate: f64,
}

impl Map {
    /// The clock of rank 0 itself.
    pub const IDENTITY: Map = Map { local: 0.0, global: 0.0, rate: 1.0 };

    /// The global time at local time `t`.
    #[inline(always)]
    pub fn global_at(&self, t: f64) -> f64 {
        self.global + self.rate * (t - self.local)
    }

    /// The local time at global time `t`.
    #[inline(always)]
    pub fn local_at(&self, t: f64) -> f64 {
        self.local + (t - self.global) / self.rate
    }

    /// The same map when the local and the global clock have changed their way to count.
    pub fn changed(&self, local: &Affine, global: &Affine) -> Map {
        Map {
            local: local.apply(self.local),
            global: global.apply(self.global),
            rate: self.rate * global.ratio / local.ratio,
        }
    }
}

/// Most points kept: clocks drift linearly only for a while.
const LONGEST: usize = 12;
/// A drift is believed when it is so many of its standard errors away from 0.
const SIGNIFICANT: f64 = 2.0;

/// The measurements so far, oldest first.
#[derive(Debug, Clone, Default)]
pub struct History {
    points: Vec<Point>,
}

impl History {
    /// Adds a measurement, forgets what is too old or disagrees with it, and gives the map and the bound of
    /// its error.
    pub fn add(&mut self, point: Point) -> (Map, f64) {
        self.points.push(point);
        if self.points.len() > LONGEST {
            self.points.remove(0);
        }
        loop {
            let (map, error) = fit(&self.points);
            let fits = |p: &Point| (map.global_at(p.local) - p.global).abs() <= p.error + error;
            if self.points.len() <= 2 || self.points.iter().all(fits) {
                return (map, error);
            }
            self.points.remove(0);
        }
    }

    /// All points when the clocks have changed their way to count.
    pub fn change(&mut self, local: &Affine, global: &Affine) {
        for point in &mut self.points {
            point.local = local.apply(point.local);
            point.global = global.apply(point.global);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.points.clear();
    }
}

/// Weighted linear regression of the offset over local time; without a significant slope, the weighted mean
/// of the offsets. The bound of the error is that of the best point plus its distance from the line. `points`
/// is not empty.
fn fit(points: &[Point]) -> (Map, f64) {
    let reference = points[points.len() - 1];
    // Differences against the reference keep all digits.
    let base = reference.global - reference.local;
    let row = |p: &Point| {
        let weight = 1.0 / p.error.max(1e-12).powi(2);
        (weight, p.local - reference.local, (p.global - p.local) - base)
    };
    let (mut sum, mut sum_x, mut sum_y) = (0.0, 0.0, 0.0);
    for (w, x, y) in points.iter().map(row) {
        sum += w;
        sum_x += w * x;
        sum_y += w * y;
    }
    let (mean_x, mean_y) = (sum_x / sum, sum_y / sum);
    let (mut xx, mut xy) = (0.0, 0.0);
    for (w, x, y) in points.iter().map(row) {
        xx += w * (x - mean_x).powi(2);
        xy += w * (x - mean_x) * (y - mean_y);
    }
    let slope = if xx > 0.0 && (xy / xx).abs() > SIGNIFICANT / xx.sqrt() { xy / xx } else { 0.0 };
    let offset = mean_y - slope * mean_x;
    let map = Map { local: reference.local, global: reference.global + offset, rate: 1.0 + slope };
    let bound = |p: &Point| p.error + (map.global_at(p.local) - p.global).abs();
    (map, points.iter().map(bound).fold(f64::INFINITY, f64::min))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Points of a clock that is `offset` behind and drifts, each wrong by a given share of its error bound.
    fn history(offset: f64, drift: f64, error: f64, noise: &[f64]) -> (Map, f64) {
        let mut history = History::default();
        let mut last = (Map::IDENTITY, 0.0);
        for (i, share) in noise.iter().enumerate() {
            let local = 100.0 + i as f64;
            let global = local + offset + drift * local + share * error;
            last = history.add(Point { local, global, error });
        }
        last
    }

    proptest! {
        #[test]
        fn offset_and_drift_are_recovered(
            offset in -1e3..1e3f64, drift in -5e-5..5e-5f64, noise in prop::collection::vec(-1.0..1.0f64, 1..12),
        ) {
            let error = 2e-6;
            let (map, bound) = history(offset, drift, error, &noise);
            let now = 100.0 + noise.len() as f64 - 1.0;
            let wrong = map.global_at(now) - (now + offset + drift * now);
            prop_assert!(wrong.abs() <= 3.0 * error, "{wrong:e}");
            prop_assert!(bound >= error && bound <= 3.0 * error, "{bound:e}");
            prop_assert!(wrong.abs() <= 2.0 * bound);
        }

        #[test]
        fn maps_invert(local in -10.0..10.0f64, global in -1e4..1e4f64, drift in -1e-4..1e-4f64, t in 0.0..1e3f64) {
            let map = Map { local, global, rate: 1.0 + drift };
            prop_assert!((map.local_at(map.global_at(t)) - t).abs() < 1e-9);
            let (a, b) = (Affine { ratio: 2.0, shift: 3.0 }, Affine { ratio: 0.5, shift: -1.0 });
            let changed = map.changed(&a, &b);
            prop_assert!((changed.global_at(a.apply(t)) - b.apply(map.global_at(t))).abs() < 1e-9);
        }
    }

    #[test]
    fn drift_extrapolates() {
        let (map, _) = history(0.5, 2e-5, 1e-7, &[0.3, -0.2, 0.1, 0.0, -0.3]);
        let later = 114.0;
        let wrong = map.global_at(later) - (later + 0.5 + 2e-5 * later);
        assert!((map.rate - 1.0 - 2e-5).abs() < 2e-7, "{}", map.rate);
        assert!(wrong.abs() < 2e-6, "{wrong:e}");
        let (one, _) = history(0.5, 2e-5, 1e-7, &[0.0]);
        assert_eq!(one.rate, 1.0);
    }

    #[test]
    fn noise_is_no_drift() {
        let (map, _) = history(1.0, 0.0, 1e-6, &[0.5, -0.5, 0.4, -0.3, 0.2]);
        assert_eq!(map.rate, 1.0);
    }

    #[test]
    fn step_of_the_clock_is_followed() {
        let mut history = History::default();
        for i in 0..6 {
            history.add(Point { local: i as f64, global: i as f64, error: 1e-6 });
        }
        for i in 6..8 {
            history.add(Point { local: i as f64, global: i as f64 + 1.0, error: 1e-6 });
        }
        let (map, error) = history.add(Point { local: 8.0, global: 9.0, error: 1e-6 });
        assert!((map.global_at(8.0) - 9.0).abs() < 1e-5 && error < 1e-5, "{map:?} {error}");
    }
}
