// SPDX-License-Identifier: BSD-3-Clause
//! Names that are no parameter, values that are not understood, and ranks with different values.

use super::super::case::{Case, drop_line};
use super::super::finding::Finding;
use crate::probe::facts::Facts;
use component::params::{self, PREFIX, Param, TABLE};
use std::collections::BTreeMap;

/// Looks at every rank's settings.
pub fn check(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for facts in &case.facts {
        for (name, value, (place, mend)) in settings(case, facts) {
            findings.extend(judge(&name, &value, place, mend).map(|finding| finding.by(facts.rank)));
        }
    }
    findings.extend(differ(case));
    findings
}

/// A setting: name, value, and where it was made with what undoes it.
type Set = (String, String, (String, String));
/// The values of a parameter, each with the first rank that has it, and where that has it from.
type Values = BTreeMap<Option<String>, (u32, String)>;

/// The settings of this component in a process.
fn settings(case: &Case, facts: &Facts) -> Vec<Set> {
    let ours = |name: &str| name.strip_prefix("ompi_").unwrap_or(name).starts_with(PREFIX);
    let mut found: Vec<_> = facts
        .files
        .iter()
        .filter(|s| ours(&s.name))
        .map(|s| (s.name.clone(), s.value.clone(), (s.place.clone(), drop_line(&s.place))))
        .collect();
    for (variable, value) in &facts.environment {
        let Some(name) = params::from_environment(variable).filter(|name| ours(name)) else { continue };
        // Some launchers hand on what files say.
        if !facts.files.iter().any(|s| s.name == name && s.value == *value) {
            found.push((name.to_owned(), value.clone(), case.origin_of_variable(variable, value)));
        }
    }
    found
}

fn judge(name: &str, value: &str, place: String, mend: String) -> Option<Finding> {
    if let Some(text) = params::unknown_names([(name.to_owned(), "here".to_owned())]) {
        let meant = text.split_once("did you mean ").map_or("", |(_, rest)| rest.trim_end_matches("?)"));
        let mend = match place.rsplit_once(':') {
            Some((file, line)) if mend.starts_with("sed") => format!("sed -i '{line}s/{name}/{meant}/' '{file}'"),
            _ => format!("{mend}; the name may be {meant}"),
        };
        let what = format!("there is no parameter {name} (did you mean {meant}?)");
        return Some(Finding::wrong(
            "unknown-parameter",
            what,
            place,
            "It has no effect; with coll_rust_strict set to 1 it ends the job.",
            mend,
        ));
    }
    let short = name.strip_prefix("ompi_").unwrap_or(name).strip_prefix(PREFIX)?;
    let param = TABLE.iter().find(|p| p.name == short || p.was.contains(&short))?;
    let why = with(param, value)?;
    Some(Finding::wrong("wrong-value", why, place, "The job ends in MPI_Init.", mend))
}

/// Why the table does not understand a value.
fn with(param: &Param, value: &str) -> Option<String> {
    let values = TABLE.iter().map(|p| if p.name == param.name { value } else { p.default });
    // Gateways need their key, which another setting names.
    if param.name.starts_with("gateway") {
        return None;
    }
    params::parse(values).err()
}

/// Ranks whose settings are not alike.
fn differ(case: &Case) -> Vec<Finding> {
    /// What each rank may have as it likes.
    const FREE: [&str; 4] = ["coll_rust_verbose", "coll_rust_show", "coll_rust_report", "coll_rust_strict"];
    let mut all: BTreeMap<String, Values> = BTreeMap::new();
    let each: Vec<(&Facts, Vec<Set>)> = case.facts.iter().map(|f| (f, settings(case, f))).collect();
    for name in each.iter().flat_map(|(_, sets)| sets.iter().map(|set| &set.0)) {
        for (facts, sets) in &each {
            // The environment counts more than files, and comes last.
            let set = sets.iter().rev().find(|set| set.0 == *name);
            let (host, rank) = (&facts.host, facts.rank);
            let place =
                set.map_or_else(|| format!("not set on {host}"), |(_, _, (place, _))| format!("{host}: {place}"));
            all.entry(name.clone()).or_default().entry(set.map(|set| set.1.clone())).or_insert((rank, place));
        }
    }
    let unlike = |(name, values): (String, Values)| {
        if values.len() < 2 || FREE.contains(&name.as_str()) {
            return None;
        }
        let tell = |(value, (rank, _)): (&Option<String>, &(u32, String))| {
            format!("{} on rank {rank}", value.as_deref().map_or("not set".to_owned(), |v| format!("\"{v}\"")))
        };
        let what = format!(
            "ranks have different values of {name}: {}",
            values.iter().map(tell).collect::<Vec<_>>().join(", ")
        );
        let places = values.values().map(|(_, place)| place.clone()).collect::<Vec<_>>().join("; ");
        let mend = format!("mpiexec --mca {name} VALUE, which all ranks get");
        Some(Finding::wrong(
            "settings-differ",
            what,
            places,
            "The first collective of the component compares, and the job ends.",
            mend,
        ))
    };
    all.into_iter().filter_map(unlike).collect()
}
