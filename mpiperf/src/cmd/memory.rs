// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf memory`: what communicators cost in memory, shared memory and descriptors.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::mpi::Comm;
use crate::op::{self, Call, Setting};
use crate::report::{About, output::say};

/// Measure memory, shared memory and descriptors by the number of communicators and ranks
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Operations that each communicator does once, so that what libraries make at first use exists
    #[arg(value_name = "OPERATION", default_values = ["barrier", "bcast", "allreduce"])]
    pub operations: Vec<String>,
    /// Numbers of communicators (duplicates of one), ascending
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", default_value = "0,1,10,100,1000")]
    pub communicators: Vec<usize>,
    /// Numbers of ranks of the communicators, ascending (default: all processes)
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    pub ranks: Vec<usize>,
    /// Message size of the operations in bytes
    #[arg(long, default_value_t = 64)]
    pub bytes: usize,
    /// Write CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What a job holds with so many communicators of so many ranks. Bytes, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Ranks of the communicators.
    pub ranks: usize,
    /// Communicators that exist beside those of the tool.
    pub communicators: usize,
    /// Operations that each did.
    pub operations: String,
    /// Their message size.
    pub bytes: usize,
    /// Proportional set size of a rank: shared pages count by the number of processes that share them.
    pub pss_mean: u64,
    /// Of the rank that has most.
    pub pss_max: u64,
    /// The mean PSS without pages of files.
    pub pss_unfiled: u64,
    /// Resident set size of a rank: shared pages count in full.
    pub rss_mean: u64,
    /// Of the rank that has most.
    pub rss_max: u64,
    /// Resident shared memory of all ranks together.
    pub shared: u64,
    /// Address space of shared memory (files in `/dev/shm`, memfd, System V, mapped files) of the rank that
    /// has most.
    pub mapped: u64,
    /// Number of such mappings of the rank that has most.
    pub mappings: u64,
    /// Open descriptors of a rank.
    pub descriptors_mean: f64,
    /// Of the rank that has most.
    pub descriptors_max: u64,
    /// Growth of the mean PSS for each communicator since there was none, without pages of files: their share
    /// changes with whatever else runs the same libraries.
    pub pss_each: Option<f64>,
    /// Growth of the resident shared memory for each communicator.
    pub shared_each: Option<f64>,
    /// Growth of the mean number of descriptors for each communicator.
    pub descriptors_each: Option<f64>,
}

/// One rank's numbers: PSS, RSS, its share of resident shared memory, mapped shared memory, mappings,
/// descriptors, PSS of files.
type Usage = [u64; FIELDS];
const FIELDS: usize = 7;

/// Measures and prints. Collective.
pub fn run(args: &Args, comm: &Comm) -> Result<()> {
    let (counts, ranks) = plan(args, comm.size())?;
    let mut files = comm.agree(Files::open(args, comm.rank()))?;
    let about = About::collect(comm, None)?;
    if comm.rank() == 0 {
        say(&format!("{}; operations: {} of {} bytes", about.library, args.operations.join(", "), args.bytes))?;
        say(&heading())?;
    }
    let mut rows = Vec::new();
    for n in ranks {
        let members = comm.split(usize::from(comm.rank() >= n))?;
        let inside = comm.rank() < n;
        let mut held = Vec::new();
        let mut base = None;
        for count in &counts {
            let grown = if inside { grow(&members, &mut held, *count, args) } else { Ok(()) };
            comm.agree(grown.map_err(|error| at(&error, held.len(), n)))?;
            let mine = comm.agree(usage())?;
            let all = comm.gather(&mine, 0)?;
            if comm.rank() == 0 {
                let row = row(args, n, *count, &all.chunks_exact(FIELDS).take(n).collect::<Vec<_>>(), base.as_ref());
                say(&line(&row))?;
                rows.push(row.clone());
                base.get_or_insert(row);
            }
            comm.barrier()?;
        }
        drop(held);
        // What is free goes back to the system; otherwise the next series would grow into it unseen.
        // SAFETY: no arguments of consequence.
        unsafe { libc::malloc_trim(0) };
        comm.barrier()?;
    }
    comm.agree(files.write(&about, &rows))
}

/// Communicators and ranks, or what is wrong with them. Alike on all ranks.
fn plan(args: &Args, size: usize) -> Result<(Vec<usize>, Vec<usize>)> {
    if size < 2 {
        return Err(Error::usage(
            "1 process has no communicators worth measuring: start mpiperf with mpiexec -n 2 or more",
        ));
    }
    for name in &args.operations {
        op::find(name)?;
    }
    let ascending = |values: &[usize]| values.windows(2).all(|pair| pair[0] < pair[1]);
    let mut counts = args.communicators.clone();
    if !ascending(&counts) || counts.last().is_some_and(|most| *most > 1_000_000) {
        return Err(Error::usage("--communicators: the numbers must ascend, up to 1000000 (such as 0,1,10,100)"));
    }
    if counts.first() != Some(&0) {
        counts.insert(0, 0);
    }
    let ranks = if args.ranks.is_empty() { vec![size] } else { args.ranks.clone() };
    if !ascending(&ranks) || ranks.iter().any(|n| !(2..=size).contains(n)) {
        return Err(Error::usage(format!(
            "--ranks: the numbers must ascend, from 2 to the {size} processes of this job"
        )));
    }
    Ok((counts, ranks))
}

/// Duplicates `parent` until there are `count`; each does every operation once. Collective.
fn grow(parent: &Comm, held: &mut Vec<Comm>, count: usize, args: &Args) -> Result<()> {
    while held.len() < count {
        let new = parent.dup()?;
        for name in &args.operations {
            let operation = op::find(name)?;
            let bytes = if operation.sized { args.bytes } else { 0 };
            let datatype = operation.default_datatype("sum").to_owned();
            let setting = Setting { operation: name.clone(), bytes, datatype, ..Setting::default() };
            let mut case = op::make_beside(&new, parent, &setting)?;
            case.prepare(Call { number: 0 })?;
            case.run()?;
            case.verify()?;
        }
        held.push(new);
    }
    Ok(())
}

fn at(error: &Error, held: usize, ranks: usize) -> Error {
    let text = format!("communicator {} of {ranks} ranks: {error}; ask for fewer (--communicators)", held + 1);
    if matches!(error, Error::Usage(_)) { Error::Usage(text) } else { Error::Measure(text) }
}

/// This process's numbers now.
fn usage() -> Result<Usage> {
    let read = |path: &str| fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source });
    let rollup = read("/proc/self/smaps_rollup")?;
    let (mapped, mappings) = shared_mappings(&read("/proc/self/maps")?);
    let path = "/proc/self/fd";
    let listed = fs::read_dir(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    // Without the one that lists them.
    let descriptors = (listed.count() as u64).saturating_sub(1);
    let field = |name: &str| {
        kilobytes(&rollup, name).ok_or_else(|| {
            Error::Measure(format!("this kernel's /proc/self/smaps_rollup has no {name}: Linux 5.4 has it"))
        })
    };
    Ok([field("Pss")?, field("Rss")?, field("Pss_Shmem")?, mapped, mappings, descriptors, field("Pss_File")?])
}

/// A field of `smaps_rollup`, in bytes.
fn kilobytes(rollup: &str, name: &str) -> Option<u64> {
    let value = rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse::<u64>().ok().map(|n| n * 1024)
}

/// Bytes and number of the mappings that processes can share by writing: those marked `s`, except devices.
fn shared_mappings(maps: &str) -> (u64, u64) {
    let sizes = maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let device = words
            .nth(3)
            .is_some_and(|path| path.starts_with("/dev/") && !path.starts_with("/dev/shm/") && path != "/dev/zero");
        let (from, to) = range.split_once('-')?;
        let size = u64::from_str_radix(to, 16).ok()?.checked_sub(u64::from_str_radix(from, 16).ok()?)?;
        (rights.ends_with('s') && !device).then_some(size)
    });
    sizes.fold((0, 0), |(sum, n), size| (sum + size, n + 1))
}

fn row(args: &Args, ranks: usize, communicators: usize, all: &[&[u64]], base: Option<&Row>) -> Row {
    let column = |i: usize| all.iter().map(move |usage| usage[i]);
    let sum = |i: usize| column(i).sum::<u64>();
    let max = |i: usize| column(i).max().unwrap_or(0);
    let mean = |i: usize| sum(i) / (all.len() as u64).max(1);
    let descriptors_mean = sum(5) as f64 / all.len().max(1) as f64;
    let each = |now: f64, then: fn(&Row) -> f64| {
        base.filter(|_| communicators > 0).map(|base| (now - then(base)) / communicators as f64)
    };
    let unfiled = mean(0).saturating_sub(mean(6));
    Row {
        ranks,
        communicators,
        operations: args.operations.join(" "),
        bytes: args.bytes,
        pss_mean: mean(0),
        pss_max: max(0),
        pss_unfiled: unfiled,
        rss_mean: mean(1),
        rss_max: max(1),
        shared: sum(2),
        mapped: max(3),
        mappings: max(4),
        descriptors_mean,
        descriptors_max: max(5),
        pss_each: each(unfiled as f64, |base| base.pss_unfiled as f64),
        shared_each: each(sum(2) as f64, |base| base.shared as f64),
        descriptors_each: each(descriptors_mean, |base| base.descriptors_mean),
    }
}

const COLUMNS: [&str; 12] =
    ["ranks", "comms", "PSS", "max", "RSS", "max", "shared", "mapped", "fds", "PSS/comm", "shared/comm", "fds/comm"];

fn cells(cells: &[String]) -> String {
    let widths = COLUMNS.map(|name| name.len().max(9));
    let padded: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
    padded.join("  ")
}

fn heading() -> String {
    cells(&COLUMNS.map(str::to_owned))
}

fn line(row: &Row) -> String {
    let each = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), size);
    cells(&[
        row.ranks.to_string(),
        row.communicators.to_string(),
        size(row.pss_mean as f64),
        size(row.pss_max as f64),
        size(row.rss_mean as f64),
        size(row.rss_max as f64),
        size(row.shared as f64),
        size(row.mapped as f64),
        format!("{:.1}", row.descriptors_mean),
        each(row.pss_each),
        each(row.shared_each),
        row.descriptors_each.map_or_else(|| "-".to_owned(), |n| format!("{n:.2}")),
    ])
}

/// Bytes for people, to three or four digits.
fn size(bytes: f64) -> String {
    let (value, unit) = match bytes.abs() {
        b if b < 1024.0 => return format!("{bytes:.0} B"),
        b if b < 1024.0 * 1024.0 => (bytes / 1024.0, "KiB"),
        b if b < 1024.0 * 1024.0 * 1024.0 => (bytes / 1024.0 / 1024.0, "MiB"),
        _ => (bytes / 1024.0 / 1024.0 / 1024.0, "GiB"),
    };
    format!("{value:.1} {unit}")
}

/// The files, opened on rank 0 before anything is measured.
struct Files {
    csv: Option<(String, fs::File)>,
    json: Option<(String, fs::File)>,
}

impl Files {
    fn open(args: &Args, rank: usize) -> Result<Files> {
        let open = |path: &Option<PathBuf>| -> Result<Option<(String, fs::File)>> {
            let Some(path) = path.as_ref().filter(|_| rank == 0) else { return Ok(None) };
            let name = path.display().to_string();
            let file =
                fs::File::create(path).map_err(|source| Error::usage(format!("{name} cannot be written: {source}")))?;
            Ok(Some((name, file)))
        };
        Ok(Files { csv: open(&args.csv)?, json: open(&args.json)? })
    }

    fn write(&mut self, about: &About, rows: &[Row]) -> Result<()> {
        #[derive(Serialize)]
        struct Everything<'a> {
            about: &'a About,
            memory: &'a [Row],
        }
        let failed = |path: &str, source: std::io::Error| Error::File { path: path.to_owned(), source };
        if let Some((path, file)) = &mut self.csv {
            let mut writer = csv::Writer::from_writer(file);
            for row in rows {
                writer.serialize(row).map_err(|error| failed(path, error.into()))?;
            }
            writer.flush().map_err(|error| failed(path, error))?;
        }
        if let Some((path, file)) = &mut self.json {
            let everything = Everything { about, memory: rows };
            serde_json::to_writer_pretty(&mut *file, &everything).map_err(|error| failed(path, error.into()))?;
            writeln!(file).map_err(|error| failed(path, error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> Args {
        Args {
            operations: vec!["bcast".into()],
            communicators: vec![0, 1, 10],
            ranks: vec![],
            bytes: 8,
            csv: None,
            json: None,
        }
    }

    #[test]
    fn plans() {
        assert_eq!(plan(&args(), 4).unwrap(), (vec![0, 1, 10], vec![4]));
        assert_eq!(
            plan(&Args { communicators: vec![5], ranks: vec![2, 3], ..args() }, 4).unwrap(),
            (vec![0, 5], vec![2, 3])
        );
        for wrong in [
            Args { communicators: vec![10, 1], ..args() },
            Args { ranks: vec![1, 2], ..args() },
            Args { ranks: vec![2, 5], ..args() },
            Args { ranks: vec![3, 2], ..args() },
            Args { operations: vec!["bcst".into()], ..args() },
        ] {
            assert!(matches!(plan(&wrong, 4), Err(Error::Usage(_))));
        }
        assert!(plan(&args(), 1).is_err());
    }

    #[test]
    fn files_of_the_kernel() {
        assert_eq!(kilobytes("x [rollup]\nRss:   12 kB\nPss:  3 kB\nPss_Shmem:  1 kB\n", "Pss"), Some(3072));
        assert_eq!(kilobytes("Pss_Shmem:  1 kB\n", "Pss"), None);
        let maps = "1000-3000 rw-s 00000000 00:1 5 /dev/shm/vader_segment\n3000-4000 rw-p 00000000 00:00 0 [heap]\n\
                    5000-6000 rw-s 00000000 00:1 7 /memfd:x (deleted)\n7000-9000 rw-s 00000000 00:1 9 /dev/infiniband/uverbs0\n";
        assert_eq!(shared_mappings(maps), (0x3000, 2));
        let usage = usage().unwrap();
        assert!(usage[0] > 0 && usage[1] >= usage[0] && usage[5] >= 3, "{usage:?}");
    }

    #[test]
    fn rows_count_growth_since_the_first() {
        let base = row(&args(), 2, 0, &[&[1000, 2000, 10, 1, 1, 4, 500], &[3000, 4000, 20, 5, 2, 5, 500]], None);
        assert_eq!((base.pss_mean, base.pss_max, base.shared, base.mapped), (2000, 3000, 30, 5));
        assert_eq!((base.descriptors_mean, base.pss_each), (4.5, None));
        let later =
            row(&args(), 2, 10, &[&[2000, 2000, 110, 1, 1, 14, 700], &[4000, 4000, 20, 5, 2, 15, 700]], Some(&base));
        assert_eq!((later.pss_each, later.shared_each, later.descriptors_each), (Some(80.0), Some(10.0), Some(1.0)));
        assert_eq!(heading().len(), line(&later).len());
    }
}
