// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf run`: measures operations.

use super::bench::{Bench, enough, on_rank_0};
use super::options::{Beside, Files, How, What};
use crate::error::{Error, Result};
use crate::measure::{Outcome, Sample, Verdict, measure, ordinary_loop};
use crate::mpi::Comm;
use crate::op::bare::Way;
use crate::op::{self, Setting};
use crate::report::output::{Kind, Output};
use crate::report::table::{Extra, preamble, run_heading, run_row};
use crate::report::units::bytes;
use crate::report::{Ordinary, Overlapped, Row};
use crate::stats::Summary;

/// The command line of `mpiperf run`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    files: Files,
    /// Report each rank's own times, too
    #[arg(long)]
    per_rank: bool,
    /// Write every call to the JSON file
    #[arg(long, requires = "json")]
    samples: bool,
    #[command(flatten)]
    beside: Beside,
    /// Go so many times over all cases, each time with new buffers, and take the calls of all passes
    /// together: a machine that is now faster and now slower for a second is seen in both states
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    passes: u32,
    /// Show the ordinary loop (barrier, as many calls, mean of rank 0) beside
    #[arg(long)]
    ordinary: bool,
    /// What `merge` and `plot` call this run (default: the library's name and version)
    #[arg(long)]
    label: Option<String>,
}

/// Measures and reports. Collective.
pub fn run(args: &Args, comm: &Comm) -> Result<()> {
    enough(comm)?;
    let settings = args.what.settings(comm.size())?;
    args.beside.check(&settings)?;
    let plan = args.how.plan(comm)?;
    let measured = comm.dup()?;
    try_out(&measured, &settings)?;
    let extra = Extra { ordinary: args.ordinary, overlap: args.beside.overlap };
    let files = &args.files;
    let mut output =
        on_rank_0(comm, || Output::open(files.csv.as_deref(), files.json.as_deref(), Kind::Rows, settings.len()))?;
    let confidence = args.how.confidence.unwrap_or(0.95);
    let mut bench = Bench::new(comm, &args.how, plan, confidence, args.label.as_deref())?;
    let said = output.as_ref().map_or(Ok(()), |output| {
        output.say(&preamble(&bench.about, bench.confidence, bench.trim))?;
        output.say(&run_heading(extra))
    });
    comm.agree(said)?;
    let mut rows = Vec::new();
    let mut gathered: Vec<Outcome> = settings.iter().map(|_| Outcome::default()).collect();
    for pass in 1..args.passes {
        for (setting, so_far) in settings.iter().zip(&mut gathered) {
            if let Some(output) = &output {
                output.next(&format!("pass {pass} of {}: {} {}", args.passes, setting.operation, bytes(setting.bytes)));
            }
            gather(so_far, &mut bench, &measured, setting)?;
        }
    }
    for (setting, mut outcome) in settings.iter().zip(gathered) {
        if let Some(output) = &output {
            output.next(&format!("{} {}", setting.operation, bytes(setting.bytes)));
        }
        gather(&mut outcome, &mut bench, &measured, setting)?;
        let row = one(args, &mut bench, &measured, setting, outcome)?;
        let written = output.as_mut().map_or(Ok(()), |output| {
            let (about, arrival) = (&bench.about, bench.arrival.as_str());
            output.done(&run_row(&row, extra), |csv| csv.row(about, arrival, confidence, &row))
        });
        comm.agree(written)?;
        rows.push(row);
    }
    let results = bench.results(rows);
    on_rank_0(comm, || output.as_mut().map_or(Ok(()), |output| output.finish(&results)))?;
    Ok(())
}

/// What bare ways want before any variant is made: an error where an operation has none of those in `named`
/// (all where that is empty), or there are several nodes. Collective.
pub fn prepare_bare(comm: &Comm, settings: &[Setting], named: &[Way]) -> Result<()> {
    settings.iter().try_for_each(|setting| op::bare_ways(setting, named).map(drop))?;
    if comm.node()?.size() < comm.size() {
        return Err(Error::usage("--bare wants all processes on one node: flags and copies are in shared memory"));
    }
    op::bare::admit();
    Ok(())
}

/// Makes the largest case of each operation once, so that what cannot be made is known before anything is
/// measured. Collective.
pub fn try_out(comm: &Comm, settings: &[Setting]) -> Result<()> {
    largest(settings).try_for_each(|setting| op::make(comm, setting).map(drop))
}

/// The same of the bare ways that are among `named`, all where that is empty. Collective.
pub fn try_out_bare(comm: &Comm, settings: &[Setting], named: &[Way]) -> Result<()> {
    for setting in largest(settings) {
        for way in op::bare_ways(setting, named)? {
            op::make_bare(comm, setting, way, true)?;
        }
    }
    Ok(())
}

/// The last setting of each operation.
fn largest(settings: &[Setting]) -> impl Iterator<Item = &Setting> {
    settings.chunk_by(|one, next| one.operation == next.operation).filter_map(|same| same.last())
}

/// Measures one case, and adds what that gives to what earlier passes gave. Collective.
fn gather(so_far: &mut Outcome, bench: &mut Bench, measured: &Comm, setting: &Setting) -> Result<()> {
    let mut cases = [op::make(measured, setting)?];
    let more = measure(bench.comm, &mut bench.clock, &mut cases, &bench.plan)?;
    so_far.samples.extend(more.samples);
    so_far.window = more.window;
    so_far.notes.extend(more.notes);
    so_far.notes.dedup();
    Ok(())
}

/// The row of a case; meaningful on rank 0. Collective.
fn one(args: &Args, bench: &mut Bench, measured: &Comm, setting: &Setting, outcome: Outcome) -> Result<Row> {
    let mut row = bench.row(&bench.about.label, setting, 0, &outcome.samples, outcome.window);
    row.notes = outcome.notes;
    if args.per_rank {
        row.ranks = per_rank(bench, &outcome.samples);
    }
    if args.beside.overlap {
        overlap(args, bench, measured, &mut row)?;
    }
    if args.ordinary {
        let mut calls = [row.calls.min(u32::MAX as usize) as u32];
        bench.comm.bcast(&mut calls, 0)?;
        let mut case = op::make(measured, setting)?;
        let (rank0, max) = ordinary_loop(bench.comm, &bench.clock, case.as_mut(), calls[0].max(1))?;
        row.ordinary = Some(Ordinary { calls: calls[0].max(1), rank0, max });
    }
    if args.samples {
        row.samples = outcome.samples;
    }
    Ok(row)
}

/// Each rank's own times over the correct calls.
fn per_rank(bench: &Bench, samples: &[Sample]) -> Vec<Summary> {
    let correct: Vec<&Sample> = samples.iter().filter(|s| s.verdict == Verdict::Correct).collect();
    let ranks = correct.first().map_or(0, |s| s.ranks.len());
    let times = |rank: usize| correct.iter().map(|s| s.ranks[rank]).collect::<Vec<_>>();
    (0..ranks).filter_map(|rank| bench.summarise(&times(rank))).collect()
}

/// Measures the operation with computation beside it. Collective.
fn overlap(args: &Args, bench: &mut Bench, measured: &Comm, row: &mut Row) -> Result<()> {
    let mut pure = [row.summary.as_ref().map_or(0.0, |s| s.mean)];
    bench.comm.bcast(&mut pure, 0)?;
    let [pure] = pure;
    if pure <= 0.0 {
        row.notes.push("no overlap without a valid call".to_owned());
        return Ok(());
    }
    let overlap = args.beside.overlap(pure);
    let setting = Setting { overlap: Some(overlap), ..row.setting.clone() };
    let mut cases = [op::make(measured, &setting)?, Box::new(op::overlap::Alone(overlap.compute))];
    let outcome = measure(bench.comm, &mut bench.clock, &mut cases, &bench.plan)?;
    let summary = |case: usize| bench.row("", &setting, case, &outcome.samples, outcome.window).summary;
    match summary(0).zip(summary(1)) {
        Some((both, compute)) => row.overlap = Some(Overlapped::new(overlap, pure, &compute, &both)),
        None => row.notes.push("no valid call with computation beside".to_owned()),
    }
    Ok(())
}
