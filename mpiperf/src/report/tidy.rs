// SPDX-License-Identifier: BSD-3-Clause
//! CSV: one row for each tuple of independent variables, times in seconds, nothing where there is no number.

use std::io::Write;

use serde::Serialize;

use super::{About, Comparison, Row};
use crate::error::{Error, Result};
use crate::op::pairs::Rate;
use crate::op::{Root, Setting};
use crate::stats::Summary;

const INDEPENDENT: [&str; 13] = [
    "library",
    "processes",
    "operation",
    "bytes",
    "datatype",
    "reduction",
    "root",
    "in_place",
    "counts",
    "cache",
    "align",
    "topology",
    "arrival",
];

const ROW: [&str; 33] = [
    "label",
    "rank",
    "calls",
    "late",
    "long",
    "correct",
    "kept",
    "mean_s",
    "interval_s",
    "confidence",
    "error_s",
    "error_untrimmed_s",
    "min_s",
    "max_s",
    "p5_s",
    "p25_s",
    "p50_s",
    "p75_s",
    "p95_s",
    "p99_s",
    "first_s",
    "spread_s",
    "window_s",
    "budget_clock_s",
    "budget_resolution_s",
    "ordinary_rank0_s",
    "ordinary_max_s",
    "overlap_total_s",
    "overlap_hidden",
    "latency_s",
    "bytes_per_s",
    "messages_per_s",
    "notes",
];

const COMPARISON: [&str; 20] = [
    "a",
    "b",
    "pairs",
    "a_mean_s",
    "a_interval_s",
    "b_mean_s",
    "b_interval_s",
    "ratio",
    "low",
    "high",
    "confidence",
    "blocks",
    "floor_s",
    "a_hidden",
    "b_hidden",
    "both_ratio",
    "both_low",
    "both_high",
    "verdict",
    "notes",
];

/// Writes CSV rows of one kind.
pub struct Tidy<W: Write> {
    out: csv::Writer<W>,
    name: String,
}

impl<W: Write> Tidy<W> {
    /// For rows of `run`.
    pub fn of_rows(out: W, name: &str) -> Result<Tidy<W>> {
        Tidy::new(out, name, &ROW)
    }

    /// For comparisons.
    pub fn of_comparisons(out: W, name: &str) -> Result<Tidy<W>> {
        Tidy::new(out, name, &COMPARISON)
    }

    fn new(out: W, name: &str, dependent: &[&str]) -> Result<Tidy<W>> {
        let out = csv::WriterBuilder::new().has_headers(false).from_writer(out);
        let mut tidy = Tidy { out, name: name.to_owned() };
        let heading: Vec<String> = INDEPENDENT.iter().chain(dependent).map(|s| s.to_string()).collect();
        tidy.record(&heading)?;
        Ok(tidy)
    }

    fn record(&mut self, cells: &[String]) -> Result<()> {
        let written = self.out.write_record(cells).map_err(std::io::Error::other);
        written.and_then(|()| self.out.flush()).map_err(|source| Error::File { path: self.name.clone(), source })
    }

    /// A row, and one for each rank if there are any.
    pub fn row(&mut self, about: &About, arrival: &str, confidence: f64, row: &Row) -> Result<()> {
        let independent = independent(about, arrival, &row.setting, row.processes);
        let whole = (String::new(), row.summary.as_ref());
        let ranks = row.ranks.iter().enumerate().map(|(rank, s)| (rank.to_string(), Some(s)));
        for (rank, summary) in std::iter::once(whole).chain(ranks) {
            let mut cells = independent.clone();
            cells.extend([row.label.clone(), rank.clone()]);
            cells.extend([row.calls, row.late, row.long].map(|n| n.to_string()));
            cells.extend(numbers(summary, confidence));
            if rank.is_empty() {
                cells.extend(beside(row));
            } else {
                cells.extend(std::iter::repeat_n(String::new(), beside(row).len()));
            }
            self.record(&cells)?;
        }
        Ok(())
    }

    /// A comparison; `a` and `b` are its two rows.
    pub fn comparison(&mut self, about: &About, arrival: &str, one: &Comparison, a: &Row, b: &Row) -> Result<()> {
        let mut cells = independent(about, arrival, &one.setting, one.processes);
        cells.extend([one.a.clone(), one.b.clone()]);
        cells.push(one.ratio.map_or(0, |r| r.pairs).to_string());
        for row in [a, b] {
            let summary = row.summary.as_ref();
            cells.extend([summary.map(|s| s.mean), summary.map(|s| s.interval)].map(number));
        }
        cells.extend([one.ratio.map(|r| r.ratio), one.ratio.map(|r| r.low), one.ratio.map(|r| r.high)].map(number));
        cells.push(number(one.ratio.map(|r| r.confidence)));
        cells.push(one.ratio.map_or(0, |r| r.blocks).to_string());
        cells.push(number(Some(one.floor)));
        cells.extend([a, b].map(|row| number(row.overlap.map(|o| o.hidden))));
        cells.extend(
            [one.overlap.map(|r| r.ratio), one.overlap.map(|r| r.low), one.overlap.map(|r| r.high)].map(number),
        );
        cells.push(one.verdict.to_string());
        cells.push(one.notes.join("; "));
        self.record(&cells)
    }
}

fn number(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or(String::new(), |v| format!("{v:.6e}"))
}

fn independent(about: &About, arrival: &str, setting: &Setting, processes: usize) -> Vec<String> {
    vec![
        about.library.clone(),
        processes.to_string(),
        setting.operation.clone(),
        setting.bytes.to_string(),
        setting.datatype.clone(),
        setting.reduction.clone(),
        match setting.root {
            Root::Fixed(rank) => rank.to_string(),
            Root::Rotating => "rotating".to_owned(),
        },
        setting.in_place.to_string(),
        name(setting.counts),
        name(setting.cache),
        setting.align.to_string(),
        name(setting.topology),
        arrival.to_owned(),
    ]
}

/// The name of a value without data, as JSON has it.
fn name(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

fn numbers(summary: Option<&Summary>, confidence: f64) -> Vec<String> {
    let Some(s) = summary else {
        let mut cells = vec!["0".to_owned(), "0".to_owned()];
        cells.extend(std::iter::repeat_n(String::new(), 13));
        return cells;
    };
    let mut cells = vec![s.correct.to_string(), s.kept.to_string()];
    cells.extend([s.mean, s.interval, confidence, s.error, s.error_untrimmed, s.min, s.max].map(|v| number(Some(v))));
    cells.extend(s.percentiles.map(|v| number(Some(v))));
    cells
}

/// What belongs to the operation as a whole.
fn beside(row: &Row) -> Vec<String> {
    let mut cells = vec![number(row.first.first().copied()), number(row.spread), number(Some(row.window))];
    cells.extend([row.budget.map(|b| b.clock), row.budget.map(|b| b.resolution)].map(number));
    cells.extend([row.ordinary.map(|o| o.rank0), row.ordinary.map(|o| o.max)].map(number));
    cells.extend([row.overlap.map(|o| o.total), row.overlap.map(|o| o.hidden)].map(number));
    let rate = |of: fn(Rate) -> Option<f64>| number(row.rate.and_then(of));
    cells.extend([rate(|r| r.latency), rate(|r| r.bytes_per_second), rate(|r| r.messages_per_second)]);
    let mut notes = row.notes.clone();
    if row.summary.is_none() {
        notes.insert(0, "no valid call".to_owned());
    }
    cells.push(notes.join("; "));
    cells
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{empty, row};
    use super::*;
    use crate::stats::{Ratio, Verdict, summarise};

    fn read(text: &[u8]) -> Vec<std::collections::HashMap<String, String>> {
        csv::Reader::from_reader(text).deserialize().map(|r| r.unwrap()).collect()
    }

    #[test]
    fn rows() {
        let mut out = Vec::new();
        let mut one = row("x", "bcast", 8, 1e-6);
        one.ranks = vec![summarise(&[1.0, 2.0, 3.0], 0.25, 0.95).unwrap(); 2];
        one.notes = vec!["a, \"b\"".into()];
        let mut tidy = Tidy::of_rows(&mut out, "x.csv").unwrap();
        tidy.row(&About::default(), "together", 0.95, &one).unwrap();
        tidy.row(&About::default(), "together", 0.95, &empty("x", "bcast", 16)).unwrap();
        drop(tidy);
        let all = read(&out);
        assert_eq!(all.len(), 4);
        assert_eq!(all[0]["rank"], "");
        assert_eq!(all[0]["mean_s"].parse::<f64>().unwrap(), 1.028e-6);
        assert_eq!((all[0]["counts"].as_str(), all[0]["topology"].as_str()), ("regular", "torus"));
        assert_eq!(all[0]["notes"], "a, \"b\"");
        assert_eq!((all[2]["rank"].as_str(), all[2]["mean_s"].as_str()), ("1", "2.000000e0"));
        assert_eq!(all[2]["first_s"], "");
        assert_eq!((all[3]["bytes"].as_str(), all[3]["mean_s"].as_str()), ("16", ""), "never a number without a call");
        assert_eq!((all[3]["correct"].as_str(), all[3]["notes"].as_str()), ("0", "no valid call"));
    }

    #[test]
    fn comparisons() {
        let (a, b) = (row("a", "bcast", 8, 1e-6), row("b", "bcast", 8, 1.1e-6));
        let ratio = Ratio { ratio: 1.1, low: 1.08, high: f64::INFINITY, confidence: 0.99, pairs: 300, blocks: 10 };
        let one = Comparison {
            setting: a.setting.clone(),
            processes: 2,
            a: "a".into(),
            b: "b".into(),
            ratio: Some(ratio),
            verdict: Verdict::Slower,
            overlap: None,
            floor: 60e-9,
            notes: vec![],
        };
        let mut out = Vec::new();
        let mut tidy = Tidy::of_comparisons(&mut out, "x.csv").unwrap();
        tidy.comparison(&About::default(), "together", &one, &a, &b).unwrap();
        drop(tidy);
        let all = read(&out);
        assert_eq!((all[0]["ratio"].as_str(), all[0]["high"].as_str()), ("1.100000e0", ""));
        assert_eq!(all[0]["verdict"], "slower");
    }
}
