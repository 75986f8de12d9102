// SPDX-License-Identifier: BSD-3-Clause
//! Settings measured in passes over all of them, on all ranks of a job or on the first ones.

use super::bench::Bench;
use crate::error::{Error, Result};
use crate::measure::{Outcome, Verdict, measure};
use crate::mpi::Comm;
use crate::op::{self, Setting};
use crate::report::units::bytes;

/// What all passes of one setting gave.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// The calls of all passes together.
    pub outcome: Outcome,
    /// The trimmed mean of each pass that had a correct call; on rank 0.
    pub passes: Vec<f64>,
}

/// Measures all settings so many times, with new buffers in each pass. `next` is told what comes; `done` gets
/// what was found, as soon as it is complete. Collective.
pub fn in_passes(
    bench: &mut Bench,
    measured: &Comm,
    settings: &[Setting],
    passes: u32,
    next: impl Fn(&str),
    mut done: impl FnMut(&mut Bench, &Setting, Gathered) -> Result<()>,
) -> Result<()> {
    let mut gathered = vec![Gathered::default(); settings.len()];
    for pass in 1..=passes {
        for (setting, so_far) in settings.iter().zip(&mut gathered) {
            let number = if pass < passes { format!("pass {pass} of {passes}: ") } else { String::new() };
            next(&format!("{number}{} {}", setting.operation, bytes(setting.bytes)));
            gather(so_far, bench, measured, setting)?;
            if pass == passes {
                let mut whole = std::mem::take(so_far);
                // One pass is what the row says anyway.
                whole.passes.truncate(if passes > 1 { whole.passes.len() } else { 0 });
                done(bench, setting, whole)?;
            }
        }
    }
    Ok(())
}

/// Measures one case, and adds what that gives to what earlier passes gave. Collective.
fn gather(so_far: &mut Gathered, bench: &mut Bench, measured: &Comm, setting: &Setting) -> Result<()> {
    let mut cases = [op::make(measured, setting)?];
    let more = measure(bench.comm, &mut bench.clock, &mut cases, &bench.plan)?;
    let correct = more.samples.iter().filter(|s| s.verdict == Verdict::Correct).map(|s| s.time);
    so_far.passes.extend(bench.summarise(&correct.collect::<Vec<_>>()).map(|summary| summary.mean));
    let outcome = &mut so_far.outcome;
    outcome.samples.extend(more.samples);
    outcome.window = more.window;
    outcome.notes.extend(more.notes);
    outcome.notes.dedup();
    Ok(())
}

/// Does something on a communicator of the first `n` ranks, while the others sleep. Collective.
pub fn on_first(comm: &Comm, n: usize, work: impl FnOnce(&Comm) -> Result<()>) -> Result<()> {
    if n == comm.size() {
        return work(comm);
    }
    let takes_part = comm.rank() < n;
    let part = comm.split(usize::from(!takes_part))?;
    let outcome = if takes_part { work(&part) } else { Ok(()) };
    if outcome.as_ref().is_err_and(|error| !matches!(error, Error::Agreed { .. })) {
        // Perhaps only this rank has it: it may not wait for the others.
        return outcome;
    }
    comm.meet(None)?;
    comm.agree(outcome)
}
