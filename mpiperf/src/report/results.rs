// SPDX-License-Identifier: BSD-3-Clause
//! What one run of the program found. The fields are documented in `docs/reference/mpiperf-files.md`.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::About;
use crate::error::{Error, Result};
use crate::measure::{Plan, Sample};
use crate::op::pairs::Rate;
use crate::op::{Overlap, Setting};
use crate::stats::{Budget, Ratio, Summary, Verdict};

/// What the field `format` says.
pub const FORMAT: &str = "mpiperf";
/// What the field `version` says; raised when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// A results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Where, when and how.
    pub about: About,
    /// How cases were measured; `None` in a file that `merge` wrote.
    pub plan: Option<Plan>,
    /// Share trimmed at each end.
    pub trim: f64,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// One for each tuple of independent variables.
    pub rows: Vec<Row>,
    /// Ratios between rows.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
}

/// What was found for one case. Times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Which variant or library.
    pub label: String,
    /// What was measured.
    pub setting: Setting,
    /// Number of processes.
    pub processes: usize,
    /// Calls made, the first ones not counted.
    pub calls: usize,
    /// Calls dropped because a rank was not ready at its start.
    pub late: usize,
    /// Calls dropped because a rank ended after the window.
    pub long: usize,
    /// The numbers; `None` where no call was correct.
    pub summary: Option<Summary>,
    /// Times of the first calls, never counted.
    #[serde(default)]
    pub first: Vec<f64>,
    /// Median over the correct calls of how far apart the ranks started.
    pub spread: Option<f64>,
    /// Trimmed mean of each pass that had a correct call, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<f64>,
    /// The last window; infinite where no call told how long it must be.
    #[serde(with = "crate::stats::finite")]
    #[schemars(with = "Option<f64>")]
    pub window: f64,
    /// The error budget of the mean; `None` where there is none.
    pub budget: Option<Budget>,
    /// The ordinary loop beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinary: Option<Ordinary>,
    /// Computation beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlapped>,
    /// Latency, bandwidth and message rate, of operations of pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Each rank's own time, from its scheduled start to its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<Summary>,
    /// What the reader must know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Every call, if asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

/// The ordinary loop: barrier, so many calls, the mean of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ordinary {
    /// Calls in the loop.
    pub calls: u32,
    /// Rank 0's mean.
    pub rank0: f64,
    /// The largest of the ranks' means.
    pub max: f64,
}

/// A nonblocking operation with computation between start and wait.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlapped {
    /// Trimmed mean of the computation alone.
    pub compute: f64,
    /// Seconds between two calls of `MPI_Test` within it; 0: none.
    pub test_every: f64,
    /// Trimmed mean of start, computation and wait together.
    pub total: f64,
    /// Half width of its confidence interval.
    #[serde(with = "crate::stats::finite")]
    #[schemars(with = "Option<f64>")]
    pub interval: f64,
    /// The share of the operation's own time that was hidden.
    pub hidden: f64,
}

impl Overlapped {
    /// What both together take longer than the computation alone.
    pub fn visible(&self) -> f64 {
        self.total - self.compute
    }

    /// Of an operation that takes `alone` seconds by itself, a computation, and both together.
    pub fn new(beside: Overlap, alone: f64, compute: &Summary, both: &Summary) -> Overlapped {
        let hidden = crate::op::overlap::hidden(alone, compute.mean, both.mean).unwrap_or(0.0);
        let (total, interval) = (both.mean, both.interval);
        Overlapped { compute: compute.mean, test_every: beside.test_every, total, interval, hidden }
    }
}

/// Two rows against each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What was measured.
    pub setting: Setting,
    /// Number of processes.
    pub processes: usize,
    /// Label of the first variant.
    pub a: String,
    /// Label of the second.
    pub b: String,
    /// Time of the second over time of the first; `None` for too few pairs.
    pub ratio: Option<Ratio>,
    /// What is said of the second.
    pub verdict: Verdict,
    /// Time of the second over time of the first with computation beside both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Ratio>,
    /// Differences below so many seconds mean nothing.
    pub floor: f64,
    /// What the reader must know.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Results {
    /// Reads a results file.
    pub fn read(path: &Path) -> Result<Results> {
        let name = path.display().to_string();
        let text = std::fs::read(path).map_err(|source| Error::File { path: name.clone(), source })?;
        // The format first: a later version may hold what this one cannot read.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head: Head = serde_json::from_slice(&text)
            .map_err(|e| Error::usage(format!("{name} is no results file of mpiperf (written with --json): {e}")))?;
        if head.format != FORMAT || head.version != VERSION {
            return Err(Error::usage(format!(
                "{name} is of format '{}' version {}; this mpiperf reads '{FORMAT}' version {VERSION}",
                head.format, head.version
            )));
        }
        serde_json::from_slice(&text).map_err(|e| Error::usage(format!("{name} is damaged: {e}")))
    }

    /// These and the rows of `more`, which were measured in the same job; it is described where it had more
    /// ranks.
    pub fn with(mut self, more: Results) -> Results {
        if more.about.processes > self.about.processes {
            self.about = more.about;
        }
        self.rows.extend(more.rows);
        self
    }

    /// As text for a file.
    pub fn text(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        text.map(|t| t + "\n").map_err(|e| Error::Measure(format!("the results cannot be written as JSON: {e}")))
    }
}

impl Row {
    /// A mean's relative error after which a reader would be misled without a word: more than half of it
    /// uncertain.
    pub fn dubious(&self) -> bool {
        match (&self.summary, &self.budget) {
            (Some(summary), Some(budget)) => budget.systematic() > summary.mean / 2.0,
            _ => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::stats::summarise;

    /// A row of made-up calls around `mean`.
    pub fn row(label: &str, operation: &str, bytes: usize, mean: f64) -> Row {
        let times: Vec<f64> = (0..40).map(|i| mean * (1.0 + 0.01 * f64::from(i % 7))).collect();
        let summary = summarise(&times, 0.25, 0.95);
        let sampling = summary.as_ref().map_or(f64::INFINITY, |s| s.interval);
        Row {
            label: label.into(),
            setting: Setting { operation: operation.into(), bytes, ..Setting::default() },
            processes: 2,
            calls: 44,
            late: 3,
            long: 1,
            summary,
            first: vec![mean * 50.0, mean * 2.0],
            spread: Some(30e-9),
            passes: vec![],
            window: mean * 1.5,
            budget: Some(Budget { clock: 50e-9, resolution: 10e-9, sampling }),
            ordinary: Some(Ordinary { calls: 44, rank0: mean * 0.7, max: mean * 0.8 }),
            overlap: None,
            rate: None,
            ranks: vec![],
            notes: vec![],
            samples: vec![],
        }
    }

    /// A row without any correct call.
    pub fn empty(label: &str, operation: &str, bytes: usize) -> Row {
        Row { summary: None, spread: None, budget: None, calls: 100, late: 100, ..row(label, operation, bytes, 1.0) }
    }

    /// Results of these rows.
    pub fn results(rows: Vec<Row>) -> Results {
        Results {
            format: FORMAT.into(),
            version: VERSION,
            about: About::default(),
            plan: None,
            trim: 0.25,
            confidence: 0.95,
            rows,
            comparisons: vec![],
        }
    }

    #[test]
    fn there_and_back() {
        let mut all = results(vec![row("x", "bcast", 8, 1e-6), empty("x", "bcast", 16)]);
        all.rows[1].window = f64::INFINITY;
        all.rows[0].ranks = vec![summarise(&[1.0], 0.25, 0.95).unwrap()];
        all.comparisons = vec![Comparison {
            setting: Setting::default(),
            processes: 2,
            a: "x".into(),
            b: "y".into(),
            ratio: None,
            verdict: Verdict::NoData,
            overlap: None,
            floor: 1e-9,
            notes: vec!["n".into()],
        }];
        let path = std::env::temp_dir().join(format!("mpiperf-results-{}.json", std::process::id()));
        std::fs::write(&path, all.text().unwrap()).unwrap();
        let back = Results::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(back.unwrap(), all);
    }

    #[test]
    fn says_what_is_wrong_with_a_file() {
        let path = std::env::temp_dir().join(format!("mpiperf-wrong-{}.json", std::process::id()));
        for (text, want) in [
            ("hello", "no results file"),
            ("{}", "no results file"),
            (r#"{"format":"mpiperf","version":99}"#, "version 99"),
            (r#"{"format":"mpiperf","version":1}"#, "damaged"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Results::read(&path).unwrap_err();
            assert!(error.to_string().contains(want), "{text}: {error}");
            assert_eq!(error.status(), 2);
        }
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Results::read(&path), Err(Error::File { .. })));
    }
}
