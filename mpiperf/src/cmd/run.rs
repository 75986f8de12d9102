// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf run`: measures operations.

use super::bench::{Bench, enough, on_rank_0};
use super::options::{Beside, Files, How, What};
use super::passes::{Gathered, in_passes, on_first};
use crate::error::{Error, Result};
use crate::measure::{Plan, Sample, Verdict, measure, ordinary_loop};
use crate::mpi::Comm;
use crate::op::bare::Way;
use crate::op::{self, Setting};
use crate::report::osu;
use crate::report::output::{Kind, Output};
use crate::report::table::{Extra, Look, preamble, run_heading, run_row};
use crate::report::{Ordinary, Overlapped, Results, Row};
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
    /// How rows are shown
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
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
    /// Measure on so many ranks of the job, one after the other: 2,4,8 are the first two, the first four and
    /// the first eight, while the others sleep
    #[arg(long, value_delimiter = ',', value_name = "RANKS")]
    ranks: Vec<usize>,
    /// Show the ordinary loop (barrier, as many calls, mean of rank 0) beside
    #[arg(long)]
    ordinary: bool,
    /// What `merge` and `plot` call this run (default: the library's name and version)
    #[arg(long)]
    label: Option<String>,
}

/// How rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table with what a number may be wrong by
    Table,
    /// The columns of the OSU Micro-Benchmarks
    Osu,
}

impl Args {
    /// How many ranks each turn has.
    fn turns(&self, here: usize) -> Result<Vec<usize>> {
        if self.ranks.is_empty() {
            return Ok(vec![here]);
        }
        for (i, n) in self.ranks.iter().enumerate() {
            if *n < 2 || *n > here {
                return Err(Error::usage(format!("--ranks {n}: must be from 2 to the {here} ranks of this job")));
            }
            if self.ranks[..i].contains(n) {
                return Err(Error::usage(format!("--ranks: {n} is there twice")));
            }
        }
        Ok(self.ranks.clone())
    }
}

/// Measures and reports. Collective.
pub fn run(args: &Args, comm: &Comm) -> Result<()> {
    enough(comm)?;
    let of = |n: usize| args.what.settings(n).map(|settings| (n, settings));
    let turns = args.turns(comm.size())?.into_iter().map(of).collect::<Result<Vec<_>>>()?;
    let plan = args.how.plan(comm)?;
    for (n, settings) in &turns {
        args.beside.check(settings)?;
        plan.check(*n)?;
        on_first(comm, *n, |comm| try_out(&comm.dup()?, settings))?;
    }
    let files = &args.files;
    let steps = turns.iter().map(|(_, settings)| settings.len()).sum();
    let mut output = on_rank_0(comm, || Output::open(files.csv.as_deref(), files.json.as_deref(), Kind::Rows, steps))?;
    let mut all: Option<Results> = None;
    for (n, settings) in &turns {
        on_first(comm, *n, |comm| {
            let new = turn(args, comm, plan.clone(), settings, &mut output)?;
            all = Some(match all.take() {
                None => new,
                Some(before) => before.with(new),
            });
            Ok(())
        })?;
    }
    on_rank_0(comm, || match (&mut output, &all) {
        (Some(output), Some(results)) => output.finish(results),
        _ => Ok(()),
    })?;
    Ok(())
}

/// Measures and shows all settings on all ranks of `comm`. Collective.
fn turn(args: &Args, comm: &Comm, plan: Plan, settings: &[Setting], output: &mut Option<Output>) -> Result<Results> {
    let look = Look::new(args.files.wide, settings.iter());
    let extra = Extra { ordinary: args.ordinary, overlap: args.beside.overlap, look };
    let confidence = args.how.confidence.unwrap_or(0.95);
    let measured = comm.dup()?;
    let mut bench = Bench::new(comm, &args.how, plan, confidence, args.label.as_deref())?;
    let said = output.as_ref().map_or(Ok(()), |output| {
        output.say(&preamble(&bench.about, bench.confidence, bench.trim))?;
        if args.format == Format::Osu { Ok(()) } else { output.say(&run_heading(extra)) }
    });
    comm.agree(said)?;
    let mut rows: Vec<Row> = Vec::new();
    let output = std::cell::RefCell::new(output.as_mut());
    let next = |what: &str| output.borrow().iter().for_each(|output| output.next(what));
    in_passes(&mut bench, &measured, settings, args.passes, next, |bench, setting, gathered| {
        let mut row = one(args, bench, &measured, setting, gathered)?;
        let line = match args.format {
            Format::Table => run_row(&row, extra),
            Format::Osu => {
                let first = rows.last().is_none_or(|last| last.setting.operation != setting.operation);
                let heading = if first { osu::heading(setting, comm.size()) + "\n" } else { String::new() };
                let ranks = if args.per_rank { row.ranks.clone() } else { std::mem::take(&mut row.ranks) };
                heading + &osu::row(&row, &ranks)
            }
        };
        let written = output.borrow_mut().as_mut().map_or(Ok(()), |output| {
            let (about, arrival) = (&bench.about, bench.arrival.as_str());
            output.done(&line, |csv| csv.row(about, arrival, confidence, &row))
        });
        rows.push(row);
        comm.agree(written)
    })?;
    Ok(bench.results(rows))
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

/// The row of a case; meaningful on rank 0. Collective.
fn one(args: &Args, bench: &mut Bench, measured: &Comm, setting: &Setting, gathered: Gathered) -> Result<Row> {
    let Gathered { outcome, passes } = gathered;
    let mut row = bench.row(&bench.about.label, setting, 0, &outcome.samples, outcome.window);
    (row.notes, row.passes) = (outcome.notes, passes);
    if args.per_rank || args.format == Format::Osu {
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
