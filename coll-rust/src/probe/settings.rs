// SPDX-License-Identifier: BSD-3-Clause
//! Settings of collective components: in files of parameters, and in the environment.

use super::info::Info;
use component::params;
use serde::{Deserialize, Serialize};
use std::fs;

/// A line of a file of parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The parameter.
    pub name: String,
    /// Its value.
    pub value: String,
    /// File and line.
    pub place: String,
}

/// Whether a variable of the environment says something about collective components, or where they are.
pub fn matters(variable: &str) -> bool {
    let Some(name) = params::from_environment(variable) else {
        return variable.starts_with("PMIX_MCA_") && variable.ends_with("component_path");
    };
    name == "coll" || name.starts_with("coll_") || name.starts_with("ompi_coll_") || name.ends_with("component_path")
}

/// The settings in the files that Open MPI reads.
pub fn in_files(info: &Info) -> Vec<Setting> {
    info.files.split([',', ':']).filter(|path| !path.is_empty()).flat_map(in_file).collect()
}

/// The settings in the file of the user who calls.
pub fn of_user() -> Vec<Setting> {
    std::env::var("HOME").map_or_else(|_| Vec::new(), |home| in_file(&format!("{home}/.openmpi/mca-params.conf")))
}

/// The settings in a file; none where it cannot be read.
fn in_file(path: &str) -> Vec<Setting> {
    fs::read_to_string(path).map_or_else(|_| Vec::new(), |text| in_text(path, &text))
}

/// The settings in a file's text.
fn in_text(path: &str, text: &str) -> Vec<Setting> {
    let setting = |(number, line): (usize, &str)| {
        let (name, value) = line.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let ours = !name.starts_with('#') && matters(&format!("OMPI_MCA_{name}"));
        ours.then(|| Setting { name: name.to_owned(), value: value.to_owned(), place: format!("{path}:{number}") })
    };
    (1..).zip(text.lines()).filter_map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_comments_left_out() {
        let text = "# a file\n\n#coll_rust_window = 3\ncoll_rust_widnow=2\nbtl = self\n coll = ^tuned \n";
        let found = in_text("/etc/x.conf", text);
        let told: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.value.as_str(), s.place.as_str())).collect();
        assert_eq!(told, [("coll_rust_widnow", "2", "/etc/x.conf:4"), ("coll", "^tuned", "/etc/x.conf:6")]);
    }

    #[test]
    fn variables_that_matter() {
        for name in [
            "OMPI_MCA_coll",
            "OMPI_MCA_coll_rust_levels",
            "OMPI_MCA_opal_mca_base_component_path",
            "PMIX_MCA_mca_base_component_path",
        ] {
            assert!(matters(name), "{name}");
        }
        for name in ["OMPI_MCA_pml", "PATH", "OMPI_COMM_WORLD_RANK", "OMPI_MCA_collector"] {
            assert!(!matters(name), "{name}");
        }
    }
}
