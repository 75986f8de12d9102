// SPDX-License-Identifier: BSD-3-Clause
//! What Open MPI says of its choice of components (`coll_base_verbose`), and the component of itself.

use crate::probe::facts::LIBRARY;
use std::collections::{BTreeMap, BTreeSet};

/// What was chosen for MPI_COMM_WORLD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The components that offered themselves, with their priorities.
    pub offers: BTreeMap<String, i64>,
    /// Those that were enabled.
    pub enabled: BTreeSet<String>,
    /// The processes, by their tags in the output.
    pub processes: BTreeSet<String>,
    /// Those in which coll/rust was enabled.
    pub with_rust: BTreeSet<String>,
    /// The component's messages.
    pub remarks: Vec<String>,
    /// The MPI library that was loaded.
    pub library: Option<String>,
}

/// Reads a job's output.
pub fn read(output: &str) -> Selection {
    let mut selection = Selection::default();
    let mut world: BTreeSet<&str> = BTreeSet::new();
    for line in output.lines().map(str::trim_end) {
        if let Some((_, library)) = line.split_once(LIBRARY) {
            selection.library.get_or_insert_with(|| library.trim().to_owned());
        }
        remark(&mut selection, line);
        let Some((tag, text)) = line.split_once("] coll:base:comm_select: ") else { continue };
        let tag = tag.rsplit('[').next().unwrap_or(tag);
        if let Some(name) = text.strip_prefix("new communicator: ") {
            selection.processes.insert(tag.to_owned());
            match name.starts_with("MPI_COMM_WORLD ") {
                true => world.insert(tag),
                false => world.remove(tag),
            };
        } else if world.contains(tag) {
            choice(&mut selection, tag, text);
        }
    }
    selection
}

fn choice(selection: &mut Selection, tag: &str, text: &str) {
    let pair = |rest: &str| {
        let (name, rest) = rest.split_once(", priority")?;
        let number = rest.trim_start_matches(':').trim().split(',').next()?.trim().parse::<i64>().ok()?;
        Some((name.trim().to_owned(), number))
    };
    if let Some((name, priority)) = text.strip_prefix("component available: ").and_then(pair) {
        selection.offers.insert(name, priority);
    } else if let Some(rest) = text.strip_prefix("selecting ")
        && rest.ends_with("Enabled")
        && let Some((name, _)) = pair(rest)
    {
        if name == "rust" {
            selection.with_rust.insert(tag.to_owned());
        }
        selection.enabled.insert(name);
    }
}

/// Messages of the component that say why it does not do something.
fn remark(selection: &mut Selection, line: &str) {
    const SIGNS: [&str; 7] = [
        "is not used",
        "no shared memory",
        "take over",
        "different builds",
        "has the component, but",
        "there is no parameter",
        "Accepted",
    ];
    let Some(at) = line.find("coll/rust").or_else(|| line.find("coll:rust:")) else { return };
    let text = line[at..].to_owned();
    if SIGNS.iter().any(|sign| text.contains(sign)) && !selection.remarks.contains(&text) {
        selection.remarks.push(text);
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// As Open MPI 4.1 and 5.0 print it; the lines of two processes are mixed.
    pub const LOG: &str = "\
[vm:20622] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[vm:20623] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[vm:20622] coll:base:comm_select: component available: rust, priority: 45
[vm:20622] coll:base:comm_select: component available: tuned, priority: 30
[vm:20622] coll:base:comm_select: component not available: self
[vm:20622] coll:base:comm_select: component disqualified: self (priority -1 < 0)
[vm:20622] coll:base:comm_select: selecting       adapt, priority   0, Disabled
[vm:20622] coll:base:comm_select: selecting       tuned, priority  30, Enabled
[vm:20622] coll:base:comm_select: selecting        rust, priority  45, Enabled
[vm:20622] coll:base:comm_select: new communicator: MPI_COMM_SELF (cid 1)
[vm:20622] coll:base:comm_select: component available: self, priority: 75
[vm:20623] coll:base:comm_select: selecting       tuned, priority  30, Enabled
[vm:20623] coll:rust: no shared memory: /dev/shm is full
coll-rust-probe-mpi:/usr/lib/libmpi.so.40
";

    #[test]
    fn the_choice_for_the_world_counts() {
        let selection = read(LOG);
        assert_eq!(selection.offers, BTreeMap::from([("rust".to_owned(), 45), ("tuned".to_owned(), 30)]));
        assert_eq!(selection.enabled.iter().collect::<Vec<_>>(), ["rust", "tuned"]);
        assert_eq!((selection.processes.len(), selection.with_rust.iter().next().unwrap().as_str()), (2, "vm:20622"));
        assert_eq!(selection.library.as_deref(), Some("/usr/lib/libmpi.so.40"));
        assert_eq!(selection.remarks, ["coll:rust: no shared memory: /dev/shm is full"]);
    }
}
