// SPDX-License-Identifier: BSD-3-Clause
//! What was found, as the TOML that `coll-rust predict` reads (docs/reference/predict.md).

use std::fmt::Write as _;

/// A number of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The section's name.
    pub section: &'static str,
    /// The key in it.
    pub key: &'static str,
    /// As it is written.
    pub value: String,
    /// Where it comes from, where that is not what the section says.
    pub note: Option<String>,
}

/// All of it, in its order.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// What the machine is called.
    pub name: String,
    /// When, by what, and where: the lines above everything.
    pub head: Vec<String>,
    /// Entries of a section follow each other.
    pub entries: Vec<Entry>,
}

impl Machine {
    /// Adds a whole number.
    pub fn count(&mut self, section: &'static str, key: &'static str, value: usize) -> &mut Machine {
        self.entries.push(Entry { section, key, value: value.to_string(), note: None });
        self
    }

    /// Adds nanoseconds.
    pub fn ns(&mut self, section: &'static str, key: &'static str, seconds: f64) -> &mut Machine {
        self.number(section, key, seconds * 1e9)
    }

    /// Adds 10⁹ bytes a second.
    pub fn rate(&mut self, section: &'static str, key: &'static str, bytes_per_second: f64) -> &mut Machine {
        self.number(section, key, bytes_per_second / 1e9)
    }

    fn number(&mut self, section: &'static str, key: &'static str, value: f64) -> &mut Machine {
        // Three digits are more than any of these is certain of.
        let digits = (2 - value.abs().max(1e-3).log10().floor() as i32).clamp(0, 4) as usize;
        let value = format!("{value:.digits$}");
        let value = if value.contains('.') { value.trim_end_matches('0').trim_end_matches('.').into() } else { value };
        self.entries.push(Entry { section, key, value, note: None });
        self
    }

    /// Says where the latest number comes from.
    pub fn note(&mut self, note: impl Into<String>) {
        if let Some(entry) = self.entries.last_mut() {
            entry.note = Some(note.into());
        }
    }

    /// The file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.head {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "\nname = {:?}", self.name);
        let mut section = "";
        for entry in &self.entries {
            if entry.section != section {
                section = entry.section;
                let _ = writeln!(text, "\n[{section}]");
            }
            let line = format!("{} = {}", entry.key, entry.value);
            let _ = match &entry.note {
                Some(note) => writeln!(text, "{line:21} # {note}"),
                None => writeln!(text, "{line}"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keys_and_notes() {
        let mut machine = Machine { name: "a \"b\"".into(), head: vec!["Made by hand.".into()], ..Machine::default() };
        machine.count("shape", "sockets", 2).ns("handover", "own", 1.234e-9).ns("handover", "node", 210.4e-9);
        machine.note("assumption");
        machine.rate("copy", "own", 60.04e9).ns("core", "store", 0.0).rate("copy", "node", 1234.5e9);
        let text = "# Made by hand.\n\nname = \"a \\\"b\\\"\"\n\n[shape]\nsockets = 2\n\n[handover]\nown = 1.23\n\
                    node = 210            # assumption\n\n[copy]\nown = 60\n\n[core]\nstore = 0\n\n[copy]\nnode = 1234\n";
        assert_eq!(machine.text(), text);
    }
}
