// SPDX-License-Identifier: BSD-3-Clause
//! One setting, with variants that are set up anew several times.

use super::{Args, variant};
use crate::clock::Timer;
use crate::cmd::bench::Bench;
use crate::error::{Error, Result};
use crate::measure::{Outcome, Sample, Verdict, measure};
use crate::op::bare::Way;
use crate::op::{self, Call, Case, Setting};
use crate::report::{Overlapped, Row};
use crate::stats::{Ratio, Summary, median, paired};

/// A variant that takes longer: on every rank by the same time, so that the operation does, too.
struct Slowed {
    inner: Box<dyn Case>,
    timer: Timer,
    delay: f64,
}

impl Case for Slowed {
    fn prepare(&mut self, call: Call) -> Result<()> {
        self.inner.prepare(call)
    }

    fn run(&mut self) -> Result<()> {
        let outcome = self.inner.run();
        let end = self.timer.now() + self.delay;
        while self.timer.now() < end {
            std::hint::spin_loop();
        }
        outcome
    }

    fn verify(&mut self) -> Result<()> {
        self.inner.verify()
    }

    fn memory(&self) -> usize {
        self.inner.memory()
    }
}

/// What all setups of one setting gave.
pub struct Setups {
    /// The first variant.
    pub a: Row,
    /// The other ones, and each bare way that is possible.
    pub others: Vec<Other>,
    pub notes: Vec<String>,
    /// The computation alone, if there is any beside.
    compute: Option<Summary>,
}

/// What is compared with the first variant.
pub struct Other {
    pub row: Row,
    /// Its time, of that of the first variant.
    pub ratio: Option<Ratio>,
}

/// Measures a setting with all its setups. Collective.
pub fn setups(args: &Args, bench: &mut Bench, setting: &Setting, delay: f64, labels: &[String]) -> Result<Setups> {
    let variants = labels.len();
    let mut samples: Vec<Sample> = Vec::new();
    let mut groups: Vec<Vec<Vec<(f64, f64)>>> = Vec::new();
    let mut ways: Vec<Way> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    let mut window = 0.0;
    for setup in 0..args.setups {
        let outcome;
        (outcome, ways) = alternate(args, bench, setting, delay, setup % 2 == 1)?;
        groups.push((1..variants + ways.len()).map(|case| pairs(&outcome.samples, case)).collect());
        window = outcome.window;
        samples.extend(outcome.samples);
        notes.extend(outcome.notes);
    }
    let row = |label: &str, case: usize| bench.row(label, setting, case, &samples, window);
    let ratio = |case: usize| {
        let own: Vec<_> = groups.iter().filter_map(|cases| cases.get(case - 1).cloned()).collect();
        paired(&own, bench.confidence)
    };
    let names = labels.iter().map(String::as_str).chain(ways.iter().map(|way| way.name()));
    let other = |(case, label): (usize, &str)| Other { row: row(label, case), ratio: ratio(case) };
    let others = names.enumerate().skip(1).map(other).collect();
    // The case that only computes, if there is one, comes after the variants; then there are no bare ways.
    let compute = row("", variants).summary;
    Ok(Setups { a: row(&labels[0], 0), others, notes, compute })
}

/// Measures both variants with computation beside, as long for one as for the other: the longer of their own
/// times, if nothing else was asked for. Collective.
pub fn beside(
    args: &Args,
    bench: &mut Bench,
    setting: &Setting,
    delay: f64,
    labels: &[String],
    rows: [&mut Row; 2],
) -> Result<(Option<Ratio>, Vec<String>)> {
    let mut alone = rows.each_ref().map(|row| row.summary.as_ref().map_or(0.0, |s| s.mean));
    bench.comm.bcast(&mut alone, 0)?;
    if alone.contains(&0.0) {
        return Ok((None, vec!["no overlap without a valid call".to_owned()]));
    }
    let overlap = args.beside.overlap(alone[0].max(alone[1]));
    let setting = Setting { overlap: Some(overlap), ..setting.clone() };
    let Setups { a, mut others, notes, compute } = setups(args, bench, &setting, delay, labels)?;
    let Other { row: b, ratio } = others.swap_remove(0);
    for ((row, both), alone) in rows.into_iter().zip([a, b]).zip(alone) {
        let both = both.summary.as_ref().zip(compute.as_ref());
        row.overlap = both.map(|(both, compute)| Overlapped::new(overlap, alone, compute, both));
    }
    Ok((ratio, notes))
}

/// Sets all variants up and lets them alternate, with the bare ways that are possible, if they are asked for.
/// `swapped`: the last is set up first. Collective.
fn alternate(
    args: &Args,
    bench: &mut Bench,
    setting: &Setting,
    delay: f64,
    swapped: bool,
) -> Result<(Outcome, Vec<Way>)> {
    let lists: Vec<&String> = std::iter::once(&args.a).chain(&args.b).collect();
    // Communicators outlive their cases: they are dropped last.
    let mut comms = Vec::with_capacity(lists.len());
    let mut cases: Vec<Box<dyn Case>> = Vec::with_capacity(lists.len());
    for at in 0..lists.len() {
        let comm = variant(bench.comm, lists[if swapped { lists.len() - 1 - at } else { at }])?;
        cases.push(op::make(&comm, setting)?);
        comms.push(comm);
    }
    if swapped {
        cases.reverse();
    }
    if delay > 0.0 {
        let inner = cases.remove(1);
        cases.insert(1, Box::new(Slowed { inner, timer: bench.clock.timer, delay }));
    }
    cases.extend(setting.overlap.map(|overlap| Box::new(op::overlap::Alone(overlap.compute)) as Box<dyn Case>));
    let mut ways = Vec::new();
    let asked = args.bare.as_ref().map(|named| op::bare_ways(setting, named)).transpose()?;
    for way in asked.unwrap_or_default() {
        if let Some(case) = op::make_bare(bench.comm, setting, way, bench.clock.oversubscribed)? {
            cases.push(case);
            ways.push(way);
        }
    }
    Ok((measure(bench.comm, &mut bench.clock, &mut cases, &bench.plan)?, ways))
}

/// The second variant's median time alone, on all ranks. Collective.
pub fn own_time(args: &Args, bench: &mut Bench, setting: &Setting) -> Result<f64> {
    let comm = variant(bench.comm, &args.b[0])?;
    let mut cases = [op::make(&comm, setting)?];
    let outcome = measure(bench.comm, &mut bench.clock, &mut cases, &bench.plan)?;
    let correct = outcome.samples.iter().filter(|s| s.verdict == Verdict::Correct);
    let mut time = [median(&correct.map(|s| s.time).collect::<Vec<_>>()).unwrap_or(0.0)];
    bench.comm.bcast(&mut time, 0)?;
    if time[0] > 0.0 {
        return Ok(time[0]);
    }
    let name = &setting.operation;
    Err(Error::Measure(format!("--slow-b: {name} has no valid call, so that a share of its time is not known")))
}

/// The times of the first variant and of another case in the rounds in which both were correct.
fn pairs(samples: &[Sample], other: usize) -> Vec<(f64, f64)> {
    let correct = |case: usize| samples.iter().filter(move |s| s.case == case && s.verdict == Verdict::Correct);
    let second: std::collections::HashMap<u64, f64> = correct(other).map(|s| (s.call, s.time)).collect();
    correct(0).filter_map(|s| Some((s.time, *second.get(&s.call)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(case: usize, call: u64, time: f64, verdict: Verdict) -> Sample {
        Sample { case, call, time, spread: 0.0, ranks: vec![], verdict }
    }

    #[test]
    fn pairs_are_of_one_round_and_both_correct() {
        use Verdict::*;
        let samples = [
            sample(0, 0, 9.0, First),
            sample(1, 0, 9.0, First),
            sample(1, 1, 1.5, Correct),
            sample(0, 1, 1.0, Correct),
            sample(0, 2, 2.0, Correct),
            sample(1, 2, 9.0, Late),
            sample(0, 3, 9.0, Long),
            sample(1, 3, 9.0, Correct),
            sample(0, 4, 3.0, Correct),
            sample(1, 4, 4.0, Correct),
        ];
        assert_eq!(pairs(&samples, 1), [(1.0, 1.5), (3.0, 4.0)]);
        assert_eq!(pairs(&samples, 2), []);
    }
}
