// SPDX-License-Identifier: BSD-3-Clause
//! Files that name clusters, good and bad.

use super::tests::{good, names};
use super::*;

/// Reads a file of several clusters; others are called as in `files`.
fn several(text: &str, files: &[(&str, &str)]) -> Result<Network, String> {
    let mut open = |name: &str| {
        let found = files.iter().find(|(file, _)| *file == name);
        found.map(|(_, text)| text.to_string()).ok_or(format!("is not there ({name})"))
    };
    Network::parse_with("etc/all", text, &mut open).map_err(|error| error.to_string())
}

/// The clusters of nodes, numbered as they come, and which ones are gateways.
fn sites(network: &Network, hosts: &[&str]) -> (Vec<usize>, Vec<bool>) {
    let sites = network.sites(hosts).expect("clusters");
    let number = |of: &u32| sites.of.iter().position(|other| other == of).unwrap_or_default();
    (sites.of.iter().map(number).collect(), sites.gateway.clone())
}

#[test]
fn a_table_names_clusters() {
    let network = good(
        "# nodes\nn1 a x cluster:north gateway\nn2 b x cluster:north\ns1 c y cluster:south\ns2 c y cluster:south\n",
    );
    assert_eq!(network.layers(), 2);
    assert_eq!(names(&network, "n2"), ["b", "x"]);
    let found = sites(&network, &["n2", "s1", "n1.site", "x1", "s2", "x2"]);
    assert_eq!(found, (vec![0, 1, 0, 3, 1, 5], vec![false, true, true, true, true, true]), "south has no mark");
    assert_eq!((network.cluster_name("n2"), network.cluster_name("x1")), (Some("north"), None));
    assert_eq!(good("a s\n").sites(&["a"]), None);
    // Without switches the cluster is one; a cluster may be called as a switch is.
    let network = good("a cluster:s gateway\nb cluster:t\nc cluster:t\n");
    assert_eq!((network.layers(), names(&network, "a")), (1, vec!["s"]));
    assert_eq!(sites(&network, &["a", "b", "c"]), (vec![0, 1, 1], vec![true; 3]));
    let network = good("a s cluster:s\nb t cluster:s\n");
    assert_eq!(sites(&network, &["a", "b"]).0, [0, 0]);
}

#[test]
fn errors_of_a_table() {
    for (text, message) in [
        ("a s cluster:", "t:1:5: the cluster has no name; expected: cluster:<name>"),
        ("a s cluster:x door", "t:1:15: 'door' behind the cluster; expected: gateway, once, or nothing"),
        ("a cluster:x gateway gateway", "t:1:21: 'gateway' behind the cluster; expected: gateway, once, or nothing"),
        ("a 1 2 3 4 cluster:x gateway y", "t:1:29: 'y' behind the cluster; expected: gateway, once, or nothing"),
        ("a 1 2 3 4 5 cluster:x", "t:1:11: '5': more than 4 switches above a node"),
        ("a s cluster:x\nb s\n", "t:2:1: node 'b' is in no cluster, that of line 1 is"),
        ("a s\nb s cluster:x\n", "t:2:1: node 'b' is in a cluster, that of line 1 is in none"),
        ("a s cluster:x\nb cluster:x\n", "t:2:1: node 'b' has 0 switches, line 1 has 1"),
        ("a s cluster:x\nb s cluster:y", "t:2:5: switch 's' is in cluster 'y' here and in cluster 'x' on line 1"),
        ("a cluster:x\na cluster:y", "t:2:1: node 'a' is below two switches; first on line 1"),
    ] {
        assert_eq!(Network::parse("t", text).expect_err(text).to_string(), message, "{text}");
    }
}

#[test]
fn a_file_for_each_cluster() {
    let tree = "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n3\nSwitchName=top Switches=s[0-1]\n";
    let yaml = "- topology: t\n  block:\n    block_sizes: [1]\n    blocks:\n    - {block: b, nodes: 'w[1-2]'}\n";
    let text = "# all\nclustername=north TopologyFile=north.conf Gateways=n[2-3]\nClusterName=west \\\n TopologyFile=w.yaml\n\
                ClusterName=south Nodes=s[1-3] Gateways=s2\n";
    let network = several(text, &[("etc/north.conf", tree), ("etc/w.yaml", yaml)]).expect("a network");
    assert_eq!(network.layers(), 2);
    assert_eq!((names(&network, "n3"), names(&network, "w1")), (vec!["s1", "top"], vec!["b", "b"]));
    assert_eq!(names(&network, "s3"), ["south", "south"]);
    let found = sites(&network, &["n1", "n2", "n3", "w1", "w2", "s1", "s2", "x"]);
    assert_eq!(found.0, [0, 0, 0, 3, 3, 5, 5, 7]);
    assert_eq!(found.1, [false, true, true, true, true, false, true, true]);
    // Switches of different clusters are never one.
    let ids = |host| network.switches(host).expect("known");
    for layer in 0..2 {
        assert!(ids("n1")[layer] != ids("w1")[layer] && ids("w1")[layer] != ids("s1")[layer]);
    }
    assert_eq!(ids("n1")[1], ids("n3")[1]);
}

#[test]
fn errors_of_several_clusters() {
    let files =
        [("etc/bad", "a s\na s\n"), ("etc/two", "a cluster:x\n"), ("etc/flat.yaml", "- topology: t\n  flat: true\n")];
    for (text, message) in [
        ("ClusterName=a TopologyFile=none", "etc/all:1:28: TopologyFile 'none' is not there (etc/none)"),
        ("ClusterName=a TopologyFile=bad", "etc/bad:2:1: node 'a' is listed twice; first on line 1"),
        ("ClusterName=a TopologyFile=two", "etc/all:1:28: TopologyFile 'two' names clusters itself"),
        (
            "ClusterName=a TopologyFile=flat.yaml",
            "etc/all:1:28: TopologyFile 'flat.yaml' names no nodes: list them by Nodes",
        ),
        ("ClusterName=a", "etc/all:1:13: cluster 'a' has neither of TopologyFile and Nodes"),
        ("ClusterName=a Nodes=b TopologyFile=c", "etc/all:1:13: cluster 'a' has both of TopologyFile and Nodes"),
        ("ClusterName=a Nodes=b\nClusterName=a Nodes=c", "etc/all:2:13: cluster 'a' is defined twice; first on line 1"),
        ("ClusterName=a Nodes=b,b", "etc/all:1:23: node 'b' is listed twice; first on line 1"),
        ("ClusterName=a Nodes=b\nClusterName=c Nodes=d,b", "etc/all:2:13: a node of it, 'b', is in cluster 'a' too"),
        ("ClusterName=a Nodes=b Gateways=b,d", "etc/all:1:34: gateway 'd' is no node of cluster 'a'"),
        (
            "ClusterName=a Nodes=b Gateway=b",
            "etc/all:1:23: unknown key 'Gateway'; known: ClusterName, TopologyFile, Nodes, Gateways",
        ),
        ("ClusterName=a Nodes=b\nNodes=c", "etc/all:2:1: the line has no ClusterName"),
        ("ClusterName=a Nodes=b nodes=c", "etc/all:1:23: 'nodes' twice on a line"),
        ("ClusterName=a Nodes=b[1-", "etc/all:1:22: '[' is never closed"),
    ] {
        assert_eq!(several(text, &files), Err(message.to_string()), "{text}");
    }
    let alone = Network::parse("t", "ClusterName=a TopologyFile=b").expect_err("no other files").to_string();
    assert_eq!(alone, "t:1:28: TopologyFile 'b' cannot be read here");
}
