// SPDX-License-Identifier: BSD-3-Clause
//! Every example of Slurm's documentation: topology.conf(5), topology.yaml(5) and the topology guide, from
//! 2.x to 26.11.

use super::tests::names;
use super::*;

fn read(file: &str, text: &str) -> Network {
    Network::parse(file, text).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks the switches of nodes whose names are a stem and a number.
fn expect(network: &Network, stem: &str, rows: &[(std::ops::RangeInclusive<u32>, &[&str])]) {
    for (range, switches) in rows {
        for number in range.clone() {
            let host = format!("{stem}{number}");
            assert_eq!(names(network, &host), *switches, "{host}");
        }
    }
    // Equal names are equal ids, and others others.
    let mut ids = HashMap::new();
    for (range, switches) in rows {
        for layer in 0..switches.len() {
            for number in range.clone() {
                let id = network.switches(&format!("{stem}{number}")).expect("known")[layer];
                assert_eq!(*ids.entry((layer, &switches[layer..])).or_insert(id), id);
            }
        }
    }
    let mut found: Vec<_> = ids.into_iter().map(|((layer, _), id)| (layer, id)).collect();
    let count = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), count);
}

#[test]
fn topology_conf_tree() {
    let network = read(
        "topology.conf",
        "\
##################################################################
# Slurm's network topology configuration file for use with the
# topology/tree plugin
##################################################################
SwitchName=s0 Nodes=dev[0-5]
SwitchName=s1 Nodes=dev[6-11]
SwitchName=s2 Nodes=dev[12-17]
SwitchName=s3 Switches=s[0-2]
",
    );
    expect(&network, "dev", &[(0..=5, &["s0", "s3"]), (6..=11, &["s1", "s3"]), (12..=17, &["s2", "s3"])]);
}

#[test]
fn topology_conf_block() {
    let network = read(
        "topology.conf",
        "\
##################################################################
# Slurm's network topology configuration file for use with the
# topology/block plugin
##################################################################
BlockName=block1 Nodes=node[1-32]
BlockName=block2 Nodes=node[33-64]
BlockName=block3 Nodes=node[65-96]
BlockName=block4 Nodes=node[97-128]
BlockSizes=30,120
",
    );
    let all = "block[1-4]";
    let rows: [(_, &[&str]); 4] = [
        (1..=32, &["block1", all]),
        (33..=64, &["block2", all]),
        (65..=96, &["block3", all]),
        (97..=128, &["block4", all]),
    ];
    expect(&network, "node", &rows);
}

#[test]
fn topology_conf_ring() {
    let network = read(
        "topology.conf",
        "\
##################################################################
# Slurm's network topology configuration file for use with the
# topology/ring plugin
##################################################################
RingName=ring0 Nodes=node[01-08]
RingName=ring1 Nodes=node[09-16]
",
    );
    expect(&network, "node0", &[(1..=8, &["ring0"]), (9..=9, &["ring1"])]);
    expect(&network, "node", &[(10..=16, &["ring1"])]);
}

#[test]
fn guide_three_levels() {
    let network = read(
        "topology.conf",
        "\
# topology.conf
# Switch Configuration
SwitchName=s0 Nodes=tux[0-1]
SwitchName=s1 Nodes=tux[2-3]
SwitchName=s2 Nodes=tux[4-5]
SwitchName=s3 Nodes=tux[6-7]
SwitchName=s4 Switches=s[0-1]
SwitchName=s5 Switches=s[2-3]
SwitchName=s6 Switches=s[4-5]
",
    );
    let rows: [(_, &[&str]); 4] = [
        (0..=1, &["s0", "s4", "s6"]),
        (2..=3, &["s1", "s4", "s6"]),
        (4..=5, &["s2", "s5", "s6"]),
        (6..=7, &["s3", "s5", "s6"]),
    ];
    expect(&network, "tux", &rows);
}

#[test]
fn guide_every_switch_below_all_of_the_next_level() {
    let network = read(
        "topology.conf",
        "\
# topology.conf
# Switch Configuration
SwitchName=s0 Nodes=tux[0-3]   LinkSpeed=900
SwitchName=s1 Nodes=tux[4-7]   LinkSpeed=900
SwitchName=s2 Nodes=tux[8-11]  LinkSpeed=900
SwitchName=s3 Nodes=tux[12-15] LinkSpeed=1800
SwitchName=s4 Switches=s[0-3]  LinkSpeed=1800
SwitchName=s5 Switches=s[0-3]  LinkSpeed=1800
SwitchName=s6 Switches=s[0-3]  LinkSpeed=1800
SwitchName=s7 Switches=s[0-3]  LinkSpeed=1800
",
    );
    let rows: [(_, &[&str]); 4] = [
        (0..=3, &["s0", "s[4-7]"]),
        (4..=7, &["s1", "s[4-7]"]),
        (8..=11, &["s2", "s[4-7]"]),
        (12..=15, &["s3", "s[4-7]"]),
    ];
    expect(&network, "tux", &rows);
}

const TWO_LEVELS: &str = "\
# topology.conf
# Switch Configuration
SwitchName=s0 Nodes=tux[0-3]
SwitchName=s1 Nodes=tux[4-7]
SwitchName=s2 Nodes=tux[8-11]
SwitchName=s3 Nodes=tux[12-15]
SwitchName=s4 Switches=s[0-3]
";

#[test]
fn guide_one_top_switch() {
    let network = read("topology.conf", TWO_LEVELS);
    let rows: [(_, &[&str]); 4] =
        [(0..=3, &["s0", "s4"]), (4..=7, &["s1", "s4"]), (8..=11, &["s2", "s4"]), (12..=15, &["s3", "s4"])];
    expect(&network, "tux", &rows);
    // "It is legal to remove the line"
    let apart = TWO_LEVELS.replace("SwitchName=s4 Switches=s[0-3]\n", "");
    let rows: [(_, &[&str]); 4] = [(0..=3, &["s0"]), (4..=7, &["s1"]), (8..=11, &["s2"]), (12..=15, &["s3"])];
    expect(&read("topology.conf", &apart), "tux", &rows);
}

/// topology.yaml(5), with another topology as the default one.
fn manual(default: &str) -> Network {
    let text = "\
---
- topology: topo1
  cluster_default: true
  tree:
    switches:
      - switch: sw_root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: node[03-04]
- topology: topo2
  cluster_default: false
  block:
    block_sizes:
      - 4
      - 16
    blocks:
      - block: b1
        nodes: node[01-04]
      - block: b2
        nodes: node[05-08]
      - block: b3
        nodes: node[09-12]
      - block: b4
        nodes: node[13-16]
- topology: topo3
  cluster_default: false
  flat: true
- topology: topo3a
  cluster_default: false
  flat:
    alpha_step_rank: true
- topology: topo4
  cluster_default: false
  ring:
    rings:
      - ring: ring0
        nodes: node[01-08]
      - ring: ring1
        nodes: node[09-16]
- topology: topo5
  cluster_default: false
  torus3d:
    toruses:
      - name: pod1
        dims:
          x: 4
          y: 4
          z: 2
        nodes: node[01-32]
        placements:
          - dims:
              x: 2
              y: 2
              z: 1
          - dims:
              x: 2
              y: 2
              z: 2
          - dims:
              x: 4
              y: 4
              z: 2
";
    let name = format!("- topology: {default}\n");
    let text = text.replace("cluster_default: true", "cluster_default: false");
    read(
        "topology.yaml",
        &text.replace(&format!("{name}  cluster_default: false"), &format!("{name}  cluster_default: true")),
    )
}

#[test]
fn topology_yaml() {
    expect(&manual("topo1"), "node0", &[(1..=2, &["s1", "sw_root"]), (3..=4, &["s2", "sw_root"])]);
    let blocks = manual("topo2");
    let all = "b[1-4]";
    expect(&blocks, "node0", &[(1..=4, &["b1", all]), (5..=8, &["b2", all]), (9..=9, &["b3", all])]);
    expect(&blocks, "node", &[(10..=12, &["b3", all]), (13..=16, &["b4", all])]);
    for flat in ["topo3", "topo3a"] {
        assert_eq!((manual(flat).layers(), manual(flat).switches("node01")), (0, Some(&[][..])));
    }
    expect(&manual("topo4"), "node", &[(10..=16, &["ring1"])]);
    expect(&manual("topo5"), "node", &[(10..=32, &["pod1"])]);
    assert_eq!(manual("none"), manual("topo1"), "the first one");
}

#[test]
fn topology_yaml_of_25_05() {
    let text = "\
- topology: topo1
  cluster_default: True
  tree:
    switches:
    - switch: sw_root
      nodes: node[01-04]
- topology: topo3
  cluster_default: False
  flat: True
";
    // Without the ending, too.
    for file in ["topology.yaml", "network"] {
        expect(&read(file, text), "node0", &[(1..=4, &["sw_root"])]);
    }
}

#[test]
fn guide_ring_and_torus() {
    let ring = "\
- topology: topo-ring
  cluster_default: true
  ring:
    rings:
      - ring: ring0
        nodes: node[01-08]
      - ring: ring1
        nodes: node[09-16]
";
    expect(&read("topology.yaml", ring), "node0", &[(1..=8, &["ring0"]), (9..=9, &["ring1"])]);
    let torus = "\
- topology: topo-torus
  cluster_default: true
  torus3d:
    toruses:
      - name: pod1
        dims:
          x: 4
          y: 4
          z: 2
        regions:
          - anchor: {x: 0, y: 0, z: 0}
            dims: {x: 4, y: 2, z: 2}
            nodes: rack1-node[01-16]
          - anchor: {x: 0, y: 2, z: 0}
            dims: {x: 4, y: 2, z: 2}
            nodes: rack2-node[01-16]
        placements:
          - dims: {x: 2, y: 2, z: 2}
          - dims: {x: 4, y: 2, z: 1}
            anchor_spacing: {x: 2, y: 2, z: 1}
          - dims: {x: 4, y: 2, z: 1}
            anchor_seed: {x: 1, y: 0, z: 0}
";
    for rack in ["rack1-node", "rack2-node"] {
        expect(&read("topology.yaml", torus), rack, &[(10..=16, &["pod1"])]);
    }
}

/// The addresses that Slurm makes of a tree: at each height, from the top down, the switches above the node.
fn addresses(network: &Network, hosts: &[String]) -> Network {
    let pattern = "switch.".repeat(network.layers()) + "node";
    let own = |host: &String| {
        let mut parts = names(network, host);
        parts.reverse();
        let text = format!("{}.{host}", parts.join("."));
        (host.clone(), address::Address::parse(&pattern, &text, &[host]).ok())
    };
    Network::from_addresses(&pattern, &hosts.iter().map(own).collect::<Vec<_>>())
}

#[test]
fn addresses_and_files_make_the_same_groups() {
    let every = TWO_LEVELS.to_string() + "SwitchName=s5 Switches=s[0-3]\n";
    let hosts: Vec<String> = (0..16).map(|number| format!("tux{number}")).collect();
    for text in [TWO_LEVELS, &every] {
        let file = read("topology.conf", text);
        let made = addresses(&file, &hosts);
        for host in &hosts {
            assert_eq!(names(&made, host), names(&file, host));
        }
        assert_eq!(made.uppers(&hosts), file.uppers(&hosts));
    }
}

#[test]
fn aggregated_blocks_join_neighbours() {
    let text: String = (0..11).map(|b| format!("BlockName=b{b} Nodes=n{b}\n")).collect();
    let network = read("topology.conf", &format!("{text}BlockSizes=4,8,16,64,512"));
    assert_eq!(names(&network, "n5"), ["b5", "b[4-5]", "b[4-7]", "b[0-9],b10"]);
    assert_eq!(names(&network, "n10"), ["b10", "b10", "b[8-9],b10", "b[0-9],b10"]);
    // Without sizes only the blocks count.
    assert_eq!(names(&read("topology.conf", &text), "n5"), ["b5"]);
}
