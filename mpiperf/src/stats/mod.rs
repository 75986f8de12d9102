// SPDX-License-Identifier: BSD-3-Clause
//! Samples in, numbers out. Nothing here knows of MPI.
//!
//! * [`summary`]: one row of numbers out of the times of one case.
//! * [`ratio`]: two alternating variants, and runs against runs.
//! * [`budget`]: what a number cannot be trusted below, and verdicts that respect it.
//! * [`change`]: runs of one time against runs of another.
//! * [`quality`]: reproducibility over runs.

pub mod budget;
pub mod change;
pub mod quality;
pub mod ratio;
pub mod student;
pub mod summary;

pub use budget::{Budget, Verdict, judge};
pub use quality::relative_error;
pub use ratio::{Ratio, of_runs, paired};
pub use summary::{PERCENTILES, Summary, median, percentile, summarise};

/// Numbers that may be infinite (an interval of one sample), as JSON's `null`, which has no infinity.
pub mod finite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// `null` for what is not finite.
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(serializer)
    }

    /// Infinity for `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}
