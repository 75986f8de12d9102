//! The placement of a communicator's processes, as one of them sees it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::level::{Level, LevelSpec};
use super::locality::Locality;
use super::partition;
use crate::endpoint::Rank;

/// How many modules of a kind a node has, and the most physical cores that one of them holds. Zero where
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// Modules in the node.
    pub modules: u32,
    /// The most physical cores in one module.
    pub cores: u32,
}

/// The shape of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// Level-2 caches.
    pub l2: Modules,
    /// Level-3 caches.
    pub l3: Modules,
    /// NUMA nodes.
    pub numa: Modules,
    /// Processor packages.
    pub socket: Modules,
}

impl Hardware {
    /// Whether two or more physical cores share a module of this level inside the node.
    pub fn shared(&self, level: Level) -> bool {
        let modules = match level {
            Level::L2 => self.l2,
            Level::L3 => self.l3,
            Level::Numa => self.numa,
            Level::Socket => self.socket,
            _ => Modules::default(),
        };
        modules.cores >= 2
    }
}

impl Hardware {
    /// As numbers, to be told to other processes: modules and cores of L2, L3, NUMA, socket.
    pub fn to_numbers(&self) -> [u32; 8] {
        let [a, b, c, d] = [self.l2, self.l3, self.numa, self.socket].map(|m| (m.modules, m.cores));
        [a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1]
    }

    /// The inverse of [`to_numbers`](Self::to_numbers).
    pub fn from_numbers(numbers: [u32; 8]) -> Hardware {
        let at = |i: usize| Modules { modules: numbers[2 * i], cores: numbers[2 * i + 1] };
        Hardware { l2: at(0), l3: at(1), numa: at(2), socket: at(3) }
    }

    /// Physical cores of the node; 0 where unknown.
    pub fn cores(&self) -> usize {
        [self.socket, self.numa].iter().map(|m| m.modules as usize * m.cores as usize).find(|&n| n > 0).unwrap_or(0)
    }
}

/// Where the processes of a communicator sit: the nodes of all, and the localities of those on the caller's
/// node.
#[derive(Clone, Debug)]
pub struct Placement {
    pub(super) me: Rank,
    pub(super) hosts: Arc<[u32]>,
    pub(super) uppers: Arc<[Vec<u32>]>,
    pub(super) local: Vec<(Rank, Locality)>,
    pub(super) hw: Hardware,
}

impl Placement {
    /// Physical cores of the caller's node; 0 where unknown.
    pub fn cores(&self) -> usize {
        self.hw.cores()
    }

    /// The number of every rank's node, in the order of the nodes' lowest ranks: the same on all processes.
    pub fn node_numbers(&self) -> Vec<usize> {
        let mut numbers = std::collections::HashMap::new();
        self.hosts
            .iter()
            .map(|host| {
                let next = numbers.len();
                *numbers.entry(*host).or_insert(next)
            })
            .collect()
    }

    /// The lowest level that the caller shares with another rank: the node, a layer of switches, or
    /// everything.
    pub fn joint(&self, other: Rank) -> Level {
        let [here, there] = [self.me, other].map(|rank| self.hosts[rank as usize] as usize);
        if here == there {
            return Level::Node;
        }
        let switches = |host: usize| self.uppers.get(host).into_iter().flatten();
        let layer = (1..).zip(switches(here).zip(switches(there))).find(|(_, (here, there))| here == there);
        layer.map_or(Level::Cluster, |(layer, _)| Level::Switch(layer))
    }

    /// * `me`: the caller's rank.
    /// * `hosts`: the node of every rank. Node numbers should be small: memory goes with the largest. The
    ///   same partition on all processes; the numbers themselves may differ.
    /// * `uppers`: for every node number its switches, lowest first, all lists of one length; empty without a
    ///   network.
    /// * `local`: the ranks on the caller's node with their localities. A rank of the node that is not in it
    ///   counts as unbound, a rank of another node is ignored.
    /// * `hw`: the shape of the caller's node.
    ///
    /// # Panics
    /// When `me` is not in the communicator, or `uppers` lacks a node or has lists of different lengths: an
    /// error of the caller.
    pub fn new(
        me: Rank,
        hosts: Vec<u32>,
        uppers: Vec<Vec<u32>>,
        mut local: Vec<(Rank, Locality)>,
        hw: Hardware,
    ) -> Placement {
        assert!((me as usize) < hosts.len(), "rank {me} of {}", hosts.len());
        assert!(uppers.windows(2).all(|pair| pair[0].len() == pair[1].len()), "nodes with different switch layers");
        assert!(
            uppers.is_empty() || hosts.iter().all(|&host| (host as usize) < uppers.len()),
            "a node without an entry in the table of switches"
        );
        local.sort_by_key(|&(rank, _)| rank);
        let home = hosts[me as usize];
        let here = (0..).zip(&hosts).filter(|&(_, &host)| host == home);
        let local = here
            .map(|(rank, _)| match local.binary_search_by_key(&rank, |&(r, _)| r) {
                Ok(at) => local[at],
                Err(_) => (rank, Locality::default()),
            })
            .collect();
        Placement { me, hosts: hosts.into(), uppers: uppers.into(), local, hw }
    }

    /// Number of nodes that the processes are on; the same on all of them.
    pub fn nodes(&self) -> usize {
        self.hosts.iter().collect::<HashSet<_>>().len()
    }

    /// Number of processes in the communicator.
    pub fn size(&self) -> usize {
        self.hosts.len()
    }

    /// The levels along which the processes of the caller's node work in shared memory: those inside the node
    /// that `spec` names, if one of them counts here; where that is left to us, NUMA nodes, if two of them or
    /// more have two processes or more each. The same for all processes of the node.
    pub fn tree_levels(&self, spec: &LevelSpec) -> Option<LevelSpec> {
        let levels = match spec {
            LevelSpec::List(list) => list.iter().copied().filter(|level| *level <= Level::Node).collect(),
            LevelSpec::Auto => {
                let mut processes: HashMap<u32, usize> = HashMap::new();
                self.local
                    .iter()
                    .filter_map(|(_, at)| at.numa)
                    .for_each(|numa| *processes.entry(numa).or_default() += 1);
                if processes.values().filter(|&&count| count >= 2).count() < 2 {
                    return None;
                }
                vec![Level::Numa, Level::Node]
            }
        };
        let levels = LevelSpec::List(levels);
        (partition::in_node(&self.local, &self.hw, &levels, false).len() > 1).then_some(levels)
    }

    /// The ranks on the caller's node with their localities, ascending.
    pub fn local(&self) -> &[(Rank, Locality)] {
        &self.local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_survives_as_numbers() {
        let at = |n| Modules { modules: n, cores: 10 + n };
        let hw = Hardware { l2: at(1), l3: at(2), numa: at(3), socket: at(4) };
        assert_eq!(Hardware::from_numbers(hw.to_numbers()), hw);
        assert_eq!(hw.cores(), 4 * 14);
    }

    #[test]
    fn local_ranks_are_those_of_the_node() {
        let socket = |n| Locality { socket: Some(n), ..Locality::default() };
        let local = vec![(4, socket(4)), (0, socket(0)), (1, socket(1))];
        let placement = Placement::new(2, vec![7, 3, 7, 3, 7], vec![], local, Hardware::default());
        assert_eq!(placement.local(), [(0, socket(0)), (2, Locality::default()), (4, socket(4))]);
        assert_eq!((placement.size(), placement.nodes()), (5, 2));
    }

    #[test]
    fn nodes_are_numbered_by_their_lowest_ranks_and_joined_by_levels() {
        let uppers = vec![vec![9, 1], vec![8, 1], vec![9, 1], vec![7, 2]];
        let place = Placement::new(1, vec![2, 0, 2, 1, 3, 0], uppers, Vec::new(), Hardware::default());
        assert_eq!(place.node_numbers(), [0, 1, 0, 2, 3, 1]);
        let levels = [5, 0, 3, 4].map(|rank| place.joint(rank));
        assert_eq!(levels, [Level::Node, Level::Switch(1), Level::Switch(2), Level::Cluster]);
    }

    #[test]
    fn one_core_modules_are_not_shared() {
        let modules = |modules, cores| Modules { modules, cores };
        let hw = Hardware { l2: modules(8, 1), socket: modules(1, 8), ..Hardware::default() };
        let shared: Vec<_> = Level::ALL.into_iter().filter(|&level| hw.shared(level)).collect();
        assert_eq!(shared, [Level::Socket]);
    }

    #[test]
    fn trees_need_pairs_in_two_numa_nodes() {
        let at = |numa: [u32; 6]| -> Placement {
            let numa = (0..).zip(numa).map(|(rank, n)| (rank, Locality { numa: Some(n), ..Locality::default() }));
            let hw = Hardware { numa: Modules { modules: 3, cores: 4 }, ..Hardware::default() };
            Placement::new(0, vec![0; 6], vec![], numa.collect(), hw)
        };
        let levels = |numa, spec: &str| at(numa).tree_levels(&LevelSpec::parse(spec).unwrap());
        let both = Some(LevelSpec::List(vec![Level::Numa, Level::Node]));
        assert_eq!(
            [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]].map(|numa| levels(numa, "auto")),
            [both.clone(), both.clone()]
        );
        assert_eq!([[0; 6], [0, 0, 0, 0, 0, 1]].map(|numa| levels(numa, "auto")), [None, None]);
        assert_eq!(levels([0, 0, 0, 0, 0, 1], "numa,switch"), both);
        assert_eq!([levels([0, 0, 0, 1, 1, 1], "node"), levels([0, 0, 0, 1, 1, 1], "socket,node")], [None, None]);
    }

    #[test]
    #[should_panic(expected = "different switch layers")]
    fn uneven_switch_lists_are_refused() {
        let _ = Placement::new(0, vec![0, 1], vec![vec![1], vec![]], vec![], Hardware::default());
    }
}
