//! Imports point one way (see the crate's documentation), and `unsafe` stays where it is allowed.

use std::fs;
use std::path::{Path, PathBuf};

/// A module, and what it may import.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("endpoint", &[]),
    ("pattern", &[]),
    ("topo", &["endpoint"]),
    ("algo", &["endpoint", "pattern"]),
    ("select", &["topo", "endpoint", "shm"]),
    ("hier", &["algo", "endpoint", "pattern", "select", "shm", "topo"]),
    ("report", &[]),
    ("params", &["endpoint", "select", "sync", "topo"]),
    ("sim", &["endpoint"]),
    ("store", &["endpoint", "sync", "topo"]),
    ("sync", &[]),
    ("version", &[]),
    ("shm", &["endpoint", "pattern", "sync", "version"]),
    ("ffi", &["algo", "endpoint", "hier", "params", "pattern", "report", "select", "shm", "sync", "topo", "version"]),
];

/// Where `unsafe` is allowed.
const UNSAFE: &[&str] = &["ffi", "sim", "endpoint", "shm", "sync"];

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|e| e == "rs") {
        found.push(path.to_owned());
    }
}

fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|l| l.split("//").next().unwrap_or_default())
}

#[test]
fn imports_point_one_way() {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let mut seen = 0;
    for (module, allowed) in MAY_IMPORT {
        let mut files = Vec::new();
        sources(&src.join(module), &mut files);
        if src.join(format!("{module}.rs")).exists() {
            files.push(src.join(format!("{module}.rs")));
        }
        assert!(!files.is_empty(), "{module}");
        for file in files {
            seen += 1;
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in code(&text).enumerate() {
                for part in line.split("crate::").skip(1) {
                    let name: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    let known = MAY_IMPORT.iter().any(|(m, _)| *m == name);
                    let fine = name == *module || allowed.contains(&name.as_str()) || !known;
                    assert!(fine, "{}:{}: {module} must not import {name}", file.display(), number + 1);
                }
            }
        }
    }
    let mut all = Vec::new();
    sources(src, &mut all);
    assert_eq!(seen + 1, all.len(), "a file of src/ belongs to no module of the table (lib.rs apart)");
}

#[test]
fn unsafe_stays_where_it_is_allowed() {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let mut all = Vec::new();
    sources(src, &mut all);
    for file in all {
        let relative = file.strip_prefix(src).unwrap().to_string_lossy().replace(".rs", "");
        if UNSAFE.iter().any(|m| relative.starts_with(m)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let found = code(&text).any(|l| l.contains("unsafe ") && !l.contains("unsafe_code"));
        assert!(!found, "{}", file.display());
    }
}

#[test]
fn extern_c_is_only_in_ffi() {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let mut all = Vec::new();
    sources(src, &mut all);
    for file in all {
        let inside = file.strip_prefix(src).unwrap().starts_with("ffi");
        let text = fs::read_to_string(&file).unwrap();
        assert!(inside || !code(&text).any(|l| l.contains("extern \"C\"")), "{}", file.display());
    }
}

/// What differs between versions of Open MPI is in one header: the other files of the shim have no `#if`, but
/// of what a compiler's command may have defined already.
#[test]
fn versions_are_told_apart_in_one_header() {
    let glue = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/ompi-glue"));
    let mut seen = 0;
    for entry in fs::read_dir(glue).unwrap() {
        let file = entry.unwrap().path();
        if file.is_dir() || file.ends_with("compat.h") {
            continue;
        }
        seen += 1;
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let directive = line.trim_start().strip_prefix('#').unwrap_or_default().trim_start();
            let guards = ["ifndef COLL_RUST_", "ifndef CR_VERSION_MAJOR", "ifndef _GNU_SOURCE"];
            let guard = guards.iter().any(|guard| directive.starts_with(guard));
            let fine = guard || !(directive.starts_with("if") || directive.starts_with("el"));
            assert!(fine, "{}:{}: {line}: belongs into compat.h", file.display(), number + 1);
        }
    }
    assert!(seen >= 7, "only {seen} files of the shim were looked at");
}

/// The choice of algorithms knows of shared memory what ways are called, and nothing else.
#[test]
fn the_choice_of_algorithms_sees_the_table_of_ways_only() {
    let mut files = Vec::new();
    sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/select")), &mut files);
    let mut seen = 0;
    for file in files {
        for line in code(&fs::read_to_string(&file).unwrap()) {
            let parts: Vec<&str> = line.split("crate::shm").skip(1).collect();
            assert!(parts.iter().all(|part| part.starts_with("::policy")), "{}: {line}", file.display());
            seen += parts.len();
        }
    }
    assert!(seen > 0, "it imports the table");
}

/// The table of ways is numbers in, a row out: it imports nothing but its own parts, and has no `unsafe`.
#[test]
fn the_table_of_ways_is_pure() {
    let mut files = Vec::new();
    sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/shm/policy")), &mut files);
    assert!(files.len() >= 4, "only {} files were looked at", files.len());
    for file in files {
        for (number, line) in (1..).zip(code(&fs::read_to_string(&file).unwrap())) {
            let foreign = ["crate::", "super::super", "unsafe", "extern "].iter().find(|part| line.contains(**part));
            assert_eq!(foreign, None, "{}:{number}: {line}", file.display());
        }
    }
}

/// A part of a module, with all that lies below it, and what it may not know: who imports it stands above it.
/// Modules whose parts still import each other in circles, and how many of them do: none may join them.
const CIRCLES: &[(&str, usize)] = &[("ffi", 23)];

/// The parts of a module that a file names, by paths from the crate or from above itself; what is inside
/// `#[cfg(test)]` at its end does not count.
fn parts_named(module: &str, file: &Path, text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let flat = code(text).collect::<Vec<_>>().join(" ");
    let depth = file.components().count() - usize::from(file.ends_with("mod.rs"));
    // From src/shm/op/bcast.rs `super::super` is shm, from src/shm/op.rs `super` is.
    let above = "super::".repeat(depth.saturating_sub(1));
    let from_crate = format!("crate::{module}::");
    let mut named = Vec::new();
    for prefix in [from_crate.as_str(), above.as_str()].into_iter().filter(|prefix| !prefix.is_empty()) {
        for (at, _) in flat.match_indices(prefix) {
            let longer = prefix.starts_with("super") && flat[..at].ends_with("super::");
            let rest = &flat[at + prefix.len()..];
            if longer || rest.starts_with("super::") {
                continue;
            }
            named.extend(first_names(rest));
        }
    }
    named
}

/// The first name of a path, or those of a group of paths in braces.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut names, mut depth) = (vec![name(group)], 1);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(&group[at + 1..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

#[test]
fn the_parts_of_a_module_import_each_other_one_way() {
    use std::collections::{BTreeMap, BTreeSet};
    assert_eq!(first_names("{a::{b, c}, d, e::f};"), ["a", "d", "e"]);
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    for (module, _) in MAY_IMPORT.iter().filter(|(module, _)| src.join(module).is_dir()) {
        let mut files = Vec::new();
        sources(&src.join(module), &mut files);
        let part_of = |file: &Path| {
            let inside = file.strip_prefix(src.join(module)).unwrap();
            inside.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned()
        };
        let parts: BTreeSet<String> = files.iter().map(|file| part_of(file)).filter(|part| part != "mod").collect();
        let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for file in files.iter().filter(|file| part_of(file) != "mod" && !file.ends_with("tests.rs")) {
            let own = parts.get(&part_of(file)).unwrap();
            let text = fs::read_to_string(file).unwrap();
            let relative = file.strip_prefix(src).unwrap();
            let named = parts_named(module, relative, &text);
            let others = named.iter().filter_map(|name| parts.get(name)).filter(|name| *name != own);
            imports.entry(own).or_default().extend(others.map(String::as_str));
        }
        // What imports nothing that is left is taken away, and what nothing that is left imports.
        let mut left: BTreeSet<&str> = parts.iter().map(String::as_str).collect();
        loop {
            let of = |part: &str| imports.get(part).cloned().unwrap_or_default();
            let ends = |part: &str| {
                of(part).is_disjoint(&left) || !left.iter().any(|other| *other != part && of(other).contains(part))
            };
            let free: Vec<&str> = left.iter().copied().filter(|part| ends(part)).collect();
            if free.is_empty() {
                break;
            }
            free.iter().for_each(|part| assert!(left.remove(part)));
        }
        let known = CIRCLES.iter().find(|(name, _)| name == module).map_or(0, |(_, count)| *count);
        assert!(
            left.len() == known,
            "{module}: {} parts import each other in circles, not {known}: {left:?}",
            left.len()
        );
    }
}
