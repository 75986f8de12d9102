// SPDX-License-Identifier: BSD-3-Clause
//! What the doctor tells.

use serde::Serialize;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The component is not used, or the job ends, or it is much slower.
    Wrong,
    /// Worth knowing.
    Note,
}

/// One thing that is wrong, or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name, for scripts.
    pub id: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// What is so.
    pub what: String,
    /// Which file and line, variable, or node says so.
    #[serde(rename = "where")]
    pub place: String,
    /// What follows from it.
    pub why: String,
    /// The command that mends it.
    pub mend: String,
    /// The ranks that see it; empty: it is about the job.
    pub ranks: Vec<u32>,
}

impl Finding {
    /// Whether it makes the exit status 1.
    pub fn is_wrong(&self) -> bool {
        self.weight == Weight::Wrong
    }

    /// Something wrong.
    pub fn wrong(id: &'static str, what: String, place: String, why: &str, mend: String) -> Finding {
        Finding { id, weight: Weight::Wrong, what, place, why: why.to_owned(), mend, ranks: Vec::new() }
    }

    /// Something to know.
    pub fn note(id: &'static str, what: String, place: String, why: &str, mend: String) -> Finding {
        Finding { weight: Weight::Note, ..Finding::wrong(id, what, place, why, mend) }
    }

    /// Seen by this rank.
    pub fn by(self, rank: u32) -> Finding {
        Finding { ranks: vec![rank], ..self }
    }
}

/// The same finding of several ranks becomes one; the gravest come first.
pub fn merge(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for finding in findings {
        match merged.iter_mut().find(|m| m.id == finding.id && m.what == finding.what && m.place == finding.place) {
            Some(same) => same.ranks.extend(finding.ranks),
            None => merged.push(finding),
        }
    }
    merged.sort_by_key(|finding| finding.weight);
    merged
}
