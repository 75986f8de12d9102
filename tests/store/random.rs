// SPDX-License-Identifier: BSD-3-Clause
//! Random jobs.

use coll_rust::endpoint::Rank;
use coll_rust::store::placement::Job;
use coll_rust::store::{Store, image::Words, sequence};
use coll_rust::sync::segment::Segment;
use coll_rust::sync::shared::SharedU64;
use coll_rust::topo::{Group, Hardware, Hierarchy, LevelSpec, Locality, Modules, Placement};
use std::sync::Arc;

/// A generator of random numbers (Knuth's MMIX).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }

    pub fn next(&mut self) -> u64 {
        self.below(1 << 31) << 40 ^ self.below(1 << 31) << 20 ^ self.below(1 << 31)
    }
}

/// A job that nobody sees whole.
#[derive(Clone, Debug)]
pub struct World {
    pub hosts: Vec<u32>,
    pub uppers: Vec<Vec<u32>>,
    pub localities: Vec<Locality>,
    pub hardware: Hardware,
    pub levels: LevelSpec,
}

impl World {
    pub fn random(random: &mut Random) -> World {
        let ranks = 1 + random.below(60);
        let nodes = 1 + random.below(ranks.min(12));
        let (how, block) = (random.below(4), 1 + random.below(6));
        let hosts: Vec<u32> = (0..ranks)
            .map(|rank| match how {
                0 => rank * nodes / ranks,
                1 => rank % nodes,
                2 => rank / block % nodes,
                _ => random.below(nodes),
            } as u32)
            .collect();
        let layers = random.below(3);
        let known = nodes.max(ranks);
        let uppers = match layers {
            0 => Vec::new(),
            _ => (0..known).map(|node| (0..layers).map(|layer| (node >> (1 + layer)) as u32).collect()).collect(),
        };
        let bound = random.below(3) > 0;
        let mut module = |per: u64| (bound && random.below(9) > 0).then(|| random.below(per) as u32);
        let localities = hosts
            .iter()
            .map(|_| Locality { l2: module(8), l3: module(4), numa: module(3), socket: module(2) })
            .collect();
        let modules = |modules| Modules { modules, cores: 16 / modules };
        let hardware =
            Hardware { l2: modules(8), l3: modules(4), numa: modules(4), socket: modules(2), processors: 16 };
        let specs = ["auto", "numa,node,cluster", "l3,socket,node,switch,cluster", "node"];
        let levels = LevelSpec::parse(specs[random.below(4) as usize]).unwrap();
        World { hosts, uppers, localities, hardware, levels }
    }

    /// The ranks of a node with their localities.
    pub fn local(&self, node: u32) -> Vec<(Rank, Locality)> {
        let all = (0..).zip(&self.hosts).zip(&self.localities);
        all.filter(|((_, host), _)| **host == node).map(|((rank, _), at)| (rank, *at)).collect()
    }

    pub fn job<'a>(&'a self, number: u32, local: &'a [(Rank, Locality)]) -> Job<'a> {
        let (hosts, uppers) = (&self.hosts, &self.uppers);
        let (cores, names) = (&[], &[]);
        Job { number, hosts, uppers, local, cores, names, hardware: self.hardware, levels: &self.levels }
    }

    pub fn placement(&self, me: Rank) -> Placement {
        let local = self.local(self.hosts[me as usize]);
        Placement::new(me, self.hosts.clone(), self.uppers.clone(), local, self.hardware)
    }

    /// What a process finds without a store.
    pub fn groups(&self, me: Rank) -> Vec<Group> {
        Hierarchy::build(&self.placement(me), &self.levels, false).groups(None)
    }
}

/// An empty store.
pub fn store(room: usize, readers: usize) -> Store {
    let segment = Segment::anonymous(Store::<coll_rust::sync::rwlock::Mcs>::words(room, readers)).unwrap();
    Store::create(Arc::new(segment), room, readers).unwrap()
}

/// Words as they lie in shared memory.
pub fn shared(words: &[u64]) -> Vec<SharedU64> {
    words.iter().map(|word| SharedU64::new(*word)).collect()
}

/// A list that was encoded, read again.
pub fn decoded(words: &[u64]) -> Result<Vec<u32>, coll_rust::store::Error> {
    let words = shared(words);
    let list = sequence::Sequence::new(Words::new(&words))?;
    let all = list.to_vec()?;
    for place in [0, all.len() / 3, all.len() / 2, all.len().saturating_sub(1)] {
        assert_eq!(list.at(place).ok(), all.get(place).copied(), "place {place} of {all:?}");
    }
    Ok(all)
}
