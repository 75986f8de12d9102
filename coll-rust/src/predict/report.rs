// SPDX-License-Identifier: BSD-3-Clause
//! The report, for people and for scripts.

use super::{Args, Row};
use crate::values::shown;
use comfy_table::{CellAlignment, Table, presets};
use component::sim::clock::{Cause, Distance, Machine};
use serde_json::{Map, Value, json};

/// The form of the JSON object; another number: another form.
const SCHEMA: u32 = 1;

/// For scripts: times in nanoseconds.
pub fn json(args: &Args, machine: &Machine, rows: &[Row]) -> String {
    let ns = |time: u64| time as f64 / 1000.0;
    let row = |row: &Row| {
        let counts = &row.prediction.counts;
        let causes: Map<String, Value> = Cause::ALL
            .into_iter()
            .map(|cause| (cause.name().to_owned(), json!(ns(row.prediction.by[cause as usize]))))
            .collect();
        let lines: Map<String, Value> = Distance::ALL
            .into_iter()
            .filter(|distance| *distance != Distance::Own)
            .map(|distance| (distance.name().to_owned(), json!(counts.lines[distance as usize])))
            .chain([("memory".to_owned(), json!(counts.memory)), ("taken".to_owned(), json!(counts.taken))])
            .collect();
        json!({
            "operation": row.kind.name(), "bytes": row.bytes, "ranks": row.ranks, "setting": row.setting,
            "way": row.way.name(), "time_ns": ns(row.prediction.time), "causes_ns": causes, "lines": lines,
        })
    };
    let value = json!({
        "schema": SCHEMA, "machine": machine.name, "cores": machine.shape.cores(),
        "map": format!("{:?}", args.map).to_lowercase(), "rounds": args.rounds, "warm": args.warm,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

type Weight<'a> = Box<dyn Fn(&Row) -> u64 + 'a>;

/// A column: its head, its cell of a row, and whether it is left out where all its cells are zero.
struct Column<'a> {
    head: String,
    cell: Box<dyn Fn(&Row) -> String + 'a>,
    weight: Option<Weight<'a>>,
}

impl<'a> Column<'a> {
    fn always(head: &str, cell: impl Fn(&Row) -> String + 'a) -> Column<'a> {
        Column { head: head.to_owned(), cell: Box::new(cell), weight: None }
    }

    fn time(head: &str, time: impl Fn(&Row) -> u64 + Copy + 'a) -> Column<'a> {
        let cell = move |row: &Row| format!("{:.2}", time(row) as f64 / 1e6);
        Column { head: head.to_owned(), cell: Box::new(cell), weight: Some(Box::new(time)) }
    }

    fn count(head: &str, count: impl Fn(&Row) -> u64 + Copy + 'a) -> Column<'a> {
        Column {
            head: head.to_owned(),
            cell: Box::new(move |row: &Row| count(row).to_string()),
            weight: Some(Box::new(count)),
        }
    }
}

/// For people: times in microseconds. Columns of zeros are left out.
pub fn table(args: &Args, machine: &Machine, rows: &[Row]) -> String {
    let best = |row: &Row| {
        let same = |other: &&Row| (other.kind, other.bytes, other.ranks) == (row.kind, row.bytes, row.ranks);
        rows.iter().filter(same).map(|other| other.prediction.time).min().unwrap_or(0)
    };
    let mut columns = vec![
        Column::always("operation", |row| row.kind.name().to_owned()),
        Column::always("ranks", |row| row.ranks.to_string()),
        Column::always("bytes", |row| shown(row.bytes)),
        Column::always("setting", |row| row.setting.clone()),
        Column::always("way", |row| row.way.name().to_owned()),
        Column::always("µs", |row| format!("{:.2}", row.prediction.time as f64 / 1e6)),
    ];
    if args.compare {
        columns.push(Column::always("/ best", |row| {
            format!("{:.2}", row.prediction.time as f64 / best(row).max(1) as f64)
        }));
    }
    for cause in Cause::ALL {
        columns.push(Column::time(cause.name(), move |row| row.prediction.by[cause as usize]));
    }
    for distance in Distance::ALL.into_iter().skip(1) {
        columns.push(Column::count(distance.name(), move |row| row.prediction.counts.lines[distance as usize]));
    }
    columns.push(Column::count("memory", |row| row.prediction.counts.memory));
    columns.push(Column::count("taken", |row| row.prediction.counts.taken));
    columns.retain(|column| column.weight.as_ref().is_none_or(|weight| rows.iter().any(|row| weight(row) > 0)));

    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(columns.iter().map(|column| &column.head));
    for row in rows {
        table.add_row(columns.iter().map(|column| (column.cell)(row)));
    }
    let words = ["operation", "setting", "way"];
    for (column, at) in columns.iter().zip(0..) {
        if let Some(cells) = table.column_mut(at).filter(|_| !words.contains(&column.head.as_str())) {
            cells.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!(
        "{}, {} cores; ranks on {}.\nTimes of the last rank in µs, and with what it spent them; lines that moved \
         in a call of all ranks, by distance.\n\n{}\n",
        machine.name,
        machine.shape.cores(),
        args.map.text(),
        table.trim_fmt()
    )
}
