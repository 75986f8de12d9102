// SPDX-License-Identifier: BSD-3-Clause
//! Orders of ranks for recursive doubling over all levels, where these are even.

use super::{ABSENT, Hierarchy, Level, Rank, Tier};

impl Hierarchy {
    /// All ranks in an order in which recursive doubling goes from the top down: its first steps join the
    /// members of the topmost group, the next ones the nodes below each, and the last ones the processes of a
    /// node. Every process finds the same. Empty where there is one node, and where any of the three numbers
    /// is not the same everywhere, or no power of two.
    pub fn across(&self) -> Vec<Rank> {
        let parts = self.nodes_below();
        let each = parts.first().and_then(|part| part.first()).map_or(0, Vec::len);
        if !each.is_power_of_two() || parts.iter().flatten().any(|node| node.len() != each) {
            return Vec::new();
        }
        let places = (0..each).flat_map(|place| (0..parts[0].len()).map(move |node| (node, place)));
        places.flat_map(|(node, place)| parts.iter().map(move |part| part[node][place])).collect()
    }

    /// The lowest ranks of all nodes in an order in which recursive doubling goes from the top down: its
    /// first steps join the members of the topmost group, the next ones the nodes below each. Every process
    /// finds the same. Empty where there is one node, and where either number is not the same everywhere, or
    /// no power of two.
    pub fn leaders_across(&self) -> Vec<Rank> {
        let parts = self.nodes_below();
        let nodes = 0..parts.first().map_or(0, Vec::len);
        nodes.flat_map(|node| parts.iter().map(move |part| part[node][0])).collect()
    }

    /// Whether [`Self::nodes_below`] finds anything, from the lowest rank of every node: so that not every
    /// process that makes a communicator sorts all ranks by nodes.
    pub(super) fn has_even_nodes(&self, first: &[Rank]) -> bool {
        let Some(tier) = self.tier_of_nodes() else { return false };
        let mut counts = vec![0_usize; tier.children.len()];
        for (_, child) in first.iter().zip(&tier.child).filter(|(first, _)| **first != ABSENT) {
            if let Ok(part) = tier.children.binary_search(child) {
                counts[part] += 1;
            }
        }
        is_even(&counts)
    }

    /// The topmost tier, where it joins nodes or more of one cluster.
    fn tier_of_nodes(&self) -> Option<&Tier> {
        let several = self.shape.nodes > 1 && self.shape.clusters == 1;
        self.tiers.last().filter(|tier| tier.level > Level::Node && !tier.ranks && several)
    }

    /// The ranks of the nodes below each member of the topmost group, where both are a power of two, and the
    /// latter the same everywhere; else nothing.
    fn nodes_below(&self) -> Vec<Vec<Vec<Rank>>> {
        let Some(tier) = self.tier_of_nodes() else { return Vec::new() };
        let mut nodes = vec![Vec::new(); tier.child.len()];
        for (rank, &host) in (0..).zip(self.hosts.iter()) {
            nodes[host as usize].push(rank);
        }
        let mut parts = vec![Vec::new(); tier.children.len()];
        for (node, child) in nodes.into_iter().zip(&tier.child).filter(|(node, _)| !node.is_empty()) {
            if let Ok(part) = tier.children.binary_search(child) {
                parts[part].push(node);
            }
        }
        parts.iter_mut().for_each(|part| part.sort_unstable());
        let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
        if is_even(&counts) { parts } else { Vec::new() }
    }
}

/// Whether there are a power of two of parts, and in each of them the same power of two.
fn is_even(counts: &[usize]) -> bool {
    let count = counts.first().copied().unwrap_or(0);
    [counts.len(), count].iter().all(|n| n.is_power_of_two()) && counts.iter().all(|&other| other == count)
}
