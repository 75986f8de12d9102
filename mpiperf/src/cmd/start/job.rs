// SPDX-License-Identifier: BSD-3-Clause
//! What one job measures, and says in one line.

use std::fs;
use std::os::raw::c_int;
use std::ptr::null_mut;
use std::time::Instant;

use super::{NONE, PATTERN};
use crate::call;
use crate::cmd::session::{complain, launched};
use crate::error::{Error, Result};
use crate::mpi::{Comm, ffi, library};

/// Begins the line that a job says.
pub const ANSWER: &str = "mpiperf-start-job ";
/// Of the number that tells how many ranks the job had.
pub const RANKS: &str = "ranks";

/// The part of `mpiperf start` that runs under a launcher
#[derive(Debug, clap::Args)]
pub struct JobArgs {
    operation: String,
    #[arg(long, default_value_t = 0)]
    communicators: usize,
    #[arg(long, default_value_t = 1)]
    pub(super) rounds: usize,
    #[arg(long, default_value_t = 0)]
    pub(super) turnover: usize,
    #[arg(long, default_value_t = 0)]
    pub(super) skew: u64,
    #[arg(long, default_value_t = 8)]
    pub(super) block: usize,
    #[arg(long, num_args = 0..)]
    pub(super) of: Vec<String>,
}

/// Numbers of one thing on one rank; which of the ranks' counts.
pub(super) struct Series {
    pub what: String,
    pub of: Of,
    pub numbers: Vec<f64>,
}

/// Which rank's number counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Largest,
    Smallest,
    Mean,
}

fn largest(what: impl Into<String>, numbers: Vec<f64>) -> Series {
    Series { what: what.into(), of: Of::Largest, numbers }
}

const OPERATIONS: [&str; 8] = ["barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"];

/// Whether there is such an operation here.
pub fn check(operation: &str) -> Result<()> {
    match OPERATIONS.contains(&operation) {
        true => Ok(()),
        false => Err(Error::usage(format!("start: no operation '{operation}': {}", OPERATIONS.join(", ")))),
    }
}

/// Measures in a job; the exit status.
pub fn run(args: &JobArgs) -> i32 {
    if launched().is_none() {
        return complain(&Error::usage("start-job is what mpiperf start runs: it needs a launcher"));
    }
    match measure(args) {
        Ok(()) => 0,
        Err(error) => {
            let status = complain(&error);
            // SAFETY: a constant of the library, which is initialised wherever the measuring can fail.
            let _ = call!(MPI_Abort(ffi::RSMPI_COMM_WORLD, status));
            status
        }
    }
}

fn measure(args: &JobArgs) -> Result<()> {
    let begun = Instant::now();
    // SAFETY: once, by the program's only thread.
    call!(MPI_Init(null_mut(), null_mut()))?;
    let init = begun.elapsed().as_secs_f64();
    let world = Comm::world()?;
    let mut numbers = vec![largest("MPI_Init", vec![init])];
    if args.operation == PATTERN {
        meet(&world)?;
        numbers.extend(super::pattern::run(args, &world)?);
    } else if args.operation != NONE {
        let mut buffers = Buffers::new(world.size(), 1);
        meet(&world)?;
        for what in ["first", "second"] {
            let time = timed(&world, &args.operation, &mut buffers)?;
            numbers.push(largest(format!("{what} {}", args.operation), vec![time]));
        }
        if args.operation == "allreduce" {
            for _ in 0..100 {
                once(&world, "allreduce", &mut buffers)?;
            }
            let [rss, pss] = memory()?;
            numbers.push(largest("memory (RSS) of a reducing rank", vec![rss]));
            numbers.push(largest("memory (PSS) of a reducing rank", vec![pss]));
            fresh(&world, args.communicators, &mut buffers, &mut numbers)?;
        }
    }
    let answer = collect(&world, &numbers)?;
    let finalize = Instant::now();
    // SAFETY: once, at the end; all communicators are freed.
    call!(MPI_Finalize())?;
    if let Some(mut answer) = answer {
        answer.1.push((format!("MPI_Finalize after {}", args.operation), finalize.elapsed().as_secs_f64()));
        answer.1.push((RANKS.to_owned(), world.size() as f64));
        let text = serde_json::to_string(&answer).map_err(|error| Error::Measure(error.to_string()))?;
        println!("{ANSWER}{text}");
    }
    Ok(())
}

/// Calls on communicators that have just been made, by dup and by split, and are freed again: the first, and
/// the fourth (a library may make shared memory for those who call more often). Then what one takes of
/// memory.
fn fresh(world: &Comm, communicators: usize, buffers: &mut Buffers, numbers: &mut Vec<Series>) -> Result<()> {
    if communicators == 0 {
        return Ok(());
    }
    for (what, make) in [("dup", Comm::dup as fn(&Comm) -> Result<Comm>), ("split", |world| world.split(0))] {
        let mut found: [Vec<f64>; 3] = Default::default();
        for _ in 0..communicators {
            let begun = Instant::now();
            let comm = make(world)?;
            found[0].push(begun.elapsed().as_secs_f64());
            found[1].push(timed(&comm, "allreduce", buffers)?);
            for _ in 2..FOURTH {
                once(&comm, "allreduce", buffers)?;
            }
            found[2].push(timed(&comm, "allreduce", buffers)?);
        }
        let [made, first, fourth] = found;
        numbers.push(largest(format!("MPI_Comm_{what}"), made));
        numbers.push(largest(format!("first allreduce after {what}"), first));
        numbers.push(largest(format!("fourth allreduce after {what}"), fourth));
    }
    let before = memory()?[1];
    let mut alive = Vec::new();
    for _ in 0..communicators {
        let comm = world.dup()?;
        for _ in 0..FOURTH {
            once(&comm, "allreduce", buffers)?;
        }
        alive.push(comm);
    }
    let of_one = (memory()?[1] - before) / communicators as f64;
    numbers.push(Series { what: "memory (PSS) of a communicator".to_owned(), of: Of::Mean, numbers: vec![of_one] });
    Ok(())
}

/// All ranks arrive, by messages alone.
fn meet(world: &Comm) -> Result<()> {
    let mut token = [0_u8];
    for (from, to) in [(true, false), (false, true)] {
        for other in 1..world.size() {
            match (world.rank() == 0, world.rank() == other) {
                (true, _) if from => world.recv(&mut token, other, 1)?,
                (true, _) if to => world.send(&token, other, 2)?,
                (_, true) if from => world.send(&token, 0, 1)?,
                (_, true) if to => world.recv(&mut token, 0, 2)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// So many doubles for each rank.
pub(super) struct Buffers {
    from: Vec<f64>,
    to: Vec<f64>,
    count: usize,
}

impl Buffers {
    pub(super) fn new(size: usize, count: usize) -> Buffers {
        Buffers { from: vec![1.0; size * count], to: vec![0.0; size * count], count }
    }
}

pub(super) fn timed(comm: &Comm, operation: &str, buffers: &mut Buffers) -> Result<f64> {
    let begun = Instant::now();
    once(comm, operation, buffers)?;
    Ok(begun.elapsed().as_secs_f64())
}

/// One call, of a block of or for each rank.
fn once(comm: &Comm, operation: &str, buffers: &mut Buffers) -> Result<()> {
    let (from, to) = (buffers.from.as_mut_ptr().cast(), buffers.to.as_mut_ptr().cast());
    // SAFETY: constants of the library.
    let (double, sum) = unsafe { (ffi::RSMPI_DOUBLE, ffi::RSMPI_SUM) };
    let (n, comm) = (buffers.count as c_int, comm.raw());
    match operation {
        "barrier" => call!(MPI_Barrier(comm)),
        "bcast" => call!(MPI_Bcast(from, n, double, 0, comm)),
        "reduce" => call!(MPI_Reduce(from, to, n, double, sum, 0, comm)),
        "allreduce" => call!(MPI_Allreduce(from, to, n, double, sum, comm)),
        "gather" => call!(MPI_Gather(from, n, double, to, n, double, 0, comm)),
        "scatter" => call!(MPI_Scatter(from, n, double, to, n, double, 0, comm)),
        "allgather" => call!(MPI_Allgather(from, n, double, to, n, double, comm)),
        "alltoall" => call!(MPI_Alltoall(from, n, double, to, n, double, comm)),
        _ => check(operation),
    }
}

/// This process's resident and proportional set sizes.
fn memory() -> Result<[f64; 2]> {
    let path = "/proc/self/smaps_rollup";
    let text = fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kilobytes = value.and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok());
        kilobytes.map(|n| n * 1024.0).ok_or_else(|| Error::Measure(format!("{path} has no {name}: Linux 5.4 has it")))
    };
    Ok([field("Rss")?, field("Pss")?])
}

/// Which call is timed besides the first.
const FOURTH: usize = 4;

type Answer = (String, Vec<(String, f64)>);

/// On rank 0: of each number that of the ranks which counts, and of several in a row their median.
fn collect(world: &Comm, series: &[Series]) -> Result<Option<Answer>> {
    let mine: Vec<f64> = series.iter().flat_map(|series| &series.numbers).copied().collect();
    let all = world.gather(&mine, 0)?;
    if world.rank() != 0 {
        return Ok(None);
    }
    let size = world.size() as f64;
    let of_all = |of: Of, i: usize| {
        let ranks = all.iter().skip(i).step_by(mine.len()).copied();
        match of {
            Of::Largest => ranks.fold(0.0, f64::max),
            Of::Smallest => ranks.fold(f64::INFINITY, f64::min),
            Of::Mean => ranks.sum::<f64>() / size,
        }
    };
    let mut at = 0;
    let answer = series.iter().map(|series| {
        let end = at + series.numbers.len();
        let mut found: Vec<f64> = (at..end).map(|i| of_all(series.of, i)).collect();
        at = end;
        found.sort_by(f64::total_cmp);
        (series.what.clone(), found[found.len() / 2])
    });
    Ok(Some((library().trim_end_matches('\0').to_owned(), answer.collect())))
}
