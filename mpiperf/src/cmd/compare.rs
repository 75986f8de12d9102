// SPDX-License-Identifier: BSD-3-Clause
//! `mpiperf compare`: variants in one job, alternating call by call.

mod setups;

use super::bench::{Bench, enough, on_rank_0};
use super::options::{Beside, Files, How, What};
use super::run::{prepare_bare, try_out, try_out_bare};
use super::values::percent;
use crate::error::{Error, Result};
use crate::mpi::Comm;
use crate::op::Setting;
use crate::op::bare::Way;
use crate::report::about::{has_variable, library_text, prefers_components};
use crate::report::output::{Kind, Output};
use crate::report::table::{Look, compare_heading, compare_row, preamble};
use crate::report::units::bytes;
use crate::report::{Comparison, Row};
use crate::stats::{Ratio, judge};
use setups::{Other, Setups, beside, own_time, setups};

/// Open MPI's info key that chooses collective components.
const KEY: &str = "ompi_comm_coll_preference";

/// The command line of `mpiperf compare`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    what: What,
    /// Collective components of the first variant: a list to prefer, such as tuned,libnbc, or ^ and a list to
    /// leave out
    #[arg(long, value_name = "COMPONENTS", allow_hyphen_values = true)]
    a: String,
    /// Collective components of the second variant; given several times, of others, each of which is compared
    /// with the first
    #[arg(long, value_name = "COMPONENTS", allow_hyphen_values = true, required = true)]
    b: Vec<String>,
    /// Set up all variants so often anew for each case (communicators and buffers); 3 or more: the interval
    /// is over the setups
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(3..=1000))]
    setups: u32,
    /// Slow the second variant by this share of its own time, to see what is resolved
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    slow_b: Option<f64>,
    /// Beside these, make the same call by nothing but flags and copies (one node only), in each of the ways
    /// that it has or in those that are named, and compare that with the first variant
    #[arg(long, conflicts_with = "overlap", value_name = "WAYS", num_args = 0.., require_equals = true, value_delimiter = ',')]
    bare: Option<Vec<Way>>,
    #[command(flatten)]
    beside: Beside,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    files: Files,
}

/// Compares and reports. Collective.
pub fn run(args: &Args, comm: &Comm) -> Result<()> {
    enough(comm)?;
    let settings = args.what.settings(comm.size())?;
    args.beside.check(&settings)?;
    if args.b.len() > 1 && (args.slow_b.is_some() || args.beside.overlap) {
        let option = if args.beside.overlap { "--overlap" } else { "--slow-b" };
        return Err(Error::usage(format!("{option} is for one --b; there are {}", args.b.len())));
    }
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
    let labels = labels(&args.a, &args.b, args.slow_b);
    let look = Look::new(files.wide, settings.iter());
    let said = output.as_ref().map_or(Ok(()), |output| {
        output.say(&preamble(&bench.about, bench.confidence, bench.trim))?;
        output.say(&asked(args))?;
        output.say(&compare_heading(args.beside.overlap, look))
    });
    comm.agree(said)?;
    let mut results = bench.results(vec![]);
    for setting in &settings {
        if let Some(output) = &output {
            output.next(&format!("{} {}", setting.operation, bytes(setting.bytes)));
        }
        let (a, others) = one(args, &mut bench, setting, &labels)?;
        let written = output.as_mut().map_or(Ok(()), |output| {
            let (about, arrival) = (&bench.about, bench.arrival.as_str());
            let line = |(i, (comparison, row)): (usize, &(Comparison, Row))| {
                let of = if i == 0 && args.b.len() == 1 { String::new() } else { format!("; {}", comparison.b) };
                compare_row(comparison, [&a, row], args.beside.overlap, look, &of)
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
    for (option, list) in std::iter::once(("--a", &args.a)).chain(args.b.iter().map(|b| ("--b", b))) {
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

/// How reports name the variants: by their components, with a letter each where several have the same.
fn labels(a: &str, others: &[String], slow_b: Option<f64>) -> Vec<String> {
    let all: Vec<&str> = std::iter::once(a).chain(others.iter().map(String::as_str)).collect();
    let label = |(i, &components): (usize, &&str)| {
        let mut label = components.to_owned();
        if let (1.., Some(percent)) = (i, slow_b) {
            label += &format!(" +{percent} %");
        }
        if all.iter().filter(|&&other| other == components).count() > 1 {
            label += &format!(" ({})", letter(i));
        }
        label
    };
    all.iter().enumerate().map(label).collect()
}

/// What a variant is called after its place: a, b, c …
fn letter(place: usize) -> String {
    char::from_digit(10 + place as u32, 36).map_or_else(|| place.to_string(), String::from)
}

fn asked(args: &Args) -> String {
    let mut text = format!("# {KEY}: a = {}", args.a);
    for (i, components) in args.b.iter().enumerate() {
        text += &format!(", {} = {components}", letter(1 + i));
    }
    if args.b.iter().all(|b| *b == args.a) {
        text += if args.b.len() == 1 { " (the same for both)" } else { " (the same for all)" };
    }
    if let Some(percent) = args.slow_b {
        text += &format!("; b slowed by {percent} % of its own median");
    }
    text + &format!("; {} setups of each", args.setups)
}

/// Measures one case: the first variant, and each other one, or bare way, against it; what is found is
/// meaningful on rank 0. Collective.
fn one(args: &Args, bench: &mut Bench, setting: &Setting, labels: &[String]) -> Result<(Row, Vec<(Comparison, Row)>)> {
    let delay = match args.slow_b {
        Some(percent) => percent / 100.0 * own_time(args, bench, setting)?,
        None => 0.0,
    };
    let Setups { mut a, mut others, mut notes, .. } = setups(args, bench, setting, delay, labels)?;
    let mut overlap = None;
    if args.beside.overlap {
        let (ratio, more) = beside(args, bench, setting, delay, labels, [&mut a, &mut others[0].row])?;
        overlap = ratio;
        notes.extend(more);
    }
    let floor = bench.floor();
    let first = a.summary.as_ref().map_or(0.0, |s| s.mean);
    let against = |b: &str, ratio: Option<Ratio>| Comparison {
        setting: setting.clone(),
        processes: bench.comm.size(),
        a: labels[0].clone(),
        b: b.to_owned(),
        verdict: judge(ratio.as_ref(), first, floor),
        ratio,
        overlap: None,
        floor,
        notes: vec![],
    };
    let mut found: Vec<_> = others.into_iter().map(|Other { row, ratio }| (against(&row.label, ratio), row)).collect();
    // What is true of all is said once.
    found[0].0.overlap = overlap;
    found[0].0.notes = summed_up(notes, args.setups);
    Ok((a, found))
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

    #[test]
    fn notes_of_a_kind_are_one() {
        let notes = ["late by 3 µs", "other", "late by 5 µs"].map(str::to_owned).to_vec();
        assert_eq!(summed_up(notes, 10), ["2 of 10 setups: late by 3 µs", "other"]);
    }

    #[test]
    fn variants_alike_have_letters() {
        let labels =
            |a: &str, others: &[&str], slow| labels(a, &others.iter().map(|&b| b.to_owned()).collect::<Vec<_>>(), slow);
        assert_eq!(labels("tuned", &["rust"], None), ["tuned", "rust"]);
        assert_eq!(labels("tuned", &["tuned"], None), ["tuned (a)", "tuned (b)"]);
        assert_eq!(labels("tuned", &["tuned"], Some(5.0)), ["tuned (a)", "tuned +5 % (b)"]);
        assert_eq!(labels("tuned", &["rust", "sm", "rust"], None), ["tuned", "rust (b)", "sm", "rust (d)"]);
    }
}
