// SPDX-License-Identifier: BSD-3-Clause
//! `coll-rust doctor`: whether the processes that mpiexec starts find and select the component, and if
//! not, why.

mod case;
mod checks;
mod finding;
mod launch;
mod report;

use crate::probe::{choice, facts, settings};
use case::{Case, Own};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Exit statuses: 2, of wrong usage, is clap's.
const WELL: u8 = 0;
const WRONG: u8 = 1;
const UNKNOWN: u8 = 3;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 all is well, 1 something is wrong and its cause is told, 2 wrong usage, 3 it could not be found out."
)]
pub struct Args {
    /// The launcher of the Open MPI
    #[arg(long, value_name = "PROG", default_value = "mpiexec")]
    pub mpiexec: String,
    /// Ranks of the jobs; best those of your own job, with its mpiexec arguments
    #[arg(short = 'n', long, value_name = "RANKS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: u32,
    /// The folder that should have mca_coll_rust.so, where Open MPI does not find it
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Print one JSON object (docs/guide/doctor.md) instead of text
    #[arg(long)]
    pub json: bool,
    /// Seconds that each of the two jobs may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// mpiexec's further arguments, after `--`: hosts, --mca, a wrapper in front of the program
    #[arg(last = true, value_name = "MPIEXEC-ARGS")]
    pub mpiexec_args: Vec<String>,
}

/// Runs the jobs and tells what they show.
pub fn run(args: &Args) -> ExitCode {
    let limit = Duration::from_secs(args.timeout);
    let examined = launch::Launcher::find(args, limit).and_then(|launcher| examine(args, launcher));
    let (status, text) = match examined {
        Ok(case) => {
            let findings = checks::all(&case);
            let status = if findings.iter().any(finding::Finding::is_wrong) { WRONG } else { WELL };
            (status, if args.json { report::json(&case, &findings, status) } else { report::text(&case, &findings) })
        }
        Err(why) if args.json => (UNKNOWN, report::json_unknown(&why, UNKNOWN)),
        Err(why) => {
            eprintln!("coll-rust doctor: {why}");
            return ExitCode::from(UNKNOWN);
        }
    };
    println!("{}", text.trim_end());
    ExitCode::from(status)
}

/// Both jobs.
fn examine(args: &Args, mut launcher: launch::Launcher) -> Result<Case, String> {
    let first = launcher.facts()?;
    let facts = facts::read(&first.output);
    if facts.is_empty() {
        return Err(format!(
            "{} did not get a process to say what it sees{}",
            launcher.describe(),
            launch::evidence(&first, "; is this program at the same place on all nodes?")
        ));
    }
    let second = launcher.collectives()?;
    Ok(Case {
        own: Own {
            mpiexec: launcher.program.clone(),
            arguments: args.mpiexec_args.clone(),
            environment: std::env::vars().collect(),
            file: settings::of_user(),
            folder: args.folder.as_ref().map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.clone())),
        },
        ranks: args.ranks,
        oversubscribed: launcher.oversubscribed,
        facts,
        remarks: choice::remarks(&second.output),
        choices: choice::read(&second.output),
        ended: second.ended,
        last_lines: launch::last_lines(&second.output, 6),
    })
}
