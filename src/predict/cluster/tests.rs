// SPDX-License-Identifier: BSD-3-Clause
use super::many::checked;
use super::*;
use crate::predict::{Case, Kind};
use crate::select::Spec;
use crate::sim::clock::machine::{Machine, Shape};
use crate::sim::clock::net::many::Took;
use crate::sim::clock::net::network::level_name;
use crate::sim::clock::net::{Inside, Layer, Messages, Network, Places};
use crate::sim::clock::{Cause, Time};
use crate::topo::LevelSpec;

const NS: Time = 1000;

/// Two sockets of two level-3 caches of two cores, in a network of switches with two nodes each.
pub(crate) fn made(change: impl Fn(&mut Machine)) -> &'static Machine {
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
        memory: [100 * NS, 4 * NS],
        shared: [NS / 4, NS, NS],
        store: 300,
        caches: [1 << 20, 1 << 22],
        misses: 10,
        wrong_guess: 5 * NS,
        call: 40 * NS,
        poll: 3 * NS,
        combine: 2 * NS,
        system_copy: [300 * NS, 60 * NS],
        network,
    };
    change(&mut machine);
    Box::leak(Box::new(machine))
}

pub(crate) fn machine() -> &'static Machine {
    made(|_| ())
}

pub(crate) fn places(machine: &'static Machine, nodes: u32, cores: Vec<u32>) -> Places<'static> {
    Places { machine, network: machine.network.as_ref().expect("a network"), cores, nodes }
}

fn case(kind: Kind, bytes: usize) -> Case {
    Case { kind, bytes, way: None }
}

fn took(machine: &'static Machine, levels: &str, case: Case, settings: &Settings) -> Took {
    let levels = LevelSpec::parse(levels).expect("levels");
    let took = checked(places(machine, 6, (0..8).collect()), &levels, case, settings).expect("an operation");
    // What has no contents takes as long.
    let same = many(places(machine, 6, (0..8).collect()), &levels, case, settings, |_| ()).expect("the same");
    assert_eq!((took.time, took.path, took.traffic), (same.time, same.path, same.traffic));
    assert_eq!(took.path.time(), took.time, "the critical path makes up the time");
    took
}

#[test]
fn results_are_right_and_times_are_equal_to_the_bit() {
    for kind in [Kind::Barrier, Kind::Bcast, Kind::Reduce, Kind::Allreduce] {
        for bytes in [8, 4096, 4104, 256 << 10] {
            for levels in ["auto", "none", "node", "numa,node,switch"] {
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
    let by = |took: &Took, cause: Cause| took.path.by[cause as usize];
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
    let at = |took: &Took, name| {
        took.traffic.iter().enumerate().find(|(level, _)| level_name(*level) == name).map(|(_, t)| t.messages)
    };
    // From rank 0 to each of the others, or to a leader of each node.
    assert_eq!([at(&worse, "switch1"), at(&worse, "switch2")], [Some(8), Some(32)]);
    assert_eq!([at(&tree, "switch1"), at(&tree, "switch2")], [Some(3), Some(2)]);
}

#[test]
fn what_crosses_a_link_together_shares_it() {
    let long = case(Kind::Allreduce, 1 << 20);
    let settings = Settings::default();
    let wide = took(machine(), "none", long, &settings);
    let by = |took: &Took, cause: Cause| took.path.by[cause as usize];
    assert!(by(&wide, Cause::Nic) > 0, "eight ranks of a node share an adapter");
    let narrow = made(|m| m.network.as_mut().unwrap().layers[0].uplink *= 10);
    let narrow = took(narrow, "none", long, &settings);
    assert!(narrow.time > 2 * wide.time && by(&narrow, Cause::Uplink) > by(&wide, Cause::Uplink));
    let two = made(|m| m.network.as_mut().unwrap().nics = 2);
    assert!(took(two, "none", long, &settings).time < wide.time);
}
