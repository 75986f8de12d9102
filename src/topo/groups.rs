// SPDX-License-Identifier: BSD-3-Clause
//! The groups that a process belongs to: the tree of the communicator, as one of its processes sees it.
//!
//! From the lowest level up, the leaders of a level's groups are the members of the groups of the next level;
//! the top level joins all that is left. Every process finds its own groups alone, and all members of a group
//! find the same one: see `partition.rs` for what that takes, for how levels nest and for processes that are
//! bound to no module.
//!
//! **Several clusters.** Each has a leader ([`Clusters`]), which leads all groups that it is in, and the
//! topmost group is that of the clusters' leaders. A root leads in its stead, if it may have messages with
//! other clusters. One that may not leads the groups within its cluster only, and below it, as one more
//! child, hangs the leader of its cluster, with all other clusters below that: a tree still, of which every
//! process leads all of its groups but perhaps the last.

mod across;

use std::sync::Arc;

use super::clusters::Clusters;
use super::level::{Level, LevelSpec};
use super::map::Placement;
use super::partition::{self, ABSENT, Above, Layer};
use crate::endpoint::Rank;

/// Processes that exchange data at one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The level that makes the group.
    pub level: Level,
    /// The ranks, ascending; two or more.
    pub members: Vec<Rank>,
    /// Index of the calling process in `members`.
    pub me: usize,
    /// Index of the leader in `members`.
    pub leader: usize,
    /// Whether it is the topmost group of the communicator: what it and the groups below it hold is
    /// everything.
    pub top: bool,
}

/// One level of the caller's way to the top: its module there, as the modules of the level below that it
/// joins.
#[derive(Clone, Debug)]
struct Tier {
    level: Level,
    /// The lowest rank of each child module, ascending; two or more.
    children: Vec<Rank>,
    /// For every place (local index inside the node, node number above) the lowest rank of its child module;
    /// [`ABSENT`] for places outside the caller's module.
    child: Vec<Rank>,
    /// The children are single ranks and the places are nodes: `child` then only says what is in the module.
    ranks: bool,
}

/// What all processes of a communicator know of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nodes that it is on.
    pub nodes: usize,
    /// Whether one level joins everybody: then nothing can flow through levels.
    pub flat: bool,
    /// Whether it is on one node and has more processes than that has cores, so that they take turns.
    pub crowded: bool,
    /// Whether it is on several nodes, and there are a power of two of members of the topmost group, of nodes
    /// below each, and of processes on each: see [`Hierarchy::across`].
    pub even: bool,
    /// Whether it is on several nodes, which make groups, and there are a power of two of members of the
    /// topmost group, and of nodes below each: see [`Hierarchy::leaders_across`].
    pub even_nodes: bool,
    /// Clusters that it is on; 1 where the network names none.
    pub clusters: usize,
    /// Whether each cluster is one member of the topmost group, if there are several: not where groups must
    /// be of consecutive ranks and clusters are not. Then nothing may go along the groups.
    pub joined: bool,
}

/// The levels that count for a communicator and the caller's groups in them.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    me: Rank,
    hosts: Arc<[u32]>,
    /// The ranks on the caller's node, ascending: index = place inside the node.
    local: Vec<Rank>,
    levels: Vec<Level>,
    shape: Shape,
    tiers: Vec<Tier>,
    clusters: Option<Arc<Clusters>>,
    /// The levels above the node, where there are several clusters.
    above: Vec<Layer>,
    /// Whether nodes make groups.
    nodes: bool,
}

impl Hierarchy {
    /// Finds the levels and the caller's modules in them. Time O(processes · levels), memory O(processes +
    /// nodes · levels).
    ///
    /// Levels that change nothing are dropped. With `ordered`, so are levels whose modules are not all
    /// intervals of consecutive ranks (with the nodes go the levels inside them), and every group's members
    /// then stand for intervals of ranks, in ascending order: what an operation that does not commute needs.
    pub fn build(placement: &Placement, spec: &LevelSpec, ordered: bool) -> Hierarchy {
        let me = placement.me;
        let above = partition::above(&placement.hosts, &placement.uppers, placement.clusters.as_deref(), spec, ordered);
        let inner =
            if above.nodes { partition::in_node(&placement.local, &placement.hw, spec, ordered) } else { Vec::new() };
        let local: Vec<Rank> = placement.local.iter().map(|&(rank, _)| rank).collect();
        let mut tiers = Vec::new();

        let home = local.partition_point(|&rank| rank < me);
        let mut below = &local;
        for layer in &inner {
            tiers.push(Tier::new(layer, home, below, 0..local.len()));
            below = &layer.module;
        }
        let node = placement.hosts[me as usize] as usize;
        let mut lower = if above.nodes { Some(&above.first) } else { None };
        for layer in &above.layers {
            tiers.push(match lower {
                Some(below) => Tier::new(layer, node, below, above.order.iter().map(|&node| node as usize)),
                None => Tier::of_ranks(layer, node, &placement.hosts),
            });
            lower = Some(&layer.module);
        }
        let levels = active(&inner, &above);
        tiers.retain(|tier| tier.children.len() > 1);
        let nodes = above.first.iter().filter(|&&first| first != ABSENT).count();
        let flat = match nodes {
            1 => levels.len() <= 1,
            _ => above.layers.len() == 1 && (!above.nodes || nodes == placement.hosts.len()),
        };
        let cores = placement.hw.cores();
        let crowded = nodes == 1 && cores > 0 && placement.hosts.len() > cores;
        let clusters = placement.clusters.clone();
        let count = clusters.as_ref().map_or(1, |clusters| clusters.count());
        let joined = count == 1 || tiers.last().is_some_and(|tier| tier.children.len() == count);
        let shape = Shape { nodes, flat, crowded, even: false, even_nodes: false, clusters: count, joined };
        let hosts = placement.hosts.clone();
        let (above_nodes, first) = (above.nodes, above.first);
        let sizes: Vec<u32> = above.sizes.into_iter().filter(|&size| size > 0).collect();
        let above = if clusters.is_some() { above.layers } else { Vec::new() };
        let mut hierarchy = Hierarchy { me, hosts, local, levels, shape, tiers, clusters, above, nodes: above_nodes };
        let even = hierarchy.has_even_nodes(&first);
        let alike = sizes.first().is_some_and(|each| each.is_power_of_two()) && sizes.windows(2).all(|w| w[0] == w[1]);
        (hierarchy.shape.even, hierarchy.shape.even_nodes) = (even && alike, even && above_nodes);
        hierarchy
    }

    /// The groups of two or more processes that the caller belongs to, bottom to top. In time that goes with
    /// their size.
    ///
    /// The leader of a group, and of every group below it, is the lowest rank in it, or that of the cluster;
    /// with a `root` the root leads all that hold it (but see above for several clusters). Over all processes
    /// the groups are a tree. All processes must give the same root.
    pub fn groups(&self, root: Option<Rank>) -> Vec<Group> {
        let mut groups = Vec::with_capacity(self.tiers.len());
        let (below, through) = (self.tiers.len().saturating_sub(1), self.hands_over(root));
        // The topmost level that counts joins everything; a root that hands over does so below that.
        let top = if through.is_some() { below.saturating_sub(1) } else { below };
        for (i, tier) in self.tiers.iter().enumerate() {
            let (members, chief) = self.members(tier, root);
            let (Ok(me), Ok(leader)) = (members.binary_search(&self.me), members.binary_search(&chief)) else {
                break; // someone else leads the caller's part
            };
            // Other clusters hang below the leader of the root's, in the last group that it leads.
            let is_below = through == Some(self.me) && me != leader && i < below;
            if is_below && let Some(tier) = self.tiers.last() {
                let (members, chief) = self.members(tier, root);
                if let (Ok(me), Ok(leader)) = (members.binary_search(&self.me), members.binary_search(&chief)) {
                    groups.push(Group { level: tier.level, members, me, leader, top: false });
                }
            }
            groups.push(Group { level: tier.level, members, me, leader, top: i == top && self.is_roots(root, tier) });
            if me != leader {
                break;
            }
        }
        groups
    }

    /// Whether the topmost group may be one of this tier: not where a root hands over in another cluster.
    fn is_roots(&self, root: Option<Rank>, tier: &Tier) -> bool {
        let holds = |root| self.child(tier, root).is_some();
        self.hands_over(root).is_none() || (tier.level < Level::Grid && root.is_some_and(holds))
    }

    /// Who stands between the root and other clusters: the leader of its cluster, where the root may not have
    /// messages with others.
    fn hands_over(&self, root: Option<Rank>) -> Option<Rank> {
        let (clusters, root) = (self.clusters.as_ref()?, root?);
        (self.shape.joined && !clusters.may_cross(root)).then(|| clusters.leader(root))
    }

    /// Those child modules of a tier that someone else leads than their lowest rank.
    fn heads(&self, tier: &Tier, root: Option<Rank>) -> Vec<(Rank, Rank)> {
        let mut heads = Vec::new();
        let mut add = |rank: Rank| {
            if let Some(child) = self.child(tier, rank) {
                heads.retain(|&(other, _)| other != child);
                heads.push((child, rank));
            }
        };
        if let Some(clusters) = &self.clusters {
            match tier.level {
                Level::Grid => clusters.leaders().iter().copied().for_each(&mut add),
                _ => add(clusters.leader(self.me)),
            }
        }
        root.filter(|_| tier.level < Level::Grid || self.hands_over(root).is_none()).into_iter().for_each(add);
        heads
    }

    /// The members of a tier's group, ascending, and which of them leads it.
    fn members(&self, tier: &Tier, root: Option<Rank>) -> (Vec<Rank>, Rank) {
        let heads = self.heads(tier, root);
        let mut members = tier.children.clone();
        heads.iter().for_each(|&(child, head)| replace(&mut members, child, head));
        let leads = |rank: &Rank| members.binary_search(rank).is_ok();
        let root = root.map(|root| self.hands_over(Some(root)).filter(|_| tier.level == Level::Grid).unwrap_or(root));
        let own = self.clusters.as_ref().filter(|_| tier.level < Level::Grid).map(|clusters| clusters.leader(self.me));
        let chief = root.filter(leads).or(own.filter(leads)).unwrap_or(members[0]);
        (members, chief)
    }

    /// What the members of the caller's group of this level stand for: of each, in the group's order, the
    /// ranks of its module, ascending. Of the topmost level every process can ask; nothing where the level
    /// does not count. In time that goes with the ranks in question. `root`: as for [`groups`](Self::groups).
    pub fn parts(&self, level: Level, root: Option<Rank>) -> Vec<Vec<Rank>> {
        let Some(tier) = self.tiers.iter().find(|tier| tier.level == level) else { return Vec::new() };
        let (members, heads) = (self.members(tier, root).0, self.heads(tier, root));
        let head = |child: Rank| heads.iter().find(|head| head.0 == child).map_or(child, |head| head.1);
        let through = self.hands_over(root);
        // Within the root's cluster, the leader stands for other clusters too, unless it is below the root.
        let others =
            through.filter(|_| level < Level::Grid && root.is_some_and(|root| self.child(tier, root).is_some()));
        let mut parts = vec![Vec::new(); members.len()];
        let mut add = |rank: Rank| {
            let foreign = |leader: &Rank| self.clusters.as_ref().is_some_and(|c| !c.together(*leader, rank));
            let child = self.child(tier, others.filter(foreign).unwrap_or(rank));
            let is_left = |leader: Rank| level == Level::Grid && !foreign(&leader) && !self.is_led(leader, root, rank);
            if through.is_some_and(is_left) {
                return;
            }
            if let Some(Ok(at)) = child.map(|child| members.binary_search(&head(child))) {
                parts[at].push(rank);
            }
        };
        match level <= Level::Node && others.is_none_or(|leader| self.child(tier, leader).is_none()) {
            true => self.local.iter().copied().for_each(&mut add),
            false => (0..self.hosts.len() as Rank).for_each(&mut add),
        }
        parts
    }

    /// Whether the leader of the root's cluster, which is on another node than the root, has a rank of its
    /// cluster below it. All processes find the same.
    fn is_led(&self, leader: Rank, root: Option<Rank>, rank: Rank) -> bool {
        let host = |rank: Rank| self.hosts[rank as usize] as usize;
        let module = |layer: &Layer, rank: Rank| layer.module[host(rank)];
        let apart = |layer: &&Layer| root.is_some_and(|root| module(layer, root) != module(layer, leader));
        match self.above.iter().rev().find(apart) {
            Some(layer) => module(layer, rank) == module(layer, leader),
            None if self.nodes => host(rank) == host(leader),
            None => rank == leader,
        }
    }

    /// The lowest rank of the child module that holds `root`, if the tier's module holds it.
    fn child(&self, tier: &Tier, root: Rank) -> Option<Rank> {
        let place = if tier.level <= Level::Node {
            self.local.binary_search(&root).ok()?
        } else {
            *self.hosts.get(root as usize)? as usize
        };
        match *tier.child.get(place)? {
            ABSENT => None,
            _ if tier.ranks => Some(root),
            child => Some(child),
        }
    }

    /// The calling process.
    pub fn rank(&self) -> Rank {
        self.me
    }

    /// The levels that count, bottom to top. Those inside the node are the caller's node's own.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// How many levels count.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The shape of the communicator; the same on all processes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many processes the topmost group has; the same on all processes. 1 in a communicator of one.
    pub fn top_level_size(&self) -> usize {
        // The topmost level that counts joins everything, so every process has a tier for it.
        self.tiers.last().map_or(1, |tier| tier.children.len())
    }
}

impl Tier {
    /// The module of place `home`, made of the modules `below`. `places` come in the order of their ranks.
    fn new(layer: &Layer, home: usize, below: &[Rank], places: impl Iterator<Item = usize>) -> Tier {
        let module = layer.module[home];
        let mut child = vec![ABSENT; layer.module.len()];
        let mut children: Vec<Rank> = Vec::new();
        for place in places.filter(|&place| layer.module[place] == module) {
            child[place] = below[place];
            // A module is met first at the place of its lowest rank, so new ones ascend.
            if children.last().is_none_or(|&last| below[place] > last) {
                children.push(below[place]);
            }
        }
        Tier { level: layer.level, children, child, ranks: false }
    }

    /// The module of node `home`, made of single ranks.
    fn of_ranks(layer: &Layer, home: usize, hosts: &[u32]) -> Tier {
        let module = layer.module[home];
        let holds = |node: u32| layer.module[node as usize] == module;
        let children = (0..).zip(hosts).filter(|&(_, &host)| holds(host)).map(|(rank, _)| rank).collect();
        let child = layer.module.iter().map(|&label| if label == module { label } else { ABSENT }).collect();
        Tier { level: layer.level, children, child, ranks: true }
    }
}

/// The levels that count on a node with the partitions `inner`.
fn active(inner: &[Layer], above: &Above) -> Vec<Level> {
    inner.iter().chain(&above.layers).map(|layer| layer.level).collect()
}

/// Puts `new` in the place of `old`, the list stays ascending.
fn replace(sorted: &mut [Rank], old: Rank, new: Rank) {
    let Ok(from) = sorted.binary_search(&old) else { return };
    // A child's lowest rank gives way to another of its ranks: the new one is not lower.
    let to = sorted.partition_point(|&rank| rank < new).max(from + 1) - 1;
    sorted[from..=to].rotate_left(1);
    sorted[to] = new;
}
