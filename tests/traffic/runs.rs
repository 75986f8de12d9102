// SPDX-License-Identifier: BSD-3-Clause
//! Every operation by every algorithm, over any endpoint.

use coll_rust::algo::data::{Packed, Plain, Role};
use coll_rust::algo::reduce::Value;
use coll_rust::algo::{Stage, allgather, alltoall, gather, reduce_scatter, scan, scatter};
use coll_rust::endpoint::{Endpoint, Rank, Result, Span, Tag};
use coll_rust::hier::allgather::Exchange;
use coll_rust::hier::gather::Tree;
use coll_rust::hier::parts::Parts;
use coll_rust::hier::reduce_scatter::Halves;
use coll_rust::hier::scan::Prefix;
use coll_rust::hier::{self, Job};
use coll_rust::pattern::lengths::Lengths;
use coll_rust::select::Spec;
use coll_rust::topo::{Group, Hardware, Hierarchy, Level, LevelSpec, Locality, Placement};

/// Bytes of a block, or of a vector that is broadcast or combined.
pub const BLOCK: usize = 1024;

/// Messages under way at a time; it changes no count.
const POSTS: usize = 8;

/// A job of nodes with equally many ranks, in rank order, on switches with equally many nodes.
#[derive(Clone, Copy)]
pub struct Cluster {
    pub switches: usize,
    pub nodes: usize,
    pub each: usize,
}

impl Cluster {
    pub fn ranks(&self) -> usize {
        self.nodes * self.each
    }

    fn node(&self, rank: Rank) -> usize {
        rank as usize / self.each
    }

    fn switch(&self, rank: Rank) -> usize {
        self.node(rank) * self.switches / self.nodes
    }

    /// 0: within a node, 1: between nodes of a switch, 2: between switches.
    pub fn kind(&self, from: Rank, to: Rank) -> usize {
        match () {
            () if self.node(from) == self.node(to) => 0,
            () if self.switch(from) == self.switch(to) => 1,
            () => 2,
        }
    }

    fn hierarchy(&self, me: Rank, levels: &LevelSpec) -> Hierarchy {
        let hosts = (0..self.ranks()).map(|rank| (rank / self.each) as u32).collect();
        let uppers = (0..self.nodes).map(|node| vec![(node * self.switches / self.nodes) as u32]).collect();
        let first = self.node(me) * self.each;
        let local = (first..first + self.each).map(|rank| (rank as Rank, Locality::default())).collect();
        Hierarchy::build(&Placement::new(me, hosts, uppers, local, Hardware::default()), levels, false)
    }
}

/// What the ranks of a cluster find.
pub struct Found {
    size: usize,
    groups: Vec<Vec<Group>>,
    joined: Vec<Parts>,
    rooted: Vec<Parts>,
}

impl Found {
    /// `levels`: as in the parameter. The root is 0.
    pub fn new(cluster: &Cluster, levels: &str) -> Found {
        let levels = LevelSpec::parse(levels).unwrap();
        let mut found = Found { size: cluster.ranks(), groups: Vec::new(), joined: Vec::new(), rooted: Vec::new() };
        for me in 0..cluster.ranks() as Rank {
            let hierarchy = cluster.hierarchy(me, &levels);
            let groups = hierarchy.groups(Some(0));
            found.joined.push(Parts::joined(&hierarchy, &groups, me));
            found.rooted.push(Parts::rooted(&hierarchy, &groups, me, 0));
            found.groups.push(groups);
        }
        found
    }

    fn job<'a, E: Endpoint>(&'a self, ep: &'a E, bytes: usize) -> Job<'a, E> {
        Job {
            ep,
            groups: &self.groups[ep.rank() as usize],
            bytes,
            segment: usize::MAX,
            window: 1,
            commutative: true,
            divisible: true,
            crowded: false,
            node: None,
        }
    }
}

/// The operations and their algorithms, the hierarchical ones first, and the levels that they have.
pub const ROWS: &[(&str, &str, &str)] = &[
    ("Bcast", "hierarchical", "auto"),
    ("Bcast", "flat", "none"),
    ("Reduce", "hierarchical", "auto"),
    ("Reduce", "flat", "none"),
    ("Allreduce", "hierarchical", "auto"),
    ("Allreduce", "flat", "none"),
    ("Barrier", "hierarchical", "auto"),
    ("Barrier", "flat", "none"),
    ("Gather", "hierarchical", "auto"),
    ("Gather", "linear", "none"),
    ("Gather", "knomial/2", "none"),
    ("Scatter", "hierarchical", "auto"),
    ("Scatter", "linear", "none"),
    ("Scatter", "knomial/2", "none"),
    ("Allgather", "hierarchical", "auto"),
    ("Allgather", "linear", "none"),
    ("Allgather", "ring", "none"),
    ("Allgather", "neighbor_exchange", "none"),
    ("Allgather", "bruck", "none"),
    ("Alltoall", "hierarchical", "node"),
    ("Alltoall", "spread", "node"),
    ("Alltoall", "linear", "none"),
    ("Alltoall", "bruck/2", "none"),
    ("Reduce_scatter", "hierarchical", "auto"),
    ("Reduce_scatter", "pairwise", "none"),
    ("Reduce_scatter", "recursive_halving", "none"),
    ("Reduce_scatter", "ring", "none"),
    ("Scan", "hierarchical", "auto"),
    ("Scan", "linear", "none"),
    ("Scan", "recursive_doubling", "none"),
];

/// Runs one rank's part. `place`: memory for so many bytes.
pub async fn run<E: Endpoint>(
    found: &Found,
    ep: &E,
    (operation, algorithm): (&str, &str),
    place: impl Fn(usize) -> Span,
) -> Result<()> {
    let (me, size) = (ep.rank() as usize, found.size);
    let ranks: Vec<Rank> = (0..size as Rank).collect();
    let stage = &Stage::new(ep, &ranks, me, Tag { lane: 0, phase: 0, level: Level::Cluster.index() });
    let whole = size * BLOCK;
    let lengths = &Lengths::equal(BLOCK, size);
    let own = &Plain { ep, span: place(BLOCK) };
    let vector = || found.job(ep, BLOCK);
    let blocks = || found.job(ep, whole);
    let (joined, rooted) = (&found.joined[me], &found.rooted[me]);
    let all = |span: Span| Packed { ep, span, lengths };
    let root = place(if me == 0 { whole } else { 0 });
    let root_blocks = &all(root);
    let role = || if me == 0 { Role::Root { all: root_blocks, own: Some(own) } } else { Role::Other { own } };
    match (operation, algorithm) {
        ("Bcast", _) => hier::bcast::bcast(&vector(), &Spec::AUTO, own, me == 0).await,
        ("Reduce", _) => {
            let target = (me == 0).then(|| place(BLOCK));
            hier::reduce::reduce(&vector(), &Spec::AUTO, Value::borrowed(own.span), target).await
        }
        ("Allreduce", _) => {
            let (reduce, bcast, allreduce) = (&Spec::AUTO, &Spec::AUTO, &Spec::AUTO);
            let specs = hier::allreduce::Specs { reduce, bcast, allreduce };
            hier::allreduce::allreduce(&vector(), &specs, Value::borrowed(own.span), place(BLOCK)).await
        }
        ("Barrier", _) => hier::barrier::barrier(&vector(), &Spec::AUTO).await,
        ("Gather", "linear") => gather::linear::linear(stage, 0, role(), POSTS).await,
        ("Gather", "knomial/2") => gather::knomial::knomial(stage, 0, role(), Some(lengths), 2).await,
        ("Gather", _) => hier::gather::gather(&blocks(), rooted, &Tree::auto, Some(BLOCK), 0, &role()).await,
        ("Scatter", "linear") => scatter::linear::linear(stage, 0, role(), POSTS).await,
        ("Scatter", "knomial/2") => scatter::knomial::knomial(stage, 0, role(), Some(lengths), 2).await,
        ("Scatter", _) => hier::scatter::scatter(&blocks(), rooted, &Tree::auto, Some(BLOCK), &role()).await,
        ("Allgather", _) => {
            let into = &all(place(whole));
            match algorithm {
                "linear" => allgather::linear::linear(stage, Some(own), into, POSTS).await,
                "ring" => allgather::ring::ring(stage, Some(own), into).await,
                "neighbor_exchange" => allgather::neighbor_exchange::neighbor_exchange(stage, Some(own), into).await,
                "bruck" => allgather::bruck::bruck(stage, Some(own), into).await,
                _ => {
                    let (trees, exchange, bcast) = (&Tree::auto, &Exchange::auto, &Spec::AUTO);
                    let specs = hier::allgather::Specs { trees, exchange, bcast, order: &[] };
                    hier::allgather::allgather(&blocks(), joined, &specs, Some(own), into).await
                }
            }
        }
        ("Alltoall", _) => {
            let (out, into) = (&all(place(whole)), &all(place(whole)));
            match algorithm {
                "linear" => alltoall::linear::linear(stage, Some(out), into, POSTS).await,
                "bruck/2" => alltoall::bruck::bruck(stage, Some(out), into, 2).await,
                "spread" => hier::alltoall::spread(&blocks(), joined, Some(BLOCK), Some(out), into).await,
                _ => hier::alltoall::alltoall(&blocks(), joined, &Tree::auto, Some(BLOCK), Some(out), into).await,
            }
        }
        ("Reduce_scatter", _) => {
            let (mine, target) = (place(whole), place(BLOCK));
            match algorithm {
                "pairwise" => reduce_scatter::pairwise::pairwise(stage, mine, lengths, target).await,
                "recursive_halving" => {
                    reduce_scatter::recursive_halving::recursive_halving(stage, mine, lengths, target).await
                }
                "ring" => reduce_scatter::ring::ring(stage, mine, lengths, target).await,
                _ => {
                    let (reduce, halves, trees) = (&Spec::AUTO, &Halves::auto, &Tree::auto);
                    let specs = hier::reduce_scatter::Specs { reduce, halves, trees };
                    hier::reduce_scatter::reduce_scatter(&blocks(), joined, &specs, mine, lengths, target).await
                }
            }
        }
        ("Scan", _) => {
            let (mine, target, kind) = (own.span, place(BLOCK), scan::Scan::Inclusive);
            match algorithm {
                "linear" => scan::linear::linear(stage, kind, mine, target).await,
                "recursive_doubling" => scan::recursive_doubling::recursive_doubling(stage, kind, mine, target).await,
                _ => hier::scan::scan(&vector(), &Prefix::auto, 4, kind, mine, target).await,
            }
        }
        other => panic!("{other:?}"),
    }
}
