// SPDX-License-Identifier: BSD-3-Clause
//! The clock over several nodes is honest: what it computes is right, it repeats itself to the picosecond, a
//! dearer network takes longer for the reason that is dearer, and a worse tree is told as worse.

use component::endpoint::Rank;
use component::predict::cluster::many::checked;
use component::predict::cluster::{Cluster, Predicted, Settings, groups, many};
use component::predict::{Case, Kind};
use component::select::Spec;
use component::sim::clock::machine::{Machine, Shape};
use component::sim::clock::net::network::level_name;
use component::sim::clock::net::{Inside, Layer, Messages, Network, Places};
use component::sim::clock::{Cause, Time};
use component::topo::{Hardware, Hierarchy, LevelSpec, Locality, Placement};

const NS: Time = 1000;

/// Two sockets of two level-3 caches of two cores, in a network of switches with two nodes each.
fn made(change: impl Fn(&mut Machine)) -> &'static Machine {
    let messages = Messages { latency: 1000 * NS, overhead: 200 * NS, gap: 100 * NS, each: 6400, eager: 4096 };
    let far = Messages { latency: 1500 * NS, ..messages };
    let layers = vec![Layer { below: 2, messages, uplink: 6400 }, Layer { below: 8, messages: far, uplink: 0 }];
    let inside = Inside { overhead: 100 * NS, lines: 2, eager: 4096 };
    let network = Some(Network { inside, nics: 1, nic: 6400, layers });
    let mut machine = Machine {
        name: "small".to_owned(),
        shape: Shape { sockets: 2, numa_per_socket: 1, l3_per_numa: 2, l2_per_l3: 2, cores_per_l2: 1 },
        handover: [NS, 20 * NS, 25 * NS, 100 * NS, 100 * NS, 200 * NS],
        serve: [0, 2 * NS, 2 * NS, 10 * NS, 10 * NS, 20 * NS],
        stream: [NS, 2 * NS, 2 * NS, 4 * NS, 4 * NS, 8 * NS],
        overwrite: [NS, 2 * NS, 2 * NS, 4 * NS, 4 * NS, 8 * NS],
        memory: [100 * NS, 4 * NS],
        shared: [NS / 4, NS, NS],
        store: 300,
        caches: [1 << 20, 1 << 22],
        misses: 10,
        wrong_guess: 5 * NS,
        call: 40 * NS,
        poll: 3 * NS,
        combine: 2 * NS,
        system_copy: [300 * NS, 60 * NS, 100 * NS],
        network,
    };
    change(&mut machine);
    Box::leak(Box::new(machine))
}

fn machine() -> &'static Machine {
    made(|_| ())
}

fn places(machine: &'static Machine, nodes: u32, cores: Vec<u32>) -> Places<'static> {
    Places { machine, network: machine.network.as_ref().expect("a network"), cores, nodes }
}

fn case(kind: Kind, bytes: usize) -> Case {
    Case { kind, bytes, way: None }
}

fn took(machine: &'static Machine, levels: &str, case: Case, settings: &Settings) -> Predicted {
    let levels = LevelSpec::parse(levels).expect("levels");
    let took = checked(places(machine, 6, (0..8).collect()), &levels, case, settings).expect("an operation");
    // What has no contents takes as long.
    let same = many::many(places(machine, 6, (0..8).collect()), &levels, case, settings, |_| ()).expect("the same");
    assert_eq!((took.time, took.path, took.traffic), (same.time, same.path, same.traffic));
    assert_eq!(took.path.time(), took.time, "the critical path makes up the time");
    took
}

#[test]
fn results_are_right_and_times_are_equal_to_the_bit() {
    for kind in [Kind::Barrier, Kind::Bcast, Kind::Reduce, Kind::Allreduce] {
        for bytes in [8, 4104, 72 << 10] {
            for levels in ["auto", "none", "numa,node"] {
                let settings = Settings::default();
                let one = took(machine(), levels, case(kind, bytes), &settings);
                assert_eq!(one, took(machine(), levels, case(kind, bytes), &settings), "{kind:?} {bytes} {levels}");
                assert!(one.time > 2000 * NS);
            }
        }
    }
}

#[test]
fn a_cost_that_changes_is_seen_on_the_critical_path() {
    let case = case(Kind::Allreduce, 8);
    let near = took(machine(), "auto", case, &Settings::default());
    let by = |took: &Predicted, cause: Cause| took.path.by[cause as usize];
    for (cause, slower) in [
        (Cause::Latency, made(|m| m.network.as_mut().unwrap().layers.iter_mut().for_each(|l| l.messages.latency *= 3))),
        (Cause::Overhead, made(|m| m.network.as_mut().unwrap().inside.overhead *= 3)),
        (Cause::Combining, made(|m| m.combine *= 1000)),
    ] {
        let far = took(slower, "auto", case, &Settings::default());
        let grown = by(&far, cause) - by(&near, cause);
        assert!(grown > 0 && far.time - near.time >= grown / 2, "{cause:?}");
        assert_eq!(far.traffic, near.traffic);
    }
}

#[test]
fn a_worse_tree_is_told_as_worse() {
    let flat = Settings { bcast: Spec::parse("flat").expect("flat"), ..Settings::default() };
    let tree = took(machine(), "auto", case(Kind::Bcast, 8), &Settings::default());
    let worse = took(machine(), "none", case(Kind::Bcast, 8), &flat);
    assert!(worse.time > 2 * tree.time, "{} {}", worse.time, tree.time);
    let at = |took: &Predicted, name| {
        took.traffic.iter().enumerate().find(|(level, _)| level_name(*level) == name).map(|(_, t)| t.messages)
    };
    // From rank 0 to each of the others, or to a leader of each node.
    assert_eq!([at(&worse, "switch1"), at(&worse, "switch2")], [Some(8), Some(32)]);
    assert_eq!([at(&tree, "switch1"), at(&tree, "switch2")], [Some(3), Some(2)]);
}

#[test]
fn what_crosses_a_link_together_shares_it() {
    let long = case(Kind::Allreduce, 128 << 10);
    let settings = Settings::default();
    let wide = took(machine(), "none", long, &settings);
    let by = |took: &Predicted, cause: Cause| took.path.by[cause as usize];
    assert!(by(&wide, Cause::Nic) > 0, "eight ranks of a node share an adapter");
    let narrow = made(|m| m.network.as_mut().unwrap().layers[0].uplink *= 10);
    let narrow = took(narrow, "none", long, &settings);
    assert!(narrow.time > 2 * wide.time && by(&narrow, Cause::Uplink) > by(&wide, Cause::Uplink));
    let two = made(|m| m.network.as_mut().unwrap().nics = 2);
    assert!(took(two, "none", long, &settings).time < wide.time);
}

#[test]
fn each_rank_has_the_groups_that_it_finds_by_itself() {
    let machine = machine();
    let specs = ["auto", "none", "node", "numa,node", "l3,socket,switch", "switch"];
    for (nodes, cores) in [(7, vec![0, 1, 2, 3, 4, 5, 6, 7]), (5, vec![0, 4, 1, 5]), (3, vec![2]), (1, vec![0, 1, 4])] {
        let places = places(machine, nodes, cores.clone());
        let size = places.size();
        let hosts: Vec<u32> = (0..size).map(|rank| places.node(rank)).collect();
        let uppers: Vec<Vec<u32>> = (0..nodes).map(|node| vec![node / 2]).collect();
        let locality = |rank: Rank| {
            let [l2, l3, numa, socket] = machine.shape.places(places.core(rank)).map(Some);
            Locality { l2, l3, numa, socket }
        };
        let seen = (0..size).map(|rank| (places.node(rank), locality(rank), Some(places.core(rank))));
        let hardware = Hardware::seen(seen);
        for spec in specs {
            let levels = LevelSpec::parse(spec).expect(spec);
            let (found, shape) = groups::groups(&places, &levels);
            for me in 0..size {
                let local = (0..size).map(|rank| (rank, locality(rank))).collect();
                let place = Placement::new(me, hosts.clone(), uppers.clone(), local, hardware);
                let hierarchy = Hierarchy::build(&place, &levels, false);
                assert_eq!(found[me as usize], hierarchy.groups(Some(0)), "{spec} {nodes} {cores:?} {me}");
                let expected = hierarchy.shape();
                assert_eq!((shape.nodes, shape.flat), (expected.nodes, expected.flat), "{spec} {nodes} {cores:?}");
            }
        }
    }
}

/// With the shared memory of three nodes of eight ranks.
fn shared(machine: &'static Machine, case: Case) -> Predicted {
    let cluster = Cluster::new(places(machine, 3, (0..8).collect()), &LevelSpec::Auto);
    cluster.time(case, &Settings::default(), [1, 1], |_| ()).expect("an operation")
}

/// What a mean of whole picoseconds loses.
const LOST: Time = Cause::COUNT as Time;

#[test]
fn shared_memory_and_messages_have_one_clock() {
    for (kind, bytes) in [(Kind::Barrier, 0), (Kind::Bcast, 64), (Kind::Reduce, 8), (Kind::Allreduce, 24 << 10)] {
        let case = case(kind, bytes);
        let one = shared(machine(), case);
        assert_eq!(one, shared(machine(), case), "{kind:?} {bytes}");
        assert!(one.time.abs_diff(one.path.time()) <= LOST, "{kind:?} {bytes}: {one:?}");
        let sent = |level: &str| {
            one.traffic
                .iter()
                .enumerate()
                .filter(|(at, _)| level_name(*at) == level)
                .map(|(_, t)| t.messages)
                .sum::<u64>()
        };
        assert!(sent("l3") + sent("numa") + sent("node") == 0 && sent("switch1") > 0 && sent("switch2") > 0, "{one:?}");
        assert!(one.counts.lines.iter().skip(1).sum::<u64>() > 0, "{one:?}");
        let by = |of: &Predicted, cause: Cause| of.path.by[cause as usize];
        let late = made(|m| m.network.as_mut().unwrap().layers.iter_mut().for_each(|l| l.messages.latency *= 2));
        let late = shared(late, case);
        assert!(by(&late, Cause::Latency) > by(&one, Cause::Latency) * 3 / 2, "{one:?}\n{late:?}");
        let far = made(|m| m.handover.iter_mut().skip(1).for_each(|time| *time *= 10));
        assert!(by(&shared(far, case), Cause::Lines) > by(&one, Cause::Lines) * 3 / 2, "{one:?}");
    }
}
