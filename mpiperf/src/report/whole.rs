// SPDX-License-Identifier: BSD-3-Clause
//! Tables whose rows are all known before the first one is written. (Those of what is still being measured
//! are in [`super::table`].)

use comfy_table::{CellAlignment, Table, presets};

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Columns apart by spaces.
    Plain,
    /// Markdown.
    Markdown,
}

/// A table; the first `left` columns are to the left, the others to the right, but for a last one of words.
pub fn table(heading: &[&str], rows: &[Vec<String>], left: usize, words: bool, style: Style) -> String {
    let mut table = Table::new();
    table.load_preset(if style == Style::Markdown { presets::ASCII_MARKDOWN } else { presets::NOTHING });
    table.set_header(heading);
    table.add_rows(rows);
    let last = heading.len() - usize::from(words);
    for (i, column) in table.column_iter_mut().enumerate() {
        if i >= left && i < last {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if style == Style::Plain {
            column.set_padding((0, 2));
        }
    }
    let text = table.to_string();
    let aligned = text.lines().enumerate().map(|(i, line)| match style {
        // Which cells are numbers is said to those who draw it.
        Style::Markdown if i == 1 => (0..heading.len())
            .fold("|".to_owned(), |line, i| line + if i >= left && i < last { " ---: |" } else { " --- |" }),
        _ => line.trim_end().to_owned(),
    });
    aligned.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles() {
        let rows = [vec!["bcast".to_owned(), "1.50 µs".to_owned(), "slower".to_owned()]];
        let heading = ["operation", "old", "verdict"];
        let plain = table(&heading, &rows, 1, true, Style::Plain);
        assert_eq!(plain, "operation      old  verdict\nbcast      1.50 µs  slower");
        let markdown = table(&heading, &rows, 1, true, Style::Markdown);
        assert_eq!(
            markdown,
            "| operation |     old | verdict |\n| --- | ---: | --- |\n| bcast     | 1.50 µs | slower  |"
        );
    }
}
