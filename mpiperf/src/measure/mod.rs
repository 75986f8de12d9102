//! Stages of scheduled starts.

use crate::clock::Global;
use crate::error::Result;
use crate::mpi::Comm;
use crate::op::Case;

/// How a case is measured. The defaults are the paper's.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Plan {
    /// Calls that only initialise (k' = 4); their times are reported apart.
    pub first_calls: u32,
    /// Calls of a stage (k = 8).
    pub stage_calls: u32,
    /// Share of incorrect calls of a stage above which the window grows (g = 0.25).
    pub tolerated: f64,
    /// Growth of the window over what the stage took (γ = 1.1).
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
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
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
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Reads the clock until it is time.
    Spin,
    /// Sleeps until shortly before, then gives the core away between readings.
    Sleep,
}

/// One call, over all ranks, in seconds. Known on rank 0 only.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sample {
    /// Which of the alternating cases.
    pub case: usize,
    /// The number of the call.
    pub call: u64,
    /// From the scheduled moment to the last rank's end. With an arrival pattern: from the last rank's scheduled start.
    pub time: f64,
    /// By how much the ranks' actual starts were apart from their scheduled ones: the latest minus the earliest.
    pub spread: f64,
    /// Each rank's own time from its scheduled start to its end.
    pub ranks: Vec<f64>,
    /// Whether it counts.
    pub verdict: Verdict,
}

/// Whether a call counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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

/// Measures cases that alternate call by call in an order drawn anew for each round; one case: simply that case. Collective on `comm`, which is
/// not the communicator measured. Without any correct call the outcome has none: callers must say so.
pub fn measure(_comm: &Comm, _clock: &mut Global, _cases: &mut [Box<dyn Case>], _plan: &Plan) -> Result<Outcome> {
    todo!()
}

/// The ordinary loop, for comparison: barrier, `calls` calls, the mean of them, of rank 0 and the maximum over ranks, seconds.
pub fn ordinary_loop(_comm: &Comm, _clock: &Global, _case: &mut dyn Case, _calls: u32) -> Result<(f64, f64)> {
    todo!()
}
