// SPDX-License-Identifier: BSD-3-Clause
//! Axes with logarithmic positions and ticks at numbers that people read.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// An axis: positions are logarithms to base 10.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is shown.
    pub span: Range<f64>,
    /// Where the labelled ticks are.
    pub ticks: Vec<f64>,
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value - self.span.start) / (self.span.end - self.span.start);
        from + (f64::from(to - from) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { vec![] } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.span.clone()
    }
}

impl ValueFormatter<f64> for Axis {}

/// An axis for message sizes or numbers of processes: ticks at powers of two, at most `most` of them.
pub fn powers(values: impl Iterator<Item = f64> + Clone, most: usize) -> Axis {
    let (low, high) = bounds(values.clone());
    let (from, to) = (low.log2().ceil() as i32, high.log2().floor() as i32);
    let step = (1..).find(|step| (to - from).max(0) / step < most.max(1) as i32).unwrap_or(1);
    let mut ticks: Vec<f64> =
        (0..).map(|i| from + i * step).take_while(|e| *e <= to).map(|e| f64::from(e).exp2()).collect();
    if ticks.len() < 2 {
        // One size, or two close ones: label those there are.
        ticks = values.collect();
        ticks.sort_unstable_by(f64::total_cmp);
        ticks.dedup();
        ticks.truncate(most.max(1));
    }
    axis(low, high, 0.04, 0.3, &ticks)
}

/// An axis for times: over a factor of four at least, ticks at 1, 2, 5 or at decades only.
pub fn times(values: impl Iterator<Item = f64> + Clone) -> Axis {
    let (low, high) = bounds(values);
    let (low, high) = widened(low, high, 4.4);
    let steps: &[f64] = if high / low < 500.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    axis(low, high, 0.04, 0.0, &decades(low / 1.2, high * 1.2, steps))
}

/// An axis for ratios: 1 is always on it.
pub fn ratios(values: impl Iterator<Item = f64> + Clone) -> Axis {
    let (low, high) = bounds(values.chain([1.0]));
    let (low, high) = widened(low, high, 1.04);
    let ticks = if high / low > 5.0 {
        decades(low / 1.2, high * 1.2, &[1.0, 2.0, 5.0])
    } else {
        let step = nice((high - low) / 5.0);
        // Counted from 1, so that 1 is among them.
        let places = ((low - 1.0) / step).floor() as i64..=((high - 1.0) / step).ceil() as i64;
        places.map(|i| 1.0 + i as f64 * step).filter(|t| *t > 0.0).collect()
    };
    axis(low, high, 0.06, 0.0, &ticks)
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `step`.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0].map(|m| m * power).into_iter().find(|s| *s >= step * 0.999).unwrap_or(10.0 * power)
}

fn decades(low: f64, high: f64, steps: &[f64]) -> Vec<f64> {
    let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
    exponents.flat_map(|e| steps.iter().map(move |m| m * 10f64.powi(e))).collect()
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let positive = values.filter(|v| v.is_finite() && *v > 0.0);
    let (low, high) = positive.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    if low > high { (1.0, 1.0) } else { (low, high) }
}

fn widened(low: f64, high: f64, least: f64) -> (f64, f64) {
    let grow = (least / (high / low)).max(1.0).sqrt();
    (low / grow, high * grow)
}

/// With a margin: a share of the length, and at least so much.
fn axis(low: f64, high: f64, share: f64, least: f64, ticks: &[f64]) -> Axis {
    let (low, high) = (low.log10(), high.log10());
    let length = high - low;
    let margin = (length * share).max(if length > 0.0 { 0.0 } else { least });
    let span = low - margin..high + margin;
    let ticks = ticks.iter().map(|t| t.log10()).filter(|t| span.contains(t)).collect();
    Axis { span, ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<f64> {
        axis.ticks.iter().map(|t| (10f64.powf(*t) * 1e9).round() / 1e9).collect()
    }

    #[test]
    fn sizes() {
        assert_eq!(labels(&powers([8.0, 1048576.0].into_iter(), 7)), [8.0, 64.0, 512.0, 4096.0, 32768.0, 262144.0]);
        assert_eq!(labels(&powers([8.0, 64.0].into_iter(), 7)), [8.0, 16.0, 32.0, 64.0]);
        assert_eq!(labels(&powers([1000.0].into_iter(), 7)), [1000.0]);
        let one = powers([8.0].into_iter(), 7);
        assert!(one.span.end > one.span.start);
    }

    #[test]
    fn times_with_few_and_many_decades() {
        assert_eq!(labels(&times([1e-6, 30e-6].into_iter())), [1e-6, 2e-6, 5e-6, 10e-6, 20e-6]);
        assert_eq!(labels(&times([1e-6, 5e-3].into_iter())).len(), 4);
        assert!(labels(&times([1e-6].into_iter())).len() >= 2);
        assert!(times([].into_iter()).span.end.is_finite());
    }

    #[test]
    fn one_is_on_the_axis_of_ratios() {
        for values in [vec![0.9, 1.1], vec![1.3, 1.31], vec![0.2, 40.0], vec![], vec![f64::INFINITY, 0.97]] {
            let axis = ratios(values.iter().copied());
            assert!(axis.ticks.iter().any(|t| t.abs() < 1e-9), "{values:?}: {axis:?}");
            assert!((2..12).contains(&axis.ticks.len()), "{values:?}: {axis:?}");
        }
    }
}
