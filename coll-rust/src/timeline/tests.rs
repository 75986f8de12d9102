// SPDX-License-Identifier: BSD-3-Clause
use super::*;
use crate::cli::{Cli, Command};
use clap::Parser;
use component::sim::clock::critical;

fn args(line: &str) -> Args {
    let words = ["coll-rust", "timeline", "--machine", "m.toml", "--warm", "9"];
    let cli = Cli::try_parse_from(words.into_iter().chain(line.split(' '))).unwrap_or_else(|error| panic!("{error}"));
    let Command::Timeline(args) = cli.command else { panic!("not timeline") };
    args
}

fn machine() -> &'static Machine {
    let text = include_str!("../../../machines/epyc-9654-2s.toml");
    Box::leak(Box::new(machine::parse("m.toml", text).expect("a machine")))
}

#[test]
fn spans_and_the_critical_path_make_up_the_time() {
    let machine = machine();
    let drawn = drawn(&args("--operation bcast --ranks 24 --levels l3,node"), machine).expect("a timeline");
    assert_eq!((drawn.records.len(), drawn.cores.len()), (24, 24));
    for record in &drawn.records {
        let sum: u64 = record.spans.iter().map(|span| span.to - span.from).sum();
        assert_eq!(sum, record.end(), "no gaps");
        assert!(record.end() <= drawn.prediction.time);
    }
    let path = critical(&drawn.records);
    let last = drawn.records.iter().map(Record::end).max();
    assert_eq!(last, Some(drawn.prediction.time));
    // Along the tree: the last one waits for its leader, who has waited for the root.
    let (rank, wait) = path[0];
    assert!(rank % 8 != 0 && wait.by == rank / 8 * 8, "{path:?}");
    assert_eq!(path.last().map(|(_, wait)| wait.by), Some(0), "{path:?}");
    let picture = svg::picture(machine, &drawn);
    assert_eq!(picture, svg::picture(machine, &drawn));
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    let rows = drawn.records.iter().map(|record| record.spans.len()).sum::<usize>();
    assert!(picture.matches("<rect x=").count() == rows, "a box for each span");
    for text in ["bcast of 8 B, 24 ranks, tree, 2 × EPYC 9654", "a word, within numa", "the critical path"] {
        assert!(picture.contains(text), "{text}");
    }
}

#[test]
fn what_cannot_be_drawn_is_told() {
    let told = |line| drawn(&args(line), machine()).map(|_| ()).unwrap_err();
    assert_eq!(told("--operation bcast --bytes 8,16"), "--bytes: a picture is of one length");
    assert!(told("--operation bcast --ranks 193").starts_with("193 ranks: "));
}
