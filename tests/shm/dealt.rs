// SPDX-License-Identifier: BSD-3-Clause
//! Scatter where members take turns on the cores, with blocks that do not fit the root's queue.

use super::data::{bytes, hash};
use super::world::{Work, World};
use coll_rust::shm::op::scatter;
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::sim::{Rng, SimBlocks, SimStream};

/// Bytes of the blocks of an operation, the same on all members: none, short ones, and up to eight rings.
fn lengths(members: usize, ring: usize, parts: &[usize]) -> Vec<usize> {
    let mut rng = Rng::new(hash(parts));
    (0..members).map(|_| [0, 5, 40, ring / 3, ring / 2 + 1, ring, 3 * ring + 17, 8 * ring][rng.below(8)]).collect()
}

/// Operations in a row, always two with the same root: the second one uses the set again.
async fn several(team: &Team, ring: usize, seed: usize) {
    for operation in 0..6 {
        let (me, root) = (team.me(), (operation / 2 + seed) % team.size());
        let blocks: Vec<_> = lengths(team.size(), ring, &[seed, operation])
            .into_iter()
            .enumerate()
            .map(|(member, len)| bytes(&[seed, operation, member], len))
            .collect();
        let own = SimStream::direct(&vec![0; blocks[me].len()]);
        let zero_copy = [usize::MAX, ring / 2][seed / 8 % 2];
        let turn = team.open(0, 0, true).await.unwrap().unwrap();
        if me == root {
            let all = SimBlocks::scattered(&mut Rng::new(hash(&[seed])), &blocks);
            scatter::send(turn, &all, Some(&own), zero_copy).await.unwrap();
        } else {
            scatter::receive(turn, root, &own, zero_copy).await.unwrap();
        }
        assert_eq!(own.contents(), blocks[me], "operation {operation}, member {me}");
    }
}

#[test]
fn blocks_are_longer_than_the_ring() {
    for seed in 0..if cfg!(miri) { 2 } else { 200 } {
        let members = 2 + seed % 4;
        let mut config = Config { fragment: 64, fragments: 1 + seed / 4 % 2, sets: 1, short: 128, ..Config::default() };
        config.waiting.crowded = true;
        let world = World::new(members, config);
        let used = world.teams[0].config();
        let ring = used.fragment * used.fragments;
        let works = world.teams.iter().map(|team| Box::pin(several(team, ring, seed)) as Work<'_>).collect();
        world.run(seed as u64, works);
    }
}
