// SPDX-License-Identifier: BSD-3-Clause
//! The report, for people and for scripts.

use super::case::{Case, Ended};
use super::finding::{Finding, Weight};
use crate::probe::facts::Reads;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The form of the JSON object; another number: another form.
const SCHEMA: u32 = 1;

/// For scripts.
pub fn json(case: &Case, findings: &[Finding], status: u8) -> String {
    let rank = |f: &crate::probe::facts::Facts| {
        json!({
            "rank": f.rank, "host": f.host, "found": f.info.rust.is_some(), "version": f.info.rust,
            "file": f.file.as_ref().map(|file| &file.path), "built_for": f.file.as_ref().map(|file| &file.built_for),
            "open_mpi": f.info.release, "cpus": f.cpus, "machine_cpus": f.machine_cpus, "pid_space": f.pid_space,
            "shm_free": f.shm.free, "shm_total": f.shm.total, "reads_memory": f.reads == Reads::Works,
        })
    };
    let value = json!({
        "schema": SCHEMA, "status": status, "mpiexec": case.own.mpiexec, "open_mpi": case.release(),
        "mpi_library": case.library(), "selected": case.selected_by() > 0,
        "selected_by": case.selected_by(), "asked": case.asked(),
        "priorities": case.offers(), "remarks": case.all_remarks(),
        "exit_code": match case.ended { Ended::Code(code) => Value::from(code), Ended::TooLate => Value::Null },
        "ranks": case.facts.iter().map(rank).collect::<Vec<_>>(), "findings": findings,
    });
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

/// For scripts, where it could not be found out.
pub fn json_unknown(why: &str, status: u8) -> String {
    serde_json::to_string_pretty(&json!({"schema": SCHEMA, "status": status, "error": why, "findings": []}))
        .unwrap_or_default()
}

/// For people.
pub fn text(case: &Case, findings: &[Finding]) -> String {
    let mut text = format!(
        "{} ranks on {} ({}), Open MPI {}\n",
        case.facts.len(),
        case.hosts().into_iter().collect::<Vec<_>>().join(", "),
        case.own.mpiexec,
        if case.release().is_empty() { "of an unknown release" } else { case.release() },
    );
    text += &format!("  found     {}\n  selected  {}\n  node      {}\n", found(case), selected(case), node(case));
    if let Some(library) = case.library() {
        text += &format!("  asked     a job that calls MPI_Barrier of {library}\n");
    }
    for finding in findings {
        text += &format!("\n{}  {}: {}{}\n", word(finding.weight), finding.id, finding.what, ranks(case, finding));
        for (label, words) in [("where", &finding.place), ("why", &finding.why), ("mend", &finding.mend)] {
            text += &format!("  {label:<6}{}\n", words.replace('\n', "\n        "));
        }
    }
    let wrong = findings.iter().filter(|f| f.is_wrong()).count();
    text + &match wrong {
        0 => "\nAll is well: the component is found and selected.\n".to_owned(),
        1 => "\nOne thing is wrong.\n".to_owned(),
        n => format!("\n{n} things are wrong.\n"),
    }
}

fn word(weight: Weight) -> &'static str {
    match weight {
        Weight::Wrong => "WRONG",
        Weight::Note => "note ",
    }
}

/// Which ranks see it, unless all do.
fn ranks(case: &Case, finding: &Finding) -> String {
    if finding.ranks.is_empty() || finding.ranks.len() == case.facts.len() {
        return String::new();
    }
    let first: Vec<String> = finding.ranks.iter().take(8).map(u32::to_string).collect();
    let more = if finding.ranks.len() > 8 { ", …" } else { "" };
    format!(" (ranks {}{more} of {})", first.join(", "), case.facts.len())
}

fn found(case: &Case) -> String {
    let mut files: BTreeMap<(String, String), usize> = BTreeMap::new();
    for f in case.facts.iter().filter(|f| f.info.rust.is_some()) {
        let path = f.file.as_ref().map_or("", |file| &file.path).to_owned();
        *files.entry((path, f.info.rust.clone().unwrap_or_default())).or_default() += 1;
    }
    if files.is_empty() {
        return "no".to_owned();
    }
    let told = |((path, version), n): ((String, String), usize)| {
        format!("{path}: {version}, by {n} of {} ranks", case.facts.len())
    };
    files.into_iter().map(told).collect::<Vec<_>>().join("\n            ")
}

fn selected(case: &Case) -> String {
    let told = case.offers();
    let mut offers: Vec<(&String, &i64)> = told.iter().collect();
    offers.sort_by_key(|(_, priority)| -**priority);
    let offers: Vec<String> = offers.iter().map(|(name, priority)| format!("{name} {priority}")).collect();
    let order = if offers.is_empty() { String::new() } else { format!("; priorities: {}", offers.join(", ")) };
    match case.selected_by() {
        0 => format!("no{order}"),
        n => format!("by {n} of {} processes{order}", case.asked()),
    }
}

fn node(case: &Case) -> String {
    let free = case.facts.iter().map(|f| f.shm.free).min().unwrap_or(0) >> 20;
    let reads = match case.facts.iter().filter(|f| matches!(f.reads, Reads::Fails(_))).count() {
        0 if case.facts.iter().any(|f| f.reads == Reads::Works) => "processes read each other's memory",
        0 => "whether processes read each other's memory was not tried",
        _ => "processes cannot read each other's memory",
    };
    let cpus = case.facts.iter().map(|f| format!("{} of {}", f.cpus, f.machine_cpus)).max().unwrap_or_default();
    format!("{free} MiB free in /dev/shm; {reads}; each may use {cpus} processors")
}
