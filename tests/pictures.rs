// SPDX-License-Identifier: BSD-3-Clause
//! `docs/pictures/call.svg` is drawn from `call.txt` beside it, whose stations are places in the source. With
//! `UPDATE_DOCS=1` in the environment the picture is written anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const MOST_STATIONS: usize = 10;
const WIDTH: usize = 470;
const HEIGHT: usize = 76;
const GAP: usize = 18;
const TOP: usize = 48;
/// Characters of a line of text that fit a box.
const LINE: usize = 62;

struct Station<'t> {
    file: &'t str,
    name: &'t str,
    text: &'t str,
}

struct Call<'t> {
    title: &'t str,
    stations: Vec<Station<'t>>,
}

fn parse(text: &str) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("= ") {
            calls.push(Call { title, stations: Vec::new() });
            continue;
        }
        let mut parts = line.splitn(3, " | ");
        let (Some(file), Some(name), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
            panic!("call.txt: '{line}' is not: file | name | what happens");
        };
        calls.last_mut().expect("a station stands below a call").stations.push(Station { file, name, text });
    }
    calls
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Words in lines of at most [`LINE`] characters.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("never empty");
        if !last.is_empty() && last.len() + 1 + word.len() > LINE {
            lines.push(word.to_string());
            continue;
        }
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
    }
    lines
}

fn draw(calls: &[Call<'_>]) -> String {
    let tallest = calls.iter().map(|call| call.stations.len()).max().unwrap_or(0);
    let (width, height) = (calls.len() * (WIDTH + GAP) + GAP, TOP + tallest * (HEIGHT + GAP));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (column, call) in calls.iter().enumerate() {
        let x = GAP + column * (WIDTH + GAP);
        writeln!(svg, "<text x=\"{x}\" y=\"30\" font-weight=\"bold\">{}</text>", escaped(call.title)).unwrap();
        for (row, station) in call.stations.iter().enumerate() {
            let y = TOP + row * (HEIGHT + GAP);
            if row > 0 {
                let (middle, tip) = (x + WIDTH / 2, y - 2);
                let (left, right, back, from) = (middle - 4, middle + 4, tip - 6, y - GAP);
                writeln!(
                    svg,
                    "<path d=\"M{middle} {from}V{tip}M{left} {back}L{middle} {tip}L{right} {back}\" fill=\"none\" \
                     stroke=\"#555\"/>"
                )
                .unwrap();
            }
            writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"5\" fill=\"#eef3f8\" \
                 stroke=\"#7a93ac\"/>"
            )
            .unwrap();
            let inside = x + 10;
            writeln!(
                svg,
                "<text x=\"{inside}\" y=\"{}\" font-family=\"monospace\" font-size=\"12\">{} <tspan \
                 font-weight=\"bold\">{}</tspan></text>",
                y + 20,
                escaped(station.file),
                escaped(station.name)
            )
            .unwrap();
            for (i, line) in wrapped(station.text).iter().enumerate() {
                writeln!(svg, "<text x=\"{inside}\" y=\"{}\">{}</text>", y + 42 + 18 * i, escaped(line)).unwrap();
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// A function, a macro or an entry of a table has this name there.
fn defines(source: &str, name: &str) -> bool {
    let definitions = ["fn ", "#define ", "door ", "macro_rules! "];
    let is_word = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    source.lines().any(|line| {
        definitions.iter().any(|before| {
            let sought = format!("{before}{name}");
            line.find(&sought).is_some_and(|at| is_word(&line[at + sought.len()..]))
        }) || line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(" =>") || rest.starts_with(": "))
    })
}

#[test]
fn the_picture_of_three_calls_is_drawn_from_places_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/pictures/call.txt")).unwrap();
    let calls = parse(&text);
    assert_eq!(calls.len(), 3);
    for call in &calls {
        assert!((1..=MOST_STATIONS).contains(&call.stations.len()), "{}: {}", call.title, call.stations.len());
        for Station { file, name, text } in &call.stations {
            let source = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(defines(&source, name), "call.txt: {file} has no {name}");
            assert!(wrapped(text).len() <= 2, "call.txt: the text is too long: {text}");
            assert!(file.len() + name.len() < LINE, "call.txt: too long for a box: {file} {name}");
        }
    }
    let (drawn, picture) = (draw(&calls), root.join("docs/pictures/call.svg"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&picture, &drawn).unwrap();
    }
    let kept = fs::read_to_string(&picture).unwrap_or_default();
    assert!(kept == drawn, "draw it again: UPDATE_DOCS=1 cargo test --test pictures");
}
