// SPDX-License-Identifier: BSD-3-Clause
//! What `ompi_info --all --parsable` says about collective components.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A parameter's value, and where it was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// As text.
    pub value: String,
    /// `default`, `environment`, or `file (NAME:LINE)`.
    pub source: String,
}

impl Value {
    /// The file and line in its source.
    pub fn file(&self) -> Option<&str> {
        self.source.strip_prefix("file (")?.strip_suffix(')')
    }
}

/// What matters of ompi_info's output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// Release of Open MPI; empty: it said nothing.
    pub release: String,
    /// Its folder of components.
    pub components: String,
    /// Its folder of libraries.
    pub libraries: String,
    /// Where it looks for components.
    pub path: Value,
    /// Its files of parameters.
    pub files: String,
    /// The parameter `coll`: which components are wanted.
    pub coll: Value,
    /// The priorities of collective components.
    pub priorities: BTreeMap<String, Value>,
    /// Release and build of the component, if it was loaded.
    pub rust: Option<String>,
}

/// Reads the output.
pub fn parse(text: &str) -> Info {
    let mut info = Info::default();
    for line in text.lines() {
        let line = line.trim();
        let (key, rest) = match line.split_once(":param:") {
            Some((_, rest)) => ("param", rest),
            None => ("", line),
        };
        if key == "param" {
            parameter(&mut info, rest);
        } else if let Some(release) = rest.strip_prefix("ompi:version:full:") {
            info.release = release.to_owned();
        } else if let Some(folder) = rest.strip_prefix("path:pkglibdir:") {
            info.components = folder.to_owned();
        } else if let Some(folder) = rest.strip_prefix("path:libdir:") {
            info.libraries = folder.to_owned();
        } else if rest.starts_with("mca:coll:rust:version:") {
            info.rust.get_or_insert_default();
        }
    }
    info
}

fn parameter(info: &mut Info, rest: &str) {
    let Some((name, rest)) = rest.split_once(':') else { return };
    let Some((what, value)) = rest.split_once(':') else { return };
    let value = value.trim_matches('"');
    let target = match name {
        "mca_base_component_path" => &mut info.path,
        "coll" => &mut info.coll,
        "mca_base_param_files" | "mca_base_override_param_file" => {
            if what == "value" && !value.is_empty() && value != "none" {
                let between = if info.files.is_empty() { "" } else { "," };
                info.files += &format!("{between}{value}");
            }
            return;
        }
        "coll_rust_version" => {
            if what == "value" {
                info.rust = Some(value.to_owned());
            }
            return;
        }
        _ => match name.strip_prefix("coll_").and_then(|name| name.strip_suffix("_priority")) {
            // Such as coll_han_bcast_low_priority of other components: none of them has a line break in it.
            Some(component) if !component.contains('_') && !component.is_empty() => {
                info.priorities.entry(component.to_owned()).or_default()
            }
            _ => return,
        },
    };
    match what {
        "value" => target.value = value.to_owned(),
        "source" => target.source = value.to_owned(),
        _ => {}
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// As Open MPI 4.1 prints it.
    pub const HEALTHY: &str = "\
ompi:version:full:4.1.4
path:libdir:/usr/lib/openmpi/lib
path:pkglibdir:/usr/lib/openmpi/lib/openmpi3
mca:coll:rust:version:\"mca:2.1.0\"
mca:coll:tuned:version:\"component:4.1.4\"
mca:mca:base:param:mca_base_param_files:value:/home/a/.openmpi/mca-params.conf,/etc/openmpi/openmpi-mca-params.conf
mca:mca:base:param:mca_base_param_files:source:default
mca:mca:base:param:mca_base_component_path:value:\"/usr/lib/openmpi/lib/openmpi3:/home/a/.openmpi/components\"
mca:mca:base:param:mca_base_component_path:source:default
mca:coll:base:param:coll:value:
mca:coll:base:param:coll:source:default
mca:coll:rust:param:coll_rust_version:value:\"0.1.0 (build 477fe43a992e0f30, protocol 4, for Open MPI 4.1.4)\"
mca:coll:rust:param:coll_rust_priority:value:45
mca:coll:rust:param:coll_rust_priority:source:default
mca:coll:tuned:param:coll_tuned_priority:value:30
mca:coll:tuned:param:coll_tuned_priority:source:environment
";

    #[test]
    fn reads_what_matters() {
        let info = parse(HEALTHY);
        assert_eq!(info.release, "4.1.4");
        assert_eq!(info.path.value, "/usr/lib/openmpi/lib/openmpi3:/home/a/.openmpi/components");
        assert_eq!(info.priorities["rust"].value, "45");
        assert_eq!(info.priorities["tuned"].source, "environment");
        assert!(info.rust.unwrap().contains("477fe43a992e0f30"));
        assert_eq!(info.files, "/home/a/.openmpi/mca-params.conf,/etc/openmpi/openmpi-mca-params.conf");
    }

    #[test]
    fn reads_files_and_lines() {
        let text = "mca:coll:base:param:coll:value:^rust\nmca:coll:base:param:coll:source:file (/home/a/.openmpi/mca-params.conf:4)\n";
        let info = parse(text);
        assert_eq!((info.coll.value.as_str(), info.coll.file()), ("^rust", Some("/home/a/.openmpi/mca-params.conf:4")));
        assert_eq!(info.rust, None);
    }
}
