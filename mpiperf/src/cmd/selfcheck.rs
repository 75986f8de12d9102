// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf selfcheck`: can this machine be trusted to measure?
//!
//! Timer, clocks, and two operations whose time is known: `WaitPatternUp` (rank i waits i + 1 units: as many
//! units as there are ranks) and `WaitPatternNull` (nothing: no time). With `--waiting-error` also a
//! broadcast of known cost, by scheduled starts and by the ordinary loop.

use crate::clock::{Global, Scheme, Source, Timer};
use crate::error::{Error, Result};
use crate::measure::patterns::{LinearBroadcast, WaitNull, WaitUp};
use crate::measure::{Plan, Stop, Verdict, Wait, measure, ordinary_loop_ranks};
use crate::mpi::Comm;
use crate::op::Case;
use crate::stats::{median, summarise};

/// A timer coarser than this cannot show what WaitPatternNull must show, seconds.
const RESOLUTION: f64 = 0.1e-6;
/// Offsets between ranks that have one clock must be found to be less than this, seconds.
const OFFSET: f64 = 0.2e-6;
/// WaitPatternNull must take less, seconds.
const NOTHING: f64 = 0.2e-6;
/// WaitPatternUp must be right within this share …
const SHARE: f64 = 0.01;
/// … or this time, seconds.
const SLACK: f64 = 1e-6;
/// Share of what the broadcast of known cost takes by which the measured time may differ, beside two
/// sleepers' wake-up …
const BROADCAST_SHARE: f64 = 0.02;
/// … of this long, seconds.
const WAKE_UP: f64 = 200e-6;

/// The command line of `mpiperf selfcheck`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The timer to check
    #[arg(long, value_enum, default_value_t = Source::Auto)]
    pub timer: Source,
    /// Units of WaitPatternUp, in microseconds
    #[arg(long, value_delimiter = ',', default_values_t = [1.0, 10.0, 100.0])]
    pub units: Vec<f64>,
    /// How often each synchronisation is repeated
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub repeat: u32,
    /// Check a broadcast of known cost instead, beside the ordinary loop, which counts the waiting for the
    /// call before (3 processes or more)
    #[arg(long)]
    pub waiting_error: bool,
    /// What a message of that broadcast costs, in microseconds
    #[arg(long, default_value_t = 5000.0)]
    pub cost: f64,
    /// Calls of the ordinary loop
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub calls: u32,
}

/// Checks and prints; an error if the machine cannot be trusted. Collective.
pub fn run(args: &Args, comm: &Comm) -> Result<()> {
    let micros = |name: &str, value: f64, least: f64| {
        let text = format!("--{name}: {value}; must be from {least} to 1000000 µs");
        if (least..=1e6).contains(&value) { Ok(()) } else { Err(Error::Usage(text)) }
    };
    args.units.iter().try_for_each(|unit| micros("units", *unit, 0.1))?;
    micros("cost", args.cost, 1000.0)?;
    let least = if args.waiting_error { 3 } else { 2 };
    if comm.size() < least {
        return Err(Error::Usage(format!("selfcheck needs {least} processes or more, this job has {}", comm.size())));
    }
    let timer = comm.agree(Timer::new(args.timer))?;
    let mut clock = Global::synchronise(comm, timer, Scheme::Hierarchical)?;
    let faults =
        if args.waiting_error { waiting_error(args, comm, &mut clock)? } else { everything(args, comm, &mut clock)? };
    let good = if args.waiting_error {
        "\nScheduled starts measure it right; the ordinary loop counts the waiting for the call before.".to_owned()
    } else {
        format!("\nThis machine can be trusted to measure {} processes.", comm.size())
    };
    conclude(comm, &clock, faults, &good)
}

/// Prints on rank 0.
fn say(comm: &Comm, text: impl FnOnce() -> String) {
    if comm.rank() == 0 {
        println!("{}", text());
    }
}

/// The verdict, known to rank 0, on all ranks.
fn conclude(comm: &Comm, clock: &Global, faults: Vec<String>, good: &str) -> Result<()> {
    let mut bad = [u8::from(!faults.is_empty())];
    comm.bcast(&mut bad, 0)?;
    if bad[0] == 0 {
        say(comm, || good.to_owned());
        return Ok(());
    }
    let size = comm.size();
    let mut text = format!("this machine cannot be trusted to measure {size} processes: {}", faults.join("; "));
    if clock.oversubscribed {
        text += "; there are more processes than cores: use fewer";
    }
    Err(Error::Measure(text))
}

/// Timer, clocks, known operations; the faults found, on rank 0.
fn everything(args: &Args, comm: &Comm, clock: &mut Global) -> Result<Vec<String>> {
    let mut faults = timer(comm, clock)?;
    faults.extend(clocks(args, comm, clock)?);
    let how = if clock.oversubscribed { Wait::Sleep } else { Wait::Spin };
    say(comm, || "\nknown operation        expected µs  measured µs      ± µs  calls  correct".into());
    for unit in &args.units {
        let case = Box::new(WaitUp::new(clock.timer, comm.rank(), unit * 1e-6, how));
        let expected = unit * 1e-6 * comm.size() as f64;
        faults.extend(known(comm, clock, case, &format!("WaitPatternUp {unit} µs"), expected)?);
    }
    faults.extend(known(comm, clock, Box::new(WaitNull), "WaitPatternNull", 0.0)?);
    Ok(faults)
}

fn timer(comm: &Comm, clock: &Global) -> Result<Vec<String>> {
    let mut worst = [clock.timer.resolution(), clock.timer.cost()];
    comm.max(&mut worst)?;
    let name = clock.timer.source().name();
    let [resolution, cost] = worst.map(|seconds| seconds * 1e9);
    say(comm, || format!("timer {name}: resolution {resolution:.1} ns, a reading takes {cost:.1} ns"));
    let coarse = worst[0] > RESOLUTION;
    Ok(if coarse { vec![format!("the timer {name} has steps of {resolution:.0} ns")] } else { Vec::new() })
}

/// What repeated synchronisations by one scheme gave.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Offsets {
    /// The largest offset found between clocks known to be the same.
    of_same: f64,
    /// The largest difference between two results for one rank.
    scatter: f64,
    /// The largest bound of the error that the scheme itself gave.
    claimed: f64,
}

impl Offsets {
    /// What is wrong with them. Two results may differ by both their errors.
    fn fault(&self, scheme: Scheme) -> Option<String> {
        let name = scheme.name();
        let (same, scatter, claimed) = (self.of_same * 1e6, self.scatter * 1e6, self.claimed * 1e6);
        // The ring sums up one error for each rank.
        let limit = if scheme == Scheme::Ring { OFFSET.max(self.claimed) } else { OFFSET };
        if self.of_same > limit {
            return Some(format!(
                "the {name} scheme finds offsets of {same:.2} µs between processes that share a clock"
            ));
        }
        // The hierarchical scheme bounds a shared clock's error by its resolution.
        (self.scatter > 2.0 * self.claimed + OFFSET)
            .then(|| format!("offsets by the {name} scheme differ by {scatter:.2} µs, with errors of {claimed:.2} µs"))
    }
}

fn clocks(args: &Args, comm: &Comm, clock: &Global) -> Result<Vec<String>> {
    let same = clock.counts_like_root(comm)?;
    let mut count = [u32::from(same)];
    count[0] = comm.allgather(&count)?.iter().sum();
    let (size, shared) = (comm.size(), clock.shared);
    say(comm, || {
        let repeat = args.repeat;
        let found = match count[0] {
            0 | 1 => "each process has a clock of its own".to_owned(),
            same if shared => format!("{same} of {size} processes read one counter; ping-pongs agree"),
            same => format!("{same} of {size} processes read one counter"),
        };
        format!(
            "clocks: {found}\n\n\
             {repeat} synchronisations  same clock, µs  scatter, µs  error bound, µs"
        )
    });
    let mut faults = Vec::new();
    for scheme in [Scheme::Linear, Scheme::Ring, Scheme::Hierarchical] {
        let (mut offsets, mut claimed) = (Vec::new(), 0.0f64);
        for _ in 0..args.repeat {
            let again = Global::synchronise(comm, clock.timer, scheme)?;
            offsets.push(again.offset());
            claimed = claimed.max(again.uncertainty);
        }
        let high = offsets.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = offsets.iter().copied().fold(f64::INFINITY, f64::min);
        let mut worst = [if same { high.abs().max(low.abs()) } else { 0.0 }, high - low];
        comm.max(&mut worst)?;
        let offsets = Offsets { of_same: worst[0], scatter: worst[1], claimed };
        say(comm, || {
            let [a, b, c] = [offsets.of_same, offsets.scatter, offsets.claimed].map(|t| t * 1e6);
            let a = if count[0] > 1 { format!("{a:.3}") } else { "-".into() };
            format!("{:<20}  {a:>14}  {b:>11.3}  {c:>15.3}", scheme.name())
        });
        faults.extend(offsets.fault(scheme));
    }
    Ok(faults)
}

/// Measures an operation of known time.
fn known(comm: &Comm, clock: &mut Global, case: Box<dyn Case>, name: &str, expected: f64) -> Result<Vec<String>> {
    let outcome = measure(comm, clock, &mut [case], &Plan::default())?;
    if comm.rank() != 0 {
        return Ok(Vec::new());
    }
    let made = outcome.samples.iter().filter(|s| s.verdict != Verdict::First).count();
    let times: Vec<f64> = outcome.samples.iter().filter(|s| s.verdict == Verdict::Correct).map(|s| s.time).collect();
    let summary = summarise(&times, 0.25, 0.95);
    let [want, got, interval] =
        [expected, summary.as_ref().map_or(f64::NAN, |s| s.mean), summary.as_ref().map_or(f64::NAN, |s| s.interval)]
            .map(|t| t * 1e6);
    println!("{name:<21}  {want:>11.3}  {got:>11.3}  {interval:>8.3}  {made:>5}  {:>7}", times.len());
    outcome.notes.iter().for_each(|note| println!("  note: {note}"));
    Ok(misjudged(name, expected, summary.map(|s| s.mean)).into_iter().collect())
}

/// What is wrong with the measured time of an operation that takes `expected` seconds.
fn misjudged(name: &str, expected: f64, measured: Option<f64>) -> Option<String> {
    let Some(measured) = measured else { return Some(format!("no valid call of {name}")) };
    let allowed = if expected == 0.0 { NOTHING } else { SLACK.max(SHARE * expected) };
    let (want, got, limit) = (expected * 1e6, measured * 1e6, allowed * 1e6);
    let right = (measured - expected).abs() <= allowed;
    (!right).then(|| format!("{name} takes {want:.2} µs but {got:.2} µs were measured, more than {limit:.2} µs off"))
}

/// What one rank's time in the broadcast of known cost was found to be.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Waiting {
    /// What it is, seconds.
    truth: f64,
    /// By scheduled starts.
    scheduled: f64,
    /// By the ordinary loop.
    ordinary: f64,
}

impl Waiting {
    /// What is wrong with the scheduled starts' result.
    fn fault(&self, rank: usize) -> Option<String> {
        let [truth, found] = [self.truth, self.scheduled].map(|t| t * 1e6);
        let right = (self.scheduled - self.truth).abs() <= BROADCAST_SHARE * self.truth + WAKE_UP;
        (!right).then(|| format!("rank {rank} is in the broadcast for {truth:.0} µs but {found:.0} µs were measured"))
    }
}

/// How many times too long the ordinary loop finds rank `rank` > 0: it is back after `rank` messages, but
/// counts p − 1 of them in all calls but the first, waiting for the next call's message.
fn expected_error(rank: usize, ranks: usize, calls: u32) -> f64 {
    if rank == 0 {
        return 1.0;
    }
    let (rank, calls) = (rank as f64, f64::from(calls));
    ((ranks as f64 - 1.0) * (calls - 1.0) + rank) / (rank * calls)
}

/// The broadcast of known cost, both ways; the faults of the scheduled starts, on rank 0.
fn waiting_error(args: &Args, comm: &Comm, clock: &mut Global) -> Result<Vec<String>> {
    let cost = args.cost * 1e-6;
    let size = comm.size();
    let mut ordinary = LinearBroadcast::new(comm, clock.timer, cost)?;
    let case = Box::new(LinearBroadcast::new(comm, clock.timer, cost)?);
    let truth: Vec<f64> = (0..size).map(|rank| case.expected(rank, size)).collect();
    let plan = Plan { stop: Stop { relative_error: None, ..Stop::default() }, ..Plan::default() };
    let outcome = measure(comm, clock, &mut [case], &plan)?;
    let loops = ordinary_loop_ranks(comm, clock, &mut ordinary, args.calls)?;
    if comm.rank() != 0 {
        return Ok(Vec::new());
    }
    let correct: Vec<_> = outcome.samples.iter().filter(|s| s.verdict == Verdict::Correct).collect();
    println!(
        "linear broadcast, {} µs for a message, {} valid calls; ordinary loop of {} calls",
        args.cost,
        correct.len(),
        args.calls
    );
    println!("rank  expected µs  scheduled µs  ratio  ordinary µs  ratio  (predicted)");
    let mut faults = Vec::new();
    for rank in 0..size {
        let times: Vec<f64> = correct.iter().map(|s| s.ranks[rank]).collect();
        let scheduled = median(&times).unwrap_or(f64::NAN);
        let row = Waiting { truth: truth[rank], scheduled, ordinary: loops[rank] };
        let [a, b, c] = [row.truth, row.scheduled, row.ordinary].map(|t| t * 1e6);
        let predicted = expected_error(rank, size, args.calls);
        println!("{rank:>4}  {a:>11.0}  {b:>12.0}  {:>5.2}  {c:>11.0}  {:>5.2}  {predicted:>11.2}", b / a, c / a);
        faults.extend(row.fault(rank));
    }
    outcome.notes.iter().for_each(|note| println!("  note: {note}"));
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_judged() {
        assert_eq!(misjudged("up", 2e-6, Some(2.9e-6)), None);
        assert!(misjudged("up", 2e-6, Some(3.1e-6)).is_some());
        assert!(misjudged("up", 2e-6, Some(0.9e-6)).is_some());
        assert_eq!(misjudged("up", 1e-3, Some(1.009e-3)), None);
        assert!(misjudged("up", 1e-3, Some(1.011e-3)).is_some());
        assert_eq!(misjudged("null", 0.0, Some(0.1e-6)), None);
        assert!(misjudged("null", 0.0, Some(0.3e-6)).is_some());
        assert!(misjudged("null", 0.0, None).is_some_and(|text| text.contains("no valid call")));
        assert!(misjudged("null", 0.0, Some(f64::NAN)).is_some());
    }

    #[test]
    fn offsets_are_judged() {
        let good = Offsets { of_same: 0.05e-6, scatter: 0.1e-6, claimed: 0.3e-6 };
        assert_eq!(good.fault(Scheme::Ring), None);
        assert!(Offsets { of_same: 0.3e-6, ..good }.fault(Scheme::Linear).is_some_and(|text| text.contains("linear")));
        assert!(Offsets { of_same: 0.4e-6, ..good }.fault(Scheme::Ring).is_some());
        assert_eq!(Offsets { of_same: 0.4e-6, claimed: 0.5e-6, ..good }.fault(Scheme::Ring), None);
        assert!(Offsets { scatter: 1e-6, ..good }.fault(Scheme::Linear).is_some());
        assert_eq!(Offsets { scatter: 9e-6, claimed: 5e-6, ..good }.fault(Scheme::Linear), None);
    }

    #[test]
    fn waiting_error_is_the_published_one() {
        assert_eq!(expected_error(1, 4, 4), 2.5);
        assert_eq!(expected_error(3, 4, 4), 1.0);
        assert_eq!(expected_error(0, 4, 4), 1.0);
        let row = Waiting { truth: 2e-3, scheduled: 2.05e-3, ordinary: 5e-3 };
        assert_eq!(row.fault(1), None);
        assert!(Waiting { scheduled: 2.3e-3, ..row }.fault(1).is_some());
        assert!(Waiting { scheduled: f64::NAN, ..row }.fault(1).is_some());
    }
}
