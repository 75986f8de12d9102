// SPDX-License-Identifier: BSD-3-Clause
//! The simulated clock: it is honest, and what it tells of trees inside a node.
#![cfg(all(feature = "clock", not(loom)))]

use coll_rust::predict::{Case, Kind, Node, Prediction};
use coll_rust::shm::thresholds::Thresholds;
use coll_rust::sim::clock::machine::{Machine, Shape};
use coll_rust::topo::LevelSpec;

/// Two sockets of two NUMA nodes, each with four level-3 caches of eight cores.
fn machine() -> &'static Machine {
    let ns = |ns: u64| ns * 1000;
    Box::leak(Box::new(Machine {
        name: "test".into(),
        shape: Shape { sockets: 2, numa_per_socket: 4, l3_per_numa: 3, l2_per_l3: 8, cores_per_l2: 1 },
        handover: [ns(1), ns(10), ns(25), ns(85), ns(110), ns(200)],
        serve: [0, ns(2), ns(5), ns(10), ns(12), ns(20)],
        stream: [1500, ns(3), ns(4), ns(10), ns(12), ns(25)],
        memory: [ns(110), ns(5)],
        shared: [250, 1000, 400],
        store: 500,
        caches: [1 << 20, 4 << 20],
        misses: 6,
        wrong_guess: ns(8),
        call: ns(40),
        poll: ns(3),
        combine: ns(2),
        system_copy: [ns(300), ns(60)],
    }))
}

fn time(cores: u32, case: Case, levels: Option<&str>) -> Prediction {
    let spread: u32 = std::env::var("S").map_or(1, |s| s.parse().unwrap());
    let per = cores / spread;
    let cores: Vec<u32> = (0..cores).map(|i| i / per * (192 / spread) + i % per).collect();
    let node = Node::new(machine(), &cores, Thresholds::UNKNOWN);
    let trees = levels.and_then(|levels| node.trees(&LevelSpec::parse(levels).unwrap()));
    node.time(case, trees.as_deref(), 33, 16).unwrap()
}

fn env<T: std::str::FromStr>(name: &str, or: &str) -> Vec<T>
where
    T::Err: std::fmt::Debug,
{
    std::env::var(name).unwrap_or(or.into()).split(',').map(|w| w.parse().unwrap()).collect()
}

#[test]
fn table() {
    let kinds: Vec<String> = env("K", "barrier,bcast,reduce,allreduce");
    for kind in Kind::ALL.into_iter().filter(|k| kinds.iter().any(|n| n == k.name())) {
        for bytes in env::<usize>("B", "8,1024") {
            let case = Case { kind, bytes: if kind == Kind::Barrier { 0 } else { bytes }, way: None };
            print!("{:9} {bytes:6}", kind.name());
            for cores in env("N", "8,16,32,96,192") {
                let begin = std::time::Instant::now();
                let all: Vec<_> = env::<String>("L", "flat/l3,node/l3,socket,node")
                    .join(",")
                    .split('/')
                    .map(|l| time(cores, case, Some(l).filter(|l| *l != "flat")))
                    .collect();
                print!(" |");
                for a in &all {
                    print!("{:9}", a.time / 1000);
                }
                print!(" ({:4})", begin.elapsed().as_millis());
                if std::env::var("V").is_ok() {
                    for a in all {
                        println!("\n   {:?} {:?}", a.by.map(|b| b / 1000), a.counts);
                    }
                }
            }
            println!();
        }
    }
}
