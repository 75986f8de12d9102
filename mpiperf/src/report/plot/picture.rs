// SPDX-License-Identifier: BSD-3-Clause
//! What a picture shows, out of results: panels, curves, names. Pure.

use crate::op::{Root, Setting};
use crate::report::units::percent;
use crate::report::{Results, Row};

/// One point of a curve; the band is open where there is no interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Message size, or number of processes.
    pub x: f64,
    /// Time in seconds, or ratio.
    pub y: f64,
    /// Lower and upper end of the band.
    pub band: Option<(f64, f64)>,
}

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its place in [`Picture::names`], which sets colour and marker.
    pub name: usize,
    /// Ascending in x.
    pub points: Vec<Point>,
}

/// One operation: times, and ratios below them.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The operation.
    pub title: String,
    /// The horizontal axis is a message size, not a number of processes.
    pub sized: bool,
    /// Times.
    pub times: Vec<Curve>,
    /// Ratios, and what they are ratios to.
    pub ratios: Vec<Curve>,
    /// Label of the first variant of the ratios.
    pub base: Option<String>,
    /// Cases without a valid call, which no curve shows.
    pub missing: usize,
}

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Names of the curves, for the legend.
    pub names: Vec<String>,
    /// One for each operation.
    pub panels: Vec<Panel>,
    /// What is written below.
    pub footer: String,
}

/// What can tell rows of one operation apart, beside the size.
fn traits(label: &str, processes: usize, s: &Setting) -> Vec<String> {
    let root = match s.root {
        Root::Fixed(rank) => format!("root {rank}"),
        Root::Rotating => "rotating root".to_owned(),
    };
    let lower = |text: String| text.to_lowercase();
    vec![
        label.to_owned(),
        format!("{processes} processes"),
        s.datatype.clone(),
        s.reduction.clone(),
        root,
        if s.in_place { "in place" } else { "two buffers" }.to_owned(),
        lower(format!("{:?} counts", s.counts)),
        lower(format!("{:?} buffers", s.cache)),
        format!("aligned to {}", s.align),
        lower(format!("{:?}", s.topology)),
    ]
}

/// Whether the horizontal axis of an operation is the message size.
fn sized(setting: &Setting) -> bool {
    crate::op::find(&setting.operation).map_or(setting.bytes > 0, |o| o.sized)
}

impl Picture {
    /// What to show of `results`.
    pub fn new(results: &Results) -> Picture {
        let varies = Varying::of(&results.rows);
        let mut picture = Picture { names: vec![], panels: vec![], footer: footer(results) };
        for row in &results.rows {
            let name = picture.name(varies.name(&row.label, row.processes, &row.setting));
            let panel = picture.panel(&row.setting);
            let x = if panel.sized { row.setting.bytes } else { row.processes } as f64;
            match &row.summary {
                Some(s) => add(&mut panel.times, name, Point { x, y: s.mean, band: band(s.mean, s.interval) }),
                None => panel.missing += 1,
            }
        }
        let several = results.comparisons.iter().any(|c| c.a != results.comparisons[0].a);
        for c in &results.comparisons {
            let Some(ratio) = c.ratio else { continue };
            let mut name = varies.name(&c.b, c.processes, &c.setting);
            if several {
                name = format!("{name} against {}", c.a);
            }
            let name = picture.name(name);
            let panel = picture.panel(&c.setting);
            let x = if panel.sized { c.setting.bytes } else { c.processes } as f64;
            add(&mut panel.ratios, name, Point { x, y: ratio.ratio, band: Some((ratio.low, ratio.high)) });
            panel.base = (!several).then(|| c.a.clone());
        }
        for panel in &mut picture.panels {
            for curve in panel.times.iter_mut().chain(&mut panel.ratios) {
                curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
            }
        }
        picture
    }

    fn name(&mut self, name: String) -> usize {
        self.names.iter().position(|n| *n == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    fn panel(&mut self, setting: &Setting) -> &mut Panel {
        let place = self.panels.iter().position(|p| p.title == setting.operation).unwrap_or_else(|| {
            let title = setting.operation.clone();
            let sized = sized(setting);
            self.panels.push(Panel { title, sized, times: vec![], ratios: vec![], base: None, missing: 0 });
            self.panels.len() - 1
        });
        &mut self.panels[place]
    }

    /// Whether there is anything to draw.
    pub fn is_empty(&self) -> bool {
        self.panels.iter().all(|p| p.times.is_empty() && p.ratios.is_empty())
    }
}

fn add(curves: &mut Vec<Curve>, name: usize, point: Point) {
    match curves.iter_mut().find(|c| c.name == name) {
        Some(curve) => curve.points.push(point),
        None => curves.push(Curve { name, points: vec![point] }),
    }
}

fn band(mean: f64, interval: f64) -> Option<(f64, f64)> {
    // A logarithmic axis has no room below zero.
    interval.is_finite().then(|| ((mean - interval).max(mean * 0.01), mean + interval))
}

/// Which traits differ between rows: only those are part of a curve's name.
struct Varying(Vec<bool>);

impl Varying {
    fn of(rows: &[Row]) -> Varying {
        let mut varies = Varying(vec![]);
        for pair in rows.windows(2) {
            let [a, b] = [&pair[0], &pair[1]].map(|r| traits(&r.label, r.processes, &r.setting));
            varies.0.resize(a.len(), false);
            let both_sized = sized(&pair[0].setting) && sized(&pair[1].setting);
            for (i, flag) in varies.0.iter_mut().enumerate() {
                // Datatypes follow the operation, and where there is no size, processes are the axis.
                let counts = match i {
                    1 => both_sized,
                    2 => pair[0].setting.operation == pair[1].setting.operation,
                    _ => true,
                };
                *flag |= counts && a[i] != b[i];
            }
        }
        varies
    }

    fn name(&self, label: &str, processes: usize, setting: &Setting) -> String {
        let all = traits(label, processes, setting);
        let mut parts = vec![all[0].clone()];
        let rest = all.iter().zip(&self.0).skip(1).filter(|(_, varies)| **varies).map(|(text, _)| text.clone());
        parts.extend(rest);
        parts.join(", ")
    }
}

fn footer(results: &Results) -> String {
    let about = &results.about;
    let mut parts = Vec::new();
    let mut processes: Vec<usize> = results.rows.iter().map(|r| r.processes).collect();
    processes.sort_unstable();
    processes.dedup();
    if let [n] = processes[..] {
        parts.push(format!("{n} processes"));
    }
    if !about.processor.is_empty() {
        parts.push(about.processor.clone());
    }
    parts.push(format!("bands: {} confidence", percent(results.confidence)));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::{empty, results, row};
    use super::*;
    use crate::report::Comparison;
    use crate::stats::{Ratio, Verdict};

    #[test]
    fn curves_by_label_and_panels_by_operation() {
        let mut all = results(vec![
            row("one", "bcast", 64, 2e-6),
            row("one", "bcast", 8, 1e-6),
            row("two", "bcast", 8, 3e-6),
            empty("two", "bcast", 64),
            row("one", "reduce", 8, 1e-6),
        ]);
        all.rows[4].setting.datatype = "float".into();
        let ratio = Ratio { ratio: 3.0, low: 2.9, high: 3.1, confidence: 0.95, pairs: 5, blocks: 5 };
        all.comparisons = vec![Comparison {
            setting: all.rows[1].setting.clone(),
            processes: 2,
            a: "one".into(),
            b: "two".into(),
            ratio: Some(ratio),
            verdict: Verdict::Slower,
            overlap: None,
            floor: 0.0,
            notes: vec![],
        }];
        let picture = Picture::new(&all);
        assert_eq!(picture.names, ["one", "two"]);
        assert_eq!(picture.panels.iter().map(|p| p.title.as_str()).collect::<Vec<_>>(), ["bcast", "reduce"]);
        let bcast = &picture.panels[0];
        assert_eq!(bcast.times[0].points.iter().map(|p| p.x).collect::<Vec<_>>(), [8.0, 64.0]);
        assert_eq!((bcast.missing, bcast.ratios[0].name, bcast.base.as_deref()), (1, 1, Some("one")));
        assert!(picture.footer.contains("2 processes"));
    }

    #[test]
    fn what_differs_is_named() {
        let mut rows = vec![row("one", "bcast", 8, 1e-6), row("one", "bcast", 8, 1e-6), row("one", "bcast", 8, 1e-6)];
        rows[1].setting.cache = crate::op::Cache::Cold;
        rows[2].processes = 4;
        let picture = Picture::new(&results(rows));
        let want =
            ["one, 2 processes, warm buffers", "one, 2 processes, cold buffers", "one, 4 processes, warm buffers"];
        assert_eq!(picture.names, want);
    }

    #[test]
    fn nothing_valid_is_nothing_to_draw() {
        assert!(Picture::new(&results(vec![empty("one", "bcast", 8)])).is_empty());
    }
}
