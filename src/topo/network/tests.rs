// SPDX-License-Identifier: BSD-3-Clause
//! Files, good and bad.

use super::*;
use proptest::prelude::*;

pub(super) fn good(text: &str) -> Network {
    Network::parse("net", text).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn names<'a>(network: &'a Network, host: &str) -> Vec<&'a str> {
    let ids = network.switches(host).unwrap_or_else(|| panic!("no {host}"));
    let name = |(layer, &id)| network.switch_name(layer, id).expect("a name");
    ids.iter().enumerate().map(name).collect()
}

fn refused(cases: &[(&str, &str)]) {
    for (text, message) in cases {
        let error = Network::parse("t", text).expect_err(text).to_string();
        assert_eq!(error, *message, "{text}");
    }
}

#[test]
fn one_layer_as_published() {
    let network = good("# <node-name> <switch-name>\n\nnode01 sw11\nnode16\tsw11\r\n  node17 sw12 # second\n");
    assert_eq!(network.layers(), 1);
    assert_eq!(names(&network, "node16"), ["sw11"]);
    assert_eq!(network.switches("node01"), network.switches("node16"));
    assert_ne!(network.switches("node01"), network.switches("node17"));
    assert_eq!(network.switches("node02"), None);
    assert_eq!(network.switch_name(1, 0), None);
}

#[test]
fn layers_have_names_of_their_own() {
    let network = good("a 1 1\nb 1 1\nc 2 1\nd 3 2\n");
    assert_eq!(network.layers(), 2);
    assert_eq!(names(&network, "c"), ["2", "1"]);
    assert_eq!(network.switches("a").map(|s| s[1]), network.switches("c").map(|s| s[1]));
    assert_ne!(network.switches("a").map(|s| s[1]), network.switches("d").map(|s| s[1]));
}

#[test]
fn short_names_match_on_either_side() {
    let network = good("n1 s\nn2.site.org s\nn3.a s\nn3.b t\n10.0.0.1 t\nn4 s\nn4.x t\n");
    for known in ["n1", "n1.site.org", "n2", "n2.site.org", "n3.a", "10.0.0.1", "n4", "n4.x", "n4.y"] {
        assert!(network.switches(known).is_some(), "{known}");
    }
    assert_eq!(network.switches("n4"), network.switches("n1"));
    for unknown in ["n2.elsewhere", "n3", "n3.c", "10", "10.0.0.2", ".a", "", "n", "n2.", "n2.site"] {
        assert!(network.switches(unknown).is_none(), "{unknown}");
    }
}

#[test]
fn unknown_nodes_share_no_switch() {
    let uppers = good("a s t\nb s t\n").uppers(&["a", "x", "b", "y"]);
    assert_eq!(uppers[0], uppers[2]);
    assert!(uppers.iter().all(|row| row.len() == 2));
    for layer in 0..2 {
        let mut ids: Vec<_> = uppers.iter().map(|row| row[layer]).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3);
    }
}

#[test]
fn table_errors() {
    refused(&[
        ("", "t:1:1: no node in the file"),
        ("# only\n\n", "t:1:1: no node in the file"),
        ("a s\n b # none\n", "t:2:2: node 'b' has no switch; expected: <node> <switch> [<switch> ...]"),
        ("a 1 2 3 4 5\n", "t:1:11: '5': more than 4 switches above a node"),
        ("\na 1\nb 1 2\n", "t:3:1: node 'b' has 2 switches, line 2 has 1"),
        ("a s\nb s\na s\n", "t:3:1: node 'a' is listed twice; first on line 1"),
        ("a s\na t\n", "t:2:1: node 'a' is below two switches; first on line 1"),
        ("a s t\nb s u\n", "t:2:5: switch 's' is below 'u' here and below 't' on line 1"),
        ("é s t\né2   s ü\n", "t:2:8: switch 's' is below 'ü' here and below 't' on line 1"),
    ]);
}

#[test]
fn a_tree_of_two_layers() {
    let network = good(
        "# site\nSwitchName=s0 Nodes=node[01-16,20]\nSWITCHNAME=s1 nodes=node17,node18 # x\n\n\
         SwitchName=top Switches=s[0-1] LinkSpeed=100\n",
    );
    assert_eq!(network.layers(), 2);
    assert_eq!(names(&network, "node20"), ["s0", "top"]);
    assert_eq!(names(&network, "node18.site.org"), ["s1", "top"]);
    assert_eq!(network.switches("node19"), None);
    assert_eq!(network.switches("node1"), None);
}

#[test]
fn order_blanks_quotes_and_continuations() {
    let network = good(
        "Switches = \"s0, s1\" SwitchName = top\r\nSwitchName=s0 \\\n  Nodes=a,\\\nb,\\ \nc\nSwitchName=s1 Nodes=d \\",
    );
    for (node, leaf) in [("a", "s0"), ("b", "s0"), ("c", "s0"), ("d", "s1")] {
        assert_eq!(names(&network, node), [leaf, "top"]);
    }
}

#[test]
fn shorter_paths_are_padded_at_the_bottom() {
    let network = good(
        "SwitchName=s0 Nodes=a\nSwitchName=mid Switches=s0 Nodes=b\nSwitchName=s1 Nodes=c\n\
         SwitchName=top Switches=mid,s1\nSwitchName=island Nodes=d\nSwitchName=empty\n",
    );
    assert_eq!(names(&network, "a"), ["s0", "mid", "top"]);
    assert_eq!(names(&network, "b"), ["mid", "mid", "top"]);
    assert_eq!(names(&network, "c"), ["s1", "s1", "top"]);
    assert_eq!(names(&network, "d"), ["island", "island", "island"]);
    let layer = |host: &str, layer: usize| network.switches(host).map(|ids| ids[layer]);
    assert_eq!(layer("a", 1), layer("b", 1));
    assert_eq!(layer("b", 2), layer("c", 2));
    assert_ne!(layer("a", 0), layer("b", 0));
}

#[test]
fn the_lowest_layers_count() {
    let network = good(
        "SwitchName=a1 Nodes=n\nSwitchName=a2 Nodes=m\nSwitchName=b Switches=a[1-2]\nSwitchName=c Switches=b\n\
         SwitchName=d Switches=c\nSwitchName=e1 Switches=d\nSwitchName=e2 Nodes=o",
    );
    assert_eq!([names(&network, "n"), names(&network, "o")], [["a1", "b", "c", "d"], ["e2"; 4]]);
    assert_eq!(network.switches("n").map(|ids| &ids[1..]), network.switches("m").map(|ids| &ids[1..]));
}

#[test]
fn sets_differ_where_what_is_above_them_does() {
    // Below m both, but only one of them below the other top as well.
    let network = good(
        "SwitchName=s Nodes=a\nSwitchName=r Nodes=b\nSwitchName=m Switches=s,r\nSwitchName=t Switches=m\nSwitchName=u Switches=m2,r\n\
         SwitchName=m2 Switches=q\nSwitchName=q Nodes=c",
    );
    assert_eq!(names(&network, "a"), ["s", "m", "t"]);
    assert_eq!(names(&network, "b"), ["r", "m", "t,u"]);
    assert_ne!(network.switches("a").map(|ids| ids[1]), network.switches("b").map(|ids| ids[1]));
}

#[test]
fn slurm_errors() {
    refused(&[
        ("SwitchName=s Nodes=a\nnode1 s\n", "t:2:1: expected <key>=<value>, found 'node1'"),
        ("SwitchName=s Nodes=a x", "t:1:22: expected <key>=<value>, found 'x'"),
        ("=s", "t:1:1: expected <key>=<value>, found '=s'"),
        ("SwitchName= \\\n ", "t:1:1: 'SwitchName' has no value"),
        ("SwitchName=s Nodes=\"a", "t:1:20: the quote is never closed"),
        (
            "SwitchName=s BlockSizes=4",
            "t:1:14: unknown key 'BlockSizes'; known: SwitchName, Nodes, Switches, LinkSpeed",
        ),
        ("é=1", "t:1:1: unknown key 'é'; a line begins with SwitchName, BlockName, BlockSizes or RingName"),
        ("SwitchName=s Nodes=a nodes=b", "t:1:22: 'nodes' twice on a line"),
        ("  Nodes=a", "t:1:3: the line has no SwitchName, BlockName or RingName"),
        ("SwitchName=s LinkSpeed=1", "t:1:12: no switch of the file has nodes"),
        ("SwitchName=s Nodes=a\nSwitchName=s Nodes=b", "t:2:12: switch 's' is defined twice; first on line 1"),
        ("SwitchName=s Nodes=a,b,a", "t:1:24: node 'a' is listed twice; first on line 1"),
        ("SwitchName=s Nodes=a\nSwitchName=t Nodes=b,\\\n[a],a", "t:3:2: 'a' is not a number or a range of numbers"),
        (
            "SwitchName=s Nodes=n[1-3]\nSwitchName=t Nodes=b,\\\nn2",
            "t:3:1: node 'n2' is below two switches; first on line 1",
        ),
        ("SwitchName=s Nodes=n[3-1]", "t:1:22: the range '3-1' is reversed"),
        ("SwitchName=s Nodes=\\\nn[1", "t:2:2: '[' is never closed"),
        ("SwitchName=s Switches=x,y Nodes=a", "t:1:23: switch 'x' is defined nowhere"),
        ("SwitchName=s Switches=s Nodes=a", "t:1:23: switch 's' is below itself: the switches form a cycle"),
        (
            "SwitchName=s Nodes=a\nSwitchName=t Switches=u\nSwitchName=u Switches=t",
            "t:2:23: switch 'u' is below itself: the switches form a cycle",
        ),
        (
            "SwitchName=top Switches=t,s\nSwitchName=s Nodes=a\nSwitchName=t Switches=u,s\nSwitchName=u Switches=t",
            "t:3:23: switch 'u' is below itself: the switches form a cycle",
        ),
        (
            "SwitchName=s Nodes=n[1-9999999]",
            "t:1:20: 'n[1-9999999]' expands to too many names (at most 1048576 in a file)",
        ),
        ("SwitchName=s Nodes=a\nBlockName=b Nodes=c", "t:2:1: a block in a file that has a switch on line 1"),
        (
            "BlockName=b Nodes=a\nBlockSizes=2,6",
            "t:2:14: block size '6' is not 2 (the size of a base block) times a power of two up to 32768",
        ),
        ("BlockName=b Nodes=a\nBlockSizes=0", "t:2:12: block size '0' is not a number of nodes"),
        ("BlockName=b Nodes=a\nBlockSizes=2\nBlockSizes=2", "t:3:1: BlockSizes twice"),
        ("BlockSizes=2 Nodes=a", "t:1:14: 'Nodes' on the line of BlockSizes"),
        ("BlockName=b Nodes=a\nBlockName=b Nodes=c", "t:2:11: block 'b' is defined twice; first on line 1"),
        ("BlockName=b Nodes=a\nBlockName=c Nodes=d,a", "t:2:21: node 'a' is in two blocks; first on line 1"),
        ("BlockSizes=2", "t:1:1: no block of the file has nodes"),
    ]);
}

#[test]
fn yaml_errors() {
    refused(&[
        ("- topology: a\n  flat: [", "t:2:10: while parsing a node, did not find expected node content"),
        ("---\n", "t:1:4: topologies: expected a list"),
        ("- a", "t:1:3: topology: expected keys with values"),
        ("- flat: true", "t:1:3: the topology has no name (key 'topology')"),
        ("- topology: a\n  flat: 1", "t:2:9: '1' is neither true nor false"),
        ("- topology: a", "t:1:3: the topology has no type; known: tree, block, flat, ring, torus3d"),
        (
            "- topology: a\n  treee:\n",
            "t:2:3: unknown key 'treee'; known: topology, cluster_default, tree, block, flat, ring, torus3d",
        ),
        ("- topology: &x a\n  flat: *x", "t:2:9: aliases (*name) are not accepted"),
        ("- topology: a\n  flat: true\n  tree: {switches: []}", "t:3:3: the topology has two types"),
        ("- topology: a\n  tree:\n    switches:\n    - nodes: b", "t:4:7: the switch has no name"),
        (
            "- topology: a\n  tree:\n    switches:\n    - switch: s\n      nodes: é,n[2-1]",
            "t:5:18: the range '2-1' is reversed",
        ),
        (
            "- topology: a\n  tree:\n    switches:\n    - {nodes: \"b,c\", switch: s}\n    - switch: t\n      nodes: 'd,c'",
            "t:6:17: node 'c' is below two switches; first on line 4",
        ),
        (
            "- topology: a\n  tree:\n    switches:\n    - {children: t, switch: s, nodes: a}\n",
            "t:4:18: switch 't' is defined nowhere",
        ),
        (
            "- topology: a\n  block:\n    block_sizes: [4, 8, 7]\n",
            "t:3:25: block size '7' is not 4 (the size of a base block) times a power of two up to 32768",
        ),
    ]);
    let deep = format!("- topology: a\n  other: {}", "[".repeat(100));
    assert_eq!(Network::parse("t", &deep).expect_err("deep").to_string(), "t:2:40: nested more than 32 deep");
}

#[test]
fn what_a_file_costs_is_bounded() {
    // 4 KB that stood for 4 GB.
    let long = format!("SwitchName=s Nodes={}[1-1048576]", "x".repeat(4000));
    let error = Network::parse("t", &long).expect_err("too much").to_string();
    assert!(error.contains("expands to too many bytes (at most 32 MiB for all names of a file)"), "{error}");
    let error = Network::parse("t", &"#".repeat(FILE_BYTES + 1)).expect_err("too much").to_string();
    assert_eq!(error, "t:1:1: more than 8 MiB");
    // Many switches, each below many.
    let pairs: String = (0..400)
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .fold(String::new(), |text, (a, b)| text + &format!("SwitchName=l{a}-{b} Nodes=n{a}-{b}\n"));
    let hubs = (0..400).fold(pairs, |text, a| {
        let below: Vec<String> = (0..400).filter(|b| *b != a).map(|b| format!("l{}-{}", a.max(b), a.min(b))).collect();
        text + &format!(
            "SwitchName=h{a} Switches={}\nSwitchName=t{a} Switches=u{a}-[0-99]\nSwitchName=u{a}-[0-99]\n",
            below.join(",")
        )
    });
    assert!(Network::parse("t", &hubs).is_err());
    let chain: String = (1..70).map(|a| format!("SwitchName=s{a} Switches=s{}\n", a - 1)).collect();
    let error = Network::parse("t", &format!("{chain}SwitchName=s0 Nodes=a")).expect_err("deep").to_string();
    assert!(error.ends_with("more than 64 switches one above the other"), "{error}");
}

proptest! {
    #[test]
    fn never_panics(text in "([a-c=\\[\\]\\\\#,0-9\u{e9} \n-]|Nodes=|SwitchName=|Switches=|s\\[0-9\\]){0,60}") {
        if let Err(error) = Network::parse("net", &text) {
            prop_assert!(error.line >= 1 && error.column >= 1);
            prop_assert!(error.line <= text.lines().count().max(1));
        }
    }
}
