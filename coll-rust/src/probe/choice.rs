// SPDX-License-Identifier: BSD-3-Clause
//! What Open MPI says of its choice of components (`coll_base_verbose`), and the component of itself. Each
//! process reads its own words: those of several would come mixed through mpiexec.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a process chose for MPI_COMM_WORLD.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The components that offered themselves, with their priorities.
    pub offers: BTreeMap<String, i64>,
    /// Whether it came to choosing.
    pub chose: bool,
    /// Whether coll/rust was enabled.
    pub rust: bool,
    /// The component's messages.
    pub remarks: Vec<String>,
    /// The MPI library that was loaded.
    pub library: String,
}

/// Starts the lines that tell choices.
const MARK: &str = "coll-rust-choice:";

/// Reads what a process said.
pub fn parse(said: &str) -> Choice {
    let mut choice = Choice { remarks: remarks(said), ..Choice::default() };
    let mut world = false;
    for line in said.lines().map(str::trim_end) {
        let Some((_, text)) = line.split_once("] coll:base:comm_select: ") else { continue };
        if let Some(name) = text.strip_prefix("new communicator: ") {
            world = name.starts_with("MPI_COMM_WORLD ");
            choice.chose |= world;
        } else if world && let Some((name, priority)) = text.strip_prefix("component available: ").and_then(pair) {
            choice.offers.insert(name, priority);
        } else if world && text.ends_with("Enabled") {
            choice.rust |= text.strip_prefix("selecting ").and_then(pair).is_some_and(|(name, _)| name == "rust");
        }
    }
    choice
}

/// Reads `name, priority: 30` and `  name, priority  30, Enabled`.
fn pair(text: &str) -> Option<(String, i64)> {
    let (name, rest) = text.split_once(", priority")?;
    let number = rest.trim_start_matches(':').trim().split(',').next()?.trim().parse().ok()?;
    Some((name.trim().to_owned(), number))
}

/// The component's messages that say why it does not do something.
pub fn remarks(said: &str) -> Vec<String> {
    const SIGNS: [&str; 7] = [
        "is not used",
        "no shared memory",
        "take over",
        "different builds",
        "has the component, but",
        "there is no parameter",
        "Accepted",
    ];
    let mut remarks = Vec::new();
    for line in said.lines().map(str::trim_end) {
        let Some(at) = line.find("coll/rust: ").or_else(|| line.find("coll:rust: ")) else { continue };
        let text: String = line[at..].chars().take(300).collect();
        if SIGNS.iter().any(|sign| text.contains(sign)) && !remarks.contains(&text) {
            remarks.push(text);
        }
    }
    remarks.truncate(4);
    remarks
}

/// Whether a line is one that only `parse` wants.
pub fn is_chatter(line: &str) -> bool {
    ["coll:", "mca: base:", "disqualifying myself"].iter().any(|sign| line.contains(sign))
}

/// The line that tells a choice.
pub fn line(choice: &Choice) -> String {
    format!("{MARK}{}:end\n", serde_json::to_string(choice).unwrap_or_default())
}

/// The choices in a job's output.
pub fn read(output: &str) -> Vec<Choice> {
    let told = |line: &str| {
        let (_, rest) = line.split_once(MARK)?;
        serde_json::from_str(rest.rsplit_once(":end")?.0).ok()
    };
    output.lines().filter_map(told).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// As Open MPI 4.1 and 5.0 print it.
    pub const SAID: &str = "\
[vm:20622] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[vm:20622] coll:base:comm_select: component available: rust, priority: 45
[vm:20622] coll:base:comm_select: component available: tuned, priority: 30
[vm:20622] coll:base:comm_select: component not available: self
[vm:20622] coll:base:comm_select: component disqualified: self (priority -1 < 0)
[vm:20622] coll:base:comm_select: selecting       adapt, priority   0, Disabled
[vm:20622] coll:base:comm_select: selecting       tuned, priority  30, Enabled
[vm:20622] coll:base:comm_select: selecting        rust, priority  45, Enabled
[vm:20622] coll:rust: no shared memory: /dev/shm is full
[vm:20622] coll:base:comm_select: new communicator: MPI_COMM_SELF (cid 1)
[vm:20622] coll:base:comm_select: component available: self, priority: 75
";

    #[test]
    fn the_choice_for_the_world_counts() {
        let choice = parse(SAID);
        assert_eq!(choice.offers, BTreeMap::from([("rust".to_owned(), 45), ("tuned".to_owned(), 30)]));
        assert!(choice.chose && choice.rust);
        assert_eq!(choice.remarks, ["coll:rust: no shared memory: /dev/shm is full"]);
        assert!(!parse(&SAID.replace("45, Enabled", "45, Disabled")).rust);
        assert_eq!(parse("nothing"), Choice::default());
    }

    #[test]
    fn choices_come_through_between_other_lines() {
        let choice = parse(SAID);
        let output = format!("[1,0]<stdout>:{}other\n{}", line(&choice), line(&Choice::default()));
        assert_eq!(read(&output), [choice, Choice::default()]);
    }
}
