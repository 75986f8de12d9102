// SPDX-License-Identifier: BSD-3-Clause
//! Stages of scheduled starts.
//!
//! * `schedule`: which case is called when, and where each rank starts. Pure.
//! * `judge`: whether a call counts, and its time. Pure.
//! * `window`: how much time a call is given. Pure.
//! * `director`: what rank 0 decides from all that: the next stage, the end. Pure.
//! * `wait`: waiting for a moment.
//! * `driver`: the stages themselves, over MPI.
//! * [`patterns`]: cases whose time is known beforehand.

mod director;
mod driver;
mod judge;
mod ordinary;
pub mod patterns;
mod schedule;
mod wait;
mod window;

pub use driver::measure;
pub use ordinary::{ordinary_loop, ordinary_loop_ranks};
pub use wait::until;

use crate::error::{Error, Result};

/// How a case is measured. The defaults are the paper's.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// Calls that only initialise (k' = 4); their times are reported apart.
    pub first_calls: u32,
    /// Calls of a stage (k = 8).
    pub stage_calls: u32,
    /// Share of incorrect calls of a stage above which the window grows (g = 0.25).
    pub tolerated: f64,
    /// Growth of the window over what the calls of a stage took (γ = 1.1).
    pub growth: f64,
    /// When to stop.
    pub stop: Stop,
    /// Where ranks start within a call, relative to the scheduled moment.
    pub arrival: Arrival,
    /// How to wait for the start; `None`: by whether there are more ranks than cores.
    pub wait: Option<Wait>,
    /// Longest time for one case, seconds. What was not finished by then is reported as it is, with a note.
    pub budget: f64,
}

/// The stopping rules.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Stop {
    /// Rule 1: so many calls made (100) …
    pub calls: u32,
    /// … or so many of them correct (30).
    pub correct: u32,
    /// Rule 2 (`None`: rule 1 alone): relative standard error of the mean at most this (0.05) …
    pub relative_error: Option<f64>,
    /// … with at least so many correct calls (10).
    pub least: u32,
}

/// Arrival patterns: seconds after the scheduled moment.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// All at once.
    Together,
    /// Rank i after i/(p−1) of this time.
    Linear(f64),
    /// Each rank at a random moment within this time, anew at every call.
    Random(f64),
    /// From a file: one line for each call (used again from the start), one number (µs) for each rank.
    Replayed(Vec<Vec<f64>>),
}

/// How a rank waits for its start.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Reads the clock until it is time; sleeps before, where that is more than a millisecond away.
    Spin,
    /// Gives the core away between readings for a while, sleeps until shortly before, then gives it away
    /// again.
    Sleep,
}

/// One call, over all ranks, in seconds. Known on rank 0 only.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Sample {
    /// Which of the alternating cases.
    pub case: usize,
    /// The number of the call.
    pub call: u64,
    /// From the scheduled moment to the last rank's end. With an arrival pattern: from the last rank's
    /// scheduled start.
    pub time: f64,
    /// By how much the ranks' actual starts were apart from their scheduled ones: the latest minus the
    /// earliest.
    pub spread: f64,
    /// Each rank's own time from its scheduled start to its end.
    pub ranks: Vec<f64>,
    /// Whether it counts.
    pub verdict: Verdict,
}

/// Whether a call counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Correct.
    Correct,
    /// A rank was not ready at its start.
    Late,
    /// A rank ended after the window.
    Long,
    /// One of the first calls.
    First,
}

/// What measuring one or more alternating cases gave.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// All calls, on rank 0; elsewhere empty.
    pub samples: Vec<Sample>,
    /// The last window, seconds.
    pub window: f64,
    /// What the reader must know: over budget, oversubscribed starts …
    pub notes: Vec<String>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            first_calls: 4,
            stage_calls: 8,
            tolerated: 0.25,
            growth: 1.1,
            stop: Stop::default(),
            arrival: Arrival::Together,
            wait: None,
            budget: 30.0,
        }
    }
}

impl Default for Stop {
    fn default() -> Stop {
        Stop { calls: 100, correct: 30, relative_error: None, least: 10 }
    }
}

impl Plan {
    /// Refuses what cannot be done on `ranks` processes.
    pub fn check(&self, ranks: usize) -> Result<()> {
        let wrong = |text: String| Err(Error::Usage(text));
        if self.stage_calls == 0 {
            return wrong("calls of a stage: 0; at least 1 is needed".into());
        }
        if !(0.0..=1.0).contains(&self.tolerated) {
            return wrong(format!("tolerated share of incorrect calls: {}; must be between 0 and 1", self.tolerated));
        }
        if !(self.growth > 1.0 && self.growth <= 10.0) {
            return wrong(format!("growth of the window: {}; must be above 1, at most 10", self.growth));
        }
        if self.stop.calls == 0 || self.stop.correct == 0 {
            return wrong("stopping rule 1: 0 calls; at least 1 is needed".into());
        }
        if self.stop.relative_error.is_some_and(|limit| limit.is_nan() || limit <= 0.0) {
            return wrong("stopping rule 2: the relative standard error must be above 0".into());
        }
        if self.budget.is_nan() || self.budget <= 0.0 {
            return wrong(format!("time for one case: {} s; must be above 0", self.budget));
        }
        self.arrival.check(ranks)
    }
}
