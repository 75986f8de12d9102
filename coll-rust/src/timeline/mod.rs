// SPDX-License-Identifier: BSD-3-Clause
//! `coll-rust timeline`: a picture of one operation under the simulated clock, who waits for whom.

mod svg;
#[cfg(test)]
mod tests;

use crate::machine;
use crate::predict::{self, Map, kind, places, settings, way};
use crate::values::{Sizes, sizes};
use component::predict::{Case, Kind, Node, Prediction};
use component::shm::policy::Way;
use component::shm::thresholds::Thresholds;
use component::sim::clock::{Machine, Record};
use component::topo::LevelSpec;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `timeline`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "docs/reference/predict.md says what the clock leaves out.\nExit status: 0 done, 2 wrong usage or a bad \
                        machine file, 3 the picture cannot be written."
)]
pub struct Args {
    /// The operation: barrier, bcast, gather, scatter, allgather, alltoall, reduce, allreduce
    #[arg(long, value_name = "NAME", value_parser = kind)]
    pub operation: Kind,
    /// Bytes of the data, or of a block: 8, 1k
    #[arg(long, value_name = "SIZE", default_value = "8", value_parser = sizes)]
    pub bytes: Sizes,
    /// The machine (docs/reference/predict.md), such as machines/epyc-9654-2s.toml
    #[arg(long, value_name = "FILE")]
    pub machine: PathBuf,
    /// Number of ranks
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..))]
    pub ranks: u32,
    /// How ranks are put on cores
    #[arg(long, value_enum, default_value_t = Map::Core)]
    pub map: Map,
    /// Force a way (docs/reference/ways.md)
    #[arg(long, value_name = "NAME", value_parser = way, conflicts_with = "levels")]
    pub way: Option<Way>,
    /// Levels of the tree, as of coll_rust_levels
    #[arg(long, value_name = "LEVELS", default_value = "auto", value_parser = LevelSpec::parse)]
    pub levels: LevelSpec,
    /// Calls before the one that is drawn, which warm the caches
    #[arg(long, value_name = "CALLS", default_value_t = 33, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub warm: u32,
    /// Where the picture goes, an SVG [default: the standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// One operation.
pub struct Drawn {
    /// What it is.
    pub title: String,
    /// The core of each rank.
    pub cores: Vec<u32>,
    /// What it takes.
    pub prediction: Prediction,
    /// What each rank does.
    pub records: Vec<Record>,
}

/// Predicts and draws.
pub fn run(args: &Args) -> ExitCode {
    let drawn = machine::read(&args.machine).and_then(|machine| {
        let machine: &'static Machine = Box::leak(Box::new(machine));
        Ok(svg::picture(machine, &drawn(args, machine)?))
    });
    match (drawn, &args.out) {
        (Ok(picture), None) => crate::print(picture.as_bytes()),
        (Ok(picture), Some(file)) => match std::fs::write(file, picture) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("coll-rust timeline: cannot write {}: {why}", file.display());
                ExitCode::from(3)
            }
        },
        (Err(why), _) => {
            eprintln!("coll-rust timeline: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs the operation.
fn drawn(args: &Args, machine: &'static Machine) -> Result<Drawn, String> {
    let &Args { operation: kind, ranks, .. } = args;
    let &[bytes] = &args.bytes.0[..] else { return Err("--bytes: a picture is of one length".to_owned()) };
    let bytes = if kind == Kind::Barrier { 0 } else { bytes };
    let like = predict::Args {
        operation: vec![kind],
        bytes: args.bytes.clone(),
        machine: args.machine.clone(),
        ranks: vec![ranks],
        map: args.map,
        way: args.way,
        levels: args.levels.clone(),
        compare: false,
        zero_copy_min: None,
        brief: false,
        rounds: 1,
        warm: args.warm,
        json: false,
        nodes: Vec::new(),
        algorithm: None,
        up: None,
        down: None,
        segment: None,
        messages: false,
    };
    predict::can_be(machine, kind, bytes, ranks)?;
    let cores = places(machine, args.map, ranks);
    let node = Node::new(machine, &cores, Thresholds::UNKNOWN);
    let mut all = settings::all(&like, &node, kind, bytes)?;
    let setting = all.pop().ok_or("nothing to draw")?;
    let case = Case { kind, bytes, way: setting.way };
    let gone = node.way(case, setting.trees.as_deref());
    let (prediction, records) = node
        .timeline(case, setting.trees.as_deref(), args.warm as usize)
        .map_err(|error| format!("{} of {bytes} bytes among {ranks} ranks: {error:?}", kind.name()))?;
    let length = if kind == Kind::Barrier { String::new() } else { format!(" of {} B", crate::values::shown(bytes)) };
    let title = format!("{}{length}, {ranks} ranks, {}, {}", kind.name(), gone.name(), machine.name);
    Ok(Drawn { title, cores, prediction, records })
}
