// SPDX-License-Identifier: BSD-3-Clause
//! Neighbourhood operations: edges within a node through its memory, where it has some, and the others by
//! messages.

use super::operations::{check_inside, machine, plenty, scarce};
use super::world::Nodes;
use crate::data::bytes;
use crate::job::Machine;
use crate::random::config;
use coll_rust::algo::Stage;
use coll_rust::algo::neighbor::direct::direct;
use coll_rust::endpoint::{Endpoint, Rank, Result, Tag};
use coll_rust::hier::neighbor::neighbor;
use coll_rust::pattern::neighborhood::Neighbors;
use coll_rust::shm::op;
use coll_rust::shm::op::neighbor::Edges;
use coll_rust::sim::{Config, Rng, SimBlocks, SimEndpoint, Stats, World};
use coll_rust::topo::Level;
use proptest::prelude::*;

/// A graph with several edges between the same two ranks, and to oneself; and the length of what travels
/// along each edge.
struct Graph {
    destinations: Vec<Vec<usize>>,
    sources: Vec<Vec<usize>>,
    lens: Vec<Vec<usize>>,
}

impl Graph {
    fn new(rng: &mut Rng, size: usize) -> Graph {
        let (mut destinations, mut sources) = (vec![Vec::new(); size], vec![Vec::new(); size]);
        for _ in 0..rng.below(4 * size + 1) {
            let (from, to) = (rng.below(size), rng.below(size));
            let at = rng.below(sources[to].len() + 1);
            destinations[from].push(to);
            sources[to].insert(at, from);
        }
        let mut len = || [0, 1, 8, 60, 300, 2000][rng.below(6)];
        let lens = destinations.iter().map(|list| list.iter().map(|_| len()).collect()).collect();
        Graph { destinations, sources, lens }
    }

    fn sent(&self, turn: usize, rank: usize) -> Vec<Vec<u8>> {
        self.lens[rank].iter().enumerate().map(|(slot, &len)| bytes(&[turn, rank, slot], len)).collect()
    }

    /// The k-th block to a rank is the k-th from there.
    fn received(&self, turn: usize, rank: usize) -> Vec<Vec<u8>> {
        let mut taken = vec![0; self.sources.len()];
        let block = |&from: &usize| {
            let slots = (0..self.destinations[from].len()).filter(|&slot| self.destinations[from][slot] == rank);
            taken[from] += 1;
            slots.clone().nth(taken[from] - 1).map(|slot| self.sent(turn, from).swap_remove(slot)).expect("two ends")
        };
        self.sources[rank].iter().map(block).collect()
    }
}

async fn perform(ep: &SimEndpoint, machine: &Machine, nodes: &Nodes, graph: &Graph, turn: usize) -> Result<()> {
    let (rank, size) = (ep.rank() as usize, machine.size());
    let mut rng = Rng::new((turn * 1000 + rank) as u64);
    let local: Vec<usize> = (0..size).filter(|&other| machine.hosts[other] == machine.hosts[rank]).collect();
    let all = Neighbors::listed(rank, size, &graph.destinations[rank], &graph.sources[rank]);
    let [mut inside, rest] = all.split(|peer| local.contains(&peer));
    let number = |rank: usize| local.partition_point(|&other| other < rank);
    inside.renumber(number);
    let edges = Edges::new(number(rank), local.len(), &inside);
    let (sent, received) = (graph.sent(turn, rank), graph.received(turn, rank));
    let zeros: Vec<Vec<u8>> = received.iter().map(|block| vec![0; block.len()]).collect();
    let (out, into) = (SimBlocks::scattered(&mut rng, &sent), SimBlocks::scattered(&mut rng, &zeros));
    let ranks: Vec<Rank> = (0..size as Rank).collect();
    let stage = Stage::new(ep, &ranks, rank, Tag { lane: 0, phase: 0, level: Level::Cluster.index() });
    let node = nodes.node(rank as Rank, 0, 1000, None);
    let within = async |turn| op::neighbor::exchange(turn, &edges, &out, &into, 1000).await;
    let messages = async |shared: bool| {
        direct(&stage, if shared { &rest } else { &all }, &out, &into, 1 + turn % 3, turn % 2 == 1).await
    };
    neighbor(node, within, messages).await?;
    for (slot, block) in received.iter().enumerate() {
        assert!(into.contents(slot) == *block, "turn {turn}, rank {rank}, slot {slot}");
    }
    assert!(into.gaps_intact());
    Ok(())
}

fn run(machine: &Machine, seed: u64, leases: impl FnMut(&mut Rng) -> Option<usize>) -> Stats {
    let mut rng = Rng::new(seed);
    let nodes = &Nodes::new(machine, &mut rng, leases);
    let graphs: &Vec<Graph> = &(0..1 + rng.below(12)).map(|_| Graph::new(&mut rng, machine.size())).collect();
    let config = Config { max_steps: 300_000, ..Config::from_seed(seed, machine.size() as u32) };
    let work = |ep: SimEndpoint| {
        nodes.watch(ep.rank(), async move {
            for (turn, graph) in graphs.iter().enumerate() {
                perform(&ep, machine, nodes, graph, turn).await?;
            }
            Ok(())
        })
    };
    World::new(machine.size() as u32).run(seed, config, work).unwrap_or_else(|failed| panic!("{failed}"))
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn no_edge_inside_a_node_is_a_message(machine in machine(), seed: u64) {
        check_inside(&machine, &run(&machine, seed, plenty));
    }

    #[test]
    fn edges_where_some_nodes_have_little_memory(machine in machine(), seed: u64) {
        run(&machine, seed, scarce);
    }
}
