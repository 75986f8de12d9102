// SPDX-License-Identifier: BSD-3-Clause
//! A group among the ranks of a world, for the algorithms of one level.

use super::random::SIZES;
use coll_rust::algo::Stage;
use coll_rust::endpoint::{Endpoint, Rank, Tag};
use coll_rust::sim::{Rng, Traffic};

/// A group of shuffled ranks, and the tag that it works with.
#[derive(Debug)]
pub struct Team {
    /// Ranks in the world.
    pub world: usize,
    /// The members, in any order.
    pub members: Vec<Rank>,
    tag: Tag,
}

impl Team {
    /// A team of `size` out of a world that may have a few ranks more.
    pub fn new(rng: &mut Rng, size: usize) -> Team {
        let world = size + [0, 0, 1, 3][rng.below(4)];
        let mut members: Vec<Rank> = (0..world as Rank).collect();
        (1..world).rev().for_each(|i| members.swap(i, rng.below(i + 1)));
        members.truncate(size);
        let tag = Tag { lane: rng.below(8) as u8, phase: 2 * rng.below(4) as u8, level: rng.below(10) as u8 };
        Team { world, members, tag }
    }

    /// The member that a rank is.
    pub fn member(&self, rank: Rank) -> Option<usize> {
        self.members.iter().position(|&member| member == rank)
    }

    /// The stage of a rank's endpoint; none for who is not in the team.
    pub fn stage<'a, E: Endpoint>(&'a self, ep: &'a E) -> Option<Stage<'a, E>> {
        Some(Stage::new(ep, &self.members, self.member(ep.rank())?, self.tag))
    }
}

/// Units per message in the tests of one level: none, one, fewer and more than there are members, primes.
pub const COUNTS: [usize; 5] = [0, 1, 7, 13, 101];

/// Calls `each` with a seed for sizes `from..`, all roots up to 11 members and some above, all counts.
pub fn sweep(from: usize, to: usize, mut each: impl FnMut(u64, usize, usize, usize)) {
    let mut rng = Rng::new(from as u64);
    for size in SIZES.into_iter().filter(|size| (from..=to).contains(size)) {
        let roots: Vec<usize> = match size {
            0..=11 => (0..size).collect(),
            12..=16 => vec![0, rng.below(size), size - 1],
            _ => vec![rng.below(size)],
        };
        for root in roots {
            let counts = if size > 16 { &[13, 101][..] } else { &COUNTS[..] };
            for &count in if size > 64 { &counts[..1] } else { counts } {
                each(rng.below(1 << 40) as u64, size, root, count);
            }
        }
    }
}

/// ⌈log_radix size⌉.
pub fn log(size: usize, radix: usize) -> u32 {
    std::iter::successors(Some(1), |width| Some(width * radix)).take_while(|&width| width < size).count() as u32
}

/// As many messages with so many units in all.
pub fn traffic(messages: usize, units: usize) -> Traffic {
    Traffic { messages: messages as u64, units: units as u64 }
}

/// Players and extras of the algorithms for powers of two.
pub fn players(size: usize) -> (usize, usize) {
    let players = 1 << size.ilog2();
    (players, size - players)
}
