// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf merge` and `mpiperf repro`: results files of separate runs brought together.

use std::path::{Path, PathBuf};

use super::options::Files;
use super::values::confidence;
use crate::error::{Error, Result};
use crate::report::groups::{Groups, Repeated, same};
use crate::report::output::{Kind, Output, say};
use crate::report::table::{Look, compare_heading, compare_row};
use crate::report::units::{bytes, percent, time};
use crate::report::whole::{Style, table};
use crate::report::{About, Results};

/// The command line of `mpiperf merge`.
#[derive(Debug, Clone, clap::Args)]
pub struct MergeArgs {
    /// Results files (--json) in the order of the runs; files of one label are repetitions, run i of each
    /// label a pair
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// The label that the others are compared with (default: the first file's)
    #[arg(long, value_name = "LABEL")]
    base: Option<String>,
    /// Confidence of the intervals over runs
    #[arg(long, default_value = "0.95", value_parser = confidence, value_name = "SHARE")]
    confidence: f64,
    #[command(flatten)]
    files: Files,
}

/// The command line of `mpiperf repro`.
#[derive(Debug, Clone, clap::Args)]
pub struct ReproArgs {
    /// Results files (--json) of separate runs with --ordinary
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// Write the table in Markdown
    #[arg(long)]
    markdown: bool,
}

/// Reads results files. None may be there twice: a run is no repetition of itself.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Results>> {
    for (i, path) in paths.iter().enumerate() {
        if paths[..i].contains(path) {
            return Err(Error::usage(format!("{} is there twice", path.display())));
        }
    }
    paths.iter().map(|path| Results::read(path)).collect()
}

/// What a merged file says of where it comes from.
pub fn about(files: &[Results]) -> About {
    let mut about = files.first().map(|f| f.about.clone()).unwrap_or_default();
    let mut libraries: Vec<String> = files.iter().map(|f| f.about.library.clone()).collect();
    libraries.dedup();
    libraries.sort_unstable();
    libraries.dedup();
    about.library = libraries.join(", ");
    about.command = std::env::args().collect();
    about
}

/// Merges and reports.
pub fn merge(args: &MergeArgs) -> Result<()> {
    let files = read(&args.inputs)?;
    let groups = Groups::new(&files);
    if groups.labels.len() < 2 {
        let label = groups.labels.first().unwrap_or(&"none");
        return Err(Error::usage(format!(
            "all files have the label '{label}', so there is nothing to compare; name runs with mpiperf run --label"
        )));
    }
    let merged = groups.merge(args.base.as_deref(), about(&files), args.confidence)?;
    let (csv, json) = (args.files.csv.as_deref(), args.files.json.as_deref());
    refuse_inputs(&args.inputs, csv.into_iter().chain(json))?;
    let mut output = Output::open(csv, json, Kind::Comparisons, merged.comparisons.len())?;
    let base = args.base.as_deref().unwrap_or(groups.labels[0]);
    output.say(&format!("# b against a, a = {base}; intervals over runs at {}", percent(args.confidence)))?;
    let look = Look::new(args.files.wide, merged.comparisons.iter().map(|one| &one.setting));
    output.say(&compare_heading(false, look))?;
    for comparison in &merged.comparisons {
        let find = |label: &str| {
            let is = |c: &crate::report::Row| {
                c.label == label && c.processes == comparison.processes && same(&c.setting, &comparison.setting)
            };
            merged.rows.iter().find(|r| is(r))
        };
        let (Some(a), Some(b)) = (find(&comparison.a), find(&comparison.b)) else { continue };
        let line = compare_row(comparison, [a, b], false, look, &format!("; b = {}", comparison.b));
        output.done(&line, |csv| csv.comparison(&merged.about, "", comparison, a, b))?;
    }
    output.finish(&merged)
}

/// Results are not written over what they come from.
pub fn refuse_inputs<'a>(inputs: &[PathBuf], outputs: impl Iterator<Item = &'a Path>) -> Result<()> {
    for path in outputs {
        if inputs.iter().any(|i| i == path) {
            return Err(Error::usage(format!("{} is read: it is not written over", path.display())));
        }
    }
    Ok(())
}

/// Reports how well runs repeat: this tool beside the ordinary loop.
pub fn repro(args: &ReproArgs) -> Result<()> {
    let files = read(&args.inputs)?;
    let groups = Groups::new(&files);
    let labelled = groups.labels.len() > 1;
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut lower = 0;
    for cell in &groups.cells {
        for (label, name) in groups.labels.iter().enumerate() {
            let Some(Repeated { runs, mean, ordinary }) = cell.repeated(label) else { continue };
            let better = mean.1 < ordinary.1;
            lower += usize::from(better);
            lines.push(vec![
                if labelled { format!("{} ({name})", cell.setting.operation) } else { cell.setting.operation.clone() },
                if cell.setting.bytes > 0 { bytes(cell.setting.bytes) } else { "-".to_owned() },
                runs.to_string(),
                time(mean.0),
                format!("{:.2} %", mean.1 * 100.0),
                time(ordinary.0),
                format!("{:.2} %", ordinary.1 * 100.0),
                if better { "yes" } else { "no" }.to_owned(),
            ]);
        }
    }
    if lines.is_empty() {
        return Err(Error::usage(
            "no case has a valid call and the ordinary loop in two files or more: run mpiperf run --ordinary --json FILE several times",
        ));
    }
    let cells = lines.len();
    say("# relative standard error of the mean over separate runs")?;
    let heading = ["operation", "size", "runs", "mpiperf", "rel. SE", "ordinary", "rel. SE", "lower"];
    say(&table(&heading, &lines, 1, false, if args.markdown { Style::Markdown } else { Style::Plain }))?;
    say(&format!(
        "lower than the ordinary loop's in {lower} of {cells} cells ({:.0} %)",
        100.0 * lower as f64 / cells as f64
    ))
}
