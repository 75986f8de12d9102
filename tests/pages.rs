// SPDX-License-Identifier: BSD-3-Clause
//! The pages: their links lead somewhere, the book has all of them, and their sentences can be read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Words of a sentence at most.
const WORDS: usize = 25;

/// Words that only the authors use, and what the field says. Pages hold none.
const PRIVATE: &[(&str, &str)] = &[
    ("crowded", "oversubscribed"),
    ("go round", "a ring"),
    ("goes round", "a ring"),
    ("lie still", "fixed slots"),
    ("take turns on", "more ranks than cores"),
    ("had better", "should"),
    ("alike", "the same"),
    ("anew", "again"),
    ("moved rightly", "transferred correctly"),
    ("take back", "prefetch for writing"),
    ("for ever", "forever"),
];

fn top() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All pages of the project, as names from its top folder.
fn pages() -> BTreeSet<String> {
    fn visit(folder: &Path, found: &mut BTreeSet<String>) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.insert(path.strip_prefix(top()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = BTreeSet::from(
        ["README", "CONTRIBUTING", "CHANGELOG", "SECURITY", "tests/README", "packaging/README"]
            .map(|n| format!("{n}.md")),
    );
    visit(&top().join("docs"), &mut found);
    found
}

/// A page without its blocks of code: those between fences, and indented ones.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut kept = String::new();
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        let code = fenced || line.starts_with("    ") || line.starts_with("```");
        kept.push_str(if code { "" } else { line });
        kept.push('\n');
    }
    kept
}

/// Where the links of a page lead.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in prose(text).split("](").skip(1) {
        found.extend(part.split_once(')').map(|(target, _)| target.to_owned()));
    }
    found
}

/// A heading as its anchor.
fn anchor(heading: &str) -> String {
    let letters = heading.trim_start_matches('#').trim().to_lowercase();
    letters
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        for link in links(&fs::read_to_string(top().join(&page)).unwrap()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, place) = link.split_once('#').unwrap_or((&link, ""));
            let path = if file.is_empty() {
                page.clone().into()
            } else {
                plain(&Path::new(&page).parent().unwrap().join(file))
            };
            let text = fs::read_to_string(top().join(&path)).unwrap_or_default();
            let there = prose(&text).lines().any(|line| line.starts_with('#') && anchor(line) == place);
            if !top().join(&path).exists()
                || (!place.is_empty() && path.extension().is_some_and(|e| e == "md") && !there)
            {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "links to nothing: {broken:?}");
}

#[test]
fn the_book_has_every_page() {
    let listed = links(&fs::read_to_string(top().join("docs/SUMMARY.md")).unwrap());
    let listed: BTreeSet<_> = listed.iter().map(|link| format!("docs/{link}")).collect();
    let pages = pages().into_iter().filter(|page| page.starts_with("docs/") && page != "docs/SUMMARY.md").collect();
    let lacking: Vec<_> = listed.symmetric_difference(&pages).collect();
    assert!(lacking.is_empty(), "each page of docs/ must stand in docs/SUMMARY.md, and nothing else: {lacking:?}");
}

/// The words of a text that begin so, as long as `part` says that a character belongs to them.
fn words(text: &str, start: &str, part: fn(char) -> bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices(start) {
        let before = text[..at].chars().next_back();
        if !before.is_some_and(|c| part(c) || c == '/') {
            let word: String = text[at..].chars().take_while(|c| part(*c)).collect();
            found.insert(word.trim_end_matches(['.', '/']).to_owned());
        }
    }
    found
}

/// Scripts, files and parameters that the README and the guide name, in commands too, exist.
#[test]
fn what_the_guide_names_exists() {
    let known = fs::read_to_string(top().join("docs/reference/parameters.md")).unwrap();
    let mut lacking = Vec::new();
    let mut named = 0;
    for page in pages().into_iter().filter(|page| !page.starts_with("docs/") || page.starts_with("docs/guide/")) {
        let text = fs::read_to_string(top().join(&page)).unwrap();
        for start in ["scripts/", "ci/", "bench/", "tests/", "mca-params/", "examples/"] {
            for path in words(&text, start, |c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
                named += 1;
                if !top().join(&path).exists() {
                    lacking.push(format!("{page}: {path}"));
                }
            }
        }
        for name in words(&text, "coll_rust_", |c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit()) {
            named += 1;
            // A name with a part to be filled in ends there: coll_rust_<operation>_algorithm.
            // coll_rust_version is what ompi_info shows, and no parameter to set.
            if name != "coll_rust_version" && !name.ends_with('_') && !known.contains(&format!("`{name}`")) {
                lacking.push(format!("{page}: {name}"));
            }
        }
    }
    assert!(named > 50, "{named}");
    assert!(lacking.is_empty(), "named, but not there: {lacking:?}");
}

/// The sentences of a page. Cells of a table, and points of a list, are sentences by themselves.
fn sentences(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in prose(text).lines() {
        let line = line.trim();
        let apart = line.is_empty()
            || line.starts_with(['#', '|', '<', '*', '-'])
            || line.starts_with(|c: char| c.is_ascii_digit());
        if apart && !(line.starts_with("**") || line.starts_with("<br")) {
            paragraphs.push(String::new());
        }
        for cell in line.trim_start_matches(['#', '*', '-', ' ']).split('|') {
            paragraphs.last_mut().unwrap().push_str(cell);
            paragraphs.last_mut().unwrap().push(' ');
            if line.starts_with('|') {
                paragraphs.push(String::new());
            }
        }
    }
    let mut found = Vec::new();
    for paragraph in paragraphs {
        let mut sentence = Vec::new();
        for word in paragraph.split_whitespace() {
            sentence.push(word);
            let end = word.trim_end_matches(['*', '`', ')', '"', '_']);
            if end.ends_with(['.', ':', ';', '!', '?']) && !["e.g.", "i.e.", "al.", "cf."].contains(&end) {
                found.push(sentence.join(" "));
                sentence.clear();
            }
        }
        found.push(sentence.join(" "));
    }
    found
}

/// The sentences of a page that are too long, and its private words.
fn faults(text: &str) -> (Vec<String>, Vec<String>) {
    let counts =
        |sentence: &str| sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    let long = sentences(text).into_iter().filter(|sentence| counts(sentence) > WORDS).collect();
    let lower = prose(text).to_lowercase().replace(|c: char| !c.is_alphabetic(), " ");
    let lower = format!(" {} ", lower.split_whitespace().collect::<Vec<_>>().join(" "));
    let private = PRIVATE.iter().filter(|(word, _)| lower.contains(&format!(" {word} ")));
    (long, private.map(|(word, instead)| format!("'{word}' (say: {instead})")).collect())
}

#[test]
fn sentences_can_be_read() {
    let mut bad = Vec::new();
    for page in pages() {
        let (long, private) = faults(&fs::read_to_string(top().join(&page)).unwrap());
        if !long.is_empty() {
            bad.push(format!("{page}: {} sentences over {WORDS} words: {long:#?}", long.len()));
        }
        if !private.is_empty() {
            bad.push(format!("{page}: {} private words: {private:?}", private.len()));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Tables of measurements are made from bench/data.
#[test]
fn measurements_are_those_of_the_files() {
    let checked = std::process::Command::new("python3").arg(top().join("bench/pages.py")).arg("--check").output();
    let checked = checked.expect("python3");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn the_checks_find_what_is_wrong() {
    let long = "one two three four five six seven eight nine ten ".repeat(3) + ".";
    assert_eq!(faults(&long).0.len(), 1);
    assert_eq!(faults("Ranks that are crowded,\nand go\nround.").1.len(), 2);
    assert_eq!(faults(&format!("    {long}\n\nShort. Sentences; all.")), (vec![], vec![]));
    assert_eq!(links("[a](b.md#c) and `x`\n\n    [code](d)\n"), ["b.md#c"]);
    assert_eq!(anchor("## What it is, `now`"), "what-it-is-now");
}
