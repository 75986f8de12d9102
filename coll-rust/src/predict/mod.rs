// SPDX-License-Identifier: BSD-3-Clause
//! `coll-rust predict`: what an operation takes inside a node of a machine that need not be at hand.

mod brief;
mod cluster;
mod report;
pub mod settings;
#[cfg(test)]
mod tests;

use crate::machine;
use crate::values::{Sizes, sizes};
use component::predict::{Case, Kind, Node, Prediction};
use component::shm::policy::Way;
use component::shm::thresholds::Thresholds;
use component::sim::clock::Machine;
use component::topo::LevelSpec;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use settings::Setting;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

/// Buffers of all members together may have so many bytes.
const MOST: usize = 4 << 30;

/// How ranks are put on cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Map {
    /// One core after the other: the first caches and sockets are full
    Core,
    /// One socket after the other, in turns
    Socket,
}

impl Map {
    /// In a sentence, after "ranks on".
    fn text(self) -> &'static str {
        match self {
            Map::Core => "one core after the other",
            Map::Socket => "sockets in turn",
        }
    }
}

/// Arguments of `predict`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Times are those of the last rank, from a common start. docs/reference/predict.md says what the model \
                        leaves out.\nExit status: 0 done, 2 wrong usage or a bad machine file."
)]
pub struct Args {
    /// Operations, in a list: barrier, bcast, gather, scatter, allgather, alltoall, reduce, allreduce
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true, value_parser = kind)]
    pub operation: Vec<Kind>,
    /// Bytes of the data, or of a block: 8,1k,1m or 8:1m (powers of two) or 8:1m:8 (factor 8)
    #[arg(long, value_name = "SIZES", default_value = "8", value_parser = sizes)]
    pub bytes: Sizes,
    /// The machine (docs/reference/predict.md), such as machines/epyc-9654-2s.toml
    #[arg(long, value_name = "FILE")]
    pub machine: PathBuf,
    /// Numbers of ranks, in a list [default: all cores]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Vec<u32>,
    /// How ranks are put on cores
    #[arg(long, value_enum, default_value_t = Map::Core)]
    pub map: Map,
    /// Force a way (docs/reference/ways.md), as coll_rust_<operation>_algorithm = shm:WAY does
    #[arg(long, value_name = "NAME", value_parser = way, conflicts_with_all = ["levels", "compare"])]
    pub way: Option<Way>,
    /// Levels of the tree, as of coll_rust_levels: auto, none, or a list such as l3,node
    #[arg(long, value_name = "LEVELS", default_value = "auto", value_parser = LevelSpec::parse, conflicts_with = "compare")]
    pub levels: LevelSpec,
    /// From so many bytes on data are read from another process' memory, as coll_rust_shm_zero_copy_min says;
    /// off: never [default: as where nothing is measured]
    #[arg(long, value_name = "BYTES", value_parser = zero_copy_min)]
    pub zero_copy_min: Option<usize>,
    /// All trees that differ, and all ways that can be forced, best first
    #[arg(long)]
    pub compare: bool,
    /// Of comparisons only how far the built-in choice is from the best: a line for each operation and length
    #[arg(long, requires = "compare", conflicts_with = "json")]
    pub brief: bool,
    /// Calls whose mean is told
    #[arg(long, value_name = "CALLS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
    /// Calls before them, which warm the caches
    #[arg(long, value_name = "CALLS", default_value_t = 33, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub warm: u32,
    /// Numbers of nodes, in a list: ranks are then those of each node
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(conflicts_with_all = ["way", "brief"])]
    pub nodes: Vec<u32>,
    /// Over nodes: the algorithm, as of coll_rust_<operation>_algorithm, such as node:knomial/4,switch:flat
    #[arg(long, value_name = "LIST", requires = "nodes", conflicts_with = "compare")]
    pub algorithm: Option<String>,
    /// Over nodes: the way up of an allreduce, as of coll_rust_reduce_algorithm
    #[arg(long, value_name = "LIST", requires = "nodes")]
    pub up: Option<String>,
    /// Over nodes: its way down, as of coll_rust_bcast_algorithm
    #[arg(long, value_name = "LIST", requires = "nodes")]
    pub down: Option<String>,
    /// Over nodes: bytes of a segment, as of coll_rust_<operation>_segment_size; 0: one [default: auto]
    #[arg(long, value_name = "BYTES", requires = "nodes")]
    pub segment: Option<usize>,
    /// Over nodes: by messages within nodes too, as where they share no memory; for up to a million ranks
    #[arg(long, requires = "nodes")]
    pub messages: bool,
    /// Print one JSON object (docs/reference/predict.md) instead of a table
    #[arg(long)]
    pub json: bool,
}

/// An operation by its name.
pub fn kind(name: &str) -> Result<Kind, String> {
    let known = || Kind::ALL.map(Kind::name).join(", ");
    Kind::ALL.into_iter().find(|kind| kind.name() == name.trim()).ok_or_else(|| format!("there are {}", known()))
}

/// A way that can be forced, by its name.
pub fn way(name: &str) -> Result<Way, String> {
    match Way::named(name) {
        Some(Way::Tree) => Err("a tree is forced by its levels: --levels l3,node".to_owned()),
        Some(way) => Ok(way),
        None => {
            let ways = component::shm::policy::TABLE.iter().map(|row| row.name).collect::<Vec<_>>();
            Err(format!("there are {}", ways.join(", ")))
        }
    }
}

/// From how many bytes on others' memory is read.
fn zero_copy_min(text: &str) -> Result<usize, String> {
    match text {
        "off" => Ok(usize::MAX),
        text => crate::sizes::size(text),
    }
}

/// A line of the report.
pub struct Row {
    /// The operation.
    pub kind: Kind,
    /// Its bytes.
    pub bytes: usize,
    /// Number of ranks.
    pub ranks: u32,
    /// What was asked for: `auto`, `flat`, levels, or a way.
    pub setting: String,
    /// The way that was gone.
    pub way: Way,
    /// What it takes.
    pub prediction: Prediction,
}

/// Predicts and reports.
pub fn run(args: &Args) -> ExitCode {
    let report = machine::read(&args.machine).and_then(|machine| {
        let machine: &'static Machine = Box::leak(Box::new(machine));
        if !args.nodes.is_empty() {
            return cluster::report(args, machine);
        }
        let rows = rows(args, machine)?;
        Ok(match (args.json, args.brief) {
            (true, _) => report::json(args, machine, &rows),
            (_, true) => brief::table(args, machine, &rows),
            _ => report::table(args, machine, &rows),
        })
    });
    match report {
        Ok(text) => crate::print(text.as_bytes()),
        Err(why) => {
            eprintln!("coll-rust predict: {why}");
            ExitCode::from(2)
        }
    }
}

/// What is asked for, one after the other; where several settings are compared, the best first.
fn rows(args: &Args, machine: &'static Machine) -> Result<Vec<Row>, String> {
    let cores = machine.shape.cores();
    let all = [cores];
    let counts = if args.ranks.is_empty() { &all[..] } else { &args.ranks };
    let mut groups = Vec::new();
    for &kind in &args.operation {
        for &ranks in counts {
            let sizes = if kind == Kind::Barrier { &[0][..] } else { &args.bytes.0 };
            for &bytes in sizes {
                can_be(machine, kind, bytes, ranks)?;
                groups.push((kind, bytes, ranks));
            }
        }
    }
    let bar = ProgressBar::with_draw_target(Some(groups.len() as u64), target());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style);
    }
    let mut rows = Vec::new();
    for (kind, bytes, ranks) in groups {
        let places = places(machine, args.map, ranks);
        let reads = args.zero_copy_min.map_or(Thresholds::UNKNOWN, Thresholds::all);
        let node = || Node::new(machine, &places, reads);
        let settings = settings::all(args, &node(), kind, bytes)?;
        let first = rows.len();
        for Setting { name, way, trees } in settings {
            bar.set_message(format!("{} {bytes} B, {ranks} ranks, {name}", kind.name()));
            let case = Case { kind, bytes, way };
            // Each begins with empty caches of its own.
            let node = node();
            let gone = node.way(case, trees.as_deref());
            let prediction = node
                .time(case, trees.as_deref(), args.warm as usize, args.rounds as usize)
                .map_err(|error| format!("{} of {bytes} bytes among {ranks} ranks: {error:?}", kind.name()))?;
            rows.push(Row { kind, bytes, ranks, setting: name, way: gone, prediction });
        }
        rows[first..].sort_by_key(|row| row.prediction.time);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(rows)
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

/// Whether there is a core for each rank, and memory for the buffers of all: the operation is really done.
pub fn can_be(machine: &Machine, kind: Kind, bytes: usize, ranks: u32) -> Result<(), String> {
    let cores = machine.shape.cores();
    if ranks > cores {
        return Err(format!("{ranks} ranks: {} has {cores} cores, and each rank has one", machine.name));
    }
    let n = ranks as usize;
    let blocks = match kind {
        Kind::Barrier => 0,
        Kind::Bcast | Kind::Reduce | Kind::Allreduce => 2 * n,
        Kind::Gather | Kind::Scatter | Kind::Allgather => n * (n + 1),
        Kind::Alltoall => 2 * n * n,
    };
    match bytes.checked_mul(blocks).filter(|all| *all <= MOST) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{} of {bytes} bytes among {ranks} ranks needs more than {} GiB of buffers, as it is really done: take \
             fewer ranks or bytes",
            kind.name(),
            MOST >> 30
        )),
    }
}

/// The core of each rank.
pub fn places(machine: &Machine, map: Map, ranks: u32) -> Vec<u32> {
    let sockets = machine.shape.sockets;
    let each = machine.shape.cores() / sockets;
    match map {
        Map::Core => (0..ranks).collect(),
        Map::Socket => (0..ranks).map(|rank| rank % sockets * each + rank / sockets).collect(),
    }
}
