// SPDX-License-Identifier: BSD-3-Clause
//! Whether Open MPI selects the component for MPI_COMM_WORLD, and whether it comes first.

use super::super::case::{Case, Ended};
use super::super::finding::Finding;

/// Components that stand above it by design: they count, look on, or care for other communicators or memory.
const ABOVE: [&str; 7] = ["accelerator", "cuda", "demo", "inter", "monitoring", "self", "sync"];

/// Looks at the choice. `explained`: something is known to be wrong already.
pub fn check(case: &Case, explained: bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = priority(case).into_iter().collect();
    if findings.is_empty() && !explained {
        findings.extend(outcome(case));
    }
    findings
}

/// Where the component's priority was set, and what undoes it.
fn origin(case: &Case) -> (String, String) {
    let set = case.facts.iter().find_map(|f| {
        let value = f.info.priorities.get("rust").filter(|value| !matches!(value.source.as_str(), "" | "default"))?;
        Some(case.origin("coll_rust_priority", value, f))
    });
    set.unwrap_or_else(|| {
        ("coll_rust_priority has its default".to_owned(), "mpiexec --mca coll_rust_priority 100".to_owned())
    })
}

fn priority(case: &Case) -> Option<Finding> {
    let told = |f: &crate::probe::facts::Facts| f.info.priorities.get("rust").and_then(|v| v.value.parse::<i64>().ok());
    let own = case.offers().get("rust").copied().or_else(|| case.facts.iter().find_map(told))?;
    let what = if own < 0 {
        format!("the component's priority is {own}: it declines")
    } else {
        let before: Vec<String> = case
            .offers()
            .iter()
            .filter(|(name, priority)| **priority > own && !ABOVE.contains(&name.as_str()))
            .map(|(name, priority)| format!("{name} ({priority})"))
            .collect();
        if before.is_empty() {
            return None;
        }
        format!("the component's priority is {own}, and Open MPI prefers {}", before.join(", "))
    };
    let (place, mend) = origin(case);
    // Another component's priority may be what was raised.
    let raised: Vec<String> = case
        .facts
        .first()
        .map(|f| {
            f.info
                .priorities
                .iter()
                .filter(|(name, v)| {
                    *name != "rust"
                        && v.value.parse().is_ok_and(|p: i64| p > own)
                        && !matches!(v.source.as_str(), "" | "default")
                })
                .map(|(name, v)| case.origin(&format!("coll_{name}_priority"), v, f).0)
                .collect()
        })
        .unwrap_or_default();
    let place = std::iter::once(place).chain(raised).collect::<Vec<_>>().join("; ");
    Some(Finding::wrong(
        "priority-too-low",
        what,
        place,
        "The component of the highest priority serves a collective; the others are not asked.",
        mend,
    ))
}

/// How the job ended, where nothing else explains it.
fn outcome(case: &Case) -> Option<Finding> {
    let said = match case.all_remarks() {
        remarks if remarks.is_empty() => case.last_lines.clone(),
        remarks => remarks.into_iter().collect::<Vec<_>>().join("\n"),
    };
    let again =
        "run the job by hand: mpiexec --mca coll_base_verbose 10 --mca coll_rust_verbose 2 <program>".to_owned();
    let place = case.own.mpiexec.clone();
    let ended = |how: String| {
        let what = format!("a job that calls MPI_Barrier {how}. It said:\n{said}");
        Finding::wrong("job-failed", what, place.clone(), "What fails here fails in any program.", again.clone())
    };
    match case.ended {
        Ended::TooLate => return Some(ended("did not end in time".to_owned())),
        Ended::Code(code) if code != 0 => return Some(ended(format!("ended with exit code {code}"))),
        Ended::Code(_) => {}
    }
    if case.ranks < 2 {
        let what = "one rank: the component serves communicators of two or more".to_owned();
        return Some(Finding::note(
            "one-rank",
            what,
            "-n 1".to_owned(),
            "Whether it is selected cannot be seen.",
            "coll-rust doctor -n 2".to_owned(),
        ));
    }
    if case.selected_by() < case.asked().max(1) {
        let what = format!(
            "the component is loaded, and {} of {} processes select it. It said:\n{said}",
            case.selected_by(),
            case.asked()
        );
        return Some(Finding::wrong(
            "not-selected",
            what,
            place,
            "Open MPI serves collectives with its own components.",
            again,
        ));
    }
    None
}
