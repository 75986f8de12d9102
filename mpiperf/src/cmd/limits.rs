// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf limits`: what this machine can do between two processes of one node.

use std::path::PathBuf;

use serde::Serialize;

use super::bench::on_rank_0;
use super::values::{Sizes, count, sizes};
use crate::clock::{Global, Scheme, Source, Timer};
use crate::error::{Error, Result};
use crate::limits::floors::{Basics, Floor, Found, GROUPS, floors};
use crate::limits::{Limits, check_job, check_sizes, table};
use crate::mpi::Comm;
use crate::report::About;
use crate::report::about::ClockAbout;
use crate::report::output::{Kind, Output};
use crate::report::table::measured;
use crate::report::units::bytes;

/// Measure what this machine can do between two processes of one node
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Message sizes in bytes: 8,64,1k,1m or 8:1m (powers of two) or 8:1m:8 (factor 8)
    #[arg(long, default_value = "8:1m", value_parser = sizes)]
    pub sizes: Sizes,
    /// Correct calls of each way at each size
    #[arg(long, default_value_t = 300, value_parser = count())]
    pub correct: u32,
    /// Go so many times over everything and take the least median of each: what disturbs a machine for
    /// seconds then counts less
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub passes: u32,
    /// Write JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The JSON file.
#[derive(Serialize)]
struct Everything<'a> {
    about: &'a About,
    /// Why the processes may not use each other's memory, if so.
    refused: Option<&'a str>,
    basics: Basics,
    limits: &'a [Found],
    floors: &'a [Floor],
}

/// Measures and prints. Collective.
pub fn run(args: &Args, comm: &Comm) -> Result<()> {
    let sizes = &args.sizes.0;
    check_sizes(sizes)?;
    // Processes of different nodes see different numbers, and all must refuse.
    check_job(comm.size(), comm.node()?.size())?;
    let steps = sizes.len() * args.passes as usize;
    let mut output = on_rank_0(comm, || Output::open(None, args.json.as_deref(), Kind::Rows, steps))?;
    let timer = comm.agree(Timer::new(Source::Auto))?;
    let clock = Global::synchronise(comm, timer, Scheme::Hierarchical)?;
    let about = about(comm, &clock)?;
    let most = sizes.last().copied().unwrap_or_default();
    let mut limits = Limits::new(comm, clock, most, args.correct)?;
    let mut found = Vec::new();
    for pass in 1..=args.passes {
        found.extend(limits.basics()?);
        for size in sizes.iter().copied() {
            if let Some(output) = &output {
                output.next(&format!("pass {pass}: {}", bytes(size)));
            }
            found.extend(limits.size(size)?);
            if let Some(output) = &output {
                output.step();
            }
        }
    }
    let basics = Basics::new(limits.clock.timer.cost(), &found);
    let floors: Vec<Floor> = GROUPS.iter().flat_map(|group| floors(group, &found, &basics, sizes)).collect();
    on_rank_0(comm, || {
        let Some(output) = output.as_mut() else { return Ok(()) };
        for line in head(&limits, &about).iter().chain(&table::all(sizes, &basics, &found, &floors)) {
            output.say(line)?;
        }
        let refused = limits.refused.as_deref();
        let everything = Everything { about: &about, refused, basics, limits: &found, floors: &floors };
        output.finish_with(|| text(&everything))
    })?;
    Ok(())
}

/// What is above the tables.
fn head(limits: &Limits, about: &About) -> Vec<String> {
    let mut lines = vec![measured(about)];
    if limits.clock.oversubscribed {
        lines.push("# there are more processes than cores: these are no limits of the machine".to_owned());
    }
    if let Some(why) = &limits.refused {
        lines.push(format!("# processes may not use each other's memory, read, divided and direct stay empty: {why}"));
    }
    lines
}

/// Where, when and how. Collective.
fn about(comm: &Comm, clock: &Global) -> Result<About> {
    let mut resolution = [clock.timer.resolution()];
    comm.max(&mut resolution)?;
    let mut about = About::collect(comm, None)?;
    about.clock = Some(ClockAbout {
        source: clock.timer.source(),
        resolution: resolution[0],
        scheme: clock.scheme,
        uncertainty: clock.uncertainty,
    });
    Ok(about)
}

fn text(everything: &Everything) -> Result<String> {
    let text = serde_json::to_string_pretty(everything);
    text.map(|t| t + "\n").map_err(|e| Error::Measure(format!("the results cannot be written as JSON: {e}")))
}
