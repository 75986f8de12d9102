// SPDX-License-Identifier: BSD-3-Clause
//! The whole tree of a communicator, for people: as text and for Graphviz.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::clusters::Clusters;
use super::fold;
use super::hardware::Hardware;
use super::level::{Level, LevelSpec};
use super::locality::Locality;
use super::network::Network;
use super::partition::{self, Layer};
use super::shown::{Shown, count, ranges};
use crate::endpoint::Rank;

/// Everything there is to know about the placement of a communicator, where one process has gathered it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The node of every rank.
    pub hosts: &'a [u32],
    /// The name of every node number.
    pub names: &'a [String],
    /// The locality of every rank; ranks beyond the end count as unbound.
    pub localities: &'a [Locality],
    /// The network, if there is a file of it.
    pub network: Option<&'a Network>,
    /// The levels asked for.
    pub spec: &'a LevelSpec,
    /// The shape of the nodes: all are taken to be alike.
    pub hw: Hardware,
    /// As for [`Hierarchy::build`](super::Hierarchy::build).
    pub ordered: bool,
}

/// The tree as text: one line per group, what it joins indented below it,
/// `<level> <module>: ranks <ranks>, leader <rank>`. One that fills more than a screen is folded: of groups
/// that are alike, one is shown.
pub fn hierarchy(view: &View<'_>) -> String {
    let (groups, uppers) = view.groups();
    let nodes = view.hosts.iter().collect::<std::collections::HashSet<_>>().len();
    let mut text = format!("{} on {}\n", count(view.hosts.len(), "process", "es"), count(nodes, "node", "s"));
    if groups.len() >= fold::SCREEN {
        return text + &fold::folded(&groups, |group| view.module(group, &uppers));
    }
    let mut open: Vec<(usize, usize)> = groups.len().checked_sub(1).map(|top| (top, 1)).into_iter().collect();
    while let Some((at, depth)) = open.pop() {
        let group = &groups[at];
        let (module, ranks, leader) = (view.module(group, &uppers), ranges(&group.members), group.leader);
        let _ = writeln!(text, "{:indent$}{module}: ranks {ranks}, leader {leader}", "", indent = 2 * depth);
        open.extend(group.below.iter().rev().map(|&below| (below, depth + 1)));
    }
    text
}

/// The tree for Graphviz: a box per group, an edge to each group whose leader is its member.
pub fn dot(view: &View<'_>) -> String {
    let (groups, uppers) = view.groups();
    let mut text = String::from("digraph hierarchy {\n  node [shape=box];\n");
    for (at, group) in groups.iter().enumerate() {
        let module = view.module(group, &uppers).replace('\\', "\\\\").replace('"', "\\\"");
        let (ranks, leader) = (ranges(&group.members), group.leader);
        let _ = writeln!(text, "  g{at} [label=\"{module}\\nranks {ranks}\\nleader {leader}\"];");
        for below in &group.below {
            let _ = writeln!(text, "  g{at} -> g{below};");
        }
    }
    text.push_str("}\n");
    text
}

impl View<'_> {
    /// All groups, and the switches of every node.
    fn groups(&self) -> (Vec<Shown>, Vec<Vec<u32>>) {
        let nodes = self.hosts.iter().max().map_or(0, |&host| host as usize + 1);
        let names: Vec<&str> = (0..nodes).map(|node| self.names.get(node).map_or("", String::as_str)).collect();
        let uppers = self.network.map_or_else(Vec::new, |network| network.uppers(&names));
        let sites = self.network.and_then(|network| network.sites(&names));
        let clusters = sites.and_then(|sites| Clusters::new(self.hosts, &sites));
        (collect((self.hosts, &uppers, clusters.as_ref()), self.localities, self.spec, &self.hw, self.ordered), uppers)
    }

    /// The level and the name of a group's module: `numa node01/0`, `switch1 sw11`.
    fn module(&self, group: &Shown, uppers: &[Vec<u32>]) -> String {
        let level = group.level.name();
        let rank = group.members[0] as usize;
        let node = self.hosts[rank] as usize;
        let host = self.names.get(node).map_or("?", String::as_str);
        match group.level {
            Level::Cluster => match self.network.and_then(|network| network.cluster_name(host)) {
                Some(name) => format!("{level} {name}"),
                None => level.to_string(),
            },
            Level::Grid => level.to_string(),
            Level::Node => format!("{level} {host}"),
            Level::Switch(layer) => {
                let layer = layer as usize - 1;
                let id = uppers.get(node).and_then(|row| row.get(layer));
                let name = id.and_then(|&id| self.network?.switch_name(layer, id));
                format!("{level} {}", name.unwrap_or("?"))
            }
            _ => {
                let number = self.localities.get(rank).and_then(|locality| locality.at(group.level));
                format!("{level} {host}/{}", number.map_or("?".to_string(), |number| number.to_string()))
            }
        }
    }
}

/// All groups of two or more without a root, every one behind those below it.
pub(super) fn collect(
    (hosts, uppers, clusters): (&[u32], &[Vec<u32>], Option<&Clusters>),
    localities: &[Locality],
    spec: &LevelSpec,
    hw: &Hardware,
    ordered: bool,
) -> Vec<Shown> {
    let above = partition::above(hosts, uppers, clusters, spec, ordered);
    let mut groups = Groups { clusters, ..Groups::default() };
    if above.nodes {
        let mut local = vec![Vec::new(); above.first.len()];
        for (rank, &host) in (0..).zip(hosts) {
            let locality = localities.get(rank as usize).copied().unwrap_or_default();
            local[host as usize].push((rank, locality));
        }
        for &node in &above.order {
            let local = &local[node as usize];
            let mut below: Vec<Rank> = local.iter().map(|&(rank, _)| rank).collect();
            for layer in partition::in_node(local, hw, spec, ordered) {
                let places = |rank: Rank| local.iter().position(|&(other, _)| other == rank);
                groups.add(&layer, (0..local.len()).map(|place| (place, below[place])), places);
                below = layer.module;
            }
        }
    }
    let node = |rank: Rank| hosts.get(rank as usize).map(|&host| host as usize);
    let mut below: Option<&Layer> = None;
    for layer in &above.layers {
        match below {
            None if above.nodes => {
                groups.add(layer, above.order.iter().map(|&n| (n as usize, above.first[n as usize])), node)
            }
            None => groups.add(layer, (0..).zip(hosts).map(|(rank, &host)| (host as usize, rank)), |_| None),
            Some(Layer { module, .. }) => {
                groups.add(layer, above.order.iter().map(|&node| (node as usize, module[node as usize])), node);
            }
        }
        below = Some(layer);
    }
    groups.list
}

/// Groups in the making.
#[derive(Default)]
struct Groups<'a> {
    clusters: Option<&'a Clusters>,
    list: Vec<Shown>,
    /// The topmost group so far that a rank leads.
    led: HashMap<Rank, usize>,
}

impl Groups<'_> {
    /// Adds the groups of a layer, from every place (or rank) with its label in the layer below. `place`:
    /// that of a rank, if it is one of them and not the rank itself.
    fn add(
        &mut self,
        layer: &Layer,
        places: impl Iterator<Item = (usize, Rank)>,
        place: impl Fn(Rank) -> Option<usize>,
    ) {
        let mut modules: BTreeMap<Rank, Vec<Rank>> = BTreeMap::new();
        let places: Vec<(usize, Rank)> = places.collect();
        // Leaders of clusters lead what they are in.
        let leaders = self.clusters.map_or(&[][..], Clusters::leaders);
        let below = |leader: Rank| {
            let at = place(leader)?;
            Some((places.iter().find(|place| place.0 == at)?.1, leader))
        };
        let heads: HashMap<Rank, Rank> = leaders.iter().filter_map(|&leader| below(leader)).collect();
        for &(place, below) in &places {
            modules.entry(layer.module[place]).or_default().push(heads.get(&below).copied().unwrap_or(below));
        }
        for mut members in modules.into_values() {
            members.sort_unstable();
            members.dedup();
            if members.len() > 1 {
                let below = members.iter().filter_map(|member| self.led.get(member).copied()).collect();
                let own = members.iter().find(|member| leaders.contains(member));
                let leader = own.copied().unwrap_or(members[0]);
                self.led.insert(leader, self.list.len());
                self.list.push(Shown { level: layer.level, members, leader, below });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hardware::Modules;
    use super::*;

    #[test]
    fn ranges_draw_runs_together() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(ranges(&[3]), "3");
    }

    /// Two nodes with two sockets of two; the second node's last process is not bound.
    fn with_view<T>(spec: &str, show: impl Fn(&View<'_>) -> T) -> T {
        let hosts: Vec<u32> = (0..8).map(|rank| rank / 4).collect();
        let mut localities: Vec<_> = (0..8).map(|rank| Locality::parse(&format!("SK{}", rank / 2 % 2))).collect();
        localities[7] = Locality::default();
        let names = ["a\"1".to_string(), "b".to_string()];
        let network = Network::parse("n", "a\"1 s top\nb t top\n").expect("a network");
        let hw = Hardware { socket: Modules { modules: 2, cores: 2 }, ..Hardware::default() };
        let spec = LevelSpec::parse(spec).expect("levels");
        show(&View {
            hosts: &hosts,
            names: &names,
            localities: &localities,
            network: Some(&network),
            spec: &spec,
            hw,
            ordered: false,
        })
    }

    #[test]
    fn text() {
        assert_eq!(
            with_view("auto", hierarchy),
            "8 processes on 2 nodes\n\
             \x20 switch2 top: ranks 0,4, leader 0\n\
             \x20   node a\"1: ranks 0,2, leader 0\n\
             \x20     socket a\"1/0: ranks 0-1, leader 0\n\
             \x20     socket a\"1/1: ranks 2-3, leader 2\n\
             \x20   node b: ranks 4,6-7, leader 4\n\
             \x20     socket b/0: ranks 4-5, leader 4\n"
        );
        assert_eq!(with_view("none", hierarchy), "8 processes on 2 nodes\n  cluster: ranks 0-7, leader 0\n");
    }

    #[test]
    fn graph() {
        assert_eq!(
            with_view("node", dot),
            "digraph hierarchy {\n  node [shape=box];\n\
             \x20 g0 [label=\"node a\\\"1\\nranks 0-3\\nleader 0\"];\n\
             \x20 g1 [label=\"node b\\nranks 4-7\\nleader 4\"];\n\
             \x20 g2 [label=\"cluster\\nranks 0,4\\nleader 0\"];\n\
             \x20 g2 -> g0;\n  g2 -> g1;\n}\n"
        );
    }

    #[test]
    fn a_single_process_has_no_groups() {
        let names = ["a".to_string()];
        let spec = LevelSpec::Auto;
        let view = View {
            hosts: &[0],
            names: &names,
            localities: &[],
            network: None,
            spec: &spec,
            hw: Hardware::default(),
            ordered: true,
        };
        assert_eq!(hierarchy(&view), "1 process on 1 node\n");
    }
}
