// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf locks`: reader–writer locks, and the placement store that they guard.

use std::ffi::CStr;
use std::path::PathBuf;
use std::time::Duration;

use coll_rust::sync::rwlock::{Kind, Mcs, MutexSignal, TwoMutexes};

use super::values::count;
use crate::error::{Error, Result};
use crate::locks::contest::{Run, Setting, run as contest};
use crate::locks::guards::{Parking, Posix, ours};
use crate::locks::profile::{self, PARTS};
use crate::mpi::Comm;
use crate::report::output::say;
use crate::report::plot::{self, Curve, Panel, Picture, Point};
use crate::report::units::time;
use crate::stats::{Ratio, of_runs};

/// Measure reader–writer locks: readers read without pause until the writer has done its writes
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Numbers of readers; as many as there are cores, or fewer, are bound to one each
    #[arg(long, default_value = "2,8,28", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=512))]
    readers: Vec<u16>,
    /// Writes of a run, at least
    #[arg(long, default_value_t = 100, value_parser = count())]
    writes: u32,
    /// Milliseconds of a run, at least
    #[arg(long, default_value_t = 400)]
    milliseconds: u32,
    /// Runs of each lock, by turns
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=1000))]
    runs: u32,
    /// Draw the ratios: its name ends with .svg or .png
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Instead, where the cycles of a read of the placement store go, beside PMIx_Get (under mpiexec)
    #[arg(long)]
    pub profile: bool,
}

/// What takes part, in the order of the runs; ratios are to the first.
const NAMES: [&str; 5] =
    [TwoMutexes::NAME, MutexSignal::NAME, Mcs::NAME, "pthread_rwlock, writers first", "parking_lot, threads"];
const CONFIDENCE: f64 = 0.99;

/// One run of one of them.
fn one(which: usize, setting: &Setting) -> Result<Run> {
    match which {
        0 => contest(&ours::<TwoMutexes>(setting.readers)?, setting),
        1 => contest(&ours::<MutexSignal>(setting.readers)?, setting),
        2 => contest(&ours::<Mcs>(setting.readers)?, setting),
        3 => contest(&Posix::new()?, setting),
        _ => contest(&Parking::default(), &Setting { threads: true, ..*setting }),
    }
}

/// What a number of a run is called, and the number.
type Side = (&'static str, fn(&Run) -> f64);

/// The two numbers of a run.
const SIDES: [Side; 2] =
    [("taking the write lock", |run| run.write), ("one read lock, all readers together", |run| run.read)];

/// Measures and prints.
pub fn run(args: &Args) -> Result<()> {
    if let Some(path) = &args.output {
        plot::Kind::of(path)?;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    say(&format!(
        "# {cores} cores; {} runs of {} ms each, by turns; ratios with 99 % intervals",
        args.runs, args.milliseconds
    ))?;
    let panels = SIDES.map(|(title, _)| Panel {
        title: title.to_owned(),
        sized: false,
        times: Vec::new(),
        ratios: Vec::new(),
        base: Some(NAMES[0].to_owned()),
        missing: 0,
    });
    let footer = format!("horizontal: readers, on {cores} cores; bands: 99 % confidence");
    let names = NAMES.iter().map(|name| (*name).to_owned()).collect();
    let mut picture = Picture { names, panels: panels.into(), footer };
    for &readers in &args.readers {
        let readers = usize::from(readers);
        let (writes, bound) = (args.writes as usize, readers <= cores);
        let least = Duration::from_millis(args.milliseconds.into());
        let setting = Setting { readers, writes, least, bound, threads: false };
        let mut found: Vec<Vec<Run>> = vec![Vec::new(); NAMES.len()];
        for _ in 0..args.runs {
            for (which, runs) in found.iter_mut().enumerate() {
                runs.push(one(which, &setting)?);
            }
        }
        report(&setting, &found, &mut picture)?;
    }
    args.output.as_ref().map_or(Ok(()), |path| plot::save(&picture, Some("Reader–writer locks"), path))
}

/// Prints what was found with one number of readers, and adds it to the picture.
fn report(setting: &Setting, found: &[Vec<Run>], picture: &mut Picture) -> Result<()> {
    let how = if setting.bound { "bound" } else { "not bound" };
    for ((title, side), panel) in SIDES.iter().zip(&mut picture.panels) {
        say(&format!("{} readers, {how}: {title}", setting.readers))?;
        for (name, runs) in found.iter().enumerate() {
            let pairs: Vec<(f64, f64)> = found[0].iter().zip(runs).map(|(a, b)| (side(a), side(b))).collect();
            let mean = runs.iter().map(side).sum::<f64>() / runs.len() as f64;
            let ratio = of_runs(&pairs, CONFIDENCE).filter(|_| name > 0);
            say(&format!("  {:32} {:>10}  {}", NAMES[name], time(mean), text(ratio.as_ref())))?;
            let x = setting.readers as f64;
            add(&mut panel.times, name, Point { x, y: mean, band: None });
            if let Some(Ratio { ratio, low, high, .. }) = ratio {
                add(&mut panel.ratios, name, Point { x, y: ratio, band: Some((low, high)) });
            }
        }
    }
    Ok(())
}

fn text(ratio: Option<&Ratio>) -> String {
    ratio.map_or(String::new(), |r| format!("{:.2} [{:.2}, {:.2}]", r.ratio, r.low, r.high))
}

fn add(curves: &mut Vec<Curve>, name: usize, point: Point) {
    match curves.iter_mut().find(|curve| curve.name == name) {
        Some(curve) => curve.points.push(point),
        None => curves.push(Curve { name, points: vec![point] }),
    }
}

/// Keys whose values are as short as a node's number.
const KEYS: [&CStr; 3] = [c"pmix.locstr", c"pmix.nodeid", c"pmix.lrank"];
const READS: usize = 20_000;

/// The profile. Collective.
pub fn profile(comm: &Comm) -> Result<()> {
    let own = comm.rank();
    comm.barrier()?;
    let ours = [
        (TwoMutexes::NAME, profile::of_store(&profile::store::<TwoMutexes>()?, 0, READS)?),
        (MutexSignal::NAME, profile::of_store(&profile::store::<MutexSignal>()?, 0, READS)?),
        (Mcs::NAME, profile::of_store(&profile::store::<Mcs>()?, 0, READS)?),
    ];
    let next = ((own + 1) % comm.size()) as u32;
    let theirs = KEYS.map(|key| (key, profile::of_pmix(key, next, READS)));
    comm.barrier()?;
    if own > 0 {
        return Ok(());
    }
    say("# ticks of the counter, medians; of each part less what a mark takes")?;
    say(&format!("{:20} {}   whole", "store under", PARTS.map(|part| format!("{part:>7}")).join(" ")))?;
    for (name, found) in ours {
        let parts = found.parts.map(|ticks| format!("{ticks:>7.0}")).join(" ");
        say(&format!("{name:20} {parts} {:>7.0}", found.whole))?;
    }
    for (key, found) in theirs {
        let key = key.to_string_lossy();
        match found {
            Some(ticks) => say(&format!("PMIx_Get {key}: {ticks:.0}"))?,
            None => say(&format!("PMIx_Get {key}: no answer"))?,
        }
    }
    if theirs.iter().all(|(_, found)| found.is_none()) {
        return Err(Error::Measure("PMIx_Get does not answer: is this a job of a launcher with PMIx?".into()));
    }
    Ok(())
}
