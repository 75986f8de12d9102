// SPDX-License-Identifier: BSD-3-Clause
//! Names that are no parameter.

use super::{PREFIX, TABLE};

/// Where Open MPI looks for a parameter in the environment.
const ENVIRONMENT: &str = "OMPI_MCA_";

/// Variables that Open MPI itself makes for every component.
const NOT_OURS: &[&str] = &["major_version", "minor_version", "release_version"];

/// The name that a variable of the environment has among parameters, if it stands for one.
pub fn from_environment(variable: &str) -> Option<&str> {
    variable.strip_prefix(ENVIRONMENT)
}

/// Says of every setting that it is of no parameter of this component, where its name says that it should be
/// one. `settings`: each name with where it was set. One line for each; none where all are known.
pub fn unknown_names(settings: impl IntoIterator<Item = (String, String)>) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, place) in settings {
        let Some(short) = name.strip_prefix("ompi_").unwrap_or(&name).strip_prefix(PREFIX) else { continue };
        if NOT_OURS.contains(&short) || TABLE.iter().any(|p| p.name == short || p.was.contains(&short)) {
            continue;
        }
        let line = format!(
            "there is no parameter {PREFIX}{short}, which is set {place} (did you mean {PREFIX}{}?)",
            nearest(short)
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The parameter with the name that is most alike; of an earlier name, what it is called now. Of a very long
/// one, the beginning tells.
fn nearest(short: &str) -> &'static str {
    let short = &short.as_bytes()[..short.len().min(64)];
    let names = TABLE.iter().flat_map(|p| p.was.iter().copied().chain([p.name]).map(|name| (name, p.name)));
    names.min_by_key(|(name, _)| distance(name.as_bytes(), short)).map_or("", |(_, now)| now)
}

/// Levenshtein's distance.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let cost = if x == y { diagonal } else { 1 + diagonal.min(row[j]).min(row[j + 1]) };
            diagonal = std::mem::replace(&mut row[j + 1], cost);
        }
    }
    row.last().copied().unwrap_or(0)
}
