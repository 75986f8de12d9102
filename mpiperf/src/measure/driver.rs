// SPDX-License-Identifier: BSD-3-Clause
//! The stages, over MPI.

use super::director::{Director, Next};
use super::judge::{Allowance, MOMENTS, Stage};
use super::schedule::{Slot, slots};
use super::wait::{give_way, until};
use super::{Outcome, Plan, Wait};
use crate::clock::Global;
use crate::error::{Error, Result};
use crate::mpi::Comm;
use crate::op::{Call, Case};

/// Seconds between synchronisations where clocks differ, and where all ranks read one clock (then it is a
/// check).
const RESYNCHRONISE: f64 = 2.0;
const RECHECK: f64 = 10.0;
/// Windows are never shorter, seconds: spinning ranks; ranks that linger, must get some sleep, and are awake
/// early (`wait`).
const FLOOR_SPIN: f64 = 2e-6;
const FLOOR_SLEEP: f64 = 600e-6;
/// A spinning rank that begins this much late, beyond what clock and timer explain, was interrupted; seconds.
const JITTER: f64 = 50e-9;

/// What rank 0 tells before each stage; then follow the windows.
const HEADER: usize = 3;
const END: f64 = 0.0;
const STAGE: f64 = 1.0;
const SYNCHRONISE: f64 = 2.0;

/// Measures cases that alternate call by call in an order drawn anew for each round; one case: simply that
/// case. Collective on `comm`, which is not the communicator measured. Without any correct call the outcome
/// has none: callers must say so.
///
/// The calls of one round have the same number. A rank's error does not stop its stage, so that no other rank
/// is left alone in a call; after the stage all ranks return it.
pub fn measure(comm: &Comm, clock: &mut Global, cases: &mut [Box<dyn Case>], plan: &Plan) -> Result<Outcome> {
    plan.check(comm.size())?;
    if cases.is_empty() {
        return Err(Error::usage("no case to measure"));
    }
    let wait = plan.wait.unwrap_or(if clock.oversubscribed { Wait::Sleep } else { Wait::Spin });
    let mut run = Run { comm, plan, wait, offsets: Vec::new() };
    let (floor, extra) = match wait {
        Wait::Spin => (FLOOR_SPIN + 2.0 * clock.uncertainty, 5e-6),
        Wait::Sleep => (FLOOR_SLEEP, FLOOR_SLEEP),
    };
    let lead = 2.0 * run.broadcast_time(clock, cases.len())? + extra;
    let mut director = Director::new(plan, cases.len(), floor, lead);
    let mut corrections: Vec<String> = Vec::new();
    let (begun, mut call) = (clock.timer.now(), 0u64);
    let window = loop {
        // All that could differ between ranks is decided by rank 0, its clock's age too.
        let header = run.header(clock, &mut director, begun)?;
        if header[0] == END {
            break header[HEADER..].iter().copied().fold(0.0, f64::max);
        }
        if header[0] == SYNCHRONISE {
            corrections.extend(run.resynchronise(clock)?);
            continue;
        }
        let (rounds, tau) = (header[1] as u32, header[2]);
        let slots = slots(call, rounds, &header[HEADER..]);
        call += u64::from(rounds);
        let mut reports = Vec::with_capacity(slots.len() * MOMENTS);
        let ran = run.stage(clock, cases, &slots, tau, &mut reports);
        let all = comm.gather(&reports, 0)?;
        comm.agree(ran)?;
        if comm.rank() == 0 {
            let stage = Stage { tau, slots: &slots, reports: &all, arrival: &plan.arrival };
            director.digest(&stage, &allowance(clock, wait));
        }
    };
    if comm.rank() != 0 {
        return Ok(Outcome { window, ..Outcome::default() });
    }
    let mut notes = director.notes(wait == Wait::Sleep);
    notes.extend(corrections);
    Ok(Outcome { samples: director.samples, window, notes })
}

fn interval(clock: &Global) -> f64 {
    if clock.shared { RECHECK } else { RESYNCHRONISE }
}

/// What clock and timer cannot tell apart from a start in time. Where ranks share cores, one that was ready
/// is not late: not all can run at one moment, and how far apart they began is reported.
fn allowance(clock: &Global, wait: Wait) -> Allowance {
    let blur = clock.uncertainty + 4.0 * clock.timer.cost() + JITTER;
    match wait {
        Wait::Spin => Allowance { ready: blur, start: blur },
        Wait::Sleep => Allowance { ready: blur, start: f64::INFINITY },
    }
}

struct Run<'a> {
    comm: &'a Comm,
    plan: &'a Plan,
    wait: Wait,
    /// This rank's starts within the calls of the stage.
    offsets: Vec<f64>,
}

impl Run<'_> {
    /// A bound of the time until all ranks have a header: the longest of a few broadcasts, the first not
    /// counted.
    fn broadcast_time(&self, clock: &Global, cases: usize) -> Result<f64> {
        const TRIES: usize = 6;
        let mut longest = [0.0f64];
        let mut header = vec![0.0; HEADER + cases];
        for attempt in 0..TRIES {
            self.comm.barrier()?;
            header[0] = clock.now();
            self.comm.bcast(&mut header, 0)?;
            if attempt > 0 {
                longest[0] = longest[0].max(clock.now() - header[0]);
            }
        }
        self.comm.max(&mut longest)?;
        Ok(longest[0])
    }

    /// What comes next, on all ranks: kind, rounds, start of the stage, windows.
    fn header(&self, clock: &Global, director: &mut Director, begun: f64) -> Result<Vec<f64>> {
        let windows = director.windows();
        let mut header = vec![END; HEADER + windows.len()];
        if self.comm.rank() == 0 {
            header[HEADER..].copy_from_slice(&windows);
            match director.next(clock.timer.now() - begun) {
                Next::End => {}
                Next::Stage(_) if clock.age() > interval(clock) => header[0] = SYNCHRONISE,
                Next::Stage(rounds) => {
                    header[0] = STAGE;
                    header[1] = f64::from(rounds);
                    header[2] = clock.now() + director.lead;
                }
            }
        }
        self.comm.bcast(&mut header, 0)?;
        Ok(header)
    }

    /// Synchronises again; what to note if the clocks had gone wrong by more than they should.
    fn resynchronise(&self, clock: &mut Global) -> Result<Option<String>> {
        let (before, age) = (clock.uncertainty, clock.age());
        clock.resynchronise(self.comm)?;
        if clock.correction <= before + clock.uncertainty {
            return Ok(None);
        }
        let (wrong, claimed) = (clock.correction * 1e6, before * 1e6);
        Ok(Some(format!("clocks were wrong by {wrong:.2} µs after {age:.1} s, more than the {claimed:.2} µs expected")))
    }

    /// The calls of a stage; four moments of each. The first error is returned after the last call.
    fn stage(
        &mut self,
        clock: &Global,
        cases: &mut [Box<dyn Case>],
        slots: &[Slot],
        tau: f64,
        reports: &mut Vec<f64>,
    ) -> Result<()> {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        self.offsets.clear();
        self.offsets.extend(slots.iter().map(|slot| self.plan.arrival.offsets(slot.call, size)[rank]));
        let timer = clock.timer;
        let mut outcome = Ok(());
        for (slot, offset) in slots.iter().zip(&self.offsets) {
            let case = &mut cases[slot.case];
            let prepared = case.prepare(Call { number: slot.call });
            let moment = clock.local_at(tau + slot.begin + offset);
            let ready = timer.now();
            let start = until(&timer, moment, self.wait);
            let ran = case.run();
            let end = timer.now();
            give_way(&timer, clock.counts.as_ref(), clock.local_at(tau + slot.begin + slot.window), self.wait);
            let verified = if prepared.is_ok() && ran.is_ok() { case.verify() } else { Ok(()) };
            let done = timer.now();
            outcome = outcome.and(prepared).and(ran).and(verified);
            reports.extend([ready, start, end, done].map(|t| clock.global_at(t)));
        }
        outcome
    }
}
