// SPDX-License-Identifier: BSD-3-Clause
//! Neighbourhood exchange on arbitrary graphs, with several edges between the same two members and edges to
//! oneself.

use super::blocks::{SIZES, check, contents, filled, no_empty_message, send, user_blocks};
use super::data::{UserStream, bytes};
use super::team::{Team, traffic};
use coll_rust::algo::neighbor::{agreement, direct::direct, with_same};
use coll_rust::endpoint::{Blocks, Endpoint, Rank, Tag};
use coll_rust::pattern::neighborhood::{Grid, Neighbors};
use coll_rust::sim::{Rng, SimBlocks, Stats, World};

/// A graph, as every member gives its part of it.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) destinations: Vec<Vec<usize>>,
    pub(super) sources: Vec<Vec<usize>>,
}

fn shuffle<T>(rng: &mut Rng, list: &mut [T]) {
    (1..list.len()).rev().for_each(|i| list.swap(i, rng.below(i + 1)));
}

impl Graph {
    /// `count` random edges; lists in any order.
    pub(super) fn random(rng: &mut Rng, size: usize, count: usize) -> Graph {
        let mut graph = Graph { destinations: vec![Vec::new(); size], sources: vec![Vec::new(); size] };
        for _ in 0..count {
            // Some edges again and again, and every tenth to oneself.
            let from = rng.below(size);
            let to = if rng.below(10) == 0 { from } else { rng.below(size) };
            for _ in 0..=rng.below(4) / 3 {
                graph.destinations[from].push(to);
                graph.sources[to].push(from);
            }
        }
        graph.destinations.iter_mut().chain(&mut graph.sources).for_each(|list| shuffle(rng, list));
        graph
    }

    pub(super) fn size(&self) -> usize {
        self.sources.len()
    }

    /// The slot of the destination's receive buffer that slot `slot` of a member goes to.
    fn arrival(&self, from: usize, slot: usize) -> (usize, usize) {
        let to = self.destinations[from][slot];
        let earlier = self.destinations[from][..slot].iter().filter(|&&other| other == to).count();
        let same = (0..self.sources[to].len()).filter(|&s| self.sources[to][s] == from);
        (to, same.clone().nth(earlier).expect("an edge has two ends"))
    }

    pub(super) fn neighbors(&self, member: usize) -> Neighbors {
        Neighbors::listed(member, self.size(), &self.destinations[member], &self.sources[member])
    }

    /// Lengths of every member's blocks to send, with many of them zero.
    pub(super) fn lengths(&self, rng: &mut Rng, most: usize) -> Vec<Vec<usize>> {
        let lens =
            |list: &Vec<usize>| list.iter().map(|_| rng.below(most) * (rng.below(4) + 2) / 4 * rng.below(2)).collect();
        self.destinations.iter().map(lens).collect()
    }

    /// What every member receives where `data` is sent.
    pub(super) fn result(&self, data: &[Vec<Vec<u8>>]) -> Vec<Vec<Vec<u8>>> {
        let mut all: Vec<Vec<Vec<u8>>> = self.sources.iter().map(|list| vec![Vec::new(); list.len()]).collect();
        for (from, blocks) in data.iter().enumerate() {
            for (slot, block) in blocks.iter().enumerate() {
                let (to, place) = self.arrival(from, slot);
                all[to][place] = block.clone();
            }
        }
        all
    }

    /// Lengths of the blocks that go to another member.
    fn moving<'g>(&'g self, lens: &'g [Vec<usize>]) -> impl Iterator<Item = usize> + Clone + 'g {
        let of =
            move |m: usize| (0..lens[m].len()).filter(move |&s| self.destinations[m][s] != m).map(move |s| lens[m][s]);
        (0..self.size()).flat_map(of)
    }
}

/// One exchange of blocks of these lengths, on a team and layouts that follow from the seed.
fn exchange(seed: u64, graph: &Graph, lens: &[Vec<usize>], posts: usize, acknowledged: bool) -> Stats {
    let mut rng = Rng::new(seed);
    let team = Team::new(&mut rng, graph.size());
    let data: Vec<Vec<Vec<u8>>> = lens.iter().map(|row| contents(&mut rng, row)).collect();
    let result = graph.result(&data);
    let out: Vec<SimBlocks> = data.iter().map(|row| user_blocks(&mut rng, row)).collect();
    let into: Vec<SimBlocks> = result
        .iter()
        .map(|row| {
            let noise: Vec<usize> = row.iter().map(Vec::len).collect();
            let before = contents(&mut rng, &noise);
            user_blocks(&mut rng, &before)
        })
        .collect();
    let (team_ref, out_ref, into_ref) = (&team, &out, &into);
    let stats = World::new(team.world as u32).run_seed(seed, |ep| async move {
        let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
        let neighbors = graph.neighbors(stage.me());
        send(direct(&stage, &neighbors, &out_ref[stage.me()], &into_ref[stage.me()], posts, acknowledged)).await
    });
    let context = format!("seed {seed} posts {posts} {graph:?} {lens:?} {team:?}");
    let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
    for m in 0..graph.size() {
        check(&out[m], &data[m], &context);
        check(&into[m], &result[m], &context);
        let longest = |blocks: &SimBlocks, list: &[usize]| {
            let staged = |&s: &usize| list[s] != m && blocks.direct(s..s + 1).is_none();
            (0..list.len()).filter(staged).map(|s| blocks.len(s)).max().unwrap_or(0)
        };
        let (sent, got) = (longest(&out[m], &graph.destinations[m]), longest(&into[m], &graph.sources[m]));
        // And a piece for what it sends to itself.
        let most = posts.min(graph.destinations[m].len()) * sent
            + posts.min(graph.sources[m].len()) * got
            + lens[m].iter().max().unwrap_or(&0);
        let lent = stats.temp_peak[team.members[m] as usize];
        assert!(lent <= most, "member {m}: {lent} units lent, not {most}: {context}");
    }
    stats
}

/// Calls `each` with a seed, graphs from empty to crowded ones, and lengths.
fn sweep(mut each: impl FnMut(u64, &Graph, &[Vec<usize>])) {
    let mut rng = Rng::new(29);
    for size in SIZES {
        for edges in [0, 1, size, 3 * size, if size > 16 { 4 * size } else { 9 * size }] {
            let graph = Graph::random(&mut rng, size, edges);
            for most in [2, 40] {
                let lens = graph.lengths(&mut rng, most);
                each(rng.bits(), &graph, &lens);
            }
            let equal: Vec<Vec<usize>> = graph.destinations.iter().map(|list| vec![13; list.len()]).collect();
            each(rng.bits(), &graph, &equal);
        }
    }
}

#[test]
fn direct_is_a_message_per_edge() {
    for posts in [1, 2, 1000] {
        sweep(|seed, graph, lens| {
            let stats = exchange(seed, graph, lens, posts, false);
            let moving = graph.moving(lens);
            assert_eq!(stats.total, traffic(filled(moving.clone()), moving.sum()));
            assert!(posts < 1000 || stats.rounds <= 1);
            no_empty_message(&stats);
        });
    }
}

#[test]
fn acknowledged_messages_come_back_empty() {
    for posts in [1, 3, 1000] {
        sweep(|seed, graph, lens| {
            let stats = exchange(seed, graph, lens, posts, true);
            let moving = graph.moving(lens);
            let messages = filled(moving.clone());
            assert_eq!(stats.total, traffic(2 * messages, moving.sum()));
            assert_eq!(stats.empty as usize, messages);
        });
    }
}

#[test]
fn one_block_for_all_is_packed_once() {
    sweep(|seed, graph, _| {
        let mut rng = Rng::new(seed);
        let len = [0, 1, 13, 200][rng.below(4)];
        let data: Vec<Vec<u8>> = (0..graph.size()).map(|_| bytes(&mut rng, len)).collect();
        let own: Vec<UserStream> = data.iter().map(|data| UserStream::new(&mut rng, data)).collect();
        let result: Vec<Vec<Vec<u8>>> =
            graph.sources.iter().map(|list| list.iter().map(|&from| data[from].clone()).collect()).collect();
        let into: Vec<SimBlocks> = result
            .iter()
            .map(|row| {
                let before = contents(&mut rng, &vec![len; row.len()]);
                user_blocks(&mut rng, &before)
            })
            .collect();
        let (own_ref, into_ref) = (&own, &into);
        let team = Team::new(&mut rng, graph.size());
        let team_ref = &team;
        let stats = World::new(team.world as u32).run_seed(seed, |ep| async move {
            let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
            let (neighbors, me) = (graph.neighbors(stage.me()), stage.me());
            send(with_same(&ep, &own_ref[me], async |out| {
                direct(&stage, &neighbors, out, &into_ref[me], 8, false).await
            }))
            .await
        });
        let context = format!("seed {seed} {graph:?} {team:?}");
        let stats = stats.unwrap_or_else(|failed| panic!("{context}: {failed}"));
        for m in 0..graph.size() {
            own[m].check(&data[m]);
            check(&into[m], &result[m], &context);
            let most = 9 * len + len;
            assert!(stats.temp_peak[team.members[m] as usize] <= most, "{context}");
        }
        no_empty_message(&stats);
    });
}

/// On a grid, a block that goes in one direction arrives as coming from the other one, however short the
/// dimension is.
#[test]
fn grids_keep_directions_apart() {
    let mut rng = Rng::new(31);
    let shapes: [&[(usize, bool)]; 8] = [
        &[(2, true)],
        &[(1, true), (2, true)],
        &[(2, false), (1, true)],
        &[(1, true), (1, true), (3, false)],
        &[(4, true), (2, true)],
        &[(3, false), (3, false)],
        &[(2, true), (2, true), (2, true)],
        &[(5, true), (1, false)],
    ];
    for shape in shapes {
        let grid = Grid { dimensions: shape.to_vec() };
        let size = grid.size();
        let data: Vec<Vec<Vec<u8>>> = (0..size).map(|_| contents(&mut rng, &vec![11; 2 * shape.len()])).collect();
        let out: Vec<SimBlocks> = data.iter().map(|row| user_blocks(&mut rng, row)).collect();
        let before = vec![vec![7; 11]; 2 * shape.len()];
        let into: Vec<SimBlocks> = (0..size).map(|_| user_blocks(&mut rng, &before)).collect();
        let team = Team::new(&mut rng, size);
        let (grid_ref, team_ref, out_ref, into_ref) = (&grid, &team, &out, &into);
        let stats = World::new(team.world as u32).run_seed(rng.bits(), |ep| async move {
            let Some(stage) = team_ref.stage(&ep) else { return Ok(()) };
            let (me, neighbors) = (stage.me(), grid_ref.neighbors(stage.me()));
            direct(&stage, &neighbors, &out_ref[me], &into_ref[me], 8, false).await
        });
        stats.unwrap_or_else(|failed| panic!("{shape:?}: {failed}"));
        for (m, blocks) in into.iter().enumerate() {
            let expected: Vec<Vec<u8>> = grid
                .around(m)
                .enumerate()
                .map(|(slot, peer)| peer.map_or(before[slot].clone(), |peer| data[peer][slot ^ 1].clone()))
                .collect();
            check(blocks, &expected, &format!("{shape:?} member {m}"));
        }
    }
}

/// Whether a graph hangs together, step by step.
fn hangs_together(graph: &Graph) -> bool {
    let mut class: Vec<usize> = (0..graph.size()).collect();
    for (from, list) in graph.destinations.iter().enumerate() {
        for &to in list {
            let (old, new) = (class[from], class[to]);
            class.iter_mut().filter(|class| **class == old).for_each(|class| *class = new);
        }
    }
    class.iter().all(|&other| other == class[0])
}

#[test]
fn members_find_out_together() {
    let mut rng = Rng::new(37);
    let mut seen = [0; 2];
    for size in [1, 2, 3, 7, 8, 9, 20] {
        for edges in [0, size - 1, 2 * size, 4 * size] {
            for _ in 0..4 {
                let graph = Graph::random(&mut rng, size, edges);
                let expected = hangs_together(&graph);
                seen[usize::from(expected)] += 1;
                let all: Vec<(usize, Neighbors)> =
                    (0..size).map(|m| (m, Neighbors { own: Vec::new(), ..graph.neighbors(m) })).collect();
                let seed = rng.bits();
                let all = &all;
                let stats = World::new(size as u32).run_seed(seed, |ep| async move {
                    let me = ep.rank() as usize;
                    let mut peers: Vec<Rank> = all[me].1.peers().map(|peer| peer as Rank).collect();
                    peers.sort_unstable();
                    peers.dedup();
                    let [first, second] = [0, 1].map(|lane| Tag { lane, phase: 0, level: 0 });
                    assert_eq!(agreement::connected(&ep, first, &peers).await?, expected, "{all:?}");
                    // Of every second one.
                    let ranks: Vec<Rank> = (0..size as Rank).filter(|rank| rank % 2 == ep.rank() % 2).collect();
                    let told = agreement::lists(&ep, second, &ranks, &all[me].1).await?;
                    let same: Vec<_> = ranks.iter().map(|&rank| all[rank as usize].clone()).collect();
                    assert_eq!(told, same);
                    Ok(())
                });
                stats.unwrap_or_else(|failed| panic!("seed {seed} {all:?}: {failed}"));
            }
        }
    }
    assert!(seen[0] > 10 && seen[1] > 10, "{seen:?}");
}
