// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf start`: what a library costs before anything repeats: MPI_Init and MPI_Finalize, first calls,
//! fresh communicators, memory, files. Each number needs a job of its own, so this command starts jobs: of
//! several launchers' command lines by turns.

mod job;
mod pattern;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::report::output::say;
use crate::report::units::time;

pub use job::{JobArgs, run as run_job};

/// Measure the cold start: MPI_Init, first calls, fresh communicators, memory (starts jobs itself)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Operations whose first call in a job is timed: a job for each
    #[arg(value_name = "OPERATION", default_values = ["barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"])]
    pub operations: Vec<String>,
    /// How to start a job, such as "mpiexec -n 2"; several alternate
    #[arg(long, value_name = "COMMAND", default_value = "mpiexec -n 2")]
    pub launch: Vec<String>,
    /// The mpiperf for each launcher, in order, where they start programs of different libraries
    #[arg(long, value_name = "FILE")]
    pub program: Vec<PathBuf>,
    /// Jobs of each kind; medians count
    #[arg(long, default_value_t = 7)]
    pub jobs: usize,
    /// Communicators that each job makes by dup, and by split
    #[arg(long, default_value_t = 10)]
    pub communicators: usize,
    /// Also run an application pattern: each operation between computations that turn the caches over, after
    /// which ranks arrive at different moments
    #[arg(long)]
    pub pattern: bool,
    /// Pattern: calls of each operation
    #[arg(long, default_value_t = 30)]
    pub rounds: usize,
    /// Pattern: bytes that each rank reads and writes between two calls
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub turnover: usize,
    /// Pattern: the longest that a rank computes on while others have arrived, in microseconds
    #[arg(long, value_name = "US", default_value_t = 200)]
    pub skew: u64,
    /// Pattern: bytes of a block (of the vector that is reduced, or for each rank)
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub block: usize,
    /// Also count the files that a rank opens, in one job under strace
    #[arg(long)]
    pub files: bool,
    /// Write JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What one launcher's jobs have shown of one thing. Seconds, bytes or files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The launcher's command line.
    pub launch: String,
    /// Of what.
    pub measure: String,
    /// `s`, `B` or `files`.
    pub unit: &'static str,
    /// The middle one of the jobs' numbers.
    pub median: f64,
    /// The smallest one.
    pub min: f64,
    /// The largest one.
    pub max: f64,
    /// How many jobs.
    pub jobs: usize,
}

/// Jobs without any operation: MPI_Init and MPI_Finalize.
pub const NONE: &str = "none";
/// Jobs of the application pattern.
pub const PATTERN: &str = "pattern";

/// Numbers by what they are of, in the order of the table.
type Found = BTreeMap<(usize, String), Vec<f64>>;

/// Starts the jobs and prints.
pub fn run(args: &Args) -> Result<()> {
    for operation in &args.operations {
        job::check(operation)?;
    }
    if args.pattern && (args.rounds == 0 || args.block < 8) {
        return Err(Error::usage("--rounds must be at least 1, and --block 8"));
    }
    if args.jobs == 0 || args.launch.iter().any(|launch| launch.trim().is_empty()) {
        return Err(Error::usage("--jobs must be at least 1, and --launch a command"));
    }
    let starters = starters(args)?;
    let mut found = vec![Found::new(); starters.len()];
    let mut library = String::new();
    for _ in 0..args.jobs {
        for (starter, found) in starters.iter().zip(&mut found) {
            let begun = Instant::now();
            library = one_job(starter, &[], &[NONE.to_owned()])?.0;
            add(found, 0, "job that does nothing", begun.elapsed().as_secs_f64());
        }
        for operation in &args.operations {
            for (starter, found) in starters.iter().zip(&mut found) {
                let words = [operation.clone(), format!("--communicators={}", args.communicators)];
                for (i, (measure, number)) in one_job(starter, &[], &words)?.1.into_iter().enumerate() {
                    add(found, i + 1, &measure, number);
                }
            }
        }
        for (starter, found) in starters.iter().zip(&mut found).filter(|_| args.pattern) {
            for (i, (measure, number)) in one_job(starter, &[], &pattern(args))?.1.into_iter().enumerate() {
                add(found, i + 30, &measure, number);
            }
        }
    }
    if args.files {
        for (starter, found) in starters.iter().zip(&mut found) {
            files(starter, found)?;
        }
    }
    let rows: Vec<Row> = args.launch.iter().zip(found).flat_map(|(launch, found)| rows(launch, found)).collect();
    say(&format!("{library}: medians of {} jobs by turns (smallest to largest)", args.jobs))?;
    for row in &rows {
        say(&line(row, args.launch.len() > 1))?;
    }
    args.json.as_deref().map_or(Ok(()), |path| write(path, &library, &rows))
}

fn add(found: &mut Found, place: usize, measure: &str, number: f64) {
    found.entry((place, measure.to_owned())).or_default().push(number);
}

/// What starts a job of one library.
struct Starter<'a> {
    launch: &'a str,
    program: PathBuf,
}

fn starters(args: &Args) -> Result<Vec<Starter<'_>>> {
    if !(args.program.is_empty() || args.program.len() == args.launch.len()) {
        return Err(Error::usage("--program: one for each --launch, or none"));
    }
    let own = std::env::current_exe().map_err(|source| Error::File { path: "mpiperf".to_owned(), source })?;
    let programs = args.program.iter().chain(std::iter::repeat(&own));
    Ok(args.launch.iter().zip(programs).map(|(launch, program)| Starter { launch, program: program.clone() }).collect())
}

/// The words of a job of the pattern.
fn pattern(args: &Args) -> Vec<String> {
    let Args { rounds, turnover, skew, block, operations, .. } = args;
    let mut words = vec![PATTERN.to_owned(), format!("--rounds={rounds}"), format!("--turnover={turnover}")];
    words.extend([format!("--skew={skew}"), format!("--block={block}"), "--of".to_owned()]);
    words.extend(operations.iter().cloned());
    words
}

/// Runs one job, of these words; the library's name, and the job's numbers in order.
fn one_job(starter: &Starter<'_>, before: &[&str], job: &[String]) -> Result<(String, Vec<(String, f64)>)> {
    let Starter { launch, program } = starter;
    let mut words = launch.split_whitespace().chain(before.iter().copied());
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).arg(program).arg("start-job").args(job);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Error::usage(format!("--launch: '{launch}' cannot be started: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().find_map(|line| line.strip_prefix(job::ANSWER));
    match answer.and_then(|answer| serde_json::from_str(answer).ok()) {
        Some(answer) if output.status.success() => Ok(answer),
        _ => Err(Error::Measure(format!("a job of '{launch}' failed ({})", output.status))),
    }
}

/// Counts what a rank opens, by strace.
fn files(starter: &Starter<'_>, found: &mut Found) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("mpiperf-start-{}", std::process::id()));
    let failed = |source| Error::File { path: folder.display().to_string(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    let into = folder.join("rank").display().to_string();
    let traced =
        one_job(starter, &["strace", "-ff", "-qq", "-e", "trace=open,openat", "-o", &into], &[NONE.to_owned()]);
    let listed = fs::read_dir(&folder).map_err(failed)?;
    let texts: Vec<String> = listed.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect();
    let _ = fs::remove_dir_all(&folder);
    let ranks = traced
        .map_err(|_| Error::usage("--files: the job does not run under strace: install it, or leave --files out"))?
        .1;
    let ranks = ranks.iter().find(|(measure, _)| measure == job::RANKS).map_or(1.0, |&(_, ranks)| ranks);
    let (all, system) = opened(&texts);
    add(found, 90, "files opened by a rank", all as f64 / ranks);
    add(found, 91, "files opened under /sys by a rank", system as f64 / ranks);
    Ok(())
}

/// How many files were opened, and how many of them under /sys.
fn opened(traces: &[String]) -> (usize, usize) {
    let lines = || traces.iter().flat_map(|text| text.lines()).filter(|line| !line.contains("= -1 "));
    (lines().filter(|line| line.contains('"')).count(), lines().filter(|line| line.contains("\"/sys/")).count())
}

fn rows(launch: &str, found: Found) -> Vec<Row> {
    let shown = found.into_iter().filter(|((_, measure), _)| measure != job::RANKS);
    let row = |((_, measure), mut numbers): ((usize, String), Vec<f64>)| {
        numbers.sort_by(f64::total_cmp);
        let unit = match () {
            () if measure.starts_with("files") => "files",
            () if measure.starts_with("memory") => "B",
            () => "s",
        };
        let (jobs, last) = (numbers.len(), numbers.len() - 1);
        let median = (numbers[last / 2] + numbers[jobs / 2]) / 2.0;
        Row { launch: launch.to_owned(), measure, unit, median, min: numbers[0], max: numbers[last], jobs }
    };
    shown.map(row).collect()
}

fn line(row: &Row, several: bool) -> String {
    let show = |number: f64| match row.unit {
        "s" => time(number),
        "B" if number < 1e6 => format!("{:.2} KiB", number / 1024.0),
        "B" => format!("{:.2} MiB", number / f64::from(1 << 20)),
        _ => format!("{number:.0}"),
    };
    let launch = if several { format!("  {}", row.launch) } else { String::new() };
    format!("{:<40} {:>12}  ({} to {}){launch}", row.measure, show(row.median), show(row.min), show(row.max))
}

fn write(path: &Path, library: &str, rows: &[Row]) -> Result<()> {
    #[derive(Serialize)]
    struct Everything<'a> {
        library: &'a str,
        start: &'a [Row],
    }
    let failed = |source| Error::File { path: path.display().to_string(), source };
    let text = serde_json::to_string_pretty(&Everything { library, start: rows });
    fs::write(path, text.map_err(|error| failed(error.into()))? + "\n").map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_where_they_were_opened() {
        let text = "openat(AT_FDCWD, \"/sys/a\", O_RDONLY) = 3\nopenat(3, \"b\", 0) = -1 ENOENT (No such file)\n\
                    openat(AT_FDCWD, \"/etc/x\", O_RDONLY) = 4\n+++ exited with 0 +++\n";
        assert_eq!(opened(&[text.to_owned(), text.to_owned()]), (4, 2));
    }

    #[test]
    fn rows_have_medians_in_the_order_of_the_table() {
        let mut found = Found::new();
        for number in [3e-6, 1e-6, 2e-6, 9e-6] {
            add(&mut found, 2, "first bcast", number);
        }
        add(&mut found, 1, "memory (RSS)", 1024.0 * 1024.0);
        add(&mut found, 0, job::RANKS, 2.0);
        let rows = rows("mpiexec", found);
        assert_eq!(
            rows.iter().map(|row| (&*row.measure, row.unit)).collect::<Vec<_>>(),
            [("memory (RSS)", "B"), ("first bcast", "s")]
        );
        assert!((rows[1].median - 2.5e-6).abs() < 1e-15, "{}", rows[1].median);
        assert_eq!((rows[1].min, rows[1].max, rows[1].jobs), (1e-6, 9e-6, 4));
        assert!(line(&rows[1], false).ends_with("2.500 µs  (1.000 µs to 9.000 µs)"), "{}", line(&rows[1], false));
    }
}
