// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf audit`: does this tool notice what it claims to notice?
//!
//! Faults are put into one rank's calls of a real broadcast, one kind at a time, and the same measuring that
//! all other subcommands use must show each of them; without a fault it must show none.

use crate::clock::{Global, Scheme, Source, Timer};
use crate::error::{Error, Result};
use crate::measure::{Plan, Sample, Stop, Verdict, Wait, measure, until};
use crate::mpi::Comm;
use crate::op::{Call, Case};
use crate::stats::median;

/// Calls that get a fault where not all do: one in each of the first three stages …
const SPOTS: [u64; 3] = [6, 14, 22];
/// … and, where they must begin in time, the first of each, which has nothing before it that could make it
/// late.
const FIRST_SPOTS: [u64; 3] = [4, 12, 20];
/// 64-bit words broadcast.
const WORDS: usize = 32;
/// A known delay must be found within this share of it …
const SHARE: f64 = 0.05;
/// … or this, beside how far apart the starts were, seconds.
const SLACK: f64 = 1e-6;

/// The command line of `mpiperf audit`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The timer to use
    #[arg(long, value_enum, default_value_t = Source::Auto)]
    pub timer: Source,
    /// The rank that gets the faults [default: the last]
    #[arg(long)]
    pub rank: Option<usize>,
    /// The delay put into a call, in microseconds
    #[arg(long, default_value_t = 200.0)]
    pub delay: f64,
    /// How much a rank comes late or stays too long, in microseconds
    #[arg(long, default_value_t = 20_000.0)]
    pub late: f64,
    /// By how much a clock is put wrong, in microseconds
    #[arg(long, default_value_t = 50.0)]
    pub offset: f64,
}

/// What is wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Every call takes so many seconds longer.
    Delay(f64),
    /// Some calls are prepared so many seconds late.
    Unready(f64),
    /// Some calls come back so many seconds late.
    Overrun(f64),
    /// One byte of the result is wrong in some calls.
    WrongByte,
}

/// A broadcast from rank 0, with a fault.
struct Probe {
    comm: Comm,
    timer: Timer,
    how: Wait,
    fault: Fault,
    number: u64,
    buffer: [u64; WORDS],
}

impl Probe {
    /// On a duplicate of `comm`, with the fault on rank `victim` only. Collective.
    fn boxed(comm: &Comm, clock: &Global, victim: usize, fault: Fault) -> Result<Box<dyn Case>> {
        let fault = if comm.rank() == victim { fault } else { Fault::None };
        let how = if clock.oversubscribed { Wait::Sleep } else { Wait::Spin };
        let (comm, timer) = (comm.dup()?, clock.timer);
        Ok(Box::new(Probe { comm, timer, how, fault, number: 0, buffer: [0; WORDS] }))
    }

    fn hit(&self) -> bool {
        let spots = if matches!(self.fault, Fault::Overrun(_)) { FIRST_SPOTS } else { SPOTS };
        spots.contains(&self.number)
    }

    fn content(&self, word: usize) -> u64 {
        (self.number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(word as u64)
    }

    fn pass(&self, seconds: f64) {
        until(&self.timer, self.timer.now() + seconds, self.how);
    }
}

impl Case for Probe {
    fn prepare(&mut self, call: Call) -> Result<()> {
        self.number = call.number;
        let root = self.comm.rank() == 0;
        for word in 0..WORDS {
            self.buffer[word] = if root { self.content(word) } else { 0 };
        }
        match self.fault {
            Fault::Unready(seconds) if self.hit() => self.pass(seconds),
            _ => {}
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let result = self.comm.bcast(&mut self.buffer, 0);
        match self.fault {
            Fault::Delay(seconds) => self.pass(seconds),
            Fault::Overrun(seconds) if self.hit() => self.pass(seconds),
            Fault::WrongByte if self.hit() => self.buffer[WORDS / 2] ^= 0x80 << 16,
            _ => {}
        }
        result
    }

    fn verify(&mut self) -> Result<()> {
        let Some(word) = (0..WORDS).find(|word| self.buffer[*word] != self.content(*word)) else { return Ok(()) };
        let (have, want) = (self.buffer[word], self.content(word));
        Err(Error::Wrong(format!("call {}, word {word}: {have:#018x} instead of {want:#018x}", self.number)))
    }

    fn memory(&self) -> usize {
        size_of_val(&self.buffer)
    }
}

/// What became of a fault.
#[derive(Debug, Clone, PartialEq)]
struct Finding {
    /// What was put in.
    injected: String,
    /// Whether the measuring shows it (and, for no fault, that it shows none).
    noticed: bool,
    /// What was measured.
    measured: String,
}

/// Puts faults in and prints what was noticed; an error if one was missed. Collective.
pub fn run(args: &Args, comm: &Comm) -> Result<()> {
    let victim = args.rank.unwrap_or(comm.size() - 1);
    check(args, comm, victim)?;
    let timer = comm.agree(Timer::new(args.timer))?;
    let mut clock = Global::synchronise(comm, timer, Scheme::Hierarchical)?;
    let mut bench = Bench { comm, clock: &mut clock, victim };
    let [delay, late, offset] = [args.delay, args.late, args.offset].map(|micros| micros * 1e-6);
    let findings = [
        bench.delayed(0.0)?,
        bench.delayed(delay)?,
        bench.flagged(Fault::Unready(late), late, Verdict::Late)?,
        bench.flagged(Fault::Overrun(late), late, Verdict::Long)?,
        bench.wrong_byte()?,
        bench.wrong_clock(offset)?,
    ];
    conclude(comm, &findings)
}

fn check(args: &Args, comm: &Comm, victim: usize) -> Result<()> {
    if comm.size() < 2 {
        return Err(Error::usage("audit needs 2 processes or more, this job has 1"));
    }
    if victim >= comm.size() {
        return Err(Error::Usage(format!("--rank: {victim}; must be below the number of processes, {}", comm.size())));
    }
    let times = [("delay", args.delay, 10.0), ("late", args.late, 1000.0), ("offset", args.offset, 1.0)];
    for (name, value, least) in times {
        if !(least..=1e6).contains(&value) {
            return Err(Error::Usage(format!("--{name}: {value}; must be from {least} to 1000000 µs")));
        }
    }
    Ok(())
}

/// Prints the findings, which rank 0 has, and agrees on the outcome.
fn conclude(comm: &Comm, findings: &[Finding]) -> Result<()> {
    if comm.rank() == 0 {
        for finding in findings {
            let word = if finding.noticed { "noticed" } else { "MISSED " };
            println!("{word}  {}: {}", finding.injected, finding.measured);
        }
    }
    let missed: Vec<&str> = findings.iter().filter(|f| !f.noticed).map(|f| f.injected.as_str()).collect();
    let mut count = [missed.len() as u32];
    comm.bcast(&mut count, 0)?;
    if count[0] == 0 {
        return Ok(());
    }
    let (count, all) = (count[0], findings.len());
    Err(Error::Measure(format!(
        "audit: {count} of {all} faults were not judged as they should be: {}",
        missed.join("; ")
    )))
}

struct Bench<'a> {
    comm: &'a Comm,
    clock: &'a mut Global,
    victim: usize,
}

impl Bench<'_> {
    fn probe(&self, fault: Fault) -> Result<Box<dyn Case>> {
        Probe::boxed(self.comm, self.clock, self.victim, fault)
    }

    /// A delay in every call of one of two cases that alternate; 0: none, and none must be found.
    fn delayed(&mut self, delay: f64) -> Result<Finding> {
        let fault = if delay > 0.0 { Fault::Delay(delay) } else { Fault::None };
        let mut cases = [self.probe(Fault::None)?, self.probe(fault)?];
        let outcome = measure(self.comm, self.clock, &mut cases, &Plan::default())?;
        Ok(judge_delay(&outcome.samples, self.victim, delay))
    }

    /// A fault in some calls, which must not count for the reason `verdict`.
    fn flagged(&mut self, fault: Fault, seconds: f64, verdict: Verdict) -> Result<Finding> {
        let stop = Stop { calls: 24, correct: u32::MAX, relative_error: None, least: 0 };
        let plan = Plan { stop, first_calls: 4, stage_calls: 8, ..Plan::default() };
        let outcome = measure(self.comm, self.clock, &mut [self.probe(fault)?], &plan)?;
        Ok(judge_flags(&outcome.samples, self.victim, seconds, verdict))
    }

    fn wrong_byte(&mut self) -> Result<Finding> {
        let mut cases = [self.probe(Fault::WrongByte)?];
        let result = measure(self.comm, self.clock, &mut cases, &Plan::default());
        Ok(judge_error(result.err().as_ref(), self.victim))
    }

    fn wrong_clock(&mut self, offset: f64) -> Result<Finding> {
        self.clock.resynchronise(self.comm)?;
        let before = self.clock.uncertainty;
        if self.comm.rank() == self.victim {
            self.clock.disturb(offset);
        }
        self.clock.resynchronise(self.comm)?;
        Ok(judge_clock(self.clock.correction, offset, before + self.clock.uncertainty, self.victim))
    }
}

/// The delay must be found in the operation's time and in the time of the rank that has it.
fn judge_delay(samples: &[Sample], victim: usize, delay: f64) -> Finding {
    let micros = delay * 1e6;
    let injected = if delay == 0.0 {
        "no fault".to_owned()
    } else {
        format!("delay of {micros:.1} µs in each call of rank {victim}")
    };
    let missed = |text: &str| Finding { injected: injected.clone(), noticed: false, measured: text.to_owned() };
    let good = |case| samples.iter().filter(move |s| s.case == case && s.verdict == Verdict::Correct);
    let middle = |case, what: &dyn Fn(&Sample) -> f64| median(&good(case).map(what).collect::<Vec<_>>());
    let differ = |what: &dyn Fn(&Sample) -> f64| Some(middle(1, what)? - middle(0, what)?);
    let (Some(whole), Some(own), Some(without), Some(spread)) =
        (differ(&|s| s.time), differ(&|s| s.ranks[victim]), middle(0, &|s| s.time), middle(1, &|s| s.spread))
    else {
        return missed("no valid call");
    };
    let allowed = SLACK.max(SHARE * delay) + spread;
    // Before its delay the rank may have been done earlier than the others.
    let noticed = (own - delay).abs() <= allowed && whole >= delay - without - allowed && whole <= delay + allowed;
    let [whole, own, without] = [whole, own, without].map(|t| t * 1e6);
    let calls = good(1).count();
    let measured = format!(
        "{calls} valid calls; the operation of {without:.2} µs takes {whole:+.2} µs, rank {victim} {own:+.2} µs"
    );
    Finding { injected, noticed, measured }
}

/// None of the calls with the fault must count, and the right reason must be given.
fn judge_flags(samples: &[Sample], victim: usize, seconds: f64, verdict: Verdict) -> Finding {
    let (what, spots) =
        if verdict == Verdict::Late { ("is not ready in time", SPOTS) } else { ("comes back late", FIRST_SPOTS) };
    let injected = format!("rank {victim} {what} in {} calls, by {:.0} µs", spots.len(), seconds * 1e6);
    let seen: Vec<Option<Verdict>> =
        spots.iter().map(|spot| samples.iter().find(|s| s.call == *spot).map(|s| s.verdict)).collect();
    let flagged = seen.iter().filter(|found| **found == Some(verdict)).count();
    // On a busy machine a call may be wrong for two reasons, of which one is given.
    let counted = seen.iter().filter(|found| !matches!(found, Some(Verdict::Late | Verdict::Long))).count();
    let dropped = samples.iter().filter(|s| s.verdict != Verdict::First && s.verdict != Verdict::Correct).count();
    let word = if verdict == Verdict::Late { "late" } else { "too long" };
    let measured =
        format!("{flagged} of them judged {word}, {counted} taken; {dropped} calls dropped of {}", samples.len());
    Finding { injected, noticed: counted == 0 && flagged > 0, measured }
}

/// All ranks must have got the error, as one of a wrong result.
fn judge_error(error: Option<&Error>, victim: usize) -> Finding {
    let injected = format!("one bit wrong in a result on rank {victim}");
    let told = format!("(rank {victim})");
    match error {
        Some(error) => {
            let text = error.to_string();
            Finding { injected, noticed: error.status() == 3 && text.contains(&told), measured: text }
        }
        None => Finding { injected, noticed: false, measured: "no error".into() },
    }
}

/// The next synchronisation must find the clock wrong by what it was put wrong, within the errors of both
/// synchronisations.
fn judge_clock(found: f64, offset: f64, blur: f64, victim: usize) -> Finding {
    let injected = format!("clock of rank {victim} put wrong by {:.1} µs", offset * 1e6);
    let measured = format!("corrected by {:.2} µs, ± {:.2} µs", found * 1e6, blur * 1e6);
    let noticed = found > blur && (found - offset).abs() <= blur + SLACK;
    Finding { injected, noticed, measured }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(case: usize, call: u64, time: f64, own: f64, verdict: Verdict) -> Sample {
        Sample { case, call, time, spread: 0.0, ranks: vec![time, own], verdict }
    }

    fn pairs(time: f64, own: f64) -> Vec<Sample> {
        let pair = |call| {
            [sample(0, call, 5e-6, 4e-6, Verdict::Correct), sample(1, call, 5e-6 + time, 4e-6 + own, Verdict::Correct)]
        };
        (4..34).flat_map(pair).collect()
    }

    #[test]
    fn delay_must_be_found_in_time_and_rank() {
        assert!(judge_delay(&pairs(199e-6, 200e-6), 1, 200e-6).noticed);
        assert!(!judge_delay(&pairs(199e-6, 100e-6), 1, 200e-6).noticed);
        assert!(!judge_delay(&pairs(100e-6, 200e-6), 1, 200e-6).noticed);
        assert!(!judge_delay(&pairs(0.0, 0.0), 1, 200e-6).noticed);
        assert!(!judge_delay(&[], 1, 200e-6).noticed);
        assert!(judge_delay(&pairs(0.1e-6, 0.1e-6), 1, 0.0).noticed);
        assert!(!judge_delay(&pairs(9e-6, 9e-6), 1, 0.0).noticed);
    }

    #[test]
    fn every_flag_counts() {
        let all = |verdict| (0..28).map(|call| sample(0, call, 1e-6, 1e-6, verdict)).collect::<Vec<_>>();
        assert!(judge_flags(&all(Verdict::Late), 1, 1e-2, Verdict::Late).noticed);
        assert!(!judge_flags(&all(Verdict::Long), 1, 1e-2, Verdict::Late).noticed);
        let mut one = all(Verdict::Long);
        one[12].verdict = Verdict::Correct;
        assert!(!judge_flags(&one, 1, 1e-2, Verdict::Long).noticed);
        assert!(!judge_flags(&one[..20], 1, 1e-2, Verdict::Long).noticed);
    }

    #[test]
    fn errors_must_be_told_as_wrong_results_of_the_rank() {
        let told = |text: &str, status| Error::Agreed { text: text.into(), status };
        assert!(judge_error(Some(&told("wrong result: call 6 (rank 1)", 3)), 1).noticed);
        assert!(!judge_error(Some(&told("wrong result: call 6 (rank 0)", 3)), 1).noticed);
        assert!(!judge_error(Some(&told("MPI_Bcast failed (rank 1)", 1)), 1).noticed);
        assert!(!judge_error(None, 1).noticed);
    }

    #[test]
    fn clock_must_be_found_wrong_by_the_right_amount() {
        assert!(judge_clock(50.2e-6, 50e-6, 0.3e-6, 1).noticed);
        assert!(!judge_clock(0.0, 50e-6, 0.3e-6, 1).noticed);
        assert!(!judge_clock(70e-6, 50e-6, 0.3e-6, 1).noticed);
        assert!(!judge_clock(50e-6, 50e-6, 80e-6, 1).noticed);
    }
}
