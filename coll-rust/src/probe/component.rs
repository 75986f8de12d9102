// SPDX-License-Identifier: BSD-3-Clause
//! The component's file: which one Open MPI would take, and what it says of itself.

use super::info::Info;
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file of the component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its path.
    pub path: String,
    /// The Open MPI that it was built for; empty: it does not tell.
    pub built_for: String,
    /// A number made from its bytes.
    pub hash: u64,
}

/// The caller's PID name space (inode number); 0: unknown.
pub fn pid_space() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |data| data.ino())
}

/// The folders that Open MPI looks for components in, in its order.
pub fn folders(info: &Info, home: Option<&str>) -> Vec<String> {
    let user = || home.map(|home| format!("{home}/.openmpi/components"));
    let path = if info.path.value.is_empty() { "SYS_DEFAULT:USER_DEFAULT" } else { &info.path.value };
    let folder = |word: &str| match word.trim_matches('"') {
        "" => None,
        "system" | "SYS_DEFAULT" => Some(info.components.clone()),
        "user" | "USER_DEFAULT" => user(),
        folder => Some(folder.to_owned()),
    };
    path.split(':').filter_map(folder).collect()
}

/// The component in the first folder that has it.
pub fn find(folders: &[String]) -> Option<File> {
    folders.iter().find_map(|folder| look(&Path::new(folder).join("mca_coll_rust.so")))
}

/// What a file says of itself.
pub fn look(path: &Path) -> Option<File> {
    let bytes = fs::read(path).ok()?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Some(File { path: path.display().to_string(), built_for: built_for(&bytes), hash: hasher.finish() })
}

/// The release in the mark that the build leaves.
fn built_for(bytes: &[u8]) -> String {
    const MARK: &[u8] = b"coll/rust built for Open MPI ";
    let starts =
        bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK).map(|(at, _)| at + MARK.len());
    let release = |at: usize| {
        let text: String =
            bytes[at..].iter().take(24).take_while(|b| b.is_ascii_digit() || **b == b'.').map(|b| *b as char).collect();
        (bytes.get(at + text.len()) == Some(&b';') && !text.is_empty()).then_some(text)
    };
    starts.filter_map(release).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::info::Value;

    #[test]
    fn the_mark_tells_the_release() {
        assert_eq!(built_for(b"\0coll/rust built for Open MPI %d;\0coll/rust built for Open MPI 5.0.7;\0"), "5.0.7");
        assert_eq!(built_for(b"\0coll/rust built for Open MPI 5.0"), "");
    }

    #[test]
    fn words_stand_for_folders() {
        let info = |path: &str| Info {
            components: "/lib/openmpi".to_owned(),
            path: Value { value: path.to_owned(), ..Value::default() },
            ..Info::default()
        };
        assert_eq!(
            folders(&info("/a:SYS_DEFAULT:USER_DEFAULT"), Some("/home/b")),
            ["/a", "/lib/openmpi", "/home/b/.openmpi/components"]
        );
        assert_eq!(folders(&info(""), None), ["/lib/openmpi"]);
    }
}
