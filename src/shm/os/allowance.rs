// SPDX-License-Identifier: BSD-3-Clause
//! How much shared memory the processes of a node use where nobody says: no more than a part of what they may
//! have.

use std::fs;
use std::path::Path;

use crate::shm::os::{machine_pages, system_page};
use crate::sync::cgroup;

/// All there may be.
pub const MOST: u64 = 256 << 20;
/// One part in so many of the memory that the process may use.
pub const PART: u64 = 8;

/// Bytes for all processes of the job on the caller's node, as far as this process knows: control groups, and
/// the machine, may differ between processes.
pub fn by_default() -> u64 {
    MOST.min(limit(&cgroup::folders("memory")).min(machine()) / PART)
}

/// The tightest limit of these control groups; `u64::MAX`: there is none.
fn limit<P: AsRef<Path>>(folders: &[P]) -> u64 {
    let read = |folder: &P, name: &str| fs::read_to_string(folder.as_ref().join(name)).ok()?.trim().parse::<u64>().ok();
    // Of version 2 ("max": no limit), and of version 1 (a number beyond all memory: no limit).
    let names = ["memory.max", "memory.high", "memory.limit_in_bytes"];
    folders.iter().flat_map(|folder| names.map(|name| read(folder, name))).flatten().min().unwrap_or(u64::MAX)
}

/// The memory of the machine.
fn machine() -> u64 {
    machine_pages().and_then(|pages| pages.checked_mul(system_page())).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;

    /// Folders of control groups, with these files.
    fn with(name: &str, files: &[(&str, &str)], then: impl FnOnce(&Path)) {
        let root = std::env::temp_dir().join(format!("coll-rust-allowance.{name}.{}", std::process::id()));
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        then(&root);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_tightest_limit_of_all_levels_counts() {
        let files = [
            ("memory.max", "max\n"),
            ("a/memory.max", "500000\n"),
            ("a/memory.high", "400000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.high", "max\n"),
        ];
        with("two", &files, |root| {
            assert_eq!(limit(&[root.to_owned(), root.join("a"), root.join("a/b")]), 400_000);
            assert_eq!(limit(&[root.to_owned(), root.join("a/b"), root.join("none")]), u64::MAX);
        });
    }

    #[test]
    fn limits_of_version_one_are_read() {
        let files = [("memory.limit_in_bytes", "9223372036854771712\n"), ("c/memory.limit_in_bytes", "262144000\n")];
        with("one", &files, |root| {
            assert_eq!(limit(&[root.to_owned(), root.join("c")]), 262_144_000);
            assert!(limit(&[root]) > 1 << 50);
        });
    }

    #[test]
    fn the_default_is_a_part_of_what_there_is() {
        assert!((1..=MOST).contains(&by_default()));
        assert!(by_default() <= machine() / PART);
    }
}
