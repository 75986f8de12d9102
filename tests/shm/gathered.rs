// SPDX-License-Identifier: BSD-3-Clause
//! Gather and Allgather where few members take turns on the cores, with blocks that go in many halves of a
//! set.

use super::data::{bytes, hash};
use super::world::{Work, World};
use coll_rust::shm::op::{allgather, gather};
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::sim::{Rng, SimBlocks, SimStream};

/// Operations in a row, two of a kind, and Gathers with the same root: the second one uses the set again.
async fn several(team: &Team, half: usize, seed: usize) {
    for operation in 0..8 {
        let (me, root) = (team.me(), (operation / 2 + seed) % team.size());
        let mut rng = Rng::new(hash(&[seed, operation]));
        // Above all many halves, since only then one is used again; and none, short blocks, and few halves
        // among them.
        let mut len = || [0, 40, half - 1, 2 * half, 3 * half + 17, 7 * half, 9 * half + 1, 10 * half][rng.below(8)];
        let lengths: Vec<usize> = (0..team.size()).map(|_| len()).collect();
        let blocks: Vec<_> =
            lengths.iter().enumerate().map(|(member, &len)| bytes(&[seed, operation, member], len)).collect();
        let own = SimStream::direct(&blocks[me]);
        let zeros: Vec<_> = lengths.iter().map(|&len| vec![0; len]).collect();
        let all = SimBlocks::scattered(&mut Rng::new(hash(&[seed])), &zeros);
        let turn = team.open(0, 0, true).await.unwrap().unwrap();
        match operation / 2 % 2 == seed % 2 {
            true => allgather::allgather(turn, Some(&own), &all, usize::MAX).await.unwrap(),
            false if me == root => gather::receive(turn, Some(&own), &all, usize::MAX).await.unwrap(),
            false => {
                gather::send(turn, root, &own, usize::MAX).await.unwrap();
                continue;
            }
        }
        for (member, block) in blocks.iter().enumerate() {
            assert_eq!(all.contents(member), *block, "operation {operation}, member {me}: block of {member}");
        }
    }
}

#[test]
fn blocks_are_many_halves() {
    for seed in 0..if cfg!(miri) { 2 } else { 96 } {
        let members = 2 + seed % 4;
        let fragments = [4, 2, 8][seed / 4 % 3];
        let mut config = Config { fragment: 64, fragments, sets: 1, short: 0, whole: 0, ..Config::default() };
        (config.whole_gathered, config.window) = (64, [17, 11][seed / 12 % 2]);
        config.waiting.crowded = true;
        let world = World::new(members, config);
        let used = world.teams[0].config();
        assert!(used.gathers_in_halves());
        let half = used.fragment * used.fragments / 2;
        let works = world.teams.iter().map(|team| Box::pin(several(team, half, seed)) as Work<'_>).collect();
        world.run(seed as u64, works);
    }
}
