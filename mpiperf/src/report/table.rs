// SPDX-License-Identifier: BSD-3-Clause
//! Aligned text, row by row: the columns are as wide as their longest usual content, whatever comes.

use super::units::{bytes, percent, time};
use super::{About, Comparison, Row};
use crate::stats::{Ratio, Verdict};

/// A column: its heading and its width; negative: to the left.
type Column = (&'static str, i32);

const RUN: [Column; 14] = [
    ("operation", -22),
    ("size", 8),
    ("calls", 6),
    ("correct", 7),
    ("kept", 5),
    ("mean", 9),
    ("±interval", 9),
    ("median", 9),
    ("p95", 9),
    ("min", 9),
    ("max", 9),
    ("SE all", 9),
    ("first", 9),
    ("spread", 9),
];
const BUDGET: Column = ("budget", 9);
const ORDINARY: Column = ("ordinary", 9);
const HIDDEN: Column = ("hidden", 6);

const COMPARE: [Column; 9] = [
    ("operation", -22),
    ("size", 8),
    ("pairs", 6),
    ("a", 9),
    ("±", 9),
    ("b", 9),
    ("±", 9),
    ("b/a", 7),
    ("interval", 17),
];

/// Besides, with computation: what it does not hide of each variant, and the ratio of both together.
const BESIDE: [Column; 4] = [("visible a", 9), ("visible b", 9), ("both b/a", 8), ("interval", 17)];

/// Which columns the rows of `run` have.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extra {
    /// The ordinary loop.
    pub ordinary: bool,
    /// Computation beside.
    pub overlap: bool,
}

fn cell(text: &str, width: i32) -> String {
    let size = width.unsigned_abs() as usize;
    if width < 0 { format!("{text:<size$}") } else { format!("{text:>size$}") }
}

fn line<'a>(cells: impl Iterator<Item = (&'a str, i32)>, last: &str) -> String {
    let mut all: Vec<String> = cells.map(|(text, width)| cell(text, width)).collect();
    all.push(last.to_owned());
    all.join("  ").trim_end().to_owned()
}

fn columns(extra: Extra) -> Vec<Column> {
    let mut all = RUN.to_vec();
    all.push(BUDGET);
    all.extend(extra.ordinary.then_some(ORDINARY));
    all.extend(extra.overlap.then_some(HIDDEN));
    all
}

/// What is above every table.
pub fn preamble(about: &About, confidence: f64, trim: f64) -> String {
    let clock = about.clock.as_ref().map_or(String::new(), |clock| {
        format!(
            "; timer {} (steps of {}), clock {} (± {})",
            clock.source.name(),
            time(clock.resolution),
            clock.scheme.name(),
            time(clock.uncertainty)
        )
    });
    let hosts = match about.hosts() {
        1 => "one host".to_owned(),
        n => format!("{n} hosts"),
    };
    format!(
        "# mpiperf {}, {}: {} processes on {hosts}{clock}\n# intervals at {}, {} trimmed at each end; percentiles of all correct calls",
        about.mpiperf,
        about.library,
        about.processes,
        percent(confidence),
        percent(trim)
    )
}

/// The heading of the rows of `run`.
pub fn run_heading(extra: Extra) -> String {
    line(columns(extra).into_iter(), "notes")
}

/// A row of `run`.
pub fn run_row(row: &Row, extra: Extra) -> String {
    let mut cells = vec![
        operation(row),
        size(row),
        row.calls.to_string(),
        row.summary.as_ref().map_or(0, |s| s.correct).to_string(),
    ];
    match &row.summary {
        Some(s) => {
            cells.push(s.kept.to_string());
            let [_, _, median, _, p95, _] = s.percentiles;
            cells.extend([s.mean, s.interval, median, p95, s.min, s.max, s.error_untrimmed].map(time));
        }
        None => cells.extend(std::iter::repeat_n("-".to_owned(), 8)),
    }
    cells.push(row.first.first().map_or("-".to_owned(), |t| time(*t)));
    cells.push(row.spread.map_or("-".to_owned(), time));
    cells.push(row.budget.map_or("-".to_owned(), |b| time(b.total())));
    if extra.ordinary {
        cells.push(row.ordinary.map_or("-".to_owned(), |o| time(o.rank0)));
    }
    if extra.overlap {
        cells.push(row.overlap.map_or("-".to_owned(), |o| format!("{:.0} %", o.hidden * 100.0)));
    }
    let widths = columns(extra).into_iter().map(|(_, width)| width);
    let mut text = line(cells.iter().map(String::as_str).zip(widths), &notes(row));
    for (rank, s) in row.ranks.iter().enumerate() {
        let [_, _, median, _, p95, _] = s.percentiles;
        let cells = [s.mean, s.interval, median, p95, s.min, s.max, s.error_untrimmed].map(time);
        let head = [format!("  rank {rank}"), String::new(), String::new(), s.correct.to_string(), s.kept.to_string()];
        let all = head.iter().chain(&cells).map(String::as_str);
        text += "\n";
        text += &line(all.zip(RUN.iter().map(|c| c.1)), "");
    }
    text
}

/// The heading of the rows of `compare`. `overlap`: with computation beside.
pub fn compare_heading(overlap: bool) -> String {
    line(compare_columns(overlap), "b against a")
}

fn compare_columns(overlap: bool) -> impl Iterator<Item = Column> {
    COMPARE.into_iter().chain(BESIDE.into_iter().filter(move |_| overlap))
}

/// A row of `compare`; `a` and `b` are its two rows.
pub fn compare_row(comparison: &Comparison, a: &Row, b: &Row, overlap: bool) -> String {
    let mut cells = vec![operation(a), size(a)];
    cells.push(comparison.ratio.map_or(0, |r| r.pairs).to_string());
    for row in [a, b] {
        match &row.summary {
            Some(s) => cells.extend([time(s.mean), time(s.interval)]),
            None => cells.extend(["-".to_owned(), "-".to_owned()]),
        }
    }
    cells.extend(ratio(comparison.ratio.as_ref()));
    if overlap {
        cells.extend([a, b].map(|row| row.overlap.map_or("-".to_owned(), |o| time(o.visible()))));
        cells.extend(ratio(comparison.overlap.as_ref()));
    }
    line(cells.iter().map(String::as_str).zip(compare_columns(overlap).map(|c| c.1)), &verdict(comparison))
}

/// A ratio and its interval.
pub fn ratio(ratio: Option<&Ratio>) -> [String; 2] {
    match ratio {
        Some(r) => [format!("{:.4}", r.ratio), format!("{:.4}..{:.4}", r.low, r.high)],
        None => ["-".to_owned(), "-".to_owned()],
    }
}

/// A verdict with what belongs to it.
pub fn verdict(comparison: &Comparison) -> String {
    let mut parts = vec![match comparison.verdict {
        Verdict::Unresolved => format!("unresolved (below {})", time(comparison.floor)),
        Verdict::NoData => "no verdict: too few pairs of correct calls".to_owned(),
        other => other.to_string(),
    }];
    parts.extend(comparison.notes.iter().cloned());
    parts.join("; ")
}

/// The operation's name as rows show it.
pub fn operation(row: &Row) -> String {
    row.setting.operation.clone()
}

fn size(row: &Row) -> String {
    if sized(&row.setting.operation) { bytes(row.setting.bytes) } else { "-".to_owned() }
}

fn sized(operation: &str) -> bool {
    crate::op::find(operation).is_ok_and(|o| o.sized)
}

/// What a reader must know of a row, in one line.
fn notes(row: &Row) -> String {
    let mut parts = Vec::new();
    if row.summary.is_none() {
        parts.push(format!("NO VALID CALL of {} ({} late, {} too long)", row.calls, row.late, row.long));
    } else if row.late + row.long > 0 {
        parts.push(format!("{} late, {} too long", row.late, row.long));
    }
    if row.dubious() {
        parts.push("UNRESOLVED: clock and timer alone are more than half of the mean".to_owned());
    }
    // The engine says that, too, in a longer sentence.
    parts.extend(row.notes.iter().filter(|note| row.summary.is_some() || !note.starts_with("no valid call")).cloned());
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{empty, row};
    use super::*;
    use crate::stats::Budget;

    #[test]
    fn columns_stay_in_place() {
        let extra = Extra { ordinary: true, overlap: true };
        let heading = run_heading(extra);
        let place = |text: &str| heading.split(text).next().unwrap().chars().count() + text.chars().count();
        for (n, mean) in [(8, 1e-6), (1 << 30, 123.456), (1000, 3e-9)] {
            let text = run_row(&row("x", "bcast", n, mean), extra);
            let until: String = text.chars().take(place("correct")).collect();
            assert!(until.ends_with(" 40"), "{heading}\n{text}");
            let until: String = text.chars().take(place("ordinary")).collect();
            assert!(until.ends_with("s"), "{heading}\n{text}");
        }
    }

    #[test]
    fn no_number_without_a_valid_call() {
        let text = run_row(&empty("x", "bcast", 8), Extra::default());
        assert!(text.contains("NO VALID CALL of 100 (100 late, 1 too long)"), "{text}");
        let before: String = text.chars().take(22 + 2 + 8 + 2 + 6 + 2 + 7).collect();
        let numbers = text[before.len()..].split("NO VALID").next().unwrap().split_whitespace().take(8);
        assert!(numbers.clone().all(|cell| cell == "-"), "{:?}", numbers.collect::<Vec<_>>());
    }

    #[test]
    fn says_when_the_clock_is_too_coarse() {
        let mut one = row("x", "bcast", 8, 1e-6);
        assert!(!run_row(&one, Extra::default()).contains("UNRESOLVED"));
        one.budget = Some(Budget { clock: 0.6e-6, resolution: 0.0, sampling: 0.0 });
        assert!(run_row(&one, Extra::default()).contains("UNRESOLVED"));
    }

    #[test]
    fn comparisons() {
        let (a, b) = (row("a", "bcast", 8, 1e-6), row("b", "bcast", 8, 1.1e-6));
        let ratio = Ratio { ratio: 1.1, low: 1.08, high: 1.12, confidence: 0.99, pairs: 300, blocks: 10 };
        let mut one = Comparison {
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
        let text = compare_row(&one, &a, &b, false);
        assert!(text.contains("1.1000     1.0800..1.1200  slower"), "{text}");
        one.verdict = Verdict::Unresolved;
        assert!(compare_row(&one, &a, &b, false).contains("unresolved (below 60.00 ns)"));
        (one.ratio, one.verdict) = (None, Verdict::NoData);
        assert!(compare_row(&one, &a, &empty("b", "bcast", 8), false).contains("no verdict"));
    }
}
