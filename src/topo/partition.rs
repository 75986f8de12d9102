// SPDX-License-Identifier: BSD-3-Clause
//! The partitions that the levels make of a communicator, and which of them count.
//!
//! A partition is written down as one number per *place*: the lowest rank of the place's module. A place is a
//! rank inside the node and a node above it. Inside a node only what the node's own processes know is used,
//! above it only what all processes know, so all members of a group find the same group.
//!
//! **Nesting.** A module of a level is cut along the modules of the selected levels above it: two ranks are
//! together only if they have the same number at this level *and* at every selected, shared level above it in
//! the node (an L3 cache that spans two NUMA nodes counts as two; a NUMA node that spans two sockets
//! likewise). A rank without a number at a level is alone there and at the levels below.

use std::collections::HashMap;

use super::clusters::Clusters;
use super::hardware::Hardware;
use super::level::{Level, LevelSpec};
use super::locality::Locality;
use crate::endpoint::Rank;

/// The label of a node without ranks.
pub(super) const ABSENT: Rank = Rank::MAX;

/// The partition of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub level: Level,
    /// For every place the lowest rank of its module.
    pub module: Vec<Rank>,
}

/// The ranks at a place, or in a module.
#[derive(Clone, Copy)]
struct Extent {
    first: Rank,
    last: Rank,
    count: usize,
}

impl Extent {
    fn join(&mut self, other: Extent) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.count += other.count;
    }

    /// Whether it is a run of consecutive ranks.
    fn is_interval(&self) -> bool {
        (self.last - self.first) as usize + 1 == self.count
    }
}

/// The levels inside one node up to and with the node, bottom to top, over its ranks (`local`, ascending).
pub(super) fn in_node(local: &[(Rank, Locality)], hw: &Hardware, spec: &LevelSpec, ordered: bool) -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut outer: Vec<Option<Rank>> = vec![local.first().map(|&(rank, _)| rank); local.len()];
    layers.push(Layer { level: Level::Node, module: outer.iter().flatten().copied().collect() });
    for level in [Level::Socket, Level::Numa, Level::L3, Level::L2] {
        if !(spec.holds(level) && hw.shared(level)) {
            continue;
        }
        let mut first = HashMap::new();
        for (outer, &(rank, locality)) in outer.iter_mut().zip(local) {
            *outer = match (*outer, locality.at(level)) {
                (Some(parent), Some(number)) => Some(*first.entry((parent, number)).or_insert(rank)),
                _ => None,
            };
        }
        let module = outer.iter().zip(local).map(|(label, &(rank, _))| label.unwrap_or(rank)).collect();
        layers.push(Layer { level, module });
    }
    layers.reverse();
    let places: Vec<_> = local.iter().map(|&(rank, _)| Extent { first: rank, last: rank, count: 1 }).collect();
    keep(layers, &places, local.len(), ordered)
}

/// What all processes know: the nodes, and the levels above them.
pub(super) struct Above {
    /// Whether nodes (and the levels inside) make groups. If not, the lowest level joins ranks, not nodes.
    pub nodes: bool,
    /// For every node number its lowest rank, or [`ABSENT`].
    pub first: Vec<Rank>,
    /// For every node number its ranks' number.
    pub sizes: Vec<u32>,
    /// The nodes that have ranks, by lowest rank.
    pub order: Vec<u32>,
    /// The levels above the node, bottom to top; a place is a node number.
    pub layers: Vec<Layer>,
}

/// The levels above the node, from the node of every rank, the switches of every node, and the clusters where
/// there are several.
pub(super) fn above(
    hosts: &[u32],
    uppers: &[Vec<u32>],
    clusters: Option<&Clusters>,
    spec: &LevelSpec,
    ordered: bool,
) -> Above {
    let nodes = hosts.iter().max().map_or(0, |&host| host as usize + 1);
    let mut places = vec![Extent { first: ABSENT, last: 0, count: 0 }; nodes];
    let mut order = Vec::new();
    for (rank, &host) in (0..).zip(hosts) {
        let place = &mut places[host as usize];
        if place.count == 0 {
            order.push(host);
        }
        place.join(Extent { first: rank, last: rank, count: 1 });
    }
    let use_nodes =
        spec.holds(Level::Node) && (!ordered || places.iter().all(|place| place.count == 0 || place.is_interval()));

    let mut outer: Vec<Rank> = places.iter().map(|place| if place.count == 0 { ABSENT } else { 0 }).collect();
    let mut layers = Vec::new();
    if let Some(clusters) = clusters {
        layers.push(Layer { level: Level::Grid, module: outer.clone() });
        let mut first = vec![ABSENT; clusters.count()];
        for &node in &order {
            let lowest = places[node as usize].first;
            let first = &mut first[clusters.of(lowest) as usize];
            *first = lowest.min(*first);
            outer[node as usize] = *first;
        }
    }
    layers.push(Layer { level: Level::Cluster, module: outer.clone() });
    let depth = uppers.first().map_or(0, Vec::len);
    let switches = Level::ALL.into_iter().filter(|level| matches!(level, Level::Switch(_))).enumerate().take(depth);
    for (layer, level) in switches.collect::<Vec<_>>().into_iter().rev() {
        if !spec.holds(level) {
            continue;
        }
        let mut first = HashMap::new();
        for &node in &order {
            let node = node as usize;
            let key = (outer[node], uppers[node][layer]);
            outer[node] = *first.entry(key).or_insert(places[node].first);
        }
        layers.push(Layer { level, module: outer.clone() });
    }
    layers.reverse();
    let below = if use_nodes { order.len() } else { hosts.len() };
    let layers = keep(layers, &places, below, ordered);
    let (first, sizes) = places.iter().map(|place| (place.first, place.count as u32)).unzip();
    Above { nodes: use_nodes, first, sizes, order, layers }
}

/// Drops the levels that change nothing, and with `ordered` those with a module that is not an interval of
/// ranks.
///
/// `below` is the number of modules below the lowest level. The layers nest, so equal numbers mean equal
/// partitions.
fn keep(mut layers: Vec<Layer>, places: &[Extent], mut below: usize, ordered: bool) -> Vec<Layer> {
    layers.retain(|layer| {
        let mut modules: HashMap<Rank, Extent> = HashMap::new();
        for (&label, &place) in layer.module.iter().zip(places).filter(|(_, place)| place.count > 0) {
            modules.entry(label).and_modify(|module| module.join(place)).or_insert(place);
        }
        let kept = modules.len() < below && (!ordered || modules.values().all(Extent::is_interval));
        if kept {
            below = modules.len();
        }
        kept
    });
    layers
}
