// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf plot`: pictures of results files.

use std::path::PathBuf;

use super::merge::{about, read};
use crate::error::{Error, Result};
use crate::report::groups::Groups;
use crate::report::plot::{Kind, plot};

/// The command line of `mpiperf plot`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Results files (--json): of run, compare or merge; several are merged first
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// The picture: its name ends with .svg or .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Written above
    #[arg(long)]
    title: Option<String>,
    /// With several files: the label that ratios are to (default: the first file's)
    #[arg(long, value_name = "LABEL")]
    base: Option<String>,
}

/// Draws.
pub fn run(args: &Args) -> Result<()> {
    Kind::of(&args.output)?;
    if args.inputs.contains(&args.output) {
        return Err(Error::usage(format!("{} is read: it is not written over", args.output.display())));
    }
    let mut files = read(&args.inputs)?;
    let results = match &files[..] {
        [_] => files.remove(0),
        files => {
            let confidence = files.iter().map(|f| f.confidence).fold(f64::INFINITY, f64::min);
            Groups::new(files).merge(args.base.as_deref(), about(files), confidence)?
        }
    };
    plot(&results, args.title.as_deref(), &args.output)
}
