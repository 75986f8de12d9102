// SPDX-License-Identifier: BSD-3-Clause
//! Several clusters in one communicator: which of their processes have messages with other clusters.
//!
//! A process *may cross* if it runs on a gateway node: one that the network file marks, or any of a cluster
//! without marks. Where no process of the communicator runs on a gateway node of its cluster, the node of the
//! lowest rank there counts as one, so that every cluster has a process that may. The lowest rank that may
//! is the cluster's *leader*: it leads all groups that it is in, and so the cluster's part in the group of
//! clusters. A root that may cross leads in its stead.

use crate::endpoint::Rank;
use std::collections::HashMap;

/// The clusters of nodes, as the network file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// The cluster of every node; any numbers.
    pub of: Vec<u32>,
    /// Whether a node reaches other clusters.
    pub gateway: Vec<bool>,
}

/// The clusters of the processes of a communicator, two or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// By rank, in the order of the clusters' lowest ranks.
    of: Vec<u32>,
    crosses: Vec<bool>,
    leaders: Vec<Rank>,
    /// Clusters none of whose gateway nodes has a process here.
    unmarked: Vec<u32>,
    /// The number of each cluster in the network file.
    sites: Vec<u32>,
}

impl Clusters {
    /// Of processes on these nodes; `None` where all are in one cluster.
    pub fn new(hosts: &[u32], sites: &Sites) -> Option<Clusters> {
        let mut numbers = HashMap::new();
        let site = |host: u32| sites.of.get(host as usize).copied().unwrap_or(u32::MAX);
        let of: Vec<u32> = hosts
            .iter()
            .map(|&host| {
                let next = numbers.len() as u32;
                *numbers.entry(site(host)).or_insert(next)
            })
            .collect();
        let count = numbers.len();
        if count < 2 {
            return None;
        }
        let gateway = |host: u32| sites.gateway.get(host as usize).copied().unwrap_or(true);
        let (mut first, mut unmarked) = (vec![None; count], vec![true; count]);
        for (&cluster, &host) in of.iter().zip(hosts) {
            first[cluster as usize].get_or_insert(host);
            unmarked[cluster as usize] &= !gateway(host);
        }
        let stands_in = |cluster: u32, host: u32| unmarked[cluster as usize] && first[cluster as usize] == Some(host);
        let crosses: Vec<bool> =
            of.iter().zip(hosts).map(|(&cluster, &host)| gateway(host) || stands_in(cluster, host)).collect();
        let leads = |cluster: u32| {
            let ranks = (0..).zip(of.iter().zip(&crosses));
            ranks.into_iter().find(|&(_, (&other, &crosses))| other == cluster && crosses).map_or(0, |(rank, _)| rank)
        };
        let leaders = (0..count as u32).map(leads).collect();
        let mut numbered = vec![0; count];
        numbers.iter().for_each(|(&site, &number)| numbered[number as usize] = site);
        let unmarked = (0..count as u32).filter(|&cluster| unmarked[cluster as usize]).collect();
        Some(Clusters { of, crosses, leaders, unmarked, sites: numbered })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.leaders.len()
    }

    /// The number of a rank's cluster.
    pub fn of(&self, rank: Rank) -> u32 {
        self.of[rank as usize]
    }

    /// The number of a rank's cluster in the network file; more than there are, where that does not name it.
    pub fn site(&self, rank: Rank) -> u32 {
        self.sites[self.of(rank) as usize]
    }

    /// The leader of every cluster.
    pub fn leaders(&self) -> &[Rank] {
        &self.leaders
    }

    /// The leader of a rank's cluster.
    pub fn leader(&self, rank: Rank) -> Rank {
        self.leaders[self.of(rank) as usize]
    }

    /// Whether two ranks are in one cluster.
    pub fn together(&self, one: Rank, other: Rank) -> bool {
        self.of(one) == self.of(other)
    }

    /// Whether a rank may have messages with other clusters.
    pub fn may_cross(&self, rank: Rank) -> bool {
        self.crosses[rank as usize]
    }

    /// Whether two ranks may have messages with each other, in whatever operation.
    pub fn allows(&self, one: Rank, other: Rank) -> bool {
        self.together(one, other) || (self.may_cross(one) && self.may_cross(other))
    }

    /// Those of operations with this root: the leaders, and the root where it may cross, have messages with
    /// other clusters.
    pub fn allows_with(&self, root: Option<Rank>, one: Rank, other: Rank) -> bool {
        let is_end = |rank: Rank| {
            let root = root.filter(|&root| self.may_cross(root));
            match root.filter(|&root| self.together(root, rank)) {
                Some(root) => rank == root,
                None => rank == self.leader(rank),
            }
        };
        self.together(one, other) || (is_end(one) && is_end(other))
    }

    /// The leaders of clusters none of whose gateway nodes has a process here.
    pub fn stand_ins(&self) -> impl Iterator<Item = Rank> {
        self.unmarked.iter().map(|&cluster| self.leaders[cluster as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_are_on_gateway_nodes_where_there_are_any() {
        // Nodes 0 to 2 in cluster 7, of which 2 is a gateway; 3 and 4 in 5, both; 5 and 6 in 6, none here.
        let gateway = vec![false, false, true, true, true, false, false];
        let sites = Sites { of: vec![7, 7, 7, 5, 5, 6, 6], gateway };
        let hosts = [6, 0, 1, 4, 2, 3, 5, 2, 6];
        let clusters = Clusters::new(&hosts, &sites).expect("several");
        assert_eq!((clusters.count(), clusters.leaders()), (3, &[0, 4, 3][..]));
        assert_eq!((0..9).map(|rank| clusters.of(rank)).collect::<Vec<_>>(), [0, 1, 1, 2, 1, 2, 0, 1, 0]);
        let crossing: Vec<Rank> = (0..9).filter(|&rank| clusters.may_cross(rank)).collect();
        assert_eq!(crossing, [0, 3, 4, 5, 7, 8], "node 6 stands in for its cluster");
        assert_eq!(clusters.stand_ins().collect::<Vec<_>>(), [0]);
        assert_eq!([0, 1, 3].map(|rank| clusters.site(rank)), [6, 7, 5]);
        assert!(clusters.allows(1, 2) && clusters.allows(7, 5) && !clusters.allows(1, 3) && !clusters.allows(6, 4));
        let with = |root, one, other| clusters.allows_with(root, one, other);
        assert!(with(None, 4, 3) && !with(None, 7, 3) && with(Some(7), 7, 3) && !with(Some(7), 4, 3));
        assert!(with(Some(1), 4, 3) && !with(Some(1), 1, 3) && with(Some(1), 1, 4));
    }

    #[test]
    fn one_cluster_is_none() {
        let sites = Sites { of: vec![3, 3, 4], gateway: vec![true; 3] };
        assert_eq!(Clusters::new(&[0, 1, 1], &sites), None);
        assert!(Clusters::new(&[0, 2], &sites).is_some());
    }
}
