// SPDX-License-Identifier: BSD-3-Clause
use super::*;
use crate::cli::{Cli, Command};
use clap::Parser;
use serde_json::Value;

/// What `coll-rust predict` with these arguments would read.
fn args(line: &str) -> Args {
    let words = ["coll-rust", "predict", "--machine", "m.toml", "--warm", "5", "--rounds", "3"];
    let cli = Cli::try_parse_from(words.into_iter().chain(line.split(' '))).unwrap_or_else(|error| panic!("{error}"));
    let Command::Predict(args) = cli.command else { panic!("not predict") };
    args
}

fn machine(change: impl Fn(String) -> String) -> &'static Machine {
    let text = include_str!("../../../machines/epyc-9654-2s.toml").to_owned();
    Box::leak(Box::new(machine::parse("m.toml", &change(text)).expect("a machine")))
}

fn predicted(line: &str, machine: &'static Machine) -> Vec<Row> {
    rows(&args(line), machine).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn two_runs_are_equal_to_the_bit() {
    let machine = machine(|text| text);
    let line = "--operation barrier,bcast,allreduce,alltoall --bytes 8,16k --ranks 12 --map socket --json";
    let run = || report::json(&args(line), machine, &predicted(line, machine));
    let (one, other) = (run(), run());
    assert!(one == other, "{one}\n{other}");
    let value: Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!((&value["schema"], &value["cores"], &value["map"]), (&1.into(), &192.into(), &"socket".into()));
    let rows = value["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 7, "a barrier has no sizes");
    for row in rows {
        // Causes make up the time, but for what a mean of whole picoseconds loses.
        let time = row["time_ns"].as_f64().expect("a time");
        let causes: f64 = row["causes_ns"].as_object().expect("causes").values().filter_map(Value::as_f64).sum();
        assert!(time > 50.0 && (time - causes).abs() < 0.01, "{row}");
        assert!(row["lines"]["node"].as_u64() > Some(0), "ranks on both sockets: {row}");
        assert_eq!(row["lines"]["l2"], 0, "no level-2 cache is shared: {row}");
    }
}

#[test]
fn slower_handovers_give_longer_times_and_another_cause() {
    let near = machine(|text| text);
    let far = machine(|text| text.replacen("\nnuma = 100 ", "\nnuma = 1000 ", 1));
    let line = "--operation allreduce --bytes 8 --ranks 32 --levels none";
    let (near, far) = (predicted(line, near), predicted(line, far));
    let waits = |row: &Row| row.prediction.by[1] + row.prediction.by[5];
    assert!(far[0].prediction.time > 3 * near[0].prediction.time);
    let grown = far[0].prediction.time - near[0].prediction.time;
    assert!(waits(&far[0]) - waits(&near[0]) > grown * 9 / 10, "lines and waiting have become longer, nothing else");
    assert_eq!(near[0].prediction.counts.lines[4], 0, "there is one NUMA node to a socket");
}

#[test]
fn comparisons_are_sorted_and_differ() {
    let machine = machine(|text| text);
    let rows = predicted("--operation reduce --bytes 8 --ranks 64 --map socket --compare", machine);
    assert!(rows.is_sorted_by_key(|row| row.prediction.time));
    let names: std::collections::BTreeSet<_> = rows.iter().map(|row| row.setting.as_str()).collect();
    assert_eq!(names.len(), rows.len());
    let wanted = ["auto", "inline", "l3,node", "node by 8", "none", "numa,node", "numa,node by 8"];
    assert!(wanted.iter().all(|name| names.contains(name)), "{names:?}");
    let time = |name: &str| rows.iter().find(|row| row.setting == name).map(|row| row.prediction.time);
    assert!(time("l3,node") < time("none"), "a tree by cache is better than a root that reads everybody");
    assert_eq!(time("inline"), time("none"), "the same way, once by force");
}

#[test]
fn ways_that_cannot_be_are_told() {
    let machine = machine(|text| text);
    let told = rows(&args("--operation bcast --bytes 8k --ranks 4 --way inline"), machine).map(|_| ()).unwrap_err();
    assert!(told.starts_with("bcast of 8192 bytes among 4 ranks cannot go by inline: "), "{told}");
    let told = rows(&args("--operation bcast --ranks 193"), machine).map(|_| ()).unwrap_err();
    assert_eq!(told, "193 ranks: 2 × EPYC 9654 has 192 cores, and each rank has one");
    let told = rows(&args("--operation alltoall --bytes 1m --ranks 192"), machine).map(|_| ()).unwrap_err();
    assert!(told.contains("more than 4 GiB of buffers"), "{told}");
    let rows = predicted("--operation allreduce --bytes 64k --ranks 4 --way pipeline", machine);
    assert_eq!(rows[0].way, Way::Pipeline);
    assert!(report::table(&args("--operation allreduce"), machine, &rows).contains("pipeline"));
}

/// Above 64 a set is one slot, which is used again in each round. Results are checked.
#[test]
fn many_ranks_go_round_after_round() {
    let machine = machine(|text| text);
    let ways = |line| predicted(line, machine).iter().map(|row| row.way).collect::<Vec<_>>();
    assert_eq!(ways("--operation alltoall --bytes 1k --ranks 66"), [Way::Pipeline]);
    assert_eq!(ways("--operation reduce --bytes 1k,72k --ranks 66"), [Way::Tree, Way::Split]);
}

#[test]
fn ranks_are_mapped() {
    let machine = machine(|text| text);
    assert_eq!(places(machine, Map::Core, 3), [0, 1, 2]);
    assert_eq!(places(machine, Map::Socket, 4), [0, 96, 1, 97]);
}

#[test]
fn several_nodes_are_predicted_and_compared() {
    let machine = machine(|text| text);
    let line = "--operation reduce --nodes 2 --ranks 4 --compare --messages --json";
    let report: Value = serde_json::from_str(&cluster::report(&args(line), machine).expect("a report")).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.len() > 8 && rows.is_sorted_by_key(|row| row["time_ns"].as_f64().map(f64::to_bits)));
    for row in rows {
        let path: f64 = row["path_ns"].as_object().expect("a path").values().filter_map(Value::as_f64).sum();
        assert!((path - row["time_ns"].as_f64().expect("a time")).abs() < 1e-6, "{row}");
        assert_eq!((&row["nodes"], &row["ranks"]), (&2.into(), &8.into()));
        let sent: u64 =
            row["levels"].as_object().expect("levels").values().filter_map(|of| of["messages"].as_u64()).sum();
        assert!(sent >= 7, "{row}");
    }
    let shared = |line: &str| cluster::report(&args(line), machine);
    let table = shared("--operation allreduce --nodes 2 --ranks 4").expect("a table");
    assert!(table.contains("lines moved") && table.contains("switch1") && !table.contains(" l3 "), "{table}");
    for (line, told) in [
        ("--operation alltoall --nodes 2", "alltoall over several nodes is not predicted"),
        ("--operation bcast --nodes 20000", "20000 nodes: the network of 2 × EPYC 9654 has room for 16384"),
        ("--operation bcast --nodes 2 --algorithm fast", "--algorithm or --down: "),
        ("--operation bcast --nodes 5000", "bcast 8 B, 5000 nodes, auto: more than 131072 ranks, or 4 GiB"),
        ("--operation bcast --nodes 2 --ranks 193", "193 ranks to a node: "),
    ] {
        let error = shared(line).expect_err(line);
        assert!(error.starts_with(told), "{error}");
    }
}
