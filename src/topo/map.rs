// SPDX-License-Identifier: BSD-3-Clause
//! The placement of a communicator's processes, as one of them sees it.

use std::collections::HashMap;
use std::sync::Arc;

use super::clusters::{Clusters, Sites};
use super::hardware::Hardware;
use super::level::{Level, LevelSpec};
use super::locality::Locality;
use super::partition;
use crate::endpoint::Rank;

/// Where the processes of a communicator sit: the nodes of all, and the localities of those on the caller's
/// node.
#[derive(Clone, Debug)]
pub struct Placement {
    pub(super) me: Rank,
    pub(super) hosts: Arc<[u32]>,
    pub(super) uppers: Arc<[Vec<u32>]>,
    pub(super) local: Vec<(Rank, Locality)>,
    pub(super) hw: Hardware,
    pub(super) clusters: Option<Arc<Clusters>>,
}

/// Fewer processes of a node than these make no tree, unless they are told to: for no operation it would be
/// taken ([`members_for_tree`](crate::shm::policy::choose::least_members_for_tree)).
const MANY: usize = 8;
/// If there are more processes to a level-3 cache, it makes no group.
const MOST_IN_CACHE: usize = 16;

/// The levels of trees within a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeLevels {
    /// They.
    pub levels: LevelSpec,
    /// Nobody has named them: from how many members on which operation goes along them, the table of ways
    /// knows, and large groups are divided by number. They may be the node alone.
    pub unasked: bool,
}

impl Placement {
    /// The number of every rank's node, in the order of the nodes' lowest ranks: the same on all processes.
    pub fn node_numbers(&self) -> Vec<usize> {
        let (mut numbers, mut next) = (vec![usize::MAX; self.host_numbers()], 0);
        let mut number = |host: &u32| {
            let number = &mut numbers[*host as usize];
            if *number == usize::MAX {
                (*number, next) = (next, next + 1);
            }
            *number
        };
        self.hosts.iter().map(&mut number).collect()
    }

    /// The lowest level that the caller shares with another rank: the node, a layer of switches, the cluster,
    /// or everything.
    pub fn joint(&self, other: Rank) -> Level {
        let [here, there] = [self.me, other].map(|rank| self.hosts[rank as usize] as usize);
        if here == there {
            return Level::Node;
        }
        if self.clusters.as_ref().is_some_and(|clusters| !clusters.together(self.me, other)) {
            return Level::Grid;
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
        Placement { me, hosts: hosts.into(), uppers: uppers.into(), local, hw, clusters: None }
    }

    /// The same on nodes of these clusters.
    pub fn on(self, sites: &Sites) -> Placement {
        let clusters = Clusters::new(&self.hosts, sites).map(Arc::new);
        Placement { clusters, ..self }
    }

    /// The clusters of the processes, where these are in several.
    pub fn clusters(&self) -> Option<&Arc<Clusters>> {
        self.clusters.as_ref()
    }

    /// Number of nodes that the processes are on; the same on all of them.
    pub fn nodes(&self) -> usize {
        let mut seen = vec![false; self.host_numbers()];
        self.hosts.iter().for_each(|&host| seen[host as usize] = true);
        seen.into_iter().filter(|&seen| seen).count()
    }

    /// All numbers of nodes are below this.
    fn host_numbers(&self) -> usize {
        self.hosts.iter().max().map_or(0, |&host| host as usize + 1)
    }

    /// Number of processes in the communicator.
    pub fn size(&self) -> usize {
        self.hosts.len()
    }

    /// The levels along which the processes of the caller's node work in shared memory: those inside the node
    /// that `spec` names, if one of them counts here. Where that is left to us, and processes are many:
    /// level-3 caches of a few processes each, if two of them or more have two processes or more each; else
    /// NUMA nodes likewise, but not those of consecutive ranks each, where groups by number do; else the
    /// node. The same for all processes of the node.
    pub fn tree_levels(&self, spec: &LevelSpec) -> Option<TreeLevels> {
        // How many modules of a level have two processes or more.
        let shared = |level: Level| {
            let mut processes: HashMap<u32, usize> = HashMap::new();
            let modules = self.local.iter().filter_map(|(_, at)| at.at(level));
            modules.for_each(|module| *processes.entry(module).or_default() += 1);
            processes.values().filter(|&&count| count >= 2).count()
        };
        let has_small_caches = || {
            let caches = shared(Level::L3);
            caches >= 2 && self.local.len() <= caches * MOST_IN_CACHE
        };
        let is_apart = |level: Level| {
            let mut modules: Vec<u32> = self.local.iter().filter_map(|(_, at)| at.at(level)).collect();
            modules.dedup();
            let runs = modules.len();
            modules.sort_unstable();
            modules.dedup();
            runs > modules.len()
        };
        let unasked = *spec == LevelSpec::Auto;
        let levels = match spec {
            LevelSpec::List(list) => list.iter().copied().filter(|level| *level <= Level::Node).collect(),
            LevelSpec::Auto if self.local.len() < MANY => return None,
            LevelSpec::Auto if has_small_caches() => vec![Level::L3, Level::Node],
            LevelSpec::Auto if shared(Level::Numa) >= 2 && is_apart(Level::Numa) => vec![Level::Numa, Level::Node],
            LevelSpec::Auto => vec![Level::Node],
        };
        let levels = LevelSpec::List(levels);
        let counts = unasked || partition::in_node(&self.local, &self.hw, &levels, false).len() > 1;
        counts.then_some(TreeLevels { levels, unasked })
    }

    /// The ranks on the caller's node with their localities, ascending.
    pub fn local(&self) -> &[(Rank, Locality)] {
        &self.local
    }
}

#[cfg(test)]
mod tests {
    use super::super::hardware::Modules;
    use super::*;

    #[test]
    fn cores_are_told_or_follow_from_modules() {
        let of = |cores| Modules { modules: 4, cores };
        let hw = Hardware { numa: of(10), ..Hardware::default() };
        assert_eq!((Hardware::default().cores(), hw.cores()), (0, 40));
        let hw = Hardware { socket: of(11), ..hw };
        assert_eq!((hw.cores(), Hardware { processors: 7, ..hw }.cores()), (44, 7));
    }

    #[test]
    fn modules_have_the_cores_of_their_processes() {
        let shared = |texts: &[(u32, &str)]| {
            let places = texts.iter().map(|&(node, text)| (node, Locality::parse(text), Locality::core(text)));
            let hw = Hardware::seen(places);
            [Level::L2, Level::L3, Level::Numa, Level::Socket].map(|level| hw.shared(level))
        };
        let alone = "SK0:L30:L20:L10:CR0:HT0:NM0";
        assert_eq!(shared(&[(0, alone), (0, alone)]), [false; 4], "on one core");
        assert_eq!(shared(&[(0, alone), (1, "SK0:L30:L20:L11:CR1:HT2:NM0")]), [false; 4], "on two nodes");
        assert_eq!(shared(&[(0, alone), (0, "SK0:L30:L21:L11:CR1:HT2:NM0")]), [false, true, true, true]);
        assert_eq!(shared(&[(0, "SK0:L30:L20-1:L10-1:CR0-1:HT0-1:NM0")]), [false, true, true, true]);
        assert_eq!(shared(&[(0, "SK0:L30:L20:NM0")]), [true; 4], "a runtime that does not tell cores");
        assert_eq!(shared(&[(0, ""), (0, "")]), [false; 4], "not bound");
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
    fn few_processes_make_trees_of_what_is_named_only() {
        let at = |numa: [u32; 6]| -> Placement {
            let numa = (0..).zip(numa).map(|(rank, n)| (rank, Locality { numa: Some(n), ..Locality::default() }));
            let hw = Hardware { numa: Modules { modules: 3, cores: 4 }, ..Hardware::default() };
            Placement::new(0, vec![0; 6], vec![], numa.collect(), hw)
        };
        let levels = |numa, spec: &str| at(numa).tree_levels(&LevelSpec::parse(spec).unwrap());
        let levels = |numa, spec: &str| levels(numa, spec).map(|found| (found.levels, found.unasked));
        let both = Some((LevelSpec::List(vec![Level::Numa, Level::Node]), false));
        assert_eq!(
            [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]].map(|numa| levels(numa, "numa,node")),
            [both.clone(), both.clone()]
        );
        assert_eq!([[0, 0, 0, 1, 1, 1], [0; 6]].map(|numa| levels(numa, "auto")), [None, None]);
        assert_eq!(levels([0, 0, 0, 0, 0, 1], "numa,switch"), both);
        assert_eq!([levels([0, 0, 0, 1, 1, 1], "node"), levels([0, 0, 0, 1, 1, 1], "socket,node")], [None, None]);
    }

    #[test]
    fn many_processes_make_a_tree_by_what_they_share() {
        let made = |count: u32, here: &dyn Fn(u32) -> Locality| {
            let local: Vec<_> = (0..count).map(|rank| (rank, here(rank))).collect();
            let hw = Hardware::seen(local.iter().map(|&(rank, here)| (0, here, Some(rank))));
            let place = Placement::new(0, vec![0; count as usize], vec![], local, hw);
            place.tree_levels(&LevelSpec::Auto).map(|found| (found.levels, found.unasked))
        };
        let at = |count: u32, cores: u32, numa: u32| {
            let (l3, numa) = (|rank| Some(rank / cores), |rank| Some(rank / numa));
            made(count, &|rank| Locality { l3: l3(rank), numa: numa(rank), socket: Some(0), l2: Some(rank) })
        };
        let in_turns = |count: u32, nodes: u32| {
            let numa = |rank| Some(rank % nodes);
            made(count, &|rank| Locality { l3: numa(rank), numa: numa(rank), socket: numa(rank), l2: Some(rank) })
        };
        let of = |levels: &[Level]| Some((LevelSpec::List(levels.to_vec()), true));
        let caches = of(&[Level::L3, Level::Node]);
        assert_eq!([at(32, 8, 99), at(192, 8, 96), at(24, 6, 99)], [caches.clone(), caches.clone(), caches]);
        // Many in each cache: by number, unless NUMA nodes have ranks in turns.
        assert_eq!([at(144, 72, 72), at(112, 56, 56)], [of(&[Level::Node]), of(&[Level::Node])]);
        assert_eq!(in_turns(112, 2), of(&[Level::Numa, Level::Node]));
        // All in one, one in each, or more than one in one only.
        assert_eq!(
            [at(32, 32, 99), at(32, 1, 99), at(25, 24, 99)],
            [of(&[Level::Node]), of(&[Level::Node]), of(&[Level::Node])]
        );
        assert_eq!(at(7, 2, 2), None, "few");
        let place = Placement::new(0, vec![0; 24], vec![], Vec::new(), Hardware::default());
        let levels = place.tree_levels(&LevelSpec::Auto).map(|found| (found.levels, found.unasked));
        assert_eq!(levels, of(&[Level::Node]), "not bound");
    }

    #[test]
    #[should_panic(expected = "different switch layers")]
    fn uneven_switch_lists_are_refused() {
        let _ = Placement::new(0, vec![0, 1], vec![vec![1], vec![]], vec![], Hardware::default());
    }
}
