// SPDX-License-Identifier: BSD-3-Clause
//! Several results files brought together: runs of one label are repetitions, different labels are compared.

use super::{About, Comparison, Results, Row};
use crate::error::{Error, Result};
use crate::op::{Setting, pairs};
use crate::stats::{Budget, judge, of_runs, relative_error, summarise};

/// The rows of all runs for one tuple of independent variables.
#[derive(Debug, Clone)]
pub struct Cell<'a> {
    /// What was measured.
    pub setting: &'a Setting,
    /// Number of processes.
    pub processes: usize,
    /// For each label, in the order of [`Groups::labels`], its rows; the place is the number of the run.
    pub runs: Vec<Vec<&'a Row>>,
}

/// Results by label and by what was measured.
#[derive(Debug, Clone)]
pub struct Groups<'a> {
    /// In the order of their first appearance.
    pub labels: Vec<&'a str>,
    /// In the order of their first appearance.
    pub cells: Vec<Cell<'a>>,
}

/// Whether two settings are of the same thing: contents do not matter.
pub fn same(a: &Setting, b: &Setting) -> bool {
    Setting { seed: 0, verify: false, ..a.clone() } == Setting { seed: 0, verify: false, ..b.clone() }
}

/// How repeatable one cell is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeated {
    /// Runs.
    pub runs: usize,
    /// Mean over the runs of this tool's mean, seconds, and the relative standard error of that.
    pub mean: (f64, f64),
    /// The same of the ordinary loop.
    pub ordinary: (f64, f64),
}

impl<'a> Groups<'a> {
    /// Brings files together; the order of the files is the order of the runs.
    pub fn new(files: &'a [Results]) -> Groups<'a> {
        let mut groups = Groups { labels: vec![], cells: vec![] };
        for row in files.iter().flat_map(|f| &f.rows) {
            let label = groups.labels.iter().position(|l| *l == row.label).unwrap_or_else(|| {
                groups.labels.push(&row.label);
                groups.labels.len() - 1
            });
            let is = |c: &Cell| c.processes == row.processes && same(c.setting, &row.setting);
            let place = groups.cells.iter().position(is).unwrap_or_else(|| {
                groups.cells.push(Cell { setting: &row.setting, processes: row.processes, runs: vec![] });
                groups.cells.len() - 1
            });
            let runs = &mut groups.cells[place].runs;
            runs.resize(runs.len().max(label + 1), vec![]);
            runs[label].push(row);
        }
        for cell in &mut groups.cells {
            cell.runs.resize(groups.labels.len(), vec![]);
        }
        groups
    }

    /// One row for each cell and label, and every other label against `base` (a label; by default the first).
    pub fn merge(&self, base: Option<&str>, about: About, confidence: f64) -> Result<Results> {
        let base = match base {
            None => 0,
            Some(name) => self.labels.iter().position(|l| *l == name).ok_or_else(|| {
                let labels: Vec<String> = self.labels.iter().map(|l| format!("'{l}'")).collect();
                Error::usage(format!("no file has the label '{name}'; those there are: {}", labels.join(", ")))
            })?,
        };
        let mut rows = Vec::new();
        let mut comparisons = Vec::new();
        for cell in &self.cells {
            let merged: Vec<Option<Row>> = cell.runs.iter().map(|runs| over_runs(runs, confidence)).collect();
            for label in (0..self.labels.len()).filter(|l| *l != base) {
                if let (Some(a), Some(b)) = (&merged[base], &merged[label]) {
                    comparisons.push(compare(&cell.runs[base], &cell.runs[label], a, b, confidence));
                }
            }
            rows.extend(merged.into_iter().flatten());
        }
        Ok(Results {
            format: super::results::FORMAT.to_owned(),
            version: super::results::VERSION,
            about,
            plan: None,
            trim: 0.0,
            confidence,
            rows,
            comparisons,
        })
    }
}

impl Cell<'_> {
    /// How repeatable the runs of one label are; `None` where fewer than two have both numbers.
    pub fn repeated(&self, label: usize) -> Option<Repeated> {
        let both = |row: &&Row| Some((row.summary.as_ref()?.mean, row.ordinary?.rank0));
        let (means, ordinary): (Vec<f64>, Vec<f64>) = self.runs[label].iter().filter_map(both).unzip();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        Some(Repeated {
            runs: means.len(),
            mean: (mean(&means), relative_error(&means)?),
            ordinary: (mean(&ordinary), relative_error(&ordinary)?),
        })
    }
}

/// Several runs of one case as one row: its samples are the runs' means. One run stays as it is. `None` for
/// none.
fn over_runs(runs: &[&Row], confidence: f64) -> Option<Row> {
    let first: &Row = runs.first()?;
    if runs.len() == 1 {
        return Some(first.clone());
    }
    let means: Vec<f64> = runs.iter().filter_map(|r| Some(r.summary.as_ref()?.mean)).collect();
    let summary = summarise(&means, 0.0, confidence);
    let worst = |part: fn(&Budget) -> f64| runs.iter().filter_map(|r| r.budget.as_ref().map(part)).fold(0.0, f64::max);
    let mut notes = vec![format!("{} runs", runs.len())];
    if means.len() < runs.len() {
        notes.push(format!("{} of them without a valid call", runs.len() - means.len()));
    }
    let mut own: Vec<String> = runs.iter().flat_map(|r| r.notes.iter().cloned()).collect();
    own.sort_unstable();
    own.dedup();
    notes.extend(own);
    Some(Row {
        calls: runs.iter().map(|r| r.calls).sum(),
        late: runs.iter().map(|r| r.late).sum(),
        long: runs.iter().map(|r| r.long).sum(),
        first: runs.iter().filter_map(|r| r.first.first().copied()).collect(),
        spread: crate::stats::median(&runs.iter().filter_map(|r| r.spread).collect::<Vec<_>>()),
        budget: summary.as_ref().map(|s| Budget {
            clock: worst(|b| b.clock),
            resolution: worst(|b| b.resolution),
            sampling: s.interval,
        }),
        rate: summary.as_ref().and_then(|s| pairs::rate(&first.setting, first.processes, s.mean)),
        summary,
        ordinary: None,
        overlap: None,
        ranks: vec![],
        samples: vec![],
        passes: vec![],
        notes,
        ..first.clone()
    })
}

fn compare(first: &[&Row], second: &[&Row], a: &Row, b: &Row, confidence: f64) -> Comparison {
    let mean = |row: &Row| row.summary.as_ref().map(|s| s.mean);
    let pairs: Vec<(f64, f64)> = first.iter().zip(second).filter_map(|(x, y)| Some((mean(x)?, mean(y)?))).collect();
    let ratio = of_runs(&pairs, confidence);
    let floor = [a, b].iter().filter_map(|r| r.budget.map(|x| x.systematic())).fold(0.0, f64::max);
    let mut notes = Vec::new();
    if pairs.len() < 2 {
        notes.push("an interval over runs needs two runs of each label or more".to_owned());
    }
    if first.len() != second.len() {
        notes.push(format!("{} against {} runs: the surplus is left out", first.len(), second.len()));
    }
    Comparison {
        setting: a.setting.clone(),
        processes: a.processes,
        a: a.label.clone(),
        b: b.label.clone(),
        verdict: judge(ratio.as_ref(), mean(a).unwrap_or(0.0), floor),
        ratio,
        overlap: None,
        floor,
        notes,
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{empty, results, row};
    use super::*;
    use crate::stats::Verdict;

    fn runs() -> Vec<Results> {
        let factor = [1.0, 1.02, 0.99, 1.01];
        let both = factor.iter().flat_map(|f| {
            [
                results(vec![row("one", "bcast", 8, 10e-6 * f), row("one", "bcast", 64, 20e-6 * f)]),
                results(vec![row("two", "bcast", 8, 13e-6 * f), empty("two", "bcast", 64)]),
            ]
        });
        both.collect()
    }

    #[test]
    fn labels_against_each_other() {
        let files = runs();
        let groups = Groups::new(&files);
        assert_eq!(groups.labels, ["one", "two"]);
        assert_eq!((groups.cells.len(), groups.cells[0].runs[1].len()), (2, 4));
        let merged = groups.merge(None, About::default(), 0.95).unwrap();
        assert_eq!((merged.rows.len(), merged.comparisons.len()), (4, 2));
        let ratio = merged.comparisons[0].ratio.unwrap();
        assert!((ratio.ratio - 1.3).abs() < 1e-9 && ratio.blocks == 4, "{ratio:?}");
        assert_eq!(merged.comparisons[0].verdict, Verdict::Slower);
        assert_eq!(merged.comparisons[1].verdict, Verdict::NoData, "no valid call in one of them");
        assert_eq!(merged.rows[3].summary, None);
        let other = groups.merge(Some("two"), About::default(), 0.95).unwrap();
        assert_eq!(other.comparisons[0].verdict, Verdict::Faster);
        let error = groups.merge(Some("three"), About::default(), 0.95).unwrap_err().to_string();
        assert!(error.contains("'one', 'two'"), "{error}");
    }

    #[test]
    fn one_run_gives_no_interval() {
        let files = [results(vec![row("one", "bcast", 8, 1e-6)]), results(vec![row("two", "bcast", 8, 2e-6)])];
        let merged = Groups::new(&files).merge(None, About::default(), 0.95).unwrap();
        assert_eq!((merged.comparisons[0].ratio, merged.comparisons[0].verdict), (None, Verdict::NoData));
        assert!(merged.comparisons[0].notes[0].contains("two runs"));
    }

    #[test]
    fn other_settings_are_other_cells() {
        let mut cold = row("one", "bcast", 8, 1e-6);
        cold.setting.cache = crate::op::Cache::Cold;
        let mut reseeded = row("one", "bcast", 8, 1e-6);
        reseeded.setting.seed = 99;
        let mut more = row("one", "bcast", 8, 1e-6);
        more.processes = 4;
        let files = [results(vec![row("one", "bcast", 8, 1e-6), cold, reseeded, more])];
        let groups = Groups::new(&files);
        assert_eq!(groups.cells.iter().map(|c| c.runs[0].len()).collect::<Vec<_>>(), [2, 1, 1]);
    }

    #[test]
    fn repeats() {
        let files = runs();
        let groups = Groups::new(&files);
        let repeated = groups.cells[0].repeated(0).unwrap();
        assert_eq!(repeated.runs, 4);
        assert!((repeated.mean.1 - repeated.ordinary.1).abs() < 1e-12, "both move alike here: {repeated:?}");
        assert_eq!(groups.cells[1].repeated(1), None, "no valid calls");
    }
}
