// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf check`: whether something takes longer than it did, for CI.

use std::path::{Path, PathBuf};

use super::bench::{Bench, enough};
use super::merge::{read, refuse_inputs};
use super::passes::{in_passes, on_first};
use super::run::try_out;
use super::values::{confidence, tolerance};
use crate::clock::{Scheme, Source};
use crate::error::{Error, Result};
use crate::mpi::Comm;
use crate::report::changes::{Change, Changes, Of};
use crate::report::groups::same;
use crate::report::junit::junit;
use crate::report::output::{say, write_file};
use crate::report::table::{named_size, ratio, verdict};
use crate::report::units::{percent, time};
use crate::report::whole::{Style, table};
use crate::report::{Results, Row};
use crate::stats::Verdict;

/// The command line of `mpiperf check`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Results files (--json) of now; without any, what the baseline holds is measured (under mpiexec).
    /// Without --baseline: the file of the baseline and that of now
    #[arg(value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// Results file to compare with; given several times, of several runs: three or more tell how much runs
    /// differ by themselves
    #[arg(long, value_name = "FILE")]
    baseline: Vec<PathBuf>,
    /// Differences up to this share are no fault: jobs differ by themselves
    #[arg(long, default_value = "25%", value_parser = tolerance, value_name = "SHARE")]
    tolerance: f64,
    /// Confidence of all intervals together
    #[arg(long, default_value = "0.99", value_parser = confidence, value_name = "SHARE")]
    confidence: f64,
    /// Write a report of JUnit
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the table in Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write what was measured now
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Args {
    /// Whether it measures, and so runs under mpiexec.
    pub fn measures(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The files of the baseline and of now.
    fn files(&self) -> Result<(&[PathBuf], &[PathBuf])> {
        match (&self.baseline[..], &self.inputs[..]) {
            ([], [_, _]) => Ok(self.inputs.split_at(1)),
            ([], _) => Err(Error::usage("which baseline? mpiperf check OLD.json NEW.json, or --baseline OLD.json …")),
            (old, new) => Ok((old, new)),
        }
    }

    fn outputs(&self) -> impl Iterator<Item = &Path> {
        [&self.junit, &self.markdown, &self.json].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Before anything is measured: no file is written over what is read.
    fn prepare(&self) -> Result<Vec<Results>> {
        let (old, new) = self.files()?;
        let both: Vec<PathBuf> = old.iter().chain(new).cloned().collect();
        refuse_inputs(&both, self.outputs())?;
        if !new.is_empty() && self.json.is_some() {
            return Err(Error::usage("--json is for what is measured now, and nothing is: the files of now are there"));
        }
        read(&both)
    }
}

/// Compares files.
pub fn files(args: &Args) -> Result<()> {
    let (old, _) = args.files()?;
    let all = args.prepare()?;
    let (old, new) = all.split_at(old.len());
    report(args, old, new)
}

/// Measures what the baseline holds, as it was measured, and compares. Collective.
pub fn measured(args: &Args, comm: &Comm) -> Result<()> {
    enough(comm)?;
    // Each rank reads: what is measured follows from the files.
    let old = comm.agree(args.prepare())?;
    let first = &old[0];
    let Some(plan) = first.plan.clone().filter(|_| first.comparisons.is_empty()) else {
        return Err(Error::usage(format!(
            "the baseline holds ratios, which check does not measure itself; make a new file as it was made, and name both: {} --json \
             NEW.json",
            first.about.command.join(" ")
        )));
    };
    let mut rows: Vec<&Row> = Vec::new();
    for row in old.iter().flat_map(|file| &file.rows) {
        if !rows.iter().any(|known| known.processes == row.processes && same(&known.setting, &row.setting)) {
            rows.push(row);
        }
    }
    if let Some(row) = rows.iter().find(|row| row.processes > comm.size()) {
        let (most, here) = (row.processes, comm.size());
        return Err(Error::usage(format!("the baseline is of {most} ranks, and there are {here}: mpiexec -n {most}")));
    }
    let clock = first.about.clock.as_ref().map_or((Source::Auto, Scheme::Hierarchical), |c| (c.source, c.scheme));
    let mut now = Results { rows: vec![], ..first.clone() };
    for same in rows.chunk_by(|a, b| a.processes == b.processes) {
        let settings: Vec<_> = same.iter().map(|row| row.setting.clone()).collect();
        let passes = same.iter().map(|row| row.passes.len()).max().unwrap_or(0).max(1) as u32;
        on_first(comm, same[0].processes, |comm| {
            let measured = comm.dup()?;
            try_out(&measured, &settings)?;
            let label = Some(first.about.label.as_str());
            let mut bench = Bench::set_up(comm, clock, first.trim, "", plan.clone(), first.confidence, label)?;
            in_passes(
                &mut bench,
                &measured,
                &settings,
                passes,
                |_| (),
                |bench, setting, gathered| {
                    let mut row =
                        bench.row(&bench.about.label, setting, 0, &gathered.outcome.samples, gathered.outcome.window);
                    (row.passes, row.notes) = (gathered.passes, gathered.outcome.notes);
                    now.rows.push(row);
                    Ok(())
                },
            )?;
            now.about = bench.about.clone();
            Ok(())
        })?;
    }
    if comm.rank() > 0 {
        return Ok(());
    }
    if let Some(path) = &args.json {
        write_file(path, now.text()?.as_bytes())?;
    }
    report(args, &old, &[now])
}

/// Writes everything; what is slower is an error.
fn report(args: &Args, old: &[Results], new: &[Results]) -> Result<()> {
    let changes = Changes::new(old, new, args.confidence, args.tolerance)?;
    let outcome = changes.outcome();
    say(&format!(
        "# now/baseline: runs {} and {}; intervals hold together at {}, {} are tolerated",
        new.len(),
        old.len(),
        percent(args.confidence),
        percent(args.tolerance)
    ))?;
    for difference in &changes.differences {
        say(&format!("# other {difference}"))?;
    }
    if changes.further > 0 {
        say(&format!("# {} more measured now, of which the baseline has nothing", changes.further))?;
    }
    say(&as_table(&changes, Style::Plain))?;
    if let Ok(text) = &outcome {
        say(text)?;
    }
    if let Some(path) = &args.junit {
        write_file(path, junit(&changes)?.as_bytes())?;
    }
    if let Some(path) = &args.markdown {
        let said = match &outcome {
            Ok(text) => text.clone(),
            Err(error) => format!("**{error}**"),
        };
        let differences: String = changes.differences.iter().map(|text| format!("* other {text}\n")).collect();
        let text = format!("{said}\n\n{}\n\n{differences}", as_table(&changes, Style::Markdown));
        write_file(path, format!("{}\n", text.trim_end()).as_bytes())?;
    }
    outcome.map(drop)
}

fn as_table(changes: &Changes, style: Style) -> String {
    let number = |value: Option<f64>| match (value, changes.of) {
        (None, _) => "-".to_owned(),
        (Some(value), Of::Times) => time(value),
        (Some(value), Of::Ratios) => format!("{value:.3}"),
    };
    let row = |change: &Change| {
        let one = &change.comparison;
        let [middle, interval] = ratio(one.ratio.as_ref());
        let mut said = verdict(one);
        if style == Style::Markdown && one.verdict == Verdict::Slower {
            said = format!("**{said}**");
        }
        let name = match changes.of {
            Of::Times => one.setting.operation.clone(),
            Of::Ratios => format!("{} {}", one.setting.operation, change.name),
        };
        let numbers = [number(change.old), number(change.new), middle, interval];
        let mut cells = vec![name, one.processes.to_string(), named_size(&one.setting)];
        cells.extend(numbers);
        cells.push(said);
        cells
    };
    let heading = ["operation", "ranks", "size", "baseline", "now", "now/baseline", "interval", "verdict"];
    table(&heading, &changes.all.iter().map(row).collect::<Vec<_>>(), 1, true, style)
}
