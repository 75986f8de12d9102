// SPDX-License-Identifier: BSD-3-Clause
//! Student's distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The factor α of a two-sided interval at confidence `p` (0.95) with `freedom` degrees of freedom; infinite
/// for none.
pub fn factor(p: f64, freedom: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom as f64) {
        Ok(t) if freedom > 0 => t.inverse_cdf(0.5 + p / 2.0),
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::factor;

    #[test]
    fn table_values() {
        let table = [
            (0.90, 1, 6.314),
            (0.90, 10, 1.812),
            (0.95, 1, 12.706),
            (0.95, 4, 2.776),
            (0.95, 29, 2.045),
            (0.99, 2, 9.925),
            (0.99, 9, 3.250),
            (0.99, 100, 2.626),
        ];
        for (p, freedom, want) in table {
            let got = factor(p, freedom);
            assert!((got - want).abs() < 6e-4, "p {p}, {freedom} degrees: {got}, not {want}");
        }
    }

    #[test]
    fn nothing_known_of_one_sample() {
        assert!(factor(0.95, 0).is_infinite());
    }
}
