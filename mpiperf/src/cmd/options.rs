// SPDX-License-Identifier: BSD-3-Clause
//! The options that several subcommands share, and how their values are read.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::{Pattern, Sizes, align, arrival, confidence, count, root, share, sizes, trim};
use crate::clock::{Scheme, Source};
use crate::error::{Error, Result};
use crate::measure::{Arrival, Plan, Stop, Wait};
use crate::mpi::Comm;
use crate::op::{self, Cache, Counts, Mode, Operation, Overlap, Root, Setting, Topology};
use crate::report::units::bytes;

/// What is measured.
#[derive(Debug, Clone, Args)]
pub struct What {
    /// Operations: names from `mpiperf list`, or all, blocking, nonblocking, persistent
    #[arg(required = true, value_name = "OPERATION")]
    pub operations: Vec<String>,
    /// Message sizes in bytes: 8,64,1k,1m or 8:1m (powers of two) or 8:1m:8 (factor 8)
    #[arg(long, default_value = "8:2m:8", value_parser = sizes)]
    pub sizes: Sizes,
    /// Datatype (default: one for each operation that every library gets right); see `mpiperf list`
    #[arg(long)]
    pub datatype: Option<String>,
    /// Reduction of the operations that reduce; see `mpiperf list`
    #[arg(long, default_value = "sum", value_name = "REDUCTION")]
    pub op: String,
    /// Root of rooted operations: a rank, or rotate (another one at every call)
    #[arg(long, default_value = "0", value_parser = root)]
    pub root: Root,
    /// Use MPI_IN_PLACE
    #[arg(long)]
    pub in_place: bool,
    /// Counts of the vector operations
    #[arg(long, value_enum, default_value_t = CountsName::Regular)]
    pub counts: CountsName,
    /// State of the caches at the start of a call
    #[arg(long, value_enum, default_value_t = CacheName::Warm)]
    pub cache: CacheName,
    /// Alignment of the buffers in bytes
    #[arg(long, default_value = "64", value_parser = align)]
    pub align: usize,
    /// Neighbours in the neighbour collectives
    #[arg(long, value_enum, default_value_t = Topology::Torus)]
    pub topology: Topology,
    /// Pairs of ranks in pingpong, stream and exchange: rank i and rank i + half of the ranks (default: as
    /// many as there are)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: Option<u32>,
    /// Messages of a call of stream and exchange
    #[arg(long, default_value_t = op::pairs::WINDOW as u32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub window: u32,
    /// Do not verify results (outside the timed part)
    #[arg(long)]
    pub no_verify: bool,
    /// Seed of contents and random counts
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// How it is measured.
#[derive(Debug, Clone, Args)]
pub struct How {
    /// Timer
    #[arg(long, value_enum, default_value_t = Source::Auto)]
    pub timer: Source,
    /// How clock offsets are found
    #[arg(long, value_enum, default_value_t = Scheme::Hierarchical)]
    pub sync: Scheme,
    /// How ranks wait for their start (default: spin, but sleep where there are more ranks than cores)
    #[arg(long, value_enum)]
    pub wait: Option<Wait>,
    /// Arrival pattern: together, linear:MICROSECONDS, random:MICROSECONDS or file:PATH (a line for each
    /// call, a number for each rank)
    #[arg(long, default_value = "together", value_parser = arrival)]
    pub arrival: Pattern,
    /// Stop after so many calls …
    #[arg(long, default_value_t = 100, value_parser = count())]
    pub calls: u32,
    /// … or so many correct ones …
    #[arg(long, default_value_t = 30, value_parser = count())]
    pub correct: u32,
    /// … or when the relative standard error of the mean is this small …
    #[arg(long, value_parser = share, value_name = "SHARE")]
    pub relative_error: Option<f64>,
    /// … with at least so many correct calls
    #[arg(long, default_value_t = 10, value_parser = count())]
    pub least: u32,
    /// Share of the smallest and of the largest times that is dropped
    #[arg(long, default_value = "0.25", value_parser = trim, value_name = "SHARE")]
    pub trim: f64,
    /// Confidence of the intervals, such as 0.90, 0.95, 0.99 (default: 0.95; compare: 0.99)
    #[arg(long, value_parser = confidence, value_name = "SHARE")]
    pub confidence: Option<f64>,
    /// Calls that only initialise
    #[arg(long, default_value_t = 4, value_name = "CALLS")]
    pub first_calls: u32,
    /// Calls of a stage
    #[arg(long, default_value_t = 8, value_parser = count(), value_name = "CALLS")]
    pub stage_calls: u32,
    /// Share of incorrect calls of a stage above which the window grows
    #[arg(long, default_value = "0.25", value_parser = share, value_name = "SHARE")]
    pub tolerated: f64,
    /// Growth of the window
    #[arg(long, default_value_t = 1.1, value_name = "FACTOR")]
    pub growth: f64,
    /// Longest time for one case, in seconds
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    pub time_limit: f64,
}

/// Computation beside nonblocking operations.
#[derive(Debug, Clone, Args)]
pub struct Beside {
    /// Measure nonblocking operations also with as much computation between start and wait as the operation
    /// takes
    #[arg(long)]
    pub overlap: bool,
    /// Call MPI_Test so often within the computation, in microseconds (0: never)
    #[arg(long, default_value_t = 0.0, requires = "overlap", value_name = "MICROSECONDS")]
    pub test_every: f64,
    /// Compute for so long instead, in microseconds
    #[arg(long, requires = "overlap", value_name = "MICROSECONDS")]
    pub compute: Option<f64>,
}

/// Where it is written.
#[derive(Debug, Clone, Args)]
pub struct Files {
    /// Show all columns (default: those that fit into 100)
    #[arg(long)]
    pub wide: bool,
    /// Write CSV, one row for each tuple of independent variables
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write JSON with everything needed to repeat the run; `merge`, `plot` and `repro` read it
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// [`Counts`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CountsName {
    /// All the same
    Regular,
    /// Between 0 and twice the mean
    Random,
    /// Rising from 0 to twice the mean
    Linear,
    /// All at one rank
    Spike,
}

/// [`Cache`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheName {
    /// One set of buffers
    Warm,
    /// Other buffers at every call
    Cold,
}

impl What {
    /// The operations, in the order asked for.
    pub fn operations(&self) -> Result<Vec<&'static Operation>> {
        let mut all: Vec<&'static Operation> = Vec::new();
        for name in &self.operations {
            let of = |mode: Option<Mode>| {
                let fits = move |o: &&Operation| mode.is_none_or(|m| o.mode == m) && (o.in_place || !self.in_place);
                op::operations().iter().filter(fits).collect::<Vec<_>>()
            };
            let new = match name.as_str() {
                "all" => of(None),
                "blocking" => of(Some(Mode::Blocking)),
                "nonblocking" => of(Some(Mode::Nonblocking)),
                "persistent" => of(Some(Mode::Persistent)),
                name => vec![op::find(name)?],
            };
            if let Some(twice) = new.iter().find(|o| all.iter().any(|known| known.name == o.name)) {
                return Err(Error::usage(format!("operation '{}' is there twice", twice.name)));
            }
            all.extend(new);
        }
        Ok(all)
    }

    /// All settings on `processes` processes, in the order of measuring.
    pub fn settings(&self, processes: usize) -> Result<Vec<Setting>> {
        if let Root::Fixed(root) = self.root
            && root >= processes
        {
            return Err(Error::usage(format!(
                "--root {root}: there are {processes} processes, so ranks end at {}",
                processes - 1
            )));
        }
        if let (Some(limit), Some(most)) = (op::memory::available(), self.sizes.0.last())
            && *most as u64 > limit
        {
            let (most, limit) = (bytes(*most), bytes(limit as usize >> 20 << 20));
            return Err(Error::usage(format!(
                "--sizes: {most} are more than the {limit} of memory that are free here"
            )));
        }
        let mut all = Vec::new();
        for operation in self.operations()? {
            let sizes = if operation.sized { &self.sizes.0[..] } else { &[0] };
            let settings: Vec<Setting> = sizes.iter().map(|n| self.setting(operation, *n)).collect();
            if operation.pairs() {
                settings.iter().try_for_each(|setting| op::pairs::check(setting, processes))?;
            }
            all.extend(settings);
        }
        Ok(all)
    }

    fn setting(&self, operation: &Operation, bytes: usize) -> Setting {
        // What the operation does not have gets its neutral value, so that equal cases have equal settings.
        let default = operation.default_datatype(&self.op);
        let datatype = self.datatype.as_deref().filter(|_| !operation.pairs()).unwrap_or(default);
        let windows = matches!(operation.kind, op::Kind::Stream | op::Kind::Exchange);
        Setting {
            operation: operation.name.to_owned(),
            bytes,
            datatype: datatype.to_owned(),
            reduction: if operation.reduces { self.op.clone() } else { "sum".to_owned() },
            root: if operation.rooted { self.root } else { Root::Fixed(0) },
            in_place: self.in_place,
            counts: match self.counts {
                _ if !operation.vector => Counts::Regular,
                CountsName::Regular => Counts::Regular,
                CountsName::Random => Counts::Random,
                CountsName::Linear => Counts::Linear,
                CountsName::Spike => Counts::Spike,
            },
            cache: match self.cache {
                CacheName::Warm => Cache::Warm,
                CacheName::Cold => Cache::Cold,
            },
            align: self.align,
            overlap: None,
            verify: !self.no_verify,
            seed: self.seed,
            topology: if operation.neighbor { self.topology } else { Topology::Torus },
            pairs: self.pairs.filter(|_| operation.pairs()).unwrap_or(0) as usize,
            window: if windows { self.window as usize } else { 0 },
        }
    }
}

impl Beside {
    /// Refuses what cannot be measured of these settings.
    pub fn check(&self, settings: &[Setting]) -> Result<()> {
        for (option, value) in [("--test-every", Some(self.test_every)), ("--compute", self.compute)] {
            if let Some(value) = value.filter(|value| !(0.0..=1e9).contains(value)) {
                return Err(Error::usage(format!("{option} {value}: must be a number of microseconds from 0 on")));
            }
        }
        for setting in settings.iter().filter(|_| self.overlap) {
            if op::find(&setting.operation)?.mode == Mode::Blocking {
                let name = &setting.operation;
                return Err(Error::usage(format!(
                    "--overlap: {name} blocks, so nothing can be computed beside it; take the nonblocking or the persistent one"
                )));
            }
        }
        Ok(())
    }

    /// The computation beside an operation that takes `alone` seconds by itself.
    pub fn overlap(&self, alone: f64) -> Overlap {
        Overlap { compute: self.compute.map_or(alone, |time| time * 1e-6), test_every: self.test_every * 1e-6 }
    }
}

impl How {
    /// The plan. Collective: rank 0 reads the file of arrivals.
    pub fn plan(&self, comm: &Comm) -> Result<Plan> {
        let arrival = match &self.arrival {
            Pattern::Ready(arrival) => arrival.clone(),
            Pattern::File(path) => {
                let name = path.display().to_string();
                let read = if comm.rank() == 0 {
                    std::fs::read_to_string(path)
                        .map_err(|e| Error::usage(format!("--arrival: {name} cannot be read: {e}")))
                } else {
                    Ok(String::new())
                };
                Arrival::Replayed(replay(&share_text(comm, read)?, &name)?)
            }
        };
        let stop =
            Stop { calls: self.calls, correct: self.correct, relative_error: self.relative_error, least: self.least };
        let plan = Plan {
            first_calls: self.first_calls,
            stage_calls: self.stage_calls,
            tolerated: self.tolerated,
            growth: self.growth,
            stop,
            arrival,
            wait: self.wait,
            budget: self.time_limit,
        };
        plan.check(comm.size())?;
        Ok(plan)
    }

    /// The arrival pattern in words, for files.
    pub fn arrival_name(&self) -> String {
        match &self.arrival {
            Pattern::Ready(Arrival::Linear(time)) => format!("linear:{}", time * 1e6),
            Pattern::Ready(Arrival::Random(time)) => format!("random:{}", time * 1e6),
            Pattern::Ready(_) => "together".to_owned(),
            Pattern::File(path) => format!("file:{}", path.display()),
        }
    }
}

/// Rank 0's text on all ranks, or its error on all. Collective.
fn share_text(comm: &Comm, text: Result<String>) -> Result<String> {
    let text = comm.agree(text)?;
    let mut length = [text.len() as u64];
    comm.bcast(&mut length, 0)?;
    let mut all = text.into_bytes();
    all.resize(length[0] as usize, 0);
    // In pieces whose lengths every MPI library can count.
    for piece in all.chunks_mut(1 << 30) {
        comm.bcast(piece, 0)?;
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// Lines of numbers in microseconds; empty lines and what follows `#` do not count.
fn replay(text: &str, name: &str) -> Result<Vec<Vec<f64>>> {
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.split('#').next().unwrap_or_default().trim()));
    let numbers = lines.filter(|(_, line)| !line.is_empty()).map(|(n, line)| {
        let words = line.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty());
        let parsed = words.map(|w| {
            w.parse::<f64>().map_err(|_| Error::usage(format!("{name}, line {n}: '{w}' is no number of microseconds")))
        });
        parsed.collect()
    });
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replayed_files() {
        assert_eq!(replay("# ranks 0 1\n0 1.5\n\n2,3 # late\n", "x").unwrap(), [[0.0, 1.5], [2.0, 3.0]]);
        assert_eq!(replay("0 1\n0 x\n", "f").unwrap_err().to_string(), "f, line 2: 'x' is no number of microseconds");
    }
}
