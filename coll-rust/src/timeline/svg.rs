// SPDX-License-Identifier: BSD-3-Clause
//! The picture: a row for each rank, what it does as colours, and a line from who writes a word to who has
//! waited for it, whose colour says how far those two are from each other. The critical path is drawn black.

use super::Drawn;
use component::sim::clock::{Cause, Distance, Machine, Record, Wait, critical};
use std::fmt::Write;

/// Where rows begin, and how long they are.
const LEFT: f64 = 90.0;
const WIDTH: f64 = 1100.0;
const TOP: f64 = 40.0;

/// By [`Cause`].
const CAUSES: [&str; Cause::COUNT] = [
    "#7f7f7f", "#6baed6", "#74c476", "#9e9ac8", "#fdae6b", "#eeeeee", "#fdd0a2", "#c7e9c0", "#a1d99b", "#e7ba52",
    "#e7969c",
];
/// By [`Distance`].
const DISTANCES: [&str; Distance::COUNT] = ["#000000", "#66c2a5", "#1b9e77", "#386cb0", "#984ea3", "#e41a1c"];

/// A step of the scale, in nanoseconds: 1, 2 or 5 times a power of ten, ten or so to the picture.
fn step(ns: f64) -> f64 {
    let power = 10_f64.powf((ns / 10.0).max(1e-3).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|of| of * power).find(|step| ns / step <= 12.0).unwrap_or(ns)
}

/// As text in XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The picture of an operation.
pub fn picture(machine: &Machine, drawn: &Drawn) -> String {
    let end = drawn.records.iter().map(Record::end).max().unwrap_or(0).max(1);
    let ranks = drawn.records.len();
    let row = (1200.0 / ranks as f64).clamp(5.0, 22.0);
    let x = |time: u64| LEFT + WIDTH * time as f64 / end as f64;
    let y = |rank: usize| TOP + row * rank as f64;
    let bottom = y(ranks);
    let (wide, high) = (LEFT + WIDTH + 30.0, bottom + 75.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide:.0} {high:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"20\" \
         font-size=\"14\">{}: {:.2} µs</text>\n",
        escaped(&drawn.title),
        drawn.prediction.time as f64 / 1e6,
    );
    for (rank, record) in drawn.records.iter().enumerate() {
        if row >= 9.0 || rank % 8 == 0 {
            let at = y(rank) + row / 2.0 + 4.0;
            let _ = writeln!(out, "<text x=\"4\" y=\"{at:.1}\">{rank}, core {}</text>", drawn.cores[rank]);
        }
        for span in &record.spans {
            let _ = writeln!(
                out,
                "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\"/>",
                x(span.from),
                y(rank) + row * 0.15,
                x(span.to) - x(span.from),
                row * 0.7,
                CAUSES[span.cause as usize]
            );
        }
    }
    let path = critical(&drawn.records);
    let mut line = |rank: usize, wait: &Wait, colour: &str, width: f64| {
        let _ = writeln!(
            out,
            "<line x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
            x(wait.written),
            y(wait.by) + row / 2.0,
            x(wait.seen),
            y(rank) + row / 2.0,
        );
    };
    for (rank, record) in drawn.records.iter().enumerate() {
        for wait in record.waits.iter().filter(|wait| wait.seen > wait.from) {
            let far = machine.shape.distance(drawn.cores[wait.by], drawn.cores[rank]);
            line(rank, wait, DISTANCES[far as usize], 0.8);
        }
    }
    path.iter().for_each(|(rank, wait)| line(*rank, wait, "#000000", 1.8));
    scale(&mut out, end, bottom);
    legend(&mut out, machine, drawn, bottom + 38.0);
    out + "</svg>\n"
}

/// Ticks of time below the rows.
fn scale(out: &mut String, end: u64, bottom: f64) {
    let ns = end as f64 / 1000.0;
    let step = step(ns);
    for tick in (0..).map(|i| f64::from(i) * step).take_while(|tick| *tick <= ns) {
        let at = LEFT + WIDTH * tick / ns;
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom:.1}\" stroke=\"#00000022\"/><text x=\"{at:.1}\" \
             y=\"{:.1}\" text-anchor=\"middle\">{tick} ns</text>",
            bottom + 14.0
        );
    }
}

/// What the colours mean: of what is in the picture.
fn legend(out: &mut String, machine: &Machine, drawn: &Drawn, at: f64) {
    let mut x = LEFT;
    let mut entry = |mark: &str, text: &str| {
        let _ =
            writeln!(out, "<g transform=\"translate({x:.0},{at:.0})\">{mark}<text x=\"20\" y=\"9\">{text}</text></g>");
        x += 60.0 + 6.0 * text.len() as f64;
    };
    for cause in Cause::ALL {
        if drawn.records.iter().flat_map(|record| &record.spans).any(|span| span.cause == cause) {
            let mark = format!("<rect width=\"14\" height=\"10\" fill=\"{}\"/>", CAUSES[cause as usize]);
            entry(&mark, cause.name());
        }
    }
    let waits =
        || drawn.records.iter().enumerate().flat_map(|(rank, record)| record.waits.iter().map(move |w| (rank, w)));
    let is_there = |far: Distance| {
        waits().any(|(rank, wait)| machine.shape.distance(drawn.cores[wait.by], drawn.cores[rank]) == far)
    };
    let mark =
        |colour: &str| format!("<line x1=\"0\" y1=\"5\" x2=\"14\" y2=\"5\" stroke=\"{colour}\" stroke-width=\"2\"/>");
    for far in Distance::ALL.into_iter().filter(|far| is_there(*far)) {
        entry(&mark(DISTANCES[far as usize]), &format!("a word, within {}", far.name()));
    }
    entry(&mark("#000000"), "the critical path");
}
