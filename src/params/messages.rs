// SPDX-License-Identifier: BSD-3-Clause
//! What messages are about: the topics of the help file, which Open MPI's help system shows and counts.

/// The help file, for processes that do not find it.
const HELP: &str = include_str!("../../ompi-glue/help-coll-rust.txt");

/// A topic of the help file. The runtime prints one message of each, and counts the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A parameter's value is not understood.
    WrongValue,
    /// A parameter does not exist.
    UnknownName,
    /// The same, where that ends the job.
    UnknownNameStrict,
    /// What must be alike on all ranks is not.
    RanksDiffer,
    /// The network file cannot be used.
    NetworkFile,
    /// A gateway cannot be used, or not any more.
    Gateway,
    /// Another one that ends the job.
    Error,
    /// Another one that does not.
    Warning,
}

impl Topic {
    #[cfg(test)]
    const ALL: [Topic; 8] = [
        Topic::WrongValue,
        Topic::UnknownName,
        Topic::UnknownNameStrict,
        Topic::RanksDiffer,
        Topic::NetworkFile,
        Topic::Gateway,
        Topic::Error,
        Topic::Warning,
    ];

    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Topic::WrongValue => "wrong-value",
            Topic::UnknownName => "unknown-name",
            Topic::UnknownNameStrict => "unknown-name-strict",
            Topic::RanksDiffer => "ranks-differ",
            Topic::NetworkFile => "network-file",
            Topic::Gateway => "gateway",
            Topic::Error => "error",
            Topic::Warning => "warning",
        }
    }

    /// The message about something, as the help system would make it.
    pub fn message(self, about: &str) -> String {
        let heading = format!("[{}]", self.name());
        let lines = HELP.lines().skip_while(|line| *line != heading).skip(1);
        let text: Vec<&str> = lines.take_while(|line| !line.starts_with('[')).filter(|l| !l.starts_with('#')).collect();
        text.join("\n").replace("%s", about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_is_in_the_file_and_has_one_place_for_the_text() {
        for topic in Topic::ALL {
            assert_eq!(HELP.matches(&format!("\n[{}]\n", topic.name())).count(), 1, "{topic:?}");
            assert_eq!(topic.message("%s").matches('%').count(), 1, "{topic:?}");
            assert!(topic.message("it is so").contains("coll/rust: it is so"));
        }
        assert_eq!(HELP.lines().filter(|line| line.starts_with('[')).count(), Topic::ALL.len());
        assert!(HELP.lines().all(|line| line.len() <= 110), "lines are as long as they are shown");
    }
}
