// SPDX-License-Identifier: BSD-3-Clause
//! Sequences of operations in adversarial orders.

use super::data::{Floats, config, elements, hash, seeds};
use super::operations::{Call, KINDS, run};
use super::world::{Work, World};
use coll_rust::shm::op;
use coll_rust::shm::protocol::team::Config;
use coll_rust::sim::Rng;

/// Sizes of teams; the common ones come up more often.
const SIZES: [usize; 16] = [1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8, 9, 2, 16];

/// A sequence on one stream, per member.
async fn sequence(team: &coll_rust::shm::protocol::team::Team, stream: (usize, usize), calls: Vec<Call>) {
    for call in calls {
        run(team, stream.0, stream.1, call).await;
    }
}

/// So many operations in a row at most: sometimes enough to come twice to each of the most lines that are in
/// use.
fn longest(rng: &mut Rng, under_miri: usize) -> usize {
    match rng.below(24) {
        _ if cfg!(miri) => under_miri,
        0 => 100,
        _ => 18,
    }
}

#[test]
fn each_operation_by_itself() {
    for kind in KINDS {
        for seed in 0..seeds(150) {
            let mut rng = Rng::new(hash(&[seed as usize, kind as usize]));
            let size = SIZES[seed as usize % SIZES.len()];
            let world = World::new(size, config(&mut rng));
            let most = longest(&mut rng, 4);
            let length = 1 + rng.below(most);
            let calls: Vec<_> = (0..length).map(|n| Call { kind, id: rng.below(1 << 30) << 8 | n }).collect();
            let works = world.teams.iter().map(|t| Box::pin(sequence(t, (0, 0), calls.clone())) as Work<'_>).collect();
            world.run(seed, works);
        }
    }
}

#[test]
fn mixed_on_several_streams() {
    for seed in 0..seeds(300) {
        let mut rng = Rng::new(hash(&[seed as usize, 99]));
        let size = SIZES[seed as usize % SIZES.len()];
        let world = World::new(size, config(&mut rng));
        let mut works: Vec<Work<'_>> = Vec::new();
        for stream in [(0, 0), (0, 3), (1, 0), (4, 7), (12, 7)].into_iter().take(1 + rng.below(5)) {
            let most = longest(&mut rng, 3);
            let length = 1 + rng.below(most);
            let calls: Vec<_> = (0..length)
                .map(|n| Call { kind: KINDS[rng.below(KINDS.len())], id: rng.below(1 << 30) << 8 | n })
                .collect();
            works.extend(world.teams.iter().map(|t| Box::pin(sequence(t, stream, calls.clone())) as Work<'_>));
        }
        world.run(seed, works);
    }
}

/// Longer than the pieces in which operands are read.
#[test]
#[cfg_attr(miri, ignore = "a quarter of a megabyte")]
fn long_operands_are_read_where_they_lie() {
    for (size, in_place) in [(2, false), (2, true), (3, false), (3, true)] {
        let count = 60_000;
        let value = |m: usize, i: usize| (hash(&[m, i]) % 1_000_003) as f32;
        let bytes = |m: usize| (0..count).flat_map(|i| value(m, i).to_ne_bytes()).collect::<Vec<u8>>();
        let fold = |i| (0..size - 1).rev().fold(value(size - 1, i), |right, m| value(m, i) + right);
        let expected: Vec<u8> = (0..count).flat_map(|i| fold(i).to_ne_bytes()).collect();
        let world = World::new(size, Config::default());
        let work = |team| {
            let expected = &expected;
            Box::pin(async move {
                let team: &coll_rust::shm::protocol::team::Team = team;
                let mut input = bytes(team.me());
                let mut output = vec![0; input.len()];
                let from = elements(&mut input, 4);
                let to = if in_place { from } else { elements(&mut output, 4) };
                let turn = team.open(0, 0, true).await.unwrap().unwrap();
                op::allreduce::allreduce(turn, &Floats, from, to, 0).await.unwrap();
                assert!(*expected == if in_place { input } else { output });
            }) as Work<'_>
        };
        world.run(size as u64, world.teams.iter().map(work).collect());
    }
}

#[test]
fn floats_agree_bitwise_for_every_size_and_root() {
    for size in if cfg!(miri) { 2..=3 } else { 2..=7 } {
        for count in [1, 5, 14, 15, 40, 300].into_iter().take(if cfg!(miri) { 3 } else { 6 }) {
            let values = |m: usize| -> Vec<u8> {
                let value = |i: usize| (hash(&[m, i]) % 1_000_003) as f32 / [1.0, 7.0, 1e6][(m + i) % 3];
                (0..count).flat_map(|i| value(i).to_ne_bytes()).collect()
            };
            let float = |m: usize, i: usize| f32::from_ne_bytes(values(m)[4 * i..4 * i + 4].try_into().unwrap());
            let fold = |i| (0..size - 1).rev().fold(float(size - 1, i), |right, m| float(m, i) + right);
            let expected: Vec<u8> = (0..count).flat_map(|i| fold(i).to_ne_bytes()).collect();
            for (shared_work_min, crowded) in [(0, false), (usize::MAX, false), (0, true)] {
                let mut config = Config { fragment: 256, shared_work_min, ..Config::default() };
                if crowded {
                    // So that there is a relay.
                    config = Config { short: 0, whole: 0, window: 10, ..config };
                    config.waiting.crowded = true;
                }
                let world = World::new(size, config);
                let work = |team| {
                    let (values, expected) = (&values, &expected);
                    Box::pin(async move {
                        let team: &coll_rust::shm::protocol::team::Team = team;
                        for root in 0..=size {
                            let mut input = values(team.me());
                            let mut output = vec![0; input.len()];
                            let (from, to) = (elements(&mut input, 4), elements(&mut output, 4));
                            let turn = team.open(0, 0, true).await.unwrap().unwrap();
                            match root < size {
                                true => op::reduce::reduce(turn, root, &Floats, from, to).await.unwrap(),
                                false => op::allreduce::allreduce(turn, &Floats, from, to, usize::MAX).await.unwrap(),
                            }
                            assert!(root < size && team.me() != root || output == *expected);
                        }
                    }) as Work<'_>
                };
                world.run(size as u64, world.teams.iter().map(work).collect());
            }
        }
    }
}
