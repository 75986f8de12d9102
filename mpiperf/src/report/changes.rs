// SPDX-License-Identifier: BSD-3-Clause
//! Results of now against those of a baseline: what takes longer than it did.

use super::groups::same;
use super::{Comparison, Results, Row};
use crate::error::{Error, Result};
use crate::op::Setting;
use crate::stats::change::{Run, change, of_each};
use crate::stats::{Ratio, Verdict, judge};

/// What the compared numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Times of `run`.
    Times,
    /// Ratios of `compare` and `merge`, in which what the machine does to both variants cancels.
    Ratios,
}

/// One case, then and now.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What is said of it: `a` is then, `b` is now.
    pub comparison: Comparison,
    /// What the ratios are of, as `rust/^rust`; nothing for times.
    pub name: String,
    /// Mean over the old runs: seconds, or a ratio.
    pub old: Option<f64>,
    /// The same over the new ones.
    pub new: Option<f64>,
}

/// All cases of the baseline.
#[derive(Debug, Clone)]
pub struct Changes {
    /// What is compared.
    pub of: Of,
    /// In the order of the baseline.
    pub all: Vec<Change>,
    /// Cases that the baseline does not have.
    pub further: usize,
    /// Where and how the two were measured differently.
    pub differences: Vec<String>,
}

/// A case of one file.
struct Found<'a> {
    setting: &'a Setting,
    processes: usize,
    name: String,
    run: Option<Run>,
    /// Differences below so many seconds mean nothing; and what the difference is a share of.
    floor: f64,
    seconds: f64,
}

impl Found<'_> {
    fn is(&self, other: &Found) -> bool {
        self.processes == other.processes && self.name == other.name && same(self.setting, other.setting)
    }
}

/// A row's time. The error is that of its calls, or of its passes, if they differ by more.
fn of_row(row: &Row, confidence: f64) -> Option<Run> {
    let s = row.summary.as_ref()?;
    let calls = Run::new(s.mean, s.interval, confidence, s.kept.saturating_sub(1), s.correct)?;
    let logs: Vec<f64> = row.passes.iter().map(|time| time.ln()).collect();
    if logs.len() < 3 {
        return Some(calls);
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let error = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    Some(if error > calls.error { Run { error, freedom: logs.len() - 1, ..calls } } else { calls })
}

/// A ratio with its interval over setups or runs, of which from ten on the outermost tenths are trimmed.
fn of_ratio(ratio: &Ratio) -> Option<Run> {
    let half = (ratio.high / ratio.low).ln() / 2.0;
    let cut = ratio.blocks / 10;
    let freedom = (ratio.blocks - 2 * cut).saturating_sub(if cut > 0 { 2 } else { 1 });
    Run::new(ratio.ratio, half * ratio.ratio, ratio.confidence, freedom, ratio.pairs)
}

fn times<'a>(file: &'a Results) -> Vec<Found<'a>> {
    let found = |row: &'a Row| {
        let Row { setting, processes, summary, budget, .. } = row;
        Found {
            setting,
            processes: *processes,
            name: String::new(),
            run: of_row(row, file.confidence),
            floor: budget.map_or(0.0, |budget| budget.systematic()),
            seconds: summary.as_ref().map_or(0.0, |s| s.mean),
        }
    };
    file.rows.iter().map(found).collect()
}

fn ratios<'a>(file: &'a Results) -> Vec<Found<'a>> {
    let found = |one: &'a Comparison| {
        let Comparison { setting, processes, a, b, ratio, floor, .. } = one;
        let is = |row: &&Row| row.label == *b && row.processes == *processes && same(&row.setting, setting);
        let summary = file.rows.iter().find(is).and_then(|row| row.summary.as_ref());
        let (name, run) = (format!("{b}/{a}"), ratio.as_ref().and_then(of_ratio));
        Found { setting, processes: *processes, name, run, floor: *floor, seconds: summary.map_or(0.0, |s| s.mean) }
    };
    file.comparisons.iter().map(found).collect()
}

impl Changes {
    /// Compares; `p` is the confidence of all intervals together. A case is slower where its interval lies
    /// above 1 + `tolerance`.
    pub fn new(old: &[Results], new: &[Results], p: f64, tolerance: f64) -> Result<Changes> {
        let with = old.iter().chain(new).filter(|file| !file.comparisons.is_empty()).count();
        let of = match with {
            0 => Of::Times,
            n if n == old.len() + new.len() => Of::Ratios,
            _ => {
                return Err(Error::usage(
                    "some files hold ratios (of compare or merge) and some hold times (of run): take one kind",
                ));
            }
        };
        if old.iter().all(|file| file.rows.is_empty()) {
            return Err(Error::usage("the baseline holds no case"));
        }
        let cases = |file| if of == Of::Times { times(file) } else { ratios(file) };
        let (before, now): (Vec<Found>, Vec<Found>) =
            (old.iter().flat_map(cases).collect(), new.iter().flat_map(cases).collect());
        let mut firsts: Vec<&Found> = Vec::new();
        for found in &before {
            if !firsts.iter().any(|first| first.is(found)) {
                firsts.push(found);
            }
        }
        let each = of_each(p, firsts.len());
        let all = firsts.iter().map(|first| one(first, &before, &now, each, tolerance)).collect();
        let further = now.iter().filter(|found| !firsts.iter().any(|first| first.is(found))).count();
        Ok(Changes { of, all, further, differences: differences(old, new) })
    }

    /// The cases that take longer.
    pub fn slower(&self) -> usize {
        self.count(Verdict::Slower)
    }

    /// The cases of which nothing can be said.
    pub fn unknown(&self) -> usize {
        self.count(Verdict::NoData)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.all.iter().filter(|change| change.comparison.verdict == verdict).count()
    }

    /// What the exit status and the last line say.
    pub fn outcome(&self) -> Result<String> {
        let n = self.all.len();
        match (self.slower(), self.unknown()) {
            (0, 0) => Ok(format!("none of {n} cases is shown to be slower")),
            (0, unknown) => Err(Error::Measure(format!(
                "nothing can be said of {unknown} of {n} cases, and no other one is shown to be slower; measure them again"
            ))),
            (slower, _) => Err(Error::Slower(format!("{slower} of {n} cases are slower than the baseline"))),
        }
    }
}

fn one(first: &Found, before: &[Found], now: &[Found], confidence: f64, tolerance: f64) -> Change {
    let [old, new] = [before, now].map(|side| side.iter().filter(|found| found.is(first)).collect::<Vec<_>>());
    let [a, b] = [&old, &new].map(|side| side.iter().filter_map(|found| found.run).collect::<Vec<Run>>());
    let ratio = change(&a, &b, confidence);
    let floor = old.iter().chain(&new).map(|found| found.floor).fold(0.0, f64::max);
    let seconds = old.iter().map(|found| found.seconds).sum::<f64>() / old.len() as f64;
    let mut verdict = judge(ratio.as_ref(), seconds, floor);
    let mut notes = Vec::new();
    if new.is_empty() {
        notes.push("not measured now".to_owned());
    }
    if let (Verdict::Slower, Some(found)) = (verdict, &ratio)
        && found.low <= 1.0 + tolerance
    {
        verdict = Verdict::NoDifference;
        notes.push("within the tolerance".to_owned());
    }
    let mean = |runs: &[Run]| {
        let sum: f64 = runs.iter().map(|run| run.log).sum();
        (!runs.is_empty()).then(|| (sum / runs.len() as f64).exp())
    };
    Change {
        comparison: Comparison {
            setting: first.setting.clone(),
            processes: first.processes,
            a: "baseline".to_owned(),
            b: "now".to_owned(),
            ratio,
            verdict,
            overlap: None,
            floor,
            notes,
        },
        name: first.name.clone(),
        old: mean(&a),
        new: mean(&b),
    }
}

/// What a file says of where and how it was made.
type Field = fn(&Results) -> String;

/// What a reader must know before blaming the library.
fn differences(old: &[Results], new: &[Results]) -> Vec<String> {
    let values = |files: &[Results], field: Field| {
        let mut all: Vec<String> = files.iter().map(field).collect();
        all.sort_unstable();
        all.dedup();
        all.join(", ")
    };
    let fields: [(&str, Field); 5] = [
        ("library", |file| file.about.library.clone()),
        ("processor", |file| file.about.processor.clone()),
        ("cores", |file| file.about.cores.to_string()),
        ("kernel", |file| file.about.kernel.clone()),
        ("environment", |file| {
            let pair = |(name, value): &(String, String)| format!("{name}={value}");
            file.about.environment.iter().map(pair).collect::<Vec<_>>().join(" ")
        }),
    ];
    let differs = |(name, field): &(&str, Field)| {
        let (then, now) = (values(old, *field), values(new, *field));
        (then != now).then(|| format!("{name}: {then} in the baseline, {now} now"))
    };
    fields.iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{empty, results, row};
    use super::*;

    fn file(times: &[f64]) -> Results {
        let rows = times.iter().zip([8, 64, 512]).map(|(time, bytes)| row("x", "bcast", bytes, *time));
        results(rows.collect())
    }

    fn verdicts(changes: &Changes) -> Vec<Verdict> {
        changes.all.iter().map(|change| change.comparison.verdict).collect()
    }

    #[test]
    fn what_takes_longer_is_told() {
        let changes = Changes::new(&[file(&[10e-6; 3])], &[file(&[10e-6, 15e-6, 7e-6])], 0.99, 0.1).unwrap();
        assert_eq!(verdicts(&changes), [Verdict::NoDifference, Verdict::Slower, Verdict::Faster]);
        let error = changes.outcome().unwrap_err();
        assert_eq!((error.status(), error.to_string()), (4, "1 of 3 cases are slower than the baseline".to_owned()));
        let tolerant = Changes::new(&[file(&[10e-6; 3])], &[file(&[10e-6, 15e-6, 7e-6])], 0.99, 0.6).unwrap();
        assert_eq!(tolerant.outcome().unwrap(), "none of 3 cases is shown to be slower");
        assert_eq!(tolerant.all[1].comparison.notes, ["within the tolerance"]);
    }

    #[test]
    fn what_was_not_measured_is_no_success() {
        let mut now = file(&[10e-6, 10e-6]);
        now.rows[1] = empty("x", "bcast", 64);
        now.rows.push(row("x", "reduce", 8, 1e-6));
        let changes = Changes::new(&[file(&[10e-6; 3])], &[now], 0.99, 0.1).unwrap();
        assert_eq!(verdicts(&changes), [Verdict::NoDifference, Verdict::NoData, Verdict::NoData]);
        assert_eq!(changes.all[2].comparison.notes, ["not measured now"]);
        assert_eq!((changes.outcome().unwrap_err().status(), changes.further), (1, 1));
        assert_eq!(Changes::new(&[results(vec![])], &[file(&[1e-6])], 0.99, 0.1).unwrap_err().status(), 2);
    }

    #[test]
    fn passes_that_differ_widen_the_interval() {
        let mut now = file(&[12e-6]);
        let narrow = Changes::new(&[file(&[10e-6])], &[now.clone()], 0.99, 0.1).unwrap();
        assert_eq!(verdicts(&narrow), [Verdict::Slower]);
        now.rows[0].passes = vec![10e-6, 12e-6, 14e-6];
        let wide = Changes::new(&[file(&[10e-6])], &[now], 0.99, 0.1).unwrap();
        assert_eq!(verdicts(&wide), [Verdict::NoDifference]);
    }

    #[test]
    fn ratios_against_ratios() {
        let with = |ratio: f64| {
            let mut file = results(vec![row("tuned", "bcast", 8, 2e-6), row("rust", "bcast", 8, 1e-6)]);
            let ratio =
                Ratio { ratio, low: ratio / 1.03, high: ratio * 1.03, confidence: 0.99, pairs: 300, blocks: 10 };
            file.comparisons = vec![Comparison {
                setting: file.rows[0].setting.clone(),
                processes: 2,
                a: "tuned".into(),
                b: "rust".into(),
                ratio: Some(ratio),
                verdict: Verdict::Faster,
                overlap: None,
                floor: 10e-9,
                notes: vec![],
            }];
            file
        };
        let changes = Changes::new(&[with(0.5)], &[with(0.7)], 0.99, 0.1).unwrap();
        assert_eq!((changes.of, verdicts(&changes)), (Of::Ratios, vec![Verdict::Slower]));
        assert_eq!(changes.all[0].name, "rust/tuned");
        assert_eq!(verdicts(&Changes::new(&[with(0.5)], &[with(0.52)], 0.99, 0.1).unwrap()), [Verdict::NoDifference]);
        assert_eq!(Changes::new(&[with(0.5)], &[file(&[1e-6])], 0.99, 0.1).unwrap_err().status(), 2);
    }

    #[test]
    fn other_machines_are_told() {
        let mut now = file(&[1e-6]);
        now.about.processor = "Other".into();
        now.about.environment = vec![("OMPI_MCA_coll".into(), "^rust".into())];
        let changes = Changes::new(&[file(&[1e-6])], &[now], 0.99, 0.1).unwrap();
        let told = ["processor:  in the baseline, Other now", "environment:  in the baseline, OMPI_MCA_coll=^rust now"];
        assert_eq!(changes.differences, told);
    }
}
