//! How much of a nonblocking operation computation hides, and how well a number repeats.

use super::summary::{mean, standard_error};

/// The share of `pure` (the operation's own time) that was hidden behind `compute` seconds of computation when both together
/// took `total`: 1 if the computation alone set the time, 0 if one came after the other.
pub fn hidden(pure: f64, compute: f64, total: f64) -> f64 {
    (1.0 - (total - compute) / pure).clamp(0.0, 1.0)
}

/// The relative standard error of the mean over separate runs: σ/(√n·mean). `None` for fewer than two runs or a mean of 0.
pub fn relative_error(means: &[f64]) -> Option<f64> {
    let center = mean(means);
    (means.len() >= 2 && center > 0.0).then(|| standard_error(means) / center)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap() {
        assert_eq!(hidden(10.0, 10.0, 20.0), 0.0);
        assert_eq!(hidden(10.0, 10.0, 10.0), 1.0);
        assert_eq!(hidden(10.0, 10.0, 15.0), 0.5);
        assert_eq!(hidden(10.0, 10.0, 35.0), 0.0, "slower than one after the other hides nothing");
    }

    #[test]
    fn repeats() {
        assert_eq!(relative_error(&[2.0]), None);
        assert_eq!(relative_error(&[2.0, 2.0, 2.0]), Some(0.0));
        let got = relative_error(&[9.0, 10.0, 11.0]).unwrap();
        assert!((got - 1.0 / 3f64.sqrt() / 10.0).abs() < 1e-12, "{got}");
    }
}
