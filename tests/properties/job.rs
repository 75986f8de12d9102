// SPDX-License-Identifier: BSD-3-Clause
//! A communicator on a machine: random placements, and the groups that every rank finds in them.

use super::random::{Cut, SIZES};
use coll_rust::endpoint::{Endpoint, Rank};
use coll_rust::hier::Job;
use coll_rust::hier::central::is_due;
use coll_rust::sim::{Rng, Stats, World};
use coll_rust::topo::{Group, Hardware, Hierarchy, Level, LevelSpec, Locality, Modules, Placement, Sites};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Where the ranks of a job sit.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The node of every rank.
    pub hosts: Vec<u32>,
    /// The switches of every node.
    pub uppers: Vec<Vec<u32>>,
    localities: Vec<Locality>,
    hw: Hardware,
    /// The clusters of the nodes, where there are several.
    sites: Option<Sites>,
    /// Whether their messages go through gateways.
    gateways: bool,
}

/// How the ranks are numbered.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// Node after node, socket after socket: every module is an interval of ranks.
    Blocks,
    /// Nodes in blocks, the ranks inside in any order.
    NodeBlocks,
    /// Anyhow.
    Shuffled,
}

impl Machine {
    /// A machine for `size` ranks on up to `nodes` nodes below `layers` layers of switches.
    fn new(rng: &mut Rng, size: usize, nodes: usize, layers: usize, order: Order) -> Machine {
        let leaves: Vec<u32> = (0..nodes).map(|_| rng.below(nodes.div_ceil(2)) as u32).collect();
        let mut uppers: Vec<Vec<u32>> = leaves.iter().map(|&leaf| [leaf, leaf / 2][..layers].to_vec()).collect();
        if matches!(order, Order::Blocks | Order::NodeBlocks) {
            uppers.sort();
        }
        let shared = |rng: &mut Rng| Modules { modules: 4, cores: [1, 4, 4, 4][rng.below(4)] };
        let hw = Hardware { l2: shared(rng), l3: shared(rng), numa: shared(rng), socket: shared(rng), processors: 0 };
        let mut ranks: Vec<(u32, [Option<u32>; 4])> = (0..size)
            .map(|_| {
                // Uneven: the first node gets most.
                let host = rng.below(nodes).min(rng.below(nodes)) as u32;
                let (socket, numa, l3, l2) = (rng.below(2), rng.below(2), rng.below(2), rng.below(2));
                let path = [socket, 2 * socket + numa, 4 * socket + 2 * numa + l3, 8 * socket + 4 * numa + 2 * l3 + l2];
                // Not bound below some level, now and then.
                let known = [4, 4, 4, 4, 4, 3, 2, 1, 0][rng.below(9)];
                (host, std::array::from_fn(|i| (i < known).then_some(path[i] as u32)))
            })
            .collect();
        match order {
            Order::Blocks => ranks.sort(),
            Order::NodeBlocks => ranks.sort_by_key(|rank| rank.0),
            Order::Shuffled => {}
        }
        let hosts = ranks.iter().map(|rank| rank.0).collect();
        let localities = ranks.iter().map(|&(_, [socket, numa, l3, l2])| Locality { l2, l3, numa, socket }).collect();
        Machine { hosts, uppers, localities, hw, sites: None, gateways: false }
    }

    /// `parts` switches with `nodes` nodes each, and `each` ranks on every node, which are numbered anyhow.
    pub fn even(rng: &mut Rng, parts: usize, nodes: usize, each: usize) -> Machine {
        Machine::on_switches(rng, parts, &vec![each; parts * nodes])
    }

    /// `parts` switches, and nodes with so many ranks, by turns on each switch; the ranks are numbered
    /// anyhow.
    pub fn on_switches(rng: &mut Rng, parts: usize, counts: &[usize]) -> Machine {
        let mut hosts: Vec<u32> = (0..).zip(counts).flat_map(|(node, &count)| vec![node; count]).collect();
        for i in (1..hosts.len()).rev() {
            hosts.swap(i, rng.below(i + 1));
        }
        let uppers = (0..counts.len()).map(|node| vec![(node % parts) as u32]).collect();
        let localities = hosts.iter().map(|_| Locality { l2: None, l3: None, numa: None, socket: None }).collect();
        Machine { hosts, uppers, localities, ..Machine::alone() }
    }

    /// One rank.
    pub fn alone() -> Machine {
        Machine::new(&mut Rng::new(1), 1, 1, 1, Order::Blocks)
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.hosts.len()
    }

    /// What a rank finds.
    pub fn hierarchy(&self, me: Rank, levels: &LevelSpec, ordered: bool) -> Hierarchy {
        Hierarchy::build(&self.placement(me), levels, ordered)
    }

    /// What a rank knows.
    pub fn placement(&self, me: Rank) -> Placement {
        let here = |rank: &Rank| self.hosts[*rank as usize] == self.hosts[me as usize];
        let local = (0..self.size() as Rank).filter(here).map(|rank| (rank, self.localities[rank as usize]));
        let placement = Placement::new(me, self.hosts.clone(), self.uppers.clone(), local.collect(), self.hw);
        self.sites.as_ref().map_or(placement.clone(), |sites| placement.on(sites))
    }

    /// The same on up to three clusters, some of whose nodes are gateways.
    fn joined(self, rng: &mut Rng) -> Machine {
        let nodes = self.uppers.len();
        let mut of: Vec<u32> = (0..nodes).map(|_| rng.below(3) as u32).collect();
        if self.hosts.is_sorted() {
            of.sort_unstable(); // so that some are runs of ranks
        }
        let gateway = (0..nodes).map(|_| rng.below(3) == 0).collect();
        Machine { sites: Some(Sites { of, gateway }), gateways: rng.chance(128), ..self }
    }

    /// The world of its ranks, in which only those have messages with other clusters that may in an operation
    /// with this root: through gateways, on half of the machines.
    pub fn world(&self, world: World, root: Option<Rank>) -> World {
        let Some(clusters) = self.placement(0).clusters().cloned() else { return world };
        let world = match self.gateways {
            true => {
                let clusters = clusters.clone();
                world.through(move |one, other| !clusters.together(one, other))
            }
            false => world,
        };
        world.only(move |one, other| clusters.allows_with(root, one, other))
    }

    /// Whether a reduction goes by one process.
    pub fn is_central(&self, levels: &LevelSpec, ordered: bool, root: Option<Rank>) -> bool {
        let joined = self.hierarchy(0, levels, ordered).shape().joined;
        is_due(&self.placement(0), joined, ordered, false, root)
    }

    /// What every rank finds.
    pub fn hierarchies(&self, levels: &LevelSpec, ordered: bool) -> Vec<Hierarchy> {
        (0..self.size() as Rank).map(|me| self.hierarchy(me, levels, ordered)).collect()
    }

    /// The groups of every rank.
    pub fn groups(&self, levels: &LevelSpec, ordered: bool, root: Option<Rank>) -> Vec<Vec<Group>> {
        self.hierarchies(levels, ordered).iter().map(|hierarchy| hierarchy.groups(root)).collect()
    }
}

/// A machine for the smaller sizes, or rarely for the larger ones.
pub fn one_cluster() -> impl Strategy<Value = Machine> {
    let size = prop_oneof![
        24 => proptest::sample::select(&SIZES[1..7]),
        4 => Just(64usize),
        // The largest size has tests of its own.
    ];
    let order = proptest::sample::select(&[Order::Blocks, Order::NodeBlocks, Order::Shuffled][..]);
    (size, 1..=6usize, 0..=2usize, order, any::<u64>())
        .prop_map(|(size, nodes, layers, order, seed)| Machine::new(&mut Rng::new(seed), size, nodes, layers, order))
}

/// The same, of several clusters now and then.
pub fn machine() -> impl Strategy<Value = Machine> {
    (one_cluster(), any::<u64>()).prop_map(|(machine, seed)| match seed % 3 {
        0 => machine.joined(&mut Rng::new(seed)),
        _ => machine,
    })
}

/// A machine of 257 ranks on up to twelve nodes.
pub fn large_machine(seed: u64) -> Machine {
    let order = [Order::Blocks, Order::NodeBlocks, Order::Shuffled][(seed % 3) as usize];
    Machine::new(&mut Rng::new(seed), 257, 12, 2, order)
}

/// The user's choice of levels.
pub fn levels() -> impl Strategy<Value = LevelSpec> {
    let list = proptest::sample::subsequence(vec!["l2", "l3", "numa", "socket", "node", "switch1", "switch2"], 1..6);
    let text =
        prop_oneof![4 => Just("auto".to_string()), 1 => Just("none".to_string()), 3 => list.prop_map(|l| l.join(","))];
    text.prop_map(|text| LevelSpec::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// The part of a rank in an operation.
pub fn part<'a, E: Endpoint>(ep: &'a E, groups: &'a [Vec<Group>], cut: &Cut, commutative: bool) -> Job<'a, E> {
    let Cut { segment, window, bytes, .. } = *cut;
    Job {
        ep,
        groups: &groups[ep.rank() as usize],
        bytes,
        segment,
        window,
        commutative,
        divisible: true,
        crowded: false,
        node: None,
    }
}

/// Of every level the members of its groups that are not leaders: how often data must move there.
pub fn hops(groups: &[Vec<Group>]) -> [usize; Level::COUNT] {
    let all: BTreeSet<(u8, &[Rank])> =
        groups.iter().flatten().map(|group| (group.level.index(), &group.members[..])).collect();
    let mut hops = [0; Level::COUNT];
    all.iter().for_each(|(level, members)| hops[usize::from(*level)] += members.len() - 1);
    hops
}

/// Units that cross the borders of parts of the machine: of every part (by rank) what came in and what went
/// out.
pub fn crossing(stats: &Stats, part: impl Fn(Rank) -> u32) -> Vec<(u64, u64)> {
    let mut crossing = Vec::new();
    for (&(from, to), traffic) in &stats.pairs {
        let (from, to) = (part(from) as usize, part(to) as usize);
        if from != to {
            crossing.resize(crossing.len().max(from + 1).max(to + 1), (0, 0));
            crossing[from].1 += traffic.units;
            crossing[to].0 += traffic.units;
        }
    }
    crossing
}
