// SPDX-License-Identifier: BSD-3-Clause
//! Trees of jobs that nobody runs.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn printed(line: &[&str]) -> Result<String, String> {
    let line = Line::try_parse_from([&["groups"], line].concat()).map_err(|error| error.to_string())?;
    tree(&line.args)
}

#[test]
fn a_node_is_shown_by_its_caches_and_sockets() {
    let text = printed(&["--node", "pack:2 numa:1 l3:2 core:2 pu:2"]).unwrap();
    assert_eq!(
        text,
        "8 processes on 1 node\n  node node0: ranks 0,4, leader 0\n    numa node0/0: ranks 0,2, leader 0\n      l3 node0/0: \
         ranks 0-1, leader 0\n      l3 node0/1: ranks 2-3, leader 2\n    numa node0/1: ranks 4,6, leader 4\n      l3 \
         node0/2: ranks 4-5, leader 4\n      l3 node0/3: ranks 6-7, leader 6\n"
    );
    let turns = printed(&["--node", "pack:2 core:2", "--map", "socket"]).unwrap();
    assert!(turns.contains("ranks 0,2, leader 0") && turns.contains("ranks 1,3, leader 1"), "{turns}");
}

#[test]
fn nodes_hang_on_the_switches_of_a_file() {
    let file = std::env::temp_dir().join(format!("coll-rust-groups-{}", std::process::id()));
    std::fs::write(&file, "a leaf0\nb leaf0\nc leaf1\nd leaf1\n").unwrap();
    let path = file.to_str().unwrap();
    let line = ["--nodes", "a,b,c,d", "--node", "pack:1 core:2", "--network", path];
    let text = printed(&line);
    let dot = printed(&[&line[..], &["--form", "dot", "--order", "node"]].concat());
    std::fs::remove_file(&file).unwrap();
    let text = text.unwrap();
    assert!(text.contains("leaf0") && text.contains("leaf1") && text.contains("8 processes on 4 nodes"), "{text}");
    // One rank of each node, in turns: those of node a are 0 and 4.
    assert!(dot.unwrap().contains("ranks 0,4"));
}

#[test]
fn what_is_wrong_is_named() {
    for (line, told) in [
        (&["--node", "pack:2 cores:2"][..], "'cores' in 'cores:2': accepted are pack"),
        (&["--node", "pack:2 l3:2"], "no 'core:COUNT' in it"),
        (&["--node", "pack:x core:1"], "'pack:x': no number"),
        (&["--node", "pack:2 pack:2 core:1"], "named twice"),
        (&["--node", "pack:70000 core:1"], "more than 65536"),
        (&["--nodes", "a,a"], "'a' is named twice"),
        (&["--nodes", "0"], "0 nodes; at least 1"),
        (&["--node", "core:2", "--ranks-per-node", "3"], "3 ranks for 2 cores"),
        (&["--levels", "l3,nod"], "unknown level"),
        (&["--network", "/does/not/exist"], "/does/not/exist"),
    ] {
        let error = printed(line).expect_err("it is wrong");
        assert!(error.contains(told), "{line:?}: {error}");
    }
}
