// SPDX-License-Identifier: BSD-3-Clause
//! What is told of the counters at the end: lines for one process, a table for all of them, a file for
//! programs. Pure.
#![forbid(unsafe_code)]

use std::fmt::Write;

/// The counters of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Name of the operation.
    pub name: &'static str,
    /// Calls that the component took.
    pub handled: u64,
    /// Calls that went to the component of the next lower priority.
    pub passed: u64,
    /// Both by mode.
    pub modes: Vec<(&'static str, u64)>,
    /// Messages and bytes sent, by level; levels without messages are left out.
    pub levels: Vec<(&'static str, u64, u64)>,
}

/// The counters of a process, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations that were called.
    pub rows: Vec<Row>,
    /// Bytes read from, or written to, other processes' memory, by way; those without are left out.
    pub zero_copy: Vec<(&'static str, u64)>,
    /// Parts of calls within the node, by operation and way through shared memory; ways without are left out.
    pub within: Vec<(&'static str, &'static str, u64)>,
}

/// A line for each operation.
pub fn lines(who: &str, counts: &Counts) -> String {
    let mut text = String::new();
    for row in &counts.rows {
        let Row { name, handled, passed, .. } = row;
        let _ = write!(text, "coll_rust report: {who}: {name} handled={handled} passed={passed}");
        row.modes.iter().for_each(|(mode, n)| _ = write!(text, " {mode}={n}"));
        row.levels.iter().for_each(|(level, m, b)| _ = write!(text, " {level}: messages={m} bytes={b}"));
        text.push('\n');
    }
    for (way, bytes) in &counts.zero_copy {
        let _ = writeln!(text, "coll_rust report: {who}: zero copy by {way} bytes={bytes}");
    }
    for (operation, way, calls) in &counts.within {
        let _ = writeln!(text, "coll_rust report: {who}: {operation} within the node by shm:{way} calls={calls}");
    }
    text
}

/// One table of the counters of so many ranks together, out of all.
pub fn table(counts: &Counts, ranks: usize, of: usize) -> String {
    let mut cells = vec![vec!["operation".to_owned(), "handled".to_owned(), "passed".to_owned()]];
    if let Some(first) = counts.rows.first() {
        cells[0].extend(first.modes.iter().map(|(mode, _)| (*mode).to_owned()));
    }
    cells[0].push("messages (bytes) by level".to_owned());
    for row in &counts.rows {
        let mut line = vec![row.name.to_owned(), row.handled.to_string(), row.passed.to_string()];
        line.extend(row.modes.iter().map(|(_, n)| n.to_string()));
        let levels: Vec<String> = row.levels.iter().map(|(level, m, b)| format!("{level}: {m} ({b})")).collect();
        line.push(levels.join(", "));
        cells.push(line);
    }
    let missing = if ranks < of { format!(", {} sent nothing", of - ranks) } else { String::new() };
    let mut text = format!("coll_rust report: sum over {ranks} of {of} ranks{missing}\n");
    for line in &cells {
        let mut out = String::from("  ");
        for (column, cell) in line.iter().enumerate() {
            let width = cells.iter().map(|line| line.get(column).map_or(0, String::len)).max().unwrap_or(0);
            let _ = match column {
                0 => write!(out, "{cell:width$}"),
                _ if column + 1 == line.len() => write!(out, "  {cell}"),
                _ => write!(out, "  {cell:>width$}"),
            };
        }
        let _ = writeln!(text, "{}", out.trim_end());
    }
    for (way, bytes) in &counts.zero_copy {
        let _ = writeln!(text, "  zero copy by {way}: {bytes} bytes");
    }
    for (operation, way, calls) in &counts.within {
        let _ = writeln!(text, "  {operation} within the node by shm:{way}: {calls} calls");
    }
    text
}

/// The counters of a rank as JSON.
pub fn json(counts: &Counts, version: &str, job: u32, rank: u32, host: &str) -> String {
    let mut text = format!(
        "{{\n  \"component\": \"coll/rust\",\n  \"version\": {},\n  \"job\": {job},\n  \"rank\": {rank},\n  \"host\": {},\n  \"operations\": {{",
        quoted(version),
        quoted(host)
    );
    for (i, row) in counts.rows.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let (handled, passed) = (row.handled, row.passed);
        let _ = write!(text, "{comma}\n    {}: {{\"handled\": {handled}, \"passed\": {passed}", quoted(row.name));
        row.modes.iter().for_each(|(mode, n)| _ = write!(text, ", {}: {n}", quoted(mode)));
        let level =
            |(level, m, b): &(&str, u64, u64)| format!("{}: {{\"messages\": {m}, \"bytes\": {b}}}", quoted(level));
        let levels: Vec<String> = row.levels.iter().map(level).collect();
        let _ = write!(text, ", \"levels\": {{{}}}}}", levels.join(", "));
    }
    let way = |(way, bytes): &(&str, u64)| format!("{}: {bytes}", quoted(way));
    let ways: Vec<String> = counts.zero_copy.iter().map(way).collect();
    let end = if counts.rows.is_empty() { "" } else { "\n  " };
    let _ = write!(text, "{end}}},\n  \"zero_copy_bytes\": {{{}}},\n", ways.join(", "));
    let part =
        |(operation, way, calls): &(&str, &str, u64)| format!("{}: {calls}", quoted(&format!("{operation} shm:{way}")));
    let within: Vec<String> = counts.within.iter().map(part).collect();
    let _ = write!(text, "  \"within_node_calls\": {{{}}}\n}}\n", within.join(", "));
    text
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        let row = |name, handled| Row {
            name,
            handled,
            passed: 0,
            modes: vec![("blocking", handled), ("nonblocking", 0)],
            levels: vec![("node", 7, 123_456)],
        };
        Counts {
            rows: vec![row("bcast", 12), row("allreduce", 1_000_000)],
            zero_copy: vec![("cma", 5)],
            within: vec![("gather", "pipeline", 7)],
        }
    }

    #[test]
    fn lines_of_a_rank() {
        let text = lines("rank 3", &counts());
        assert!(text.starts_with(
            "coll_rust report: rank 3: bcast handled=12 passed=0 blocking=12 nonblocking=0 node: messages=7 bytes=123456\n"
        ));
        assert!(text.ends_with(
            "coll_rust report: rank 3: zero copy by cma bytes=5\n\
             coll_rust report: rank 3: gather within the node by shm:pipeline calls=7\n"
        ));
    }

    #[test]
    fn a_table_of_all() {
        assert_eq!(
            table(&counts(), 4, 4),
            "coll_rust report: sum over 4 of 4 ranks\n\
             \x20 operation  handled  passed  blocking  nonblocking  messages (bytes) by level\n\
             \x20 bcast           12       0        12            0  node: 7 (123456)\n\
             \x20 allreduce  1000000       0   1000000            0  node: 7 (123456)\n\
             \x20 zero copy by cma: 5 bytes\n\
             \x20 gather within the node by shm:pipeline: 7 calls\n"
        );
        assert!(
            table(&Counts::default(), 3, 4).starts_with("coll_rust report: sum over 3 of 4 ranks, 1 sent nothing\n")
        );
    }

    #[test]
    fn a_file_for_programs() {
        let text = json(&counts(), "0.1.0", 9, 3, "a\"b\\c\n");
        assert!(text.contains("\"host\": \"a\\\"b\\\\c\\u000a\""), "{text}");
        assert!(text.contains("\"bcast\": {\"handled\": 12, \"passed\": 0, \"blocking\": 12, \"nonblocking\": 0, \"levels\": {\"node\": {\"messages\": 7, \"bytes\": 123456}}},"));
        assert!(text.ends_with(
            "\"zero_copy_bytes\": {\"cma\": 5},\n  \"within_node_calls\": {\"gather shm:pipeline\": 7}\n}\n"
        ));
        for text in [text, json(&Counts::default(), "", 0, 0, "")] {
            let (mut depth, mut inside, mut escaped) = (0, false, false);
            for c in text.chars() {
                match c {
                    _ if std::mem::take(&mut escaped) => {}
                    '\\' if inside => escaped = true,
                    '"' => inside = !inside,
                    '{' if !inside => depth += 1,
                    '}' if !inside => depth -= 1,
                    _ => {}
                }
            }
            assert_eq!((depth, inside), (0, false), "{text}");
        }
    }
}
