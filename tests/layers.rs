// SPDX-License-Identifier: BSD-3-Clause
//! Imports point one way (see the crate's documentation), and `unsafe` stays where it is allowed.

use std::collections::{BTreeMap, BTreeSet};
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
    ("relay", &[]),
    ("report", &[]),
    ("params", &["endpoint", "select", "sync", "topo"]),
    ("predict", &["algo", "endpoint", "hier", "select", "shm", "sim", "sync", "topo"]),
    ("sim", &["endpoint", "relay", "sync"]),
    ("store", &["endpoint", "sync", "topo"]),
    ("sync", &[]),
    ("version", &[]),
    ("shm", &["endpoint", "pattern", "sync", "version"]),
    (
        "ffi",
        &[
            "algo", "endpoint", "hier", "params", "pattern", "relay", "report", "select", "shm", "store", "sync",
            "topo", "version",
        ],
    ),
];

/// Where `unsafe` is allowed.
const UNSAFE: &[&str] = &["ffi", "predict", "sim", "endpoint", "shm", "sync"];

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

/// The parts of a folder that a file in it names, by paths from the crate or from above itself; what is
/// inside `#[cfg(test)]` at its end does not count. Both are named from src/ on.
fn parts_named(folder: &Path, file: &Path, text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let flat = code(text).collect::<Vec<_>>().join(" ");
    let depth = file.components().count() - usize::from(file.ends_with("mod.rs"));
    // From src/shm/op/bcast.rs `super::super` is shm, from src/shm/op.rs `super` is.
    let above = "super::".repeat(depth.saturating_sub(folder.components().count()));
    let from_crate = format!("crate::{}::", folder.to_string_lossy().replace('/', "::"));
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

/// For each part of a folder (a file, or a folder with all that lies in it) those that it imports.
fn imports_among_parts(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let mut files = Vec::new();
    sources(&src.join(folder), &mut files);
    let part_of = |file: &Path| {
        let inside = file.strip_prefix(src.join(folder)).unwrap();
        inside.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned()
    };
    let names = files.iter().map(|file| part_of(file)).filter(|part| part != "mod");
    let mut imports: BTreeMap<_, _> = names.map(|part| (part, BTreeSet::new())).collect();
    let parts: BTreeSet<String> = imports.keys().cloned().collect();
    for file in files.iter().filter(|file| part_of(file) != "mod" && !file.ends_with("tests.rs")) {
        let text = fs::read_to_string(file).unwrap();
        let own = part_of(file);
        let named = parts_named(folder, file.strip_prefix(src).unwrap(), &text);
        let others = named.into_iter().filter(|name| parts.contains(name) && *name != own);
        imports.get_mut(&own).unwrap().extend(others);
    }
    imports
}

/// The parts that import each other in circles, or lie between such.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&str> {
    // What imports nothing that is left is taken away, and what nothing that is left imports.
    let mut left: BTreeSet<&str> = imports.keys().map(String::as_str).collect();
    loop {
        let ends = |part: &str| {
            !imports[part].iter().any(|other| left.contains(other.as_str()))
                || !left.iter().any(|other| *other != part && imports[*other].contains(part))
        };
        let free: Vec<&str> = left.iter().copied().filter(|part| ends(part)).collect();
        if free.is_empty() {
            return left;
        }
        free.iter().for_each(|part| assert!(left.remove(part)));
    }
}

/// The layers of `ffi`: its folders.
fn layers_of_ffi() -> Vec<PathBuf> {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let entries = fs::read_dir(src.join("ffi")).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.iter().map(|path| path.strip_prefix(src).unwrap().to_owned()).collect()
}

#[test]
fn the_parts_of_a_module_import_each_other_one_way() {
    assert_eq!(first_names("{a::{b, c}, d, e::f};"), ["a", "d", "e"]);
    let (folder, file) = (Path::new("ffi/run"), Path::new("ffi/run/flat.rs"));
    let text = "use super::job::Run;\nuse crate::ffi::{base, run::moves};\nuse crate::ffi::run::{joined, trees};";
    assert_eq!(parts_named(folder, file, text), ["joined", "trees", "job"]);
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let modules = MAY_IMPORT.iter().map(|(module, _)| PathBuf::from(module)).filter(|module| src.join(module).is_dir());
    for folder in modules.chain(layers_of_ffi()) {
        let imports = imports_among_parts(&folder);
        let left = circles(&imports);
        assert!(left.is_empty(), "{}: these import each other in circles: {left:?}", folder.display());
    }
}

/// Each layer of `ffi` says which ones it may import, and has nothing in its own file but its parts, so that
/// no import goes round by that.
#[test]
fn the_layers_of_ffi_import_what_they_say() {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let imports = imports_among_parts(Path::new("ffi"));
    let layers = layers_of_ffi();
    assert_eq!(layers.len(), imports.len(), "a file of src/ffi lies in no layer");
    assert!(layers.len() >= 8, "only {layers:?}");
    for folder in layers {
        let text = fs::read_to_string(src.join(&folder).join("mod.rs")).unwrap();
        let said = text.lines().find_map(|line| line.strip_prefix("//! Layers of `ffi` that it may import: "));
        let said = said.unwrap_or_else(|| panic!("{}/mod.rs does not say what it may import", folder.display()));
        let may: BTreeSet<String> = said.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let beyond: Vec<_> = imports[&name].difference(&may).collect();
        assert!(beyond.is_empty(), "{}: imports {beyond:?}, and says {may:?}", folder.display());
        let other = code(&text).find(|line| !line.is_empty() && !line.contains("mod "));
        assert_eq!(other, None, "{}/mod.rs has more than its parts", folder.display());
    }
}

/// The parts of `shm`: each imports only those before it. `src/shm/mod.rs` has the same order.
const PARTS_OF_SHM: [&str; 12] =
    ["os", "memory", "config", "copy", "pool", "group", "policy", "thresholds", "protocol", "op", "rates", "exec"];

#[test]
fn the_parts_of_shm_import_those_before_them() {
    let imports = imports_among_parts(Path::new("shm"));
    let parts: BTreeSet<&str> = imports.keys().map(String::as_str).collect();
    assert_eq!(parts, BTreeSet::from(PARTS_OF_SHM), "a file of src/shm lies in no part");
    for (at, part) in PARTS_OF_SHM.iter().enumerate() {
        let beyond: Vec<_> =
            imports[*part].iter().filter(|other| !PARTS_OF_SHM[..at].contains(&other.as_str())).collect();
        assert!(beyond.is_empty(), "src/shm/{part} imports {beyond:?}, which comes after it");
    }
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let text = fs::read_to_string(src.join("shm/mod.rs")).unwrap();
    let head = text.split("# Words").next().unwrap();
    let at =
        |part: &str| head.find(&format!("[`{part}`]")).unwrap_or_else(|| panic!("src/shm/mod.rs does not name {part}"));
    assert!(PARTS_OF_SHM.is_sorted_by_key(|part| at(part)), "src/shm/mod.rs names them in another order");
}
