// SPDX-License-Identifier: BSD-3-Clause
//! Aligned text, row by row: the columns are as wide as their longest usual content, whatever comes.

use super::units::{bytes, percent, time};
use super::{About, Comparison, Row};
use crate::op::Setting;
use crate::op::pairs::Rate;
use crate::stats::{Ratio, Verdict};

/// A line of a table is no longer, unless it is asked for.
const COLUMNS: usize = 100;
/// Width of the operations' names where the table is wide.
const NAME: usize = 22;

/// A column: its heading, its width (negative: to the left), and when it gives way to others where the line
/// is too long: the largest number first, 0 never.
type Column = (&'static str, i32, u8);

const RUN: [Column; 14] = [
    ("operation", -(NAME as i32), 0),
    ("size", 8, 0),
    ("calls", 6, 6),
    ("correct", 7, 2),
    ("kept", 5, 11),
    ("mean", 9, 0),
    ("±interval", 9, 0),
    ("median", 9, 0),
    ("p95", 9, 1),
    ("min", 9, 8),
    ("max", 9, 7),
    ("SE all", 9, 10),
    ("first", 9, 5),
    ("spread", 9, 9),
];
const BUDGET: Column = ("budget", 9, 4);
const ORDINARY: Column = ("ordinary", 9, 0);
const HIDDEN: Column = ("hidden", 6, 0);

const COMPARE: [Column; 9] = [
    ("operation", -(NAME as i32), 0),
    ("size", 8, 0),
    ("pairs", 6, 4),
    ("a", 9, 2),
    ("±", 9, 6),
    ("b", 9, 3),
    ("±", 9, 5),
    ("b/a", 7, 0),
    ("interval", 17, 0),
];

/// Besides, with computation: what it does not hide of each variant, and the ratio of both together.
const BESIDE: [Column; 4] = [("visible a", 9, 0), ("visible b", 9, 0), ("both b/a", 8, 0), ("interval", 17, 1)];

/// The longest verdict that has no number: "no difference shown".
const VERDICT: usize = 19;

/// How wide a table is.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// All columns.
    wide: bool,
    /// Width of the operations' names.
    name: usize,
}

impl Look {
    /// Of these settings; `wide`: all columns, however long the line becomes.
    pub fn new<'a>(wide: bool, settings: impl Iterator<Item = &'a Setting>) -> Look {
        let longest = settings.map(|setting| setting.operation.len()).max().unwrap_or(0);
        Look { wide, name: if wide { NAME } else { longest.max("operation".len()) } }
    }

    /// What is shown of these columns, with `more` behind them.
    fn shown(self, mut columns: Vec<Column>, more: usize) -> Vec<Option<Column>> {
        columns[0].1 = -(self.name as i32);
        let length =
            |all: &[Option<Column>]| all.iter().flatten().map(|c| c.1.unsigned_abs() as usize + 2).sum::<usize>();
        let mut all: Vec<Option<Column>> = columns.into_iter().map(Some).collect();
        while !self.wide && length(&all) + more > COLUMNS {
            let keep = |column: &Option<Column>| column.map_or(0, |column| column.2);
            let Some(first) = all.iter_mut().max_by_key(|column| keep(column)).filter(|column| keep(column) > 0) else {
                break;
            };
            *first = None;
        }
        all
    }
}

/// Which columns the rows of `run` have.
#[derive(Debug, Clone, Copy)]
pub struct Extra {
    /// The ordinary loop.
    pub ordinary: bool,
    /// Computation beside.
    pub overlap: bool,
    /// How wide it is.
    pub look: Look,
}

fn cell(text: &str, width: i32) -> String {
    let size = width.unsigned_abs() as usize;
    if width < 0 { format!("{text:<size$}") } else { format!("{text:>size$}") }
}

/// A line of the columns that are shown, and `last` at its end, or in lines of its own below, where it is too
/// long.
fn line<'a>(cells: impl Iterator<Item = &'a str>, columns: &[Option<Column>], look: Look, last: &str) -> String {
    let shown = cells.zip(columns).filter_map(|(text, column)| column.map(|column| cell(text, column.1)));
    let text = shown.collect::<Vec<_>>().join("  ");
    if look.wide || text.chars().count() + 2 + last.chars().count() <= COLUMNS {
        return format!("{text}  {last}").trim_end().to_owned();
    }
    let below = textwrap::Options::new(COLUMNS).initial_indent("    ").subsequent_indent("    ");
    format!("{}\n{}", text.trim_end(), textwrap::fill(last, below))
}

fn columns(extra: Extra) -> Vec<Option<Column>> {
    let mut all = RUN.to_vec();
    all.push(BUDGET);
    all.extend(extra.ordinary.then_some(ORDINARY));
    all.extend(extra.overlap.then_some(HIDDEN));
    extra.look.shown(all, 0)
}

fn headings(columns: &[Option<Column>], look: Look, last: &str) -> String {
    line(columns.iter().map(|column| column.map_or("", |column| column.0)), columns, look, last)
}

/// What is above every table.
pub fn preamble(about: &About, confidence: f64, trim: f64) -> String {
    let (confidence, trim) = (percent(confidence), percent(trim));
    let intervals =
        format!("# intervals at {confidence}, {trim} trimmed at each end; percentiles of all correct calls");
    format!("{}\n{intervals}", measured(about))
}

/// Where and by which clock it was measured.
pub fn measured(about: &About) -> String {
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
    let text =
        format!("# mpiperf {}, {}: {} processes on {hosts}{clock}", about.mpiperf, about.library, about.processes);
    textwrap::fill(&text, textwrap::Options::new(COLUMNS).subsequent_indent("#   "))
}

/// The heading of the rows of `run`.
pub fn run_heading(extra: Extra) -> String {
    headings(&columns(extra), extra.look, if extra.look.wide { "notes" } else { "" })
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
    let columns = columns(extra);
    let mut text = line(cells.iter().map(String::as_str), &columns, extra.look, &notes(row));
    for (rank, s) in row.ranks.iter().enumerate() {
        let [_, _, median, _, p95, _] = s.percentiles;
        let cells = [s.mean, s.interval, median, p95, s.min, s.max, s.error_untrimmed].map(time);
        let head = [format!("  rank {rank}"), String::new(), String::new(), s.correct.to_string(), s.kept.to_string()];
        let all = head.iter().chain(&cells).map(String::as_str);
        text += "\n";
        text += &line(all, &columns, extra.look, "");
    }
    text
}

/// The heading of the rows of `compare`. `overlap`: with computation beside.
pub fn compare_heading(overlap: bool, look: Look) -> String {
    headings(&compare_columns(overlap, look), look, "b against a")
}

fn compare_columns(overlap: bool, look: Look) -> Vec<Option<Column>> {
    look.shown(COMPARE.into_iter().chain(BESIDE.into_iter().filter(|_| overlap)).collect(), VERDICT)
}

/// A row of `compare`; `a` and `b` are its two rows, `more` is said at its end.
pub fn compare_row(comparison: &Comparison, [a, b]: [&Row; 2], overlap: bool, look: Look, more: &str) -> String {
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
    let last = verdict(comparison) + more;
    line(cells.iter().map(String::as_str), &compare_columns(overlap, look), look, &last)
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
    named_size(&row.setting)
}

/// A message size as rows show it.
pub fn named_size(setting: &Setting) -> String {
    if sized(&setting.operation) { bytes(setting.bytes) } else { "-".to_owned() }
}

fn sized(operation: &str) -> bool {
    crate::op::find(operation).is_ok_and(|o| o.sized)
}

/// Latency, bandwidth and message rate.
fn rates(rate: &Rate) -> String {
    let latency = rate.latency.map(|latency| format!("{} one way", time(latency)));
    let bytes = rate.bytes_per_second.map(|n| format!("{:.1} MB/s", n / 1e6));
    let messages = rate.messages_per_second.map(|n| format!("{:.0} messages/s", n));
    let parts: Vec<String> = [latency, bytes, messages].into_iter().flatten().collect();
    let pairs = if rate.pairs == 1 { "1 pair".to_owned() } else { format!("{} pairs", rate.pairs) };
    format!("{pairs}: {}", parts.join(", "))
}

/// What a reader must know of a row, in one line.
fn notes(row: &Row) -> String {
    let mut parts: Vec<String> = row.rate.iter().map(rates).collect();
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

    const WIDE: Extra = Extra { ordinary: false, overlap: false, look: Look { wide: true, name: NAME } };

    #[test]
    fn lines_are_of_a_hundred_columns() {
        for name in ["scan", "neighbor_alltoallv_init"] {
            let one = row("x", name, 1 << 30, 999.4e-6);
            let look = Look::new(false, [&one.setting].into_iter());
            for (ordinary, overlap) in [(false, false), (true, false), (false, true), (true, true)] {
                let extra = Extra { ordinary, overlap, look };
                let text =
                    format!("{}\n{}\n{}", run_heading(extra), run_row(&one, extra), compare_heading(overlap, look));
                let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
                assert!(longest <= COLUMNS, "{longest}\n{text}");
                assert!(text.contains("median") && text.contains("b/a"), "{text}");
            }
        }
        let notes = vec!["word ".repeat(30)];
        let one = Row { notes, ..row("x", "scan", 8, 1e-6) };
        let text = run_row(&one, Extra { look: Look::new(false, [&one.setting].into_iter()), ..WIDE });
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }

    #[test]
    fn columns_stay_in_place() {
        let extra = Extra { ordinary: true, overlap: true, ..WIDE };
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
        let text = run_row(&empty("x", "bcast", 8), WIDE);
        assert!(text.contains("NO VALID CALL of 100 (100 late, 1 too long)"), "{text}");
        let before: String = text.chars().take(22 + 2 + 8 + 2 + 6 + 2 + 7).collect();
        let numbers = text[before.len()..].split("NO VALID").next().unwrap().split_whitespace().take(8);
        assert!(numbers.clone().all(|cell| cell == "-"), "{:?}", numbers.collect::<Vec<_>>());
    }

    #[test]
    fn says_when_the_clock_is_too_coarse() {
        let mut one = row("x", "bcast", 8, 1e-6);
        assert!(!run_row(&one, WIDE).contains("UNRESOLVED"));
        one.budget = Some(Budget { clock: 0.6e-6, resolution: 0.0, sampling: 0.0 });
        assert!(run_row(&one, WIDE).contains("UNRESOLVED"));
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
        let text = compare_row(&one, [&a, &b], false, WIDE.look, "");
        assert!(text.contains("1.1000     1.0800..1.1200  slower"), "{text}");
        one.verdict = Verdict::Unresolved;
        assert!(compare_row(&one, [&a, &b], false, WIDE.look, "").contains("unresolved (below 60.00 ns)"));
        (one.ratio, one.verdict) = (None, Verdict::NoData);
        assert!(compare_row(&one, [&a, &empty("b", "bcast", 8)], false, WIDE.look, "").contains("no verdict"));
    }
}
