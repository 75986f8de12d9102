// SPDX-License-Identifier: BSD-3-Clause
//! `coll-rust`: what a user of the component asks on the command line. Does not link MPI.

mod cli;
mod doctor;
mod groups;
mod machine;
mod predict;
mod probe;
mod sizes;
mod timeline;
mod values;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Doctor(args) => doctor::run(&args),
        Command::Groups(args) => groups::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Timeline(args) => timeline::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "coll-rust", &mut text);
            print(&text)
        }
        Command::Man { subcommand } => man(subcommand.as_deref()),
    }
}

/// Prints the page of the program, or of one of its subcommands.
fn man(subcommand: Option<&str>) -> ExitCode {
    let mut all = Cli::command();
    all.build();
    let page = match subcommand {
        None => Some(all),
        Some(name) => all.find_subcommand(name).map(|one| one.clone().name(format!("coll-rust-{name}").leak() as &str)),
    };
    let Some(page) = page else {
        eprintln!("coll-rust man: there is no subcommand {}; see coll-rust --help", subcommand.unwrap_or_default());
        return ExitCode::from(2);
    };
    let mut text = Vec::new();
    match clap_mangen::Man::new(page).render(&mut text) {
        Ok(()) => print(&text),
        Err(_) => ExitCode::from(3),
    }
}

/// A reader that has had enough is no error.
fn print(text: &[u8]) -> ExitCode {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprintln!("coll-rust: cannot write: {error}");
            ExitCode::from(3)
        }
        _ => ExitCode::SUCCESS,
    }
}
