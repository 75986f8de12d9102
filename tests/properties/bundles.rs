// SPDX-License-Identifier: BSD-3-Clause
//! Neighbourhood exchange in bundles between nodes.

use super::blocks::{check, contents, no_empty_message, send, user_blocks};
use super::data::{UserStream, bytes};
use super::neighbor::Graph;
use coll_rust::algo::Stage;
use coll_rust::algo::neighbor::{aggregated::aggregated, with_same};
use coll_rust::endpoint::{Endpoint, Error, Rank, Tag};
use coll_rust::pattern::bundles::Bundles;
use coll_rust::pattern::neighborhood::{Grid, Neighbors};
use coll_rust::sim::{Config, Rng, SimBlocks, Stats, World};
use std::collections::BTreeSet;

const SIZES: [usize; 7] = [1, 2, 3, 6, 8, 13, 40];
const TAG: Tag = Tag { lane: 0, phase: 0, level: 0 };

/// Members on nodes, and a part for each.
struct Cluster {
    node: Vec<usize>,
    parts: Vec<Bundles>,
    members: Vec<Rank>,
}

impl Cluster {
    fn new(node: Vec<usize>, neighbors: &[Neighbors], same: bool, least: usize) -> Cluster {
        let part = |me: usize| {
            let local: Vec<(usize, Neighbors)> =
                (0..node.len()).filter(|&m| node[m] == node[me]).map(|m| (m, neighbors[m].clone())).collect();
            Bundles::new(me, &local, |member| node[member], same, least)
        };
        let parts = (0..node.len()).map(part).collect();
        let members = (0..node.len() as Rank).collect();
        Cluster { node, parts, members }
    }

    fn random(rng: &mut Rng, graph: &Graph, same: bool, least: usize) -> Cluster {
        let nodes = 1 + rng.below(5);
        let node = (0..graph.size()).map(|_| rng.below(nodes)).collect();
        let neighbors: Vec<Neighbors> = (0..graph.size()).map(|m| graph.neighbors(m)).collect();
        Cluster::new(node, &neighbors, same, least)
    }

    fn run<F: Future<Output = coll_rust::endpoint::Result<()>>>(
        &self,
        seed: u64,
        work: impl Fn(usize, coll_rust::sim::SimEndpoint) -> F,
    ) -> Stats {
        use coll_rust::endpoint::Endpoint;
        let work = &work;
        let stats =
            World::new(self.node.len() as u32).run_seed(seed, |ep| async move { work(ep.rank() as usize, ep).await });
        stats.unwrap_or_else(|failed| panic!("seed {seed} nodes {:?}: {failed}", self.node))
    }

    /// Messages and units between nodes.
    fn across(&self, stats: &Stats) -> (u64, u64) {
        let far = stats.pairs.iter().filter(|((a, b), _)| self.node[*a as usize] != self.node[*b as usize]);
        far.fold((0, 0), |(m, u), (_, traffic)| (m + traffic.messages, u + traffic.units))
    }
}

fn graphs(mut each: impl FnMut(u64, &Graph)) {
    let mut rng = Rng::new(37);
    for size in SIZES {
        for edges in [0, 1, size, 4 * size, if size > 16 { 5 * size } else { 12 * size }] {
            (0..4).for_each(|_| each(rng.bits(), &Graph::random(&mut rng, size, edges)));
        }
    }
}

fn prepared(rng: &mut Rng, result: &[Vec<Vec<u8>>]) -> Vec<SimBlocks> {
    let noise = |row: &Vec<Vec<u8>>| {
        let before = contents(rng, &row.iter().map(Vec::len).collect::<Vec<_>>());
        user_blocks(rng, &before)
    };
    result.iter().map(noise).collect()
}

#[test]
fn a_message_between_two_nodes_has_all_blocks() {
    graphs(|seed, graph| {
        let mut rng = Rng::new(seed);
        for (equal, least) in [(None, 1), (Some(13), 1), (Some(5), 4), (None, 6), (Some(0), 1)] {
            let cluster = Cluster::random(&mut rng, graph, false, least);
            let lens: Vec<Vec<usize>> = match equal {
                None => graph.lengths(&mut rng, 40),
                Some(len) => graph.destinations.iter().map(|list| vec![len; list.len()]).collect(),
            };
            let data: Vec<Vec<Vec<u8>>> = lens.iter().map(|row| contents(&mut rng, row)).collect();
            let result = graph.result(&data);
            let out: Vec<SimBlocks> = data.iter().map(|row| user_blocks(&mut rng, row)).collect();
            let into = prepared(&mut rng, &result);
            let (c, o, i) = (&cluster, &out, &into);
            let stats = cluster.run(seed, |me, ep| async move {
                let stage = Stage::new(&ep, &c.members, me, TAG);
                send(aggregated(&stage, &c.parts[me], equal, &o[me], &i[me], 4)).await
            });
            let context = format!("seed {seed} {graph:?} nodes {:?}", cluster.node);
            for m in 0..graph.size() {
                check(&out[m], &data[m], &context);
                check(&into[m], &result[m], &context);
            }
            no_empty_message(&stats);
            let far = |m: usize, s: usize| cluster.node[m] != cluster.node[graph.destinations[m][s]];
            let edges = || (0..graph.size()).flat_map(|m| (0..lens[m].len()).map(move |s| (m, s)));
            let units: usize = edges().filter(|&(m, s)| far(m, s)).map(|(m, s)| lens[m][s]).sum();
            let (messages, moved) = cluster.across(&stats);
            assert_eq!(moved as usize, units, "{context}");
            if least == 1 {
                let pairs: BTreeSet<_> = edges()
                    .filter(|&(m, s)| far(m, s) && lens[m][s] > 0)
                    .map(|(m, s)| (cluster.node[m], cluster.node[graph.destinations[m][s]]))
                    .collect();
                assert_eq!(messages as usize, pairs.len(), "{context}");
            }
        }
    });
}

#[test]
fn one_block_for_all_travels_once_to_each_node() {
    graphs(|seed, graph| {
        let mut rng = Rng::new(seed);
        let (cluster, len) = (Cluster::random(&mut rng, graph, true, 1), [0, 1, 13, 90][rng.below(4)]);
        let equal = (rng.below(2) == 0).then_some(len);
        let data: Vec<Vec<u8>> = (0..graph.size()).map(|_| bytes(&mut rng, len)).collect();
        let own: Vec<UserStream> = data.iter().map(|data| UserStream::new(&mut rng, data)).collect();
        let result: Vec<Vec<Vec<u8>>> =
            graph.sources.iter().map(|list| list.iter().map(|&from| data[from].clone()).collect()).collect();
        let into = prepared(&mut rng, &result);
        let (c, o, i) = (&cluster, &own, &into);
        let stats = cluster.run(seed, |me, ep| async move {
            let stage = Stage::new(&ep, &c.members, me, TAG);
            with_same(&ep, &o[me], async |out| aggregated(&stage, &c.parts[me], equal, out, &i[me], 4).await).await
        });
        let context = format!("seed {seed} {graph:?} nodes {:?}", cluster.node);
        for m in 0..graph.size() {
            own[m].check(&data[m]);
            check(&into[m], &result[m], &context);
        }
        let pairs: BTreeSet<_> = (0..graph.size())
            .flat_map(|m| graph.destinations[m].iter().map(move |&to| (m, to)))
            .filter(|&(m, to)| cluster.node[m] != cluster.node[to])
            .map(|(m, to)| (m, cluster.node[to]))
            .collect();
        assert_eq!(cluster.across(&stats).1 as usize, pairs.len() * len, "{context}");
        no_empty_message(&stats);
    });
}

/// A torus of four by four, a column on each node: 8 messages between nodes where direct exchange has 32.
#[test]
fn columns_of_a_torus_need_a_message_each_way() {
    let grid = Grid { dimensions: vec![(4, true), (4, true)] };
    let neighbors: Vec<Neighbors> = (0..16).map(|m| grid.neighbors(m)).collect();
    let cluster = Cluster::new((0..16).map(|m| m % 4).collect(), &neighbors, false, 3);
    let mut rng = Rng::new(41);
    let data: Vec<Vec<Vec<u8>>> = (0..16).map(|_| contents(&mut rng, &[64; 4])).collect();
    let result: Vec<Vec<Vec<u8>>> = (0..16)
        .map(|m| grid.around(m).enumerate().map(|(slot, peer)| data[peer.unwrap()][slot ^ 1].clone()).collect())
        .collect();
    let out: Vec<SimBlocks> = data.iter().map(|row| user_blocks(&mut rng, row)).collect();
    let into = prepared(&mut rng, &result);
    let (c, o, i) = (&cluster, &out, &into);
    let stats = cluster.run(3, |me, ep| async move {
        let stage = Stage::new(&ep, &c.members, me, TAG);
        aggregated(&stage, &c.parts[me], Some(64), &o[me], &i[me], 4).await
    });
    (0..16).for_each(|m| check(&into[m], &result[m], "torus"));
    assert_eq!(cluster.across(&stats), (8, 32 * 64));
    // Leaders are not all the same member.
    assert!(cluster.parts.iter().all(|part| part.led.len() <= 1));
}

/// Lengths are told, and one member has met an error before.
#[test]
fn nobody_waits_for_a_member_that_met_an_error() {
    let grid = Grid { dimensions: vec![(4, true), (4, true)] };
    let neighbors: Vec<Neighbors> = (0..16).map(|m| grid.neighbors(m)).collect();
    let cluster = Cluster::new((0..16).map(|m| m % 4).collect(), &neighbors, false, 3);
    let len = |from: usize, slot: usize| if (from + slot).is_multiple_of(3) { 0 } else { 64 };
    let mut rng = Rng::new(43);
    for (bad, config) in (0..16).flat_map(|bad| [(bad, Config::eager()), (bad, Config::rendezvous())]) {
        let out: Vec<Vec<usize>> = (0..16).map(|m| (0..4).map(|slot| len(m, slot)).collect()).collect();
        let into = (0..16)
            .map(|m| grid.around(m).enumerate().map(|(slot, peer)| len(peer.unwrap(), slot ^ 1)).collect::<Vec<_>>());
        let into: Vec<SimBlocks> = into.map(|lens| SimBlocks::run(&contents(&mut rng, &lens))).collect();
        let out: Vec<SimBlocks> = out.iter().map(|lens| SimBlocks::run(&contents(&mut rng, lens))).collect();
        let (c, o, i) = (&cluster, &out, &into);
        let ends = World::new(16).judge(5, config, |ep| async move {
            let me = ep.rank() as usize;
            if me == bad {
                ep.note(Error::Peer);
            }
            let stage = Stage::new(&ep, &c.members, me, TAG);
            aggregated(&stage, &c.parts[me], None, &o[me], &i[me], 4).await
        });
        let ends = ends.unwrap_or_else(|failed| panic!("{failed}"));
        assert!(ends.iter().all(Option::is_some), "member {bad}, {config:?}: {ends:?}");
    }
}
