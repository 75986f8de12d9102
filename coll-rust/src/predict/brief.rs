// SPDX-License-Identifier: BSD-3-Clause
//! The brief report of comparisons: how far the built-in choice is from the best, in one table.

use super::{Args, Row};
use crate::values::shown;
use comfy_table::{CellAlignment, Table, presets};
use component::predict::Kind;
use component::sim::clock::Machine;

/// What takes so much longer than the best is named, and counted.
const FAR: f64 = 1.05;

/// One comparison: rows of one operation, length and number of ranks.
struct Compared<'a> {
    auto: &'a Row,
    best: &'a Row,
}

impl<'a> Compared<'a> {
    fn of(rows: &'a [Row], kind: Kind, bytes: usize, ranks: u32) -> Option<Compared<'a>> {
        let all = || rows.iter().filter(move |row| (row.kind, row.bytes, row.ranks) == (kind, bytes, ranks));
        let best = all().min_by_key(|row| row.prediction.time)?;
        Some(Compared { auto: all().find(|row| row.setting == "auto")?, best })
    }

    fn ratio(&self) -> f64 {
        self.auto.prediction.time as f64 / self.best.prediction.time.max(1) as f64
    }

    fn cell(&self) -> String {
        let (ratio, took) = (self.ratio(), self.auto.prediction.time as f64 / 1e6);
        match ratio > FAR {
            true => format!("{took:.2}, {ratio:.2} {}", self.best.setting),
            false => format!("{took:.2}"),
        }
    }
}

/// What differs, each once, in the order in which it comes.
fn each<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut seen, one| {
        if !seen.contains(&one) {
            seen.push(one);
        }
        seen
    })
}

/// For people: a line for each operation and length, a column for each number of ranks.
pub fn table(args: &Args, machine: &Machine, rows: &[Row]) -> String {
    let counts = each(rows.iter().map(|row| row.ranks));
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let heads = ["operation", "bytes"].map(str::to_owned).into_iter();
    table.set_header(heads.chain(counts.iter().map(|ranks| format!("{ranks} ranks"))));
    let (mut sum, mut cells, mut far) = (0.0, 0_u32, 0_u32);
    for (kind, bytes) in each(rows.iter().map(|row| (row.kind, row.bytes))) {
        let compared = counts.iter().map(|&ranks| Compared::of(rows, kind, bytes, ranks));
        let line: Vec<_> = compared
            .map(|compared| {
                compared.map_or_else(String::new, |compared| {
                    cells += 1;
                    sum += compared.ratio().ln();
                    far += u32::from(compared.ratio() > FAR);
                    compared.cell()
                })
            })
            .collect();
        table.add_row([kind.name().to_owned(), shown(bytes)].into_iter().chain(line));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{}, {} cores; ranks on {}.\nTimes of the built-in choice in µs; behind it how often those of the best setting, \
         and its name, where that is more than {FAR}.\n\n{}\n\nIn the geometric mean {:.3} times the best; more than \
         {FAR} in {far} of {cells}.\n",
        machine.name,
        machine.shape.cores(),
        args.map.text(),
        table.trim_fmt(),
        (sum / f64::from(cells.max(1))).exp(),
    )
}
