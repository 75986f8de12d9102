// SPDX-License-Identifier: BSD-3-Clause
//! Whether every process finds the component, and the same one.

use super::super::case::Case;
use super::super::finding::Finding;
use crate::probe::facts::Facts;
use component::version::{self, Release};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What follows if the component is not there.
const WITHOUT: &str = "Open MPI goes on without a word, with its own components.";
/// What follows if it is only there for some.
const HALF: &str = "The ranks would wait for each other for ever, so the job ends in its first communicator.";

/// Looks at every rank.
pub fn check(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    let with: BTreeSet<&str> = case.facts.iter().filter(|f| f.info.rust.is_some()).map(|f| f.host.as_str()).collect();
    for facts in &case.facts {
        let finding = match &facts.info.rust {
            // ompi_info lists what is excluded, too.
            _ if excluded(&facts.info.coll.value) => Some(exclusion(case, facts)),
            Some(_) => other_open_mpi(facts),
            None => Some(missing(case, facts, !with.is_empty() && !with.contains(facts.host.as_str()))),
        };
        findings.extend(finding.map(|finding| finding.by(facts.rank)));
    }
    findings.extend(builds(case));
    findings
}

/// Reads "4.1.4", "5.0.7rc2".
fn release(text: &str) -> Release {
    let mut numbers = text.split('.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    });
    let mut next = || numbers.next().unwrap_or(0);
    Release { major: next(), minor: next(), patch: next() }
}

/// Whether its file is for another Open MPI.
fn other_open_mpi(facts: &Facts) -> Option<Finding> {
    let file = facts.file.as_ref().filter(|file| !file.built_for.is_empty() && !facts.info.release.is_empty())?;
    version::judge(release(&file.built_for), release(&facts.info.release), &[]).err()?;
    Some(Finding::wrong(
        "wrong-open-mpi",
        format!("the component was built for Open MPI {}, and this is Open MPI {}", file.built_for, facts.info.release),
        file.path.clone(),
        &format!("The component declines, since Open MPI's structs differ between releases. {WITHOUT}"),
        "in its source folder: ./configure MPICC=<the mpicc of this Open MPI> && make && make install".to_owned(),
    ))
}

/// Why a process has not loaded the component.
fn missing(case: &Case, facts: &Facts, only_here: bool) -> Finding {
    let info = &facts.info;
    if info.release.is_empty() {
        return Finding::wrong(
            "no-ompi-info",
            format!("ompi_info does not run on {}: {}", facts.host, facts.trouble.join("; ")),
            facts.host.clone(),
            "What this process loads cannot be seen without it.",
            "install Open MPI's programs on that node, at the same place".to_owned(),
        );
    }
    if let Some(finding) = other_open_mpi(facts) {
        return finding;
    }
    if let Some(file) = &facts.file {
        return Finding::wrong(
            "not-loaded",
            format!("Open MPI does not load the component: {}", facts.trouble.join("; ")),
            file.path.clone(),
            WITHOUT,
            format!("ldd '{}' shows what it lacks; build it for this Open MPI with scripts/build.sh", file.path),
        );
    }
    if only_here {
        return Finding::wrong(
            "missing-on-node",
            format!("node {} has no mca_coll_rust.so, and other nodes have one", facts.host),
            format!("{}: {}", facts.host, facts.folders.join(":")),
            HALF,
            format!("install it there, too: make install on {}, or copy the folder to it", facts.host),
        );
    }
    not_found(case, facts)
}

/// The parameter `coll` leaves it out.
fn exclusion(case: &Case, facts: &Facts) -> Finding {
    let coll = &facts.info.coll;
    let (place, mend) = case.origin("coll", coll, facts);
    let what = format!("the component is excluded: coll = {}", coll.value);
    Finding::wrong("excluded", what, place, WITHOUT, mend)
}

/// Whether a value of the parameter `coll` leaves the component out.
fn excluded(coll: &str) -> bool {
    match coll.strip_prefix('^') {
        Some(list) => list.split(',').any(|name| name.trim() == "rust"),
        None => !coll.trim().is_empty() && !coll.split(',').any(|name| name.trim() == "rust"),
    }
}

/// None of the folders that Open MPI looks in has it.
fn not_found(case: &Case, facts: &Facts) -> Finding {
    let path = &facts.info.path;
    let own = Path::new(&facts.info.components);
    let home = case.own.environment.get("HOME").map(|home| Path::new(home).join(".openmpi/components"));
    let places = case.own.folder.iter().map(|folder| folder.as_path()).chain([own]).chain(home.as_deref());
    let lies = places.into_iter().find(|folder| folder.join("mca_coll_rust.so").is_file());
    let looked = format!("looked in: {}", facts.folders.join(":"));
    let (place, undo) = match path.source.as_str() {
        "" | "default" => (looked, None),
        _ => {
            let names = ["opal_mca_base_component_path", "mca_base_component_path"];
            let name = names
                .into_iter()
                .find(|name| facts.environment.contains_key(&format!("OMPI_MCA_{name}")))
                .unwrap_or(names[1]);
            let (place, undo) = case.origin(name, path, facts);
            (format!("{place}; {looked}"), Some(undo))
        }
    };
    let parameter = case.path_parameter();
    let folder = lies.map_or("FOLDER".to_owned(), |folder| folder.display().to_string());
    let name_it = format!("export OMPI_MCA_{parameter}={folder}:{}", facts.info.components);
    let mend = match (lies, undo) {
        (Some(folder), Some(undo)) if case.own.folder.as_deref() != Some(folder) => undo,
        (Some(_), _) => name_it,
        (None, Some(undo)) => format!("{undo}\nor name the folder of mca_coll_rust.so: {name_it}"),
        (None, None) => format!("make install in the source folder\nor name the folder of mca_coll_rust.so: {name_it}"),
    };
    let there = lies.map_or(String::new(), |folder| format!("; it lies in {}", folder.display()));
    Finding::wrong(
        "not-found",
        format!("the processes that mpiexec starts do not find mca_coll_rust.so{there}"),
        place,
        WITHOUT,
        mend,
    )
}

/// Whether all have the same build.
fn builds(case: &Case) -> Option<Finding> {
    let mut builds: BTreeMap<&str, &Facts> = BTreeMap::new();
    for facts in &case.facts {
        if let Some(version) = facts.info.rust.as_deref().filter(|version| !version.is_empty()) {
            builds.entry(version).or_insert(facts);
        }
    }
    if builds.len() < 2 {
        return None;
    }
    let tell = |(version, facts): (&&str, &&Facts)| {
        let path = facts.file.as_ref().map_or("?", |file| &file.path);
        (format!("rank {} on {} has {version}", facts.rank, facts.host), format!("{}: {path}", facts.host))
    };
    let (what, places): (Vec<String>, Vec<String>) = builds.iter().map(tell).unzip();
    Some(Finding::wrong(
        "builds-differ",
        format!("ranks have different files of the component: {}", what.join("; ")),
        places.join(", "),
        "Builds need not understand each other, so the job ends in its first collective.",
        "install the same file on all nodes: make install, or copy one over the other".to_owned(),
    ))
}
