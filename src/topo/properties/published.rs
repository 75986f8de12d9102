// SPDX-License-Identifier: BSD-3-Clause
//! The published example.

use super::super::Network;
use super::*;

/// The published example: 108 processes by core on nodes 1, 2 and 48 of 64; two sockets of 18 cores that are
/// also the NUMA nodes; 16 nodes per leaf switch.
fn published(spec: &str, uppers: Vec<Vec<u32>>) -> Job {
    let core = |rank: u32| {
        let (core, half) = (rank % 36, rank % 36 / 18);
        Locality::parse(&format!("SK{half}:L3{half}:L2{core}:L1{core}:CR{core}:HT{core}:NM{half}"))
    };
    let half = Modules { modules: 2, cores: 18 };
    Job {
        hosts: (0..108).map(|rank| rank / 36).collect(),
        uppers,
        localities: (0..108).map(core).collect(),
        hw: Hardware { l2: Modules { modules: 36, cores: 1 }, l3: half, numa: half, socket: half, processors: 0 },
        spec: LevelSpec::parse(spec).expect("levels"),
        sites: None,
    }
}

fn published_network() -> Network {
    let mut text = "# <node-name> <switch-name>\n".to_string();
    (1..=64).for_each(|node| text += &format!("node{node:02} sw1{}\n", (node + 15) / 16));
    Network::parse("network", &text).expect("a network")
}

#[test]
fn published_example() {
    let network = published_network();
    let names = ["node01", "node02", "node48"].map(String::from);
    for (spec, levels) in [
        ("numa,socket,node,switch", [Level::Numa, Level::Node, Level::Switch(1), Level::Cluster]),
        ("numa,node,switch", [Level::Numa, Level::Node, Level::Switch(1), Level::Cluster]),
        ("auto", [Level::L3, Level::Node, Level::Switch(1), Level::Cluster]),
    ] {
        let job = published(spec, network.uppers(&names));
        let members = |rank| job.seen_by(rank, false).groups(None).into_iter().map(|g| g.members).collect::<Vec<_>>();
        let run = |first: Rank| (first..first + 18).collect::<Vec<_>>();
        assert_eq!(members(0), [run(0), vec![0, 18], vec![0, 36], vec![0, 72]], "{spec}");
        assert_eq!(members(1), [run(0)], "{spec}");
        assert_eq!(members(36), [run(36), vec![36, 54], vec![0, 36]], "{spec}");
        assert_eq!(members(72), [run(72), vec![72, 90], vec![0, 72]], "{spec}");
        assert_eq!(job.seen_by(77, true).levels(), levels);
        for ordered in [false, true] {
            check(&job, ordered).expect("one tree");
        }
        let view = show::View {
            hosts: &job.hosts,
            names: &names,
            localities: &job.localities,
            network: Some(&network),
            spec: &job.spec,
            hw: job.hw,
            ordered: false,
        };
        let text = show::hierarchy(&view);
        assert!(text.contains("\n    switch1 sw11: ranks 0,36, leader 0\n"), "{text}");
        assert!(text.contains("node48/1: ranks 90-107, leader 90\n"), "{text}");
    }
}
