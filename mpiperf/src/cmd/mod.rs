// SPDX-License-Identifier: BSD-3-Clause
//! The subcommands.

pub mod audit;
pub mod bench;
pub mod check;
pub mod compare;
pub mod limits;
pub mod list;
pub mod locks;
pub mod machine;
pub mod manual;
pub mod memory;
pub mod merge;
pub mod options;
pub mod passes;
pub mod plot;
pub mod run;
pub mod selfcheck;
pub mod session;
pub mod start;
pub mod values;

use clap::{CommandFactory, Parser, Subcommand};

use crate::error::{Error, Result};
use crate::report::output::say;
use crate::report::schema;
use session::{complain, launched, with_mpi};

/// Measures the collectives of any MPI library with synchronised starts
#[derive(Debug, Parser)]
#[command(name = "mpiperf", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure operations (under mpiexec)
    Run(Box<run::Args>),
    /// Compare two sets of collective components of Open MPI in one job, alternating call by call (under
    /// mpiexec)
    Compare(Box<compare::Args>),
    /// Compare results files of alternating runs, such as those of different MPI libraries
    Merge(merge::MergeArgs),
    /// Say whether something takes longer than in a baseline, with exit status 4: files are compared, or the
    /// baseline's cases measured again (under mpiexec)
    Check(check::Args),
    /// Show how well separate runs repeat, beside the ordinary loop
    Repro(merge::ReproArgs),
    /// Draw results files
    Plot(plot::Args),
    /// Measure memory, shared memory and descriptors by the number of communicators and ranks (under mpiexec)
    Memory(memory::Args),
    /// Measure the cold start: MPI_Init, first calls, fresh communicators, memory (starts jobs itself)
    Start(start::Args),
    /// What `start` starts
    #[command(hide = true)]
    StartJob(start::JobArgs),
    /// Measure what this machine can do between two processes of one node: floors for a library's times
    /// (under mpiexec)
    Limits(limits::Args),
    /// Measure reader–writer locks of processes (alone), or a read of the placement store (under mpiexec)
    Locks(locks::Args),
    /// Measure cores, caches and system calls of this machine, under mpiexec messages, too, and write a
    /// machine file for `coll-rust predict`
    Machine(machine::Args),
    /// What `machine` starts
    #[command(hide = true)]
    MachineTarget,
    /// List operations, datatypes and reductions
    List,
    /// Print the JSON Schema of results files (--json of run, compare, merge and check)
    Schema,
    /// Check whether this machine can be trusted to measure (under mpiexec)
    Selfcheck(selfcheck::Args),
    /// Put faults into calls and see whether each is noticed (under mpiexec)
    Audit(audit::Args),
    /// Print the completions for a shell
    Completions(manual::CompletionsArgs),
    /// Print the manual page
    Man(manual::ManArgs),
}

/// Runs the program; its exit status.
pub fn main() -> i32 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    match cli.command {
        Command::Run(args) => with_mpi(|comm| run::run(&args, comm)),
        Command::Compare(args) => with_mpi(|comm| compare::run(&args, comm)),
        Command::Selfcheck(args) => with_mpi(|comm| selfcheck::run(&args, comm)),
        Command::Audit(args) => with_mpi(|comm| audit::run(&args, comm)),
        Command::Limits(args) => with_mpi(|comm| limits::run(&args, comm)),
        Command::Machine(args) => with_mpi(|comm| machine::run(&args, comm)),
        Command::MachineTarget => crate::machine::system::target().map_or_else(|error| complain(&error), |()| 0),
        Command::Memory(args) => with_mpi(|comm| memory::run(&args, comm)),
        Command::Start(args) => alone(|| start::run(&args)),
        Command::StartJob(args) => start::run_job(&args),
        Command::Locks(args) if args.profile => with_mpi(locks::profile),
        Command::Locks(args) => alone(|| locks::run(&args)),
        Command::Merge(args) => alone(|| merge::merge(&args)),
        Command::Check(args) if args.measures() => with_mpi(|comm| check::measured(&args, comm)),
        Command::Check(args) => alone(|| check::files(&args)),
        Command::Repro(args) => alone(|| merge::repro(&args)),
        Command::Plot(args) => alone(|| plot::run(&args)),
        Command::List => alone(list::run),
        Command::Completions(args) => alone(|| manual::completions(&args, &mut Cli::command())),
        Command::Man(args) => alone(|| manual::man(&args, Cli::command())),
        Command::Schema => alone(|| say(schema::text()?.trim_end())),
    }
}

/// What needs no MPI is done by one process, also where a launcher started several.
fn alone(work: impl FnOnce() -> Result<()>) -> i32 {
    match launched() {
        Some(rank) if rank > 0 => 0,
        _ => work().map_or_else(|error| complain(&error), |()| 0),
    }
}

/// Help, or wrong usage, which one rank of a job tells for all.
fn not_parsed(error: &clap::Error) -> i32 {
    if !error.use_stderr() {
        return alone(|| {
            let _ = error.print();
            Ok(())
        });
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned();
    match launched() {
        Some(_) => with_mpi(|_| Err(Error::Usage(text))),
        None => complain(&Error::Usage(text)),
    }
}
