// SPDX-License-Identifier: BSD-3-Clause
//! The groups of a job on nodes that are all alike, for very many ranks: the same as
//! [`Hierarchy`](crate::topo::Hierarchy) finds for each of them, in time that goes with the number of ranks.

use crate::endpoint::Rank;
use crate::sim::clock::net::Places;
use crate::topo::{Group, Level, LevelSpec, Shape};

/// The module of this level that a rank is in, counted over all nodes; `None`: the network has no such layer.
fn module(places: &Places<'_>, level: Level, rank: Rank) -> Option<u32> {
    let (node, core) = (places.node(rank), places.core(rank));
    let [l2, l3, numa, socket] = places.machine.shape.places(core);
    let within = |part: u32| Some(node * places.machine.shape.cores() + part);
    match level {
        Level::L2 => within(l2),
        Level::L3 => within(l3),
        Level::Numa => within(numa),
        Level::Socket => within(socket),
        Level::Node => Some(node),
        Level::Switch(layer) => {
            // The last layer joins all: it is the cluster.
            let layers = &places.network.layers[..places.network.layers.len().saturating_sub(1)];
            let below = layers.get(..usize::from(layer))?;
            Some(below.iter().fold(node, |at, layer| at / layer.below))
        }
        Level::Cluster | Level::Grid => Some(0),
    }
}

/// The levels that `spec` names, bottom to top, and the cluster.
fn levels(spec: &LevelSpec) -> impl Iterator<Item = Level> {
    let is_meant = |level: &Level| *level == Level::Cluster || (*level < Level::Cluster && spec.holds(*level));
    Level::ALL.into_iter().filter(is_meant)
}

/// The groups of every rank, bottom to top, and the shape of the job. The root is rank 0.
pub fn groups(places: &Places<'_>, spec: &LevelSpec) -> (Vec<Vec<Group>>, Shape) {
    let size = places.size();
    let mut all: Vec<Vec<Group>> = (0..size).map(|_| Vec::new()).collect();
    let mut leaders: Vec<Rank> = (0..size).collect();
    let mut above = 0;
    for level in levels(spec) {
        let Some(_) = module(places, level, 0) else { continue };
        let cut = |one: &Rank, other: &Rank| module(places, level, *one) == module(places, level, *other);
        let mut next = Vec::new();
        let last = leaders.chunk_by(cut).count() == 1;
        let before = leaders.len();
        // Ranks with a socket in turn are no runs: they are put together first.
        let mut sorted = leaders.clone();
        sorted.sort_by_key(|&rank| (module(places, level, rank), rank));
        for members in sorted.chunk_by(cut) {
            next.push(members[0]);
            if members.len() > 1 {
                for (me, &rank) in members.iter().enumerate() {
                    let top = members.len() > 1 && last;
                    all[rank as usize].push(Group { level, members: members.to_vec(), me, leader: 0, top });
                }
            }
        }
        above += usize::from(level > Level::Node && next.len() < before);
        next.sort_unstable();
        leaders = next;
        if leaders.len() == 1 {
            break;
        }
    }
    let nodes = places.nodes as usize;
    let node = spec.holds(Level::Node);
    let flat = match nodes {
        1 => all[0].len() <= 1,
        _ => above == 1 && (!node || nodes == size as usize),
    };
    let shape = Shape { nodes, flat, crowded: false, even: false, even_nodes: false, clusters: 1, joined: true };
    (all, shape)
}
