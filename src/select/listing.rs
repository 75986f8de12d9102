// SPDX-License-Identifier: BSD-3-Clause
//! The table of algorithms as docs/reference/algorithms.md shows it.

use super::table::{Family, for_each_family};
use super::{Operation, Row};

/// The table, as Markdown.
pub fn documentation() -> String {
    let mut page = String::from("| operations | algorithms | |\n| --- | --- | --- |\n");
    fn add<A: Family>(page: &mut String) {
        let operations: Vec<String> = A::OPERATIONS.iter().map(|&operation| title(operation)).collect();
        let algorithms: Vec<String> = A::ROWS.iter().map(algorithm).collect();
        let levels = if A::PER_LEVEL { "one per level" } else { "" };
        *page += &format!("| {} | {} | {levels} |\n", operations.join(", "), algorithms.join(", "));
    }
    for_each_family!(add(&mut page));
    page
}

/// An operation as MPI writes it.
fn title(operation: Operation) -> String {
    let name = operation.name();
    name[..1].to_uppercase() + &name[1..]
}

/// An algorithm, who has it if not all have, and what it needs.
fn algorithm(row: &Row) -> String {
    let mut notes: Vec<String> = row.only.iter().map(|&operation| format!("{} only", title(operation))).collect();
    if !row.needs.is_empty() {
        let needs: Vec<&str> = row.needs.iter().map(|need| need.text()).collect();
        notes.push(format!("{} unless {}", row.instead, needs.join(" and ")));
    }
    if notes.is_empty() { format!("`{}`", row.form()) } else { format!("`{}` ({})", row.form(), notes.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page's table is the one made from the code; `UPDATE_DOCS=1 cargo test` writes it.
    #[test]
    fn the_readme_is_up_to_date() {
        const START: &str = "<!-- made from src/select/table.rs -->\n";
        const END: &str = "<!-- end of what is made -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/algorithms.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once(START).unwrap();
        let (there, after) = rest.split_once(END).unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() && there != documentation() {
            std::fs::write(path, format!("{before}{START}{}{END}{after}", documentation())).unwrap();
            return;
        }
        assert_eq!(there, documentation(), "run UPDATE_DOCS=1 cargo test select");
    }

    #[test]
    fn every_operation_is_in_one_row() {
        for operation in Operation::all() {
            let first = |line: &str| {
                line.split('|').nth(1).unwrap_or_default().split(',').any(|o| o.trim() == title(operation))
            };
            assert_eq!(documentation().lines().filter(|line| first(line)).count(), 1, "{operation:?}");
        }
    }
}
