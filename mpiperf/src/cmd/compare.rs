//! `mpiperf compare`: two variants in one job, alternating call by call.

use super::bench::{Bench, enough, on_rank_0};
use super::options::{Beside, Files, How, What};
use super::run::{prepare_bare, try_out, try_out_bare};
use super::values::percent;
use crate::clock::Timer;
use crate::error::{Error, Result};
use crate::measure::{Outcome, Sample, Verdict, measure};
use crate::mpi::Comm;
use crate::op::bare::Way;
use crate::op::{self, Call, Case, Setting};
use crate::report::about::{has_variable, library_text, prefers_components};
use crate::report::output::{Kind, Output};
use crate::report::table::{compare_heading, compare_row, preamble};
use crate::report::units::bytes;
use crate::report::{Comparison, Overlapped, Row};
use crate::stats::{Ratio, Summary, judge, median, paired};

/// Open MPI's info key that chooses collective components.
const KEY: &str = "ompi_comm_coll_preference";

/// The number of the case that only computes, or of the first bare one, beside those of the variants.
const THIRD: usize = 2;

/// The command line of `mpiperf compare`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    what: What,
    /// Collective components of the first variant: a list to prefer, such as tuned,libnbc, or ^ and a list to leave out
    #[arg(long, value_name = "COMPONENTS", allow_hyphen_values = true)]
    a: String,
    /// Collective components of the second variant
    #[arg(long, value_name = "COMPONENTS", allow_hyphen_values = true)]
    b: String,
    /// Set up both variants so often anew for each case (communicators and buffers); 3 or more: the interval is over the setups
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(3..=1000))]
    setups: u32,
    /// Slow the second variant by this share of its own time, to see what is resolved
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    slow_b: Option<f64>,
    /// Beside both, make the same call by nothing but flags and copies (one node only), in each of the ways that it has or in those that are named, and compare that with the first variant
    #[arg(long, conflicts_with = "overlap", value_name = "WAYS", num_args = 0.., require_equals = true, value_delimiter = ',')]
    bare: Option<Vec<Way>>,
    #[command(flatten)]
    beside: Beside,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    files: Files,
}

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

/// What was found for one case.
struct Found {
    comparison: Comparison,
    rows: [Row; 2],
    /// Of each bare way, against the first variant.
    bare: Vec<(Comparison, Row)>,
}

/// Compares and reports. Collective.
pub fn run(args: &Args, comm: &Comm) -> Result<()> {
    enough(comm)?;
    let settings = args.what.settings(comm.size())?;
    args.beside.check(&settings)?;
    if let Some(named) = &args.bare {
        prepare_bare(comm, &settings, named)?;
    }
    let mut plan = args.how.plan(comm)?;
    // The time limit is of the case, with all its setups.
    plan.budget /= f64::from(args.setups);
    comm.agree(components(args))?;
    try_out(&variant(comm, &args.a)?, &settings)?;
    if let Some(named) = &args.bare {
        try_out_bare(comm, &settings, named)?;
    }
    let files = &args.files;
    let mut output = on_rank_0(comm, || {
        Output::open(files.csv.as_deref(), files.json.as_deref(), Kind::Comparisons, settings.len())
    })?;
    let confidence = args.how.confidence.unwrap_or(0.99);
    let mut bench = Bench::new(comm, &args.how, plan, confidence, None)?;
    let labels = labels(args);
    let said = output.as_ref().map_or(Ok(()), |output| {
        output.say(&preamble(&bench.about, bench.confidence, bench.trim))?;
        output.say(&asked(args))?;
        output.say(&compare_heading(args.beside.overlap))
    });
    comm.agree(said)?;
    let mut results = bench.results(vec![]);
    for setting in &settings {
        if let Some(output) = &output {
            output.next(&format!("{} {}", setting.operation, bytes(setting.bytes)));
        }
        let Found { comparison, rows: [a, b], bare } = one(args, &mut bench, setting, &labels)?;
        let others: Vec<(Comparison, Row)> = std::iter::once((comparison, b)).chain(bare).collect();
        let written = output.as_mut().map_or(Ok(()), |output| {
            let (about, arrival) = (&bench.about, bench.arrival.as_str());
            let line = |(i, (comparison, row)): (usize, &(Comparison, Row))| {
                let line = compare_row(comparison, &a, row, args.beside.overlap);
                if i == 0 { line } else { format!("{line}; {}", comparison.b) }
            };
            let lines: Vec<String> = others.iter().enumerate().map(line).collect();
            output.done(&lines.join("\n"), |csv| {
                others.iter().try_for_each(|(comparison, row)| csv.comparison(about, arrival, comparison, &a, row))
            })
        });
        comm.agree(written)?;
        results.rows.push(a);
        for (comparison, row) in others {
            results.rows.push(row);
            results.comparisons.push(comparison);
        }
    }
    on_rank_0(comm, || output.as_mut().map_or(Ok(()), |output| output.finish(&results)))?;
    Ok(())
}

/// Whether this library can be asked for components, and has those that are named.
fn components(args: &Args) -> Result<()> {
    if !prefers_components()? {
        let library = crate::report::about::library_name(&library_text()?);
        return Err(Error::usage(format!(
            "{library} does not know the info key {KEY}, by which compare chooses variants (Open MPI does); to compare libraries or \
             settings of one, alternate runs with mpiperf/alternate.sh and bring them together with mpiperf merge"
        )));
    }
    for (option, list) in [("--a", &args.a), ("--b", &args.b)] {
        let names = list.strip_prefix('^').unwrap_or(list);
        for name in names.split(',') {
            if name.is_empty() || name.starts_with('^') {
                return Err(Error::usage(format!(
                    "{option} '{list}': must be a list of components, such as tuned,libnbc, or ^ and a list to leave out"
                )));
            }
            if !has_variable(&format!("coll_{name}_priority")) {
                return Err(Error::usage(format!(
                    "{option} '{list}': there is no collective component '{name}' in this job; see ompi_info, and the MCA parameters coll \
                     and mca_component_path"
                )));
            }
        }
    }
    Ok(())
}

/// A communicator of all processes that was asked for these components. Collective.
fn variant(comm: &Comm, components: &str) -> Result<Comm> {
    comm.dup_with_info(&[(KEY, components)])
}

fn labels(args: &Args) -> [String; 2] {
    let b = args.slow_b.map_or(args.b.clone(), |percent| format!("{} +{percent} %", args.b));
    if args.a == b { [format!("{b} (a)"), format!("{b} (b)")] } else { [args.a.clone(), b] }
}

fn asked(args: &Args) -> String {
    let mut text = format!("# {KEY}: a = {}, b = {}", args.a, args.b);
    if args.a == args.b {
        text += " (the same for both)";
    }
    if let Some(percent) = args.slow_b {
        text += &format!("; b slowed by {percent} % of its own median");
    }
    text + &format!("; {} setups of each", args.setups)
}

/// Measures one case; what it found is meaningful on rank 0. Collective.
fn one(args: &Args, bench: &mut Bench, setting: &Setting, labels: &[String; 2]) -> Result<Found> {
    let delay = match args.slow_b {
        Some(percent) => percent / 100.0 * own_time(args, bench, setting)?,
        None => 0.0,
    };
    let Setups { mut rows, ratio, mut notes, bare, .. } = setups(args, bench, setting, delay, labels)?;
    let mut overlap = None;
    if args.beside.overlap {
        let (ratio, more) = beside(args, bench, setting, delay, labels, &mut rows)?;
        overlap = ratio;
        notes.extend(more);
    }
    let floor = bench.floor();
    let first = rows[0].summary.as_ref().map_or(0.0, |s| s.mean);
    let against = |b: &str, ratio: Option<Ratio>, notes: Vec<String>| Comparison {
        setting: setting.clone(),
        processes: bench.comm.size(),
        a: labels[0].clone(),
        b: b.to_owned(),
        verdict: judge(ratio.as_ref(), first, floor),
        ratio,
        overlap: None,
        floor,
        notes,
    };
    let comparison = Comparison { overlap, ..against(&labels[1], ratio, summed_up(notes, args.setups)) };
    let bare = bare.into_iter().map(|(row, ratio)| (against(&row.label, ratio, vec![]), row)).collect();
    Ok(Found { comparison, rows, bare })
}

/// What all setups of one setting gave.
struct Setups {
    rows: [Row; 2],
    ratio: Option<Ratio>,
    notes: Vec<String>,
    /// The computation alone, if there is any beside.
    compute: Option<Summary>,
    /// Of each bare way that is possible, and how its time relates to the first variant's.
    bare: Vec<(Row, Option<Ratio>)>,
}

/// Measures a setting with all its setups. Collective.
fn setups(args: &Args, bench: &mut Bench, setting: &Setting, delay: f64, labels: &[String; 2]) -> Result<Setups> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut groups: Vec<Vec<Vec<(f64, f64)>>> = Vec::new();
    let mut ways: Vec<Way> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    let mut window = 0.0;
    for setup in 0..args.setups {
        let outcome;
        (outcome, ways) = alternate(args, bench, setting, delay, setup % 2 == 1)?;
        groups.push((1..THIRD + ways.len()).map(|case| pairs(&outcome.samples, case)).collect());
        window = outcome.window;
        samples.extend(outcome.samples);
        notes.extend(outcome.notes);
    }
    let row = |case: usize| bench.row(labels.get(case).map_or("", String::as_str), setting, case, &samples, window);
    let ratio = |case: usize| {
        let own: Vec<_> = groups.iter().filter_map(|cases| cases.get(case - 1).cloned()).collect();
        paired(&own, bench.confidence)
    };
    let bare = |(i, way): (usize, &Way)| {
        let row = bench.row(way.name(), setting, THIRD + i, &samples, window);
        (row, ratio(THIRD + i))
    };
    let bare = ways.iter().enumerate().map(bare).collect();
    Ok(Setups { rows: [row(0), row(1)], ratio: ratio(1), notes, compute: row(THIRD).summary, bare })
}

/// Measures both variants with computation beside, as long for one as for the other: the longer of their own times, if nothing else was asked for.
/// Collective.
fn beside(
    args: &Args,
    bench: &mut Bench,
    setting: &Setting,
    delay: f64,
    labels: &[String; 2],
    rows: &mut [Row; 2],
) -> Result<(Option<Ratio>, Vec<String>)> {
    let mut alone = [0, 1].map(|case: usize| rows[case].summary.as_ref().map_or(0.0, |s| s.mean));
    bench.comm.bcast(&mut alone, 0)?;
    if alone.contains(&0.0) {
        return Ok((None, vec!["no overlap without a valid call".to_owned()]));
    }
    let overlap = args.beside.overlap(alone[0].max(alone[1]));
    let setting = Setting { overlap: Some(overlap), ..setting.clone() };
    let Setups { rows: both, ratio, notes, compute, .. } = setups(args, bench, &setting, delay, labels)?;
    for ((row, both), alone) in rows.iter_mut().zip(both).zip(alone) {
        let both = both.summary.as_ref().zip(compute.as_ref());
        row.overlap = both.map(|(both, compute)| Overlapped::new(overlap, alone, compute, both));
    }
    Ok((ratio, notes))
}

/// Sets both variants up and lets them alternate, with the bare ways that are possible, if they are asked for. `swapped`: the second is set up first. Collective.
fn alternate(
    args: &Args,
    bench: &mut Bench,
    setting: &Setting,
    delay: f64,
    swapped: bool,
) -> Result<(Outcome, Vec<Way>)> {
    let make = |components: &str| {
        let comm = variant(bench.comm, components)?;
        let case = op::make(&comm, setting)?;
        Ok::<_, Error>((comm, case))
    };
    // Communicators outlive their cases: they are dropped last.
    let ((_comm_a, a), (_comm_b, b));
    if swapped {
        (_comm_b, b) = make(&args.b)?;
        (_comm_a, a) = make(&args.a)?;
    } else {
        (_comm_a, a) = make(&args.a)?;
        (_comm_b, b) = make(&args.b)?;
    }
    let b = if delay > 0.0 { Box::new(Slowed { inner: b, timer: bench.clock.timer, delay }) } else { b };
    let mut cases = vec![a, b];
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
fn own_time(args: &Args, bench: &mut Bench, setting: &Setting) -> Result<f64> {
    let comm = variant(bench.comm, &args.b)?;
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

/// The notes of all setups in few words.
fn summed_up(mut notes: Vec<String>, setups: u32) -> Vec<String> {
    // Numbers differ from setup to setup: what comes before them tells the kind.
    let kind = |note: &str| note.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default().to_owned();
    notes.sort_unstable();
    let groups = notes.chunk_by(|a, b| kind(a) == kind(b));
    groups
        .map(
            |same| {
                if same.len() > 1 { format!("{} of {setups} setups: {}", same.len(), same[0]) } else { same[0].clone() }
            },
        )
        .collect()
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

    #[test]
    fn notes_of_a_kind_are_one() {
        let notes = ["late by 3 µs", "other", "late by 5 µs"].map(str::to_owned).to_vec();
        assert_eq!(summed_up(notes, 10), ["2 of 10 setups: late by 3 µs", "other"]);
    }
}
