// SPDX-License-Identifier: BSD-3-Clause
//! The page, and its checks.

use super::runs::{BLOCK, Cluster, Found, ROWS, run};
use coll_rust::sim::{Traffic, UnitBuffer, UnitType, World, count};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;

const SMALL: Cluster = Cluster { switches: 2, nodes: 4, each: 6 };
const LARGE: Cluster = Cluster { switches: 4, nodes: 64, each: 36 };

/// The ranks' groups, by levels.
fn found(cluster: &Cluster) -> BTreeMap<&'static str, Found> {
    ["auto", "node", "none"].into_iter().map(|levels| (levels, Found::new(cluster, levels))).collect()
}

fn counted(cluster: &Cluster, found: &Found, row: (&str, &str)) -> Vec<Traffic> {
    let kind = |from, to| cluster.kind(from, to);
    count(cluster.ranks() as u32, 3, kind, async |ep| run(found, ep, row, |len| ep.nowhere(len, 1)).await)
}

fn line(row: (&str, &str), traffic: &[Traffic]) -> String {
    let mut line = format!("| {} | {} |", row.0, row.1);
    for Traffic { messages, units } in traffic {
        let _ = write!(line, " {messages} | {} |", bytes(*units));
    }
    line
}

/// In KiB where they are whole.
fn bytes(units: u64) -> String {
    match units {
        0 => "0".to_owned(),
        units if units.is_multiple_of(BLOCK as u64) => format!("{} Ki", units / BLOCK as u64),
        units => units.to_string(),
    }
}

fn table(cluster: &Cluster) -> String {
    let mut text = String::from(
        "| operation | algorithm | in nodes: messages | bytes | between nodes of a switch: messages | bytes | between \
         switches: messages | bytes |\n|---|---|---|---|---|---|---|---|\n",
    );
    let found = found(cluster);
    for &(operation, algorithm, levels) in ROWS {
        let row = (operation, algorithm);
        let _ = writeln!(text, "{}", line(row, &counted(cluster, &found[levels], row)));
    }
    text
}

fn page(small: &str, large: &str) -> String {
    let title = |cluster: &Cluster| {
        format!(
            "## {} nodes of {} processes, {} nodes on a switch",
            cluster.nodes,
            cluster.each,
            cluster.nodes / cluster.switches
        )
    };
    format!(
        "# Messages and bytes\n\n\
         What each operation sends within nodes, between nodes on one switch, and between switches, over all processes together. Counted by \
         running the algorithms themselves over an endpoint that counts. Blocks, and vectors that are broadcast or combined, have {BLOCK} bytes; of \
         Reduce_scatter each process gets a block. Ranks are numbered node by node, the root is 0, nothing is cut into segments. \"Hierarchical\" \
         has the levels node and switch, but in Alltoall the level node only, as where `coll_rust_levels` is `auto`; the others are one flat group. \
         Where the processes of a node share memory, hierarchical forms, and spread, send nothing within it, and as much as here between nodes. \
         Allgather of short blocks differs where numbers of switches, and of nodes on each, are powers of two. Then all leaders are one group, which sends more \
         messages between nodes, and as many bytes between switches. `UPDATE_DOCS=1 cargo test --release --test traffic` writes this page.\n\n{}\n\n{large}\n{}\n\n{small}",
        title(&LARGE),
        title(&SMALL),
    )
}

#[test]
fn the_page_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/traffic.md");
    let small = table(&SMALL);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page(&small, &table(&LARGE))).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let again = "UPDATE_DOCS=1 cargo test --release --test traffic";
    assert!(text.ends_with(&small), "docs/reference/traffic.md is not what the algorithms do: {again}");
    let found = Found::new(&LARGE, "auto");
    for &(operation, algorithm, _) in ROWS.iter().filter(|row| row.2 == "auto") {
        let row = (operation, algorithm);
        let line = line(row, &counted(&LARGE, &found, row));
        assert!(text.lines().any(|l| l == line), "docs/reference/traffic.md lacks: {line}: {again}");
    }
}

#[test]
fn counting_is_simulating() {
    let found = found(&SMALL);
    let (found_ref, size) = (&found, SMALL.ranks() as u32);
    for (seed, &(operation, algorithm, levels)) in (0..).zip(ROWS) {
        // The memory of all ranks lives until the run is over.
        let memory = &Mutex::new(Vec::new());
        let place = |len: usize| {
            let buffer = UnitBuffer::new(UnitType::BYTE, len);
            let span = buffer.span();
            memory.lock().unwrap().push(buffer);
            span
        };
        let row = (operation, algorithm);
        let stats = World::new(size).run_seed(seed, |ep| async move { run(&found_ref[levels], &ep, row, place).await });
        let stats = stats.unwrap_or_else(|failed| panic!("{row:?}: {failed}"));
        let mut simulated = vec![Traffic::default(); 3];
        for (&(from, to), traffic) in &stats.pairs {
            let at = &mut simulated[SMALL.kind(from, to)];
            at.messages += traffic.messages;
            at.units += traffic.units;
        }
        assert_eq!(counted(&SMALL, &found[levels], row), simulated, "{row:?}");
    }
}

#[test]
fn hierarchies_save_messages() {
    // No other form has fewer messages between nodes or fewer bytes between switches, but for the linear
    // scan, whose messages wait for each other.
    let found = found(&SMALL);
    let network = |row: (&str, &str), levels: &str| {
        let counted = counted(&SMALL, &found[levels], row);
        (counted[1].messages + counted[2].messages, counted[2].units)
    };
    for rows in ROWS.chunk_by(|a, b| a.0 == b.0) {
        let (first, others) = rows.split_first().unwrap();
        let (messages, bytes) = network((first.0, first.1), first.2);
        for other in others.iter().filter(|other| (other.0, other.1) != ("Scan", "linear")) {
            let (more, most) = network((other.0, other.1), other.2);
            assert!(bytes <= most, "{first:?} {bytes} {other:?} {most}");
            assert!(messages <= more, "{first:?} {messages} {other:?} {more}");
        }
    }
}
