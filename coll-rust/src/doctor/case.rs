// SPDX-License-Identifier: BSD-3-Clause
//! All that is known of a set-up.

use crate::probe::choice::Choice;
use crate::probe::facts::Facts;
use crate::probe::info::Value;
use crate::probe::settings::Setting;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What the doctor was called with.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// The launcher.
    pub mpiexec: String,
    /// Its further arguments.
    pub arguments: Vec<String>,
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// The user's file of parameters. From Open MPI 5.0 on, mpiexec reads it, and hands its settings to the
    /// processes in their environment.
    pub file: Vec<Setting>,
    /// Where the component should be.
    pub folder: Option<PathBuf>,
}

/// How the second job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Code(i32),
    /// It was stopped when its time was over.
    #[default]
    TooLate,
}

/// A set-up.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// How the doctor was called.
    pub own: Own,
    /// Ranks that were asked for.
    pub ranks: u32,
    /// mpiexec refused until it was told to oversubscribe.
    pub oversubscribed: bool,
    /// What the processes see.
    pub facts: Vec<Facts>,
    /// What the processes chose that could tell.
    pub choices: Vec<Choice>,
    /// The component's messages that mpiexec printed.
    pub remarks: Vec<String>,
    /// How the job with MPI ended.
    pub ended: Ended,
    /// The last lines of its output.
    pub last_lines: String,
}

impl Case {
    /// Release of Open MPI that the processes have.
    pub fn release(&self) -> &str {
        self.facts.iter().map(|f| f.info.release.as_str()).find(|release| !release.is_empty()).unwrap_or_default()
    }

    /// The nodes.
    pub fn hosts(&self) -> BTreeSet<&str> {
        self.facts.iter().map(|f| f.host.as_str()).collect()
    }

    /// Processes in which the component was enabled.
    pub fn selected_by(&self) -> usize {
        self.choices.iter().filter(|choice| choice.rust).count()
    }

    /// Processes in which it came to choosing.
    pub fn asked(&self) -> usize {
        self.choices.iter().filter(|choice| choice.chose).count()
    }

    /// The components that offered themselves, with their priorities: those of the first process.
    pub fn offers(&self) -> BTreeMap<String, i64> {
        self.choices.iter().find(|choice| choice.chose).map(|choice| choice.offers.clone()).unwrap_or_default()
    }

    /// All messages of the component.
    pub fn all_remarks(&self) -> BTreeSet<String> {
        self.choices.iter().flat_map(|choice| &choice.remarks).chain(&self.remarks).cloned().collect()
    }

    /// The MPI library that was used.
    pub fn library(&self) -> Option<&str> {
        self.choices.iter().map(|choice| choice.library.as_str()).find(|library| !library.is_empty())
    }

    /// The parameter of the folders of components that counts most.
    pub fn path_parameter(&self) -> &'static str {
        let major: u32 = self.release().split('.').next().and_then(|n| n.parse().ok()).unwrap_or(4);
        if major < 5 { "mca_base_component_path" } else { "opal_mca_base_component_path" }
    }

    /// Where a parameter was set, and the command that undoes it, for a process.
    pub fn origin(&self, name: &str, value: &Value, facts: &Facts) -> (String, String) {
        let in_files =
            facts.files.iter().rev().find(|s| s.name == name && s.value == value.value).map(|s| s.place.as_str());
        match value.file().or(in_files) {
            Some(place) => (place.to_owned(), drop_line(place)),
            None => self.origin_of_variable(&format!("OMPI_MCA_{name}"), &value.value),
        }
    }

    /// The same, of a variable in a process' environment.
    pub fn origin_of_variable(&self, variable: &str, value: &str) -> (String, String) {
        let name = variable.strip_prefix("OMPI_MCA_").unwrap_or(variable);
        if self.own.arguments.iter().any(|word| word == name || word.starts_with(&format!("{variable}="))) {
            return (format!("{name} on mpiexec's command line"), format!("leave {name} out of mpiexec's arguments"));
        }
        if self.own.environment.get(variable).is_some_and(|own| own == value) {
            return (format!("environment variable {variable}"), format!("unset {variable}"));
        }
        if let Some(line) = self.own.file.iter().rev().find(|line| line.name == name && line.value == value) {
            return (line.place.clone(), drop_line(&line.place));
        }
        (
            format!(
                "{variable} in the processes' environment (not so in this shell: mpiexec, a wrapper or the node sets it)"
            ),
            format!("env -u {variable} in front of the program"),
        )
    }
}

/// The command that takes a line, named as file:line, out of its file.
pub fn drop_line(place: &str) -> String {
    match place.rsplit_once(':') {
        Some((file, line)) => format!("sed -i '{line}d' '{file}'"),
        None => format!("edit {place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mpiexec_hands_on_comes_from_the_users_file() {
        let line = Setting { name: "coll".to_owned(), value: "^rust".to_owned(), place: "/home/a/x.conf:3".to_owned() };
        let case = Case { own: Own { file: vec![line], ..Own::default() }, ..Case::default() };
        let (place, mend) = case.origin_of_variable("OMPI_MCA_coll", "^rust");
        assert_eq!((place.as_str(), mend.as_str()), ("/home/a/x.conf:3", "sed -i '3d' '/home/a/x.conf'"));
        let (place, _) = case.origin_of_variable("OMPI_MCA_coll", "tuned");
        assert!(place.contains("in the processes' environment"), "{place}");
    }
}
