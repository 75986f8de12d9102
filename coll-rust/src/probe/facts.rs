// SPDX-License-Identifier: BSD-3-Clause
//! What a process tells `doctor`, and how it gets through mpiexec: as JSON in lines that are short enough to
//! be forwarded whole.

use super::component::File;
use super::info::Info;
use super::settings::Setting;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// What a process sees.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Rank in the job.
    pub rank: u32,
    /// Rank on its node.
    pub local_rank: u32,
    /// The node's name.
    pub host: String,
    /// PID name space (inode number); 0: unknown.
    pub pid_space: u64,
    /// Processors that the process may use.
    pub cpus: usize,
    /// Those of the machine.
    pub machine_cpus: usize,
    /// /dev/shm.
    pub shm: Room,
    /// Whether it reads the memory of the next process of the node.
    pub reads: Reads,
    /// Yama's restriction of ptrace; 0: none.
    pub ptrace_scope: u8,
    /// Whether system calls are filtered (Seccomp in /proc/self/status).
    pub filtered: bool,
    /// The component's file.
    pub file: Option<File>,
    /// Folders that Open MPI looks for components in.
    pub folders: Vec<String>,
    /// Settings of collective components in files of parameters.
    pub files: Vec<Setting>,
    /// The same in the environment, by the variables' names.
    pub environment: BTreeMap<String, String>,
    /// What ompi_info says in this process.
    pub info: Info,
    /// What it complained of.
    pub trouble: Vec<String>,
}

/// Room in a folder in memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Room {
    /// Bytes.
    pub total: u64,
    /// Bytes that are left.
    pub free: u64,
    /// Why no file could be written there.
    pub error: Option<String>,
}

/// Whether a process reads the memory of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reads {
    /// There is no other on the node.
    #[default]
    Alone,
    /// It does.
    Works,
    /// It does not, for this reason.
    Fails(String),
    /// The other one was not met.
    NotMet,
}

/// Starts the lines.
const MARK: &str = "coll-rust-probe:";
/// Bytes of JSON in a line.
const PIECE: usize = 1500;

/// The lines of a process.
fn lines(facts: &Facts) -> Vec<String> {
    // JSON of strings and numbers cannot fail; non-ASCII is escaped so that cutting anywhere is right.
    let text: String = serde_json::to_string(facts)
        .unwrap_or_default()
        .chars()
        .flat_map(|c| match c.is_ascii() {
            true => vec![c],
            false => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .flat_map(|u| format!("\\u{u:04x}").chars().collect::<Vec<_>>())
                .collect(),
        })
        .collect();
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(PIECE).collect();
    let number = pieces.len();
    let line = |(i, piece): (usize, &&[u8])| {
        format!("{MARK}{}:{i}:{number}:{}:end\n", facts.rank, String::from_utf8_lossy(piece))
    };
    pieces.iter().enumerate().map(line).collect()
}

/// Prints them.
pub fn print(facts: &Facts) {
    let mut out = std::io::stdout();
    for line in lines(facts) {
        // mpiexec forwards what it finds in the pipe: one line at a time stays whole.
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// The facts of all processes in a job's output, in the order of ranks. Lines that do not belong are ignored.
pub fn read(output: &str) -> Vec<Facts> {
    let mut pieces: BTreeMap<u32, BTreeMap<usize, (usize, &str)>> = BTreeMap::new();
    for line in output.lines() {
        let Some((_, rest)) = line.split_once(MARK) else { continue };
        let mut words = rest.splitn(4, ':');
        let (Some(rank), Some(i), Some(of), Some(text)) = (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (Ok(rank), Ok(i), Ok(of)) = (rank.parse(), i.parse(), of.parse()) else { continue };
        let Some((text, _)) = text.rsplit_once(":end") else { continue };
        pieces.entry(rank).or_default().insert(i, (of, text));
    }
    let whole = |parts: BTreeMap<usize, (usize, &str)>| {
        let of = parts.values().next()?.0;
        let text: String = (parts.len() == of).then(|| parts.values().map(|(_, text)| *text).collect())?;
        serde_json::from_str(&text).ok()
    };
    pieces.into_values().filter_map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_through_between_other_lines_and_tags() {
        let long = "x".repeat(4 * PIECE);
        let facts = |rank| Facts {
            rank,
            host: "nöde:end".to_owned(),
            trouble: vec![long.clone(), "a:end\"b".to_owned()],
            ..Facts::default()
        };
        let (one, two) = (lines(&facts(1)), lines(&facts(0)));
        assert!(one.len() > 3 && one.iter().all(|line| line.len() < 2000));
        let mut output = String::from("some remark\n");
        for (a, b) in one.iter().zip(&two) {
            output += &format!("[1,1]<stdout>:{}\r\n{b}", a.trim_end());
        }
        let found = read(&output);
        assert_eq!(found.iter().map(|f| f.rank).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((found[1].host.as_str(), &found[1].trouble[0]), ("nöde:end", &long));
    }

    #[test]
    fn half_of_the_lines_are_no_facts() {
        let facts = Facts { trouble: vec!["x".repeat(2 * PIECE)], ..Facts::default() };
        assert!(read(&lines(&facts)[1..].concat()).is_empty());
    }
}
