// SPDX-License-Identifier: BSD-3-Clause
//! What `run` and `compare` have in common: clock, plan, and rows out of samples.

use super::options::How;
use crate::clock::{Global, Scheme, Source, Timer};
use crate::error::{Error, Result};
use crate::measure::{Plan, Sample, Verdict};
use crate::mpi::Comm;
use crate::op::{Setting, pairs};
use crate::report::about::ClockAbout;
use crate::report::results::{FORMAT, VERSION};
use crate::report::{About, Results, Row};
use crate::stats::{Budget, Summary, median, summarise};

/// Everything that is set up once.
pub struct Bench<'a> {
    /// For the tool's own messages.
    pub comm: &'a Comm,
    /// The global clock.
    pub clock: Global,
    /// How cases are measured.
    pub plan: Plan,
    /// Share trimmed at each end.
    pub trim: f64,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Where, when and how.
    pub about: About,
    /// The arrival pattern in words.
    pub arrival: String,
    /// The coarsest timer's resolution, seconds.
    resolution: f64,
}

impl<'a> Bench<'a> {
    /// Sets up everything that the command line asks for. Collective.
    pub fn new(comm: &'a Comm, how: &How, plan: Plan, confidence: f64, label: Option<&str>) -> Result<Bench<'a>> {
        Bench::set_up(comm, (how.timer, how.sync), how.trim, &how.arrival_name(), plan, confidence, label)
    }

    /// Sets up everything: `clock` is the timer and how offsets are found. Collective.
    pub fn set_up(
        comm: &'a Comm,
        clock: (Source, Scheme),
        trim: f64,
        arrival: &str,
        plan: Plan,
        confidence: f64,
        label: Option<&str>,
    ) -> Result<Bench<'a>> {
        let timer = comm.agree(Timer::new(clock.0))?;
        let scheme = clock.1;
        let clock = Global::synchronise(comm, timer, scheme)?;
        let mut resolution = [clock.timer.resolution()];
        comm.max(&mut resolution)?;
        let mut about = About::collect(comm, label)?;
        about.clock = Some(ClockAbout {
            source: clock.timer.source(),
            resolution: resolution[0],
            scheme,
            uncertainty: clock.uncertainty,
        });
        let arrival = arrival.to_owned();
        Ok(Bench { comm, clock, plan, trim, confidence, about, arrival, resolution: resolution[0] })
    }

    /// Whether this rank writes.
    pub fn writes(&self) -> bool {
        self.comm.rank() == 0
    }

    /// A row of case number `case`'s samples; on rank 0.
    pub fn row(&self, label: &str, setting: &Setting, case: usize, samples: &[Sample], window: f64) -> Row {
        let own: Vec<&Sample> = samples.iter().filter(|s| s.case == case).collect();
        let times = |verdict| own.iter().filter(move |s| s.verdict == verdict);
        let correct: Vec<f64> = times(Verdict::Correct).map(|s| s.time).collect();
        let spreads: Vec<f64> = times(Verdict::Correct).map(|s| s.spread).collect();
        let summary = self.summarise(&correct);
        Row {
            label: label.to_owned(),
            setting: setting.clone(),
            processes: self.comm.size(),
            calls: own.len() - times(Verdict::First).count(),
            late: times(Verdict::Late).count(),
            long: times(Verdict::Long).count(),
            budget: summary.as_ref().map(|s| Budget {
                clock: self.clock.uncertainty,
                resolution: self.resolution,
                sampling: s.interval,
            }),
            rate: summary.as_ref().and_then(|s| pairs::rate(setting, self.comm.size(), s.mean)),
            summary,
            first: times(Verdict::First).map(|s| s.time).collect(),
            spread: median(&spreads),
            passes: vec![],
            window,
            ordinary: None,
            overlap: None,
            ranks: vec![],
            notes: vec![],
            samples: vec![],
        }
    }

    /// The numbers of some times.
    pub fn summarise(&self, times: &[f64]) -> Option<Summary> {
        summarise(times, self.trim, self.confidence)
    }

    /// Differences below so many seconds mean nothing, however many calls there are.
    pub fn floor(&self) -> f64 {
        self.clock.uncertainty + self.resolution
    }

    /// The file of these rows.
    pub fn results(&self, rows: Vec<Row>) -> Results {
        Results {
            format: FORMAT.to_owned(),
            version: VERSION,
            about: self.about.clone(),
            plan: Some(self.plan.clone()),
            trim: self.trim,
            confidence: self.confidence,
            rows,
            comparisons: vec![],
        }
    }
}

/// Refuses to measure one process: it has nobody to communicate with.
pub fn enough(comm: &Comm) -> Result<()> {
    if comm.size() > 1 {
        return Ok(());
    }
    Err(Error::usage("1 process has nobody to communicate with: start mpiperf with mpiexec -n 2 or more"))
}

/// What only rank 0 does (files, terminal): its failure is everybody's. Collective.
pub fn on_rank_0<T>(comm: &Comm, work: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    if comm.rank() == 0 { comm.agree(work().map(Some)) } else { comm.agree(Ok(None)) }
}
