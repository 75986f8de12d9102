//! Samples in, numbers out.

/// One row of numbers; times in seconds.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Summary {
    /// Calls that counted.
    pub correct: usize,
    /// Calls left after trimming.
    pub kept: usize,
    /// Mean of the kept.
    pub mean: f64,
    /// Standard error of the mean of the kept, σ/√n.
    pub error: f64,
    /// The same before trimming.
    pub error_untrimmed: f64,
    /// Half width of the confidence interval of the mean by Student's distribution.
    pub interval: f64,
    /// Of the kept.
    pub min: f64,
    /// Of the kept.
    pub max: f64,
    /// Percentiles 5, 25, 50, 75, 95, 99 of all correct calls.
    pub percentiles: [f64; 6],
}

/// Trims `trim` (0.25) of the smallest and of the largest, and summarises at confidence `p`. `None` without any sample.
pub fn summarise(_times: &[f64], _trim: f64, _p: f64) -> Option<Summary> {
    todo!()
}
