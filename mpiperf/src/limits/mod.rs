// SPDX-License-Identifier: BSD-3-Clause
//! What this machine can do between two processes of one node: what no collective through shared memory can
//! undercut.
//!
//! * `ground`: the shared memory, the buffers, flags.
//! * `queue`, `lines`, `direct`: ways to move data, which know of no clock.
//! * [`ways`]: these as cases for the engine of [`crate::measure`], so that their times are made as those of
//!   `run`.
//! * [`floors`]: what operations cannot take less than. Pure.
//! * [`table`]: both as text.

mod direct;
pub mod floors;
mod ground;
mod lines;
mod queue;
pub mod table;
pub mod ways;

use std::rc::Rc;

use crate::clock::Global;
use crate::error::{Error, Result};
use crate::measure::{Plan, Stop, Verdict, measure};
use crate::mpi::Comm;
use crate::op::memory;
use crate::stats::{median, summarise};
use floors::Found;
use ground::{CONTENTS, Ground};
use ways::{Cut, Trial, Way};

/// Share trimmed at each end.
pub const TRIM: f64 = 0.25;
/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Calls of a stage.
const STAGE: u32 = 16;
/// Longest time for one way at one size with one cut, seconds.
const LONGEST: f64 = 1.0;
/// Without any correct call it is tried again, up to so many times in all.
const ATTEMPTS: u32 = 3;

/// Two processes, ready to be measured.
pub struct Limits<'a> {
    comm: &'a Comm,
    /// The global clock.
    pub clock: Global,
    ground: Rc<Ground>,
    plan: Plan,
    /// Why the processes may not use each other's memory, if so.
    pub refused: Option<String>,
}

impl<'a> Limits<'a> {
    /// Prepares for messages of up to `most` bytes and so many correct calls each. Collective.
    pub fn new(comm: &'a Comm, clock: Global, most: usize, correct: u32) -> Result<Limits<'a>> {
        memory::enough(comm, most.saturating_mul(2), "ask for smaller messages (--sizes)")?;
        let ground = Ground::new(comm, most)?;
        ground.admit();
        comm.barrier()?;
        let refused = comm.agree(ground.permitted()).err().map(|error| error.to_string());
        let stop = Stop { calls: correct.saturating_mul(4), correct, relative_error: None, least: correct.min(10) };
        let plan = Plan { stage_calls: STAGE.min(correct), stop, budget: LONGEST, ..Plan::default() };
        Ok(Limits { comm, clock, ground: Rc::new(ground), plan, refused })
    }

    /// What does not depend on the size; complete on rank 0. Collective.
    pub fn basics(&mut self) -> Result<Vec<Found>> {
        let (empty, ping_pong) = (self.find(Way::Empty, 0, Cut::Whole)?, self.find(Way::PingPong, 0, Cut::Whole)?);
        Ok(vec![empty, ping_pong, self.find(Way::Owned, CONTENTS, Cut::Lines)?])
    }

    /// Every way at one size; complete on rank 0. Collective.
    pub fn size(&mut self, bytes: usize) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        for way in Way::SIZED {
            if way.direct() && self.refused.is_some() {
                continue;
            }
            for cut in way.cuts(bytes) {
                all.push(self.find(way, bytes, cut)?);
            }
        }
        Ok(all)
    }

    fn find(&mut self, way: Way, bytes: usize, cut: Cut) -> Result<Found> {
        let mut attempts = 0;
        let outcome = loop {
            let trial = Trial::new(&self.ground, way, bytes, cut);
            let outcome = measure(self.comm, &mut self.clock, &mut [Box::new(trial)], &self.plan)?;
            attempts += 1;
            let mut valid = [u8::from(outcome.samples.iter().any(|s| s.verdict == Verdict::Correct))];
            self.comm.bcast(&mut valid, 0)?;
            // A machine that stood still for all the time there was may do better now.
            if valid[0] != 0 || attempts == ATTEMPTS {
                break outcome;
            }
        };
        let times = |verdict: fn(Verdict) -> bool| outcome.samples.iter().filter(move |s| verdict(s.verdict));
        let correct = || times(|verdict| verdict == Verdict::Correct);
        let lines = if way == Way::PingPong { 2.0 * lines::ROUND_TRIPS as f64 } else { 1.0 };
        Ok(Found {
            way,
            bytes,
            cut,
            calls: times(|verdict| verdict != Verdict::First).count(),
            summary: summarise(&correct().map(|s| s.time / lines).collect::<Vec<_>>(), TRIM, CONFIDENCE),
            spread: median(&correct().map(|s| s.spread).collect::<Vec<_>>()),
        })
    }
}

/// Refuses jobs of other than two processes, and processes on different nodes.
pub fn check_job(processes: usize, of_node: usize) -> Result<()> {
    if processes != 2 {
        return Err(Error::usage(format!(
            "limits measures between two processes, and this job has {processes}: start it with mpiexec -n 2"
        )));
    }
    if of_node != 2 {
        return Err(Error::usage(
            "limits measures within a node, and the two processes are on different nodes: start both on one (--host)",
        ));
    }
    Ok(())
}

/// Refuses sizes that are no whole numbers of floats.
pub fn check_sizes(sizes: &[usize]) -> Result<()> {
    match sizes.iter().find(|bytes| **bytes == 0 || !bytes.is_multiple_of(4)) {
        Some(bytes) => {
            Err(Error::usage(format!("--sizes: {bytes}: limits adds floats, so sizes must be multiples of 4 above 0")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_jobs_are_wrong_usage() {
        assert!(check_job(2, 2).is_ok());
        for (processes, of_node, text) in [(1, 1, "has 1"), (3, 3, "has 3"), (4, 2, "has 4"), (2, 1, "different nodes")]
        {
            let error = check_job(processes, of_node).unwrap_err();
            assert_eq!(error.status(), 2);
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn sizes_are_whole_floats() {
        assert!(check_sizes(&[4, 8, 1 << 20]).is_ok());
        for sizes in [&[0usize, 8][..], &[8, 10]] {
            assert_eq!(check_sizes(sizes).unwrap_err().status(), 2);
        }
    }
}
