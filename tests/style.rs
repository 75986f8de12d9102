// SPDX-License-Identifier: BSD-3-Clause
//! Rules of style that neither rustfmt nor clippy knows.

use std::fs;
use std::path::{Path, PathBuf};

/// Columns of a comment line at most.
const COLUMNS: usize = 110;
/// Lines of a file at most; a longer one says at its top why it is one.
const LINES: usize = 400;
/// What every source file says in its first lines.
const LICENCE: &str = "SPDX-License-Identifier: BSD-3-Clause";

/// All files below `folder` whose names end so, in order.
fn files(folder: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    if folder.is_file() {
        return found.push(folder.to_owned());
    }
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, ends, found);
        } else if ends.iter().any(|end| path.to_str().unwrap().ends_with(end)) {
            found.push(path);
        }
    }
}

/// The project's files, as names from its top folder, with their texts.
fn sources(folders: &[&str], ends: &[&str]) -> Vec<(String, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    folders.iter().for_each(|folder| files(&top.join(folder), ends, &mut found));
    assert!(!found.is_empty());
    let name = |path: &Path| path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Whether a line is nothing but a comment, or a part of one.
fn is_comment(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    match name.rsplit('.').next() {
        Some("sh") => line.starts_with('#'),
        Some("rs") => line.starts_with("//"),
        _ => line.starts_with("//") || line.starts_with("/*") || line.starts_with("* "),
    }
}

#[test]
fn comment_lines_are_short() {
    let folders =
        ["src", "tests", "ompi-glue", "scripts", "ci", "bench", "mpiperf", "gateway", "coll-rust", "examples"];
    let mut long = Vec::new();
    for (name, text) in sources(&folders, &[".rs", ".c", ".h", ".sh"]) {
        for (number, line) in (1..).zip(text.lines()) {
            // A row of a table, or an address, cannot be broken.
            let words = line.trim_start().trim_start_matches(['/', '!', '*', '#', ' ']);
            let whole = words.starts_with('|') || words.starts_with("http") || words.starts_with("<http");
            if is_comment(line, &name) && line.chars().count() > COLUMNS && !whole {
                long.push(format!("{name}:{number}"));
            }
        }
    }
    assert!(long.is_empty(), "comment lines beyond {COLUMNS} columns: {long:?}");
}

#[test]
fn files_are_short() {
    let mut long = Vec::new();
    for (name, text) in sources(&["src", "mpiperf/src", "gateway", "coll-rust", "tests", "ompi-glue"], &[".rs", ".c"]) {
        let lines = text.lines().filter(|line| !line.contains(LICENCE)).count();
        let says_why = text.lines().take(7).any(|line| line.contains("though a long one"));
        if !name.starts_with("tests/mpi/") && lines > LINES && !says_why {
            long.push(format!("{name}: {lines} lines"));
        }
    }
    assert!(long.is_empty(), "files over {LINES} lines: {long:?}");
}

#[test]
fn files_name_their_licence() {
    let folders = [
        "src",
        "tests",
        "ompi-glue",
        "scripts",
        "ci",
        "bench",
        "mpiperf",
        "gateway",
        "coll-rust",
        "examples",
        "build.rs",
    ];
    let ends = [".rs", ".c", ".h", ".ld", ".sh", ".py", "Cargo.toml"];
    let mut without = Vec::new();
    for (name, text) in sources(&folders, &ends) {
        if !text.lines().take(3).any(|line| line.contains(LICENCE)) {
            without.push(name);
        }
    }
    assert!(without.is_empty(), "the second line, or the first, must hold \"{LICENCE}\": {without:?}");
}

/// An algorithm is a function: macros of the layers that hold algorithms define entry points of C, which
/// cannot be generic, and nothing else.
#[test]
fn no_algorithm_is_a_macro() {
    let mut macros = Vec::new();
    for (name, text) in sources(&["src/shm", "src/ffi", "src/algo", "src/hier"], &[".rs"]) {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        macros.extend(text.lines().filter(|line| line.contains("macro_rules!")).map(|line| format!("{name}: {line}")));
    }
    assert_eq!(macros, ["src/ffi/entry/exports.rs: macro_rules! doors {"]);
}
