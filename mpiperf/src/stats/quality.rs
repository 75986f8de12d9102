// SPDX-License-Identifier: BSD-3-Clause
//! How well a number repeats.

use super::summary::{mean, standard_error};

/// The relative standard error of the mean over separate runs: σ/(√n·mean). `None` for fewer than two runs or
/// a mean of 0.
pub fn relative_error(means: &[f64]) -> Option<f64> {
    let center = mean(means);
    (means.len() >= 2 && center > 0.0).then(|| standard_error(means) / center)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats() {
        assert_eq!(relative_error(&[2.0]), None);
        assert_eq!(relative_error(&[2.0, 2.0, 2.0]), Some(0.0));
        let got = relative_error(&[9.0, 10.0, 11.0]).unwrap();
        assert!((got - 1.0 / 3f64.sqrt() / 10.0).abs() < 1e-12, "{got}");
    }
}
