// SPDX-License-Identifier: BSD-3-Clause
//! Network files of all formats, and addresses.

use crate::random::Random;
use coll_rust::topo::{Address, Network};
use std::fmt::Write;

const TREE: &str = "# site\nSwitchName=s0 Nodes=dev[0-5,8]\nSwitchName=s1 Nodes=dev[06-11] LinkSpeed=900\nSwitchName=s2 \\\n  Nodes=a,b.site.org\n\
                    SwitchName=s3 Switches=s[0-2]\nSwitchName=s4 Switches=\"s[0-2]\"\n";
const BLOCK: &str =
    "BlockName=b1 Nodes=node[1-32]\nBlockName=b2 Nodes=node[33-64]\nBlockName=b3 Nodes=n[65-96]\nBlockSizes=30,120\n";
const RING: &str = "RingName=ring0 Nodes=node[01-08]\nRingName=ring1 Nodes=node[09-16]\n";
const TABLE: &str = "# node leaf spine\nnode01 sw11 sw21\nnode02 sw11 sw21\nnode17 sw12 sw21\n10.0.0.1 sw13 sw22\n";
const YAML: &str = "---\n- topology: topo1\n  cluster_default: true\n  tree:\n    switches:\n      - switch: root\n        children: s[1-2]\n\
                    \x20     - switch: s1\n        nodes: node[01-02]\n      - switch: s2\n        nodes: \"node[03-04]\"\n- topology: topo2\n  block:\n\
                    \x20   block_sizes:\n      - 4\n      - 16\n    blocks:\n      - block: b1\n        nodes: 'node[01-04]'\n      - {block: b2, nodes: c}\n";
const TORUS: &str = "- topology: t\n  torus3d:\n    toruses:\n      - name: pod1\n        dims: {x: 4, y: 4, z: 2}\n        regions:\n\
                     \x20         - anchor: {x: 0, y: 0, z: 0}\n            nodes: rack1-node[01-16]\n        placements:\n          - dims: {x: 2, y: 2, z: 2}\n";
const RINGS: &str = "- topology: t\n  ring:\n    rings:\n      - ring: r\n        nodes: node[01-08]\n- topology: u\n  flat:\n    alpha_step_rank: true\n";

const CLUSTERS: &str = "# node leaf cluster\nn1 a cluster:north gateway\nn2 b cluster:north\ns1 c cluster:south\n";
const SEVERAL: &str =
    "ClusterName=north Nodes=n[1-9] Gateways=n[1-2]\nClusterName=south \\\n Nodes=s[01-16],t Gateways=t\n";

const EXAMPLES: [&str; 9] = [TREE, BLOCK, RING, TABLE, YAML, TORUS, RINGS, CLUSTERS, SEVERAL];

const TOKENS: [&str; 71] = [
    "ClusterName=",
    "Gateways=",
    "TopologyFile=",
    "cluster:",
    " gateway",
    "SwitchName=",
    "Switches=",
    "Nodes=",
    "LinkSpeed=",
    "BlockName=",
    "BlockSizes=",
    "RingName=",
    "\n",
    "\r\n",
    "\\\n",
    "\\",
    "\"",
    "#",
    "=",
    ",",
    "[",
    "]",
    "[0-9]",
    "[1-1048576]",
    "[0-18446744073709551615]",
    "[1-1000][1-1000]",
    "-",
    ".",
    " ",
    "\t",
    "s0",
    "s[0-3]",
    "dev1",
    "é",
    "\u{2028}",
    "\0",
    "\u{feff}",
    "---\n",
    "...\n",
    "- ",
    ": ",
    ":",
    "? ",
    "| ",
    "|\n",
    ">\n",
    "&a ",
    "*a",
    "!!str ",
    "!",
    "%YAML 1.2\n",
    "%TAG ! x\n",
    "{",
    "}",
    "'",
    "\"\\x41\"",
    "~",
    "true",
    "false",
    "topology: x\n",
    "tree:",
    "block:",
    "ring:",
    "flat: true",
    "torus3d:",
    "switches:",
    "  ",
    "    ",
    "      ",
    "<<: ",
    "- - - - - - - -",
];

/// A file's name: YAML's, or not.
pub fn name(random: &mut Random) -> String {
    random.pick(&["topology.conf", "topology.yaml", "net"]).to_string()
}

pub fn text(random: &mut Random) -> String {
    match random.below(8) {
        0 => conf(random),
        1 => yaml(random),
        2 => (0..random.below(60)).map(|_| random.pick(&TOKENS)).collect(),
        _ => {
            let example = random.pick(&EXAMPLES);
            random.mutate(example, &TOKENS, &EXAMPLES)
        }
    }
}

/// A host list, mostly a good one.
fn hosts(random: &mut Random) -> String {
    let mut text = String::new();
    for item in 0..=random.below(4) {
        let comma = if item > 0 { "," } else { "" };
        let _ = write!(text, "{comma}{}", random.pick(&["n", "s", "dev", "x-", "é"]));
        for _ in 0..random.below(3) {
            let (low, high) = (random.number(), random.number());
            let _ = write!(text, "[{low}-{high}]");
        }
        if random.one_in(2) {
            text += &random.number();
        }
    }
    text
}

/// Lines as topology.conf has them.
fn conf(random: &mut Random) -> String {
    let mut text = String::new();
    let kind = random.pick(&["SwitchName", "BlockName", "RingName"]);
    for line in 0..random.below(12) {
        let kind = if random.one_in(40) { "SwitchName" } else { kind };
        let _ = match random.below(6) {
            0 => writeln!(text, "{kind}=s{line} Nodes={} Switches=s{}", hosts(random), random.below(12)),
            1 | 2 => writeln!(text, "{kind}=s{line} Switches=s[{}-{}]", random.below(6), random.below(12)),
            3 if kind == "BlockName" => writeln!(text, "BlockSizes={},{}", random.number(), random.number()),
            _ => writeln!(text, "{kind}=s{line} Nodes=n{line}x[{}-{}]", random.below(5), random.below(30)),
        };
    }
    text
}

/// A value of YAML, its keys mostly known ones.
fn value(random: &mut Random, depth: usize, indent: usize, text: &mut String) {
    let pad = " ".repeat(indent);
    match random.below(if depth > 6 { 2 } else { 6 }) {
        0 => *text += &format!(" {}\n", hosts(random)),
        1 => *text += &format!(" {}\n", random.number()),
        2 => {
            *text += "\n";
            for _ in 0..random.below(4) {
                *text += &format!("{pad}-");
                value(random, depth + 1, indent + 2, text);
            }
        }
        _ => {
            *text += "\n";
            for _ in 0..random.below(4) {
                let key = random.pick(&[
                    "topology",
                    "cluster_default",
                    "tree",
                    "block",
                    "flat",
                    "ring",
                    "torus3d",
                    "switches",
                    "switch",
                    "children",
                    "nodes",
                    "block_sizes",
                    "blocks",
                    "rings",
                    "toruses",
                    "name",
                    "regions",
                    "dims",
                ]);
                *text += &format!("{pad}{key}:");
                value(random, depth + 1, indent + 2, text);
            }
        }
    }
}

fn yaml(random: &mut Random) -> String {
    let mut text = String::new();
    for number in 0..=random.below(3) {
        let _ = write!(
            text,
            "- topology: t{number}\n  {}:",
            random.pick(&["tree", "block", "ring", "torus3d", "flat", "x"])
        );
        value(random, 0, 4, &mut text);
    }
    text
}

/// Reads a file, and asks what it says.
pub fn read(name: &str, text: &str) {
    match Network::parse(name, text) {
        Ok(network) => {
            let hosts = ["node01", "dev3", "a", "b", "10.0.0.1", "", ".", "n1x2", "é", "rack1-node07.site.org"];
            let uppers = network.uppers(&hosts);
            assert!(network.layers() <= 4 && uppers.iter().all(|row| row.len() == network.layers()));
            for (host, row) in hosts.iter().zip(&uppers) {
                let known = network.switches(host).is_some();
                assert!((0..).zip(row).all(|(layer, &id)| network.switch_name(layer, id).is_some() == known));
            }
        }
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1 && error.line <= text.lines().count().max(1), "{error}");
            assert!(error.to_string().len() < 700, "{error}");
        }
    }
}

const PATTERNS: [&str; 8] = [
    "switch.switch.switch.node",
    "switch.node",
    "block.node",
    "ring:position.node",
    "torus:x:y:z.node",
    "node",
    "switch.switch.node",
    "switch",
];
const ADDRESSES: [&str; 9] = [
    "s0.s4.s8.tux1",
    "s0.tux1",
    "b8.tux1",
    "r8:2.tux1",
    "pod1:2:3:1.tux1",
    "tux1",
    "s[4-7].s0.tux1",
    ".s9.tux1.site.org",
    "..tux",
];
const PARTS: [&str; 16] = [
    ".",
    "..",
    ":",
    "switch",
    "node",
    "block",
    "ring:position",
    "torus:x:y:z",
    "[",
    "]",
    ",",
    " ",
    "\n",
    "é",
    "\0",
    "s[0-9999999999]",
];

/// Patterns and addresses of some nodes, one behind the other.
pub fn addresses(random: &mut Random) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..1 + random.below(4) {
        for examples in [&PATTERNS[..], &ADDRESSES[..]] {
            let example = random.pick(examples);
            texts.push(if random.one_in(2) { example.to_string() } else { random.mutate(example, &PARTS, examples) });
        }
    }
    texts
}

pub fn read_addresses(texts: &[String]) {
    let nodes: Vec<(String, Option<Address>)> = texts
        .chunks_exact(2)
        .enumerate()
        .map(|(number, pair)| {
            let address = Address::parse(&pair[0], &pair[1], &["tux1", "tux1.site.org"]);
            if let Err(why) = &address {
                assert!(why.len() < 700, "{why}");
            }
            let address = address.ok();
            let again = address.as_ref().map(Address::to_text);
            assert_eq!(again.as_deref().and_then(Address::from_text), address);
            (format!("host{number}"), address)
        })
        .collect();
    let _ = Address::from_text(&texts.concat());
    let network = Network::from_addresses(&texts[0], &nodes);
    let hosts: Vec<&str> = nodes.iter().map(|(host, _)| host.as_str()).collect();
    assert!(network.uppers(&hosts).iter().all(|row| row.len() == network.layers()));
}

/// Files of about `size` bytes, with names.
pub fn large(size: usize) -> Vec<(&'static str, String)> {
    let repeat = |text: &str| text.repeat(size / text.len());
    let count = |line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for number in 0.. {
            let line = line(number);
            if text.len() + line.len() > size {
                break;
            }
            text += &line;
        }
        text
    };
    let tree = "- topology: t\n  tree:\n    switches:\n";
    let mut switches = tree.to_string();
    switches += &count(&|n| format!("    - {{switch: s{n}, nodes: n{n}}}\n"))[..];
    switches.truncate(size);
    vec![
        ("a line of nodes", format!("SwitchName=s Nodes={}", count(&|n| format!("n{n},")) + "end")),
        ("a line of brackets", format!("SwitchName=s Nodes=n{}", repeat("[1-2]"))),
        ("a bracket of ranges", format!("SwitchName=s Nodes=n[{}1]", repeat("1-9,"))),
        ("a line of continuations", format!("SwitchName=s Nodes=a{}", repeat(",\\\nb"))),
        ("many switches", count(&|n| format!("SwitchName=s{n} Nodes=n{n}\n"))),
        ("many empty switches", count(&|n| format!("SwitchName=s{n}\n")) + "SwitchName=x Nodes=n\n"),
        (
            "a hub",
            format!("{}SwitchName=hub Switches=s[0-99999]\n", count(&|n| format!("SwitchName=s{n} Nodes=n{n}\n"))),
        ),
        ("many blocks", format!("{}BlockSizes=1,2,4,8,16,32", count(&|n| format!("BlockName=s{n} Nodes=n{n}\n")))),
        ("a table", count(&|n| format!("n{n} a{n} b{} c\n", n / 2))),
        ("a table of domains", count(&|n| format!("n.{n} a\n"))),
        ("blank lines", repeat("\n")),
        ("no end of line", repeat("x")),
        ("names that are all names", format!("SwitchName=s Nodes=n[1-{}]", 1 << 20)),
        ("long names", format!("SwitchName=s Nodes={}[1-9999999]", "x".repeat(size / 2))),
        ("open.yaml", repeat("[")),
        ("open maps.yaml", repeat("{a: ")),
        ("dashes.yaml", repeat("- ")),
        ("questions.yaml", repeat("? ")),
        (
            "a long scalar.yaml",
            format!(
                "- topology: t\n  tree:\n    switches:\n    - switch: s\n      nodes: {}end",
                count(&|n| format!("n{n},"))
            ),
        ),
        ("a folded scalar.yaml", format!("- topology: t\n  x: >\n{}", repeat("    a\n\n"))),
        ("quotes.yaml", format!("- topology: t\n  x: \"{}\"", repeat("\\x41"))),
        ("open quote.yaml", format!("- topology: t\n  x: '{}", repeat("a\n  "))),
        ("flow items.yaml", format!("- topology: t\n  x: [{}]", repeat("a, "))),
        ("flow keys.yaml", format!("- topology: t\n  x: {{{}}}", repeat("a: b, "))),
        ("topologies.yaml", repeat("- topology: t\n")),
        ("switches.yaml", switches),
        ("anchors.yaml", format!("- topology: t\n  x:\n{}", repeat("  - &a b\n"))),
        ("comments.yaml", format!("- topology: t\n{}", repeat("# x\n"))),
        ("deep indents.yaml", count(&|n| format!("{}a:\n", " ".repeat(n)))),
    ]
}
