// SPDX-License-Identifier: BSD-3-Clause
//! The command line.

use crate::{doctor, groups, predict, probe, timeline};
use clap::{Parser, Subcommand};
use clap_complete::Shell;

/// Looks after coll/rust, a collective component of Open MPI
#[derive(Debug, Parser)]
#[command(name = "coll-rust", version, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run mpiexec to see whether its processes find and select the component; if not, say why and what mends
    /// it
    Doctor(doctor::Args),
    /// Show the tree of groups that the component would make of a job, without running one
    Groups(groups::Args),
    /// Say how long operations take inside a node of another machine: the real code under a simulated clock
    Predict(predict::Args),
    /// Draw one operation under that clock as SVG: what each rank does, and who waits for whom
    Timeline(timeline::Args),
    /// What `doctor` starts in every process of its jobs
    #[command(hide = true)]
    Probe(probe::Args),
    /// Print the completions for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page
    Man {
        /// Of this subcommand
        subcommand: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
