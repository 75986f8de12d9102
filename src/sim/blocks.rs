// SPDX-License-Identifier: BSD-3-Clause
//! A user's data as a block per member.

use super::memory::Memory;
use super::{Rng, UnitType};
use crate::endpoint::{Blocks, Result, Span};
use std::ops::Range;

/// Pattern of the bytes that belong to no block.
const GAP: u8 = 0x5a;

/// Where a block lies.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    len: usize,
    /// Bytes that lie together, and the distance from one such piece to the next; none when all lie together.
    layout: Option<(usize, usize)>,
}

/// [`Blocks`] over memory of their own: one after the other, or scattered.
pub struct SimBlocks {
    memory: Memory,
    places: Vec<Place>,
}

impl SimBlocks {
    /// Blocks of these bytes that lie in memory one after the other.
    pub fn run(blocks: &[Vec<u8>]) -> SimBlocks {
        let mut end = GUARD;
        let place = |block: &Vec<u8>| {
            end += block.len();
            Place { at: end - block.len(), len: block.len(), layout: None }
        };
        let places = blocks.iter().map(place).collect();
        SimBlocks::fill(places, end + GUARD, blocks)
    }

    /// Blocks of these bytes that lie anyhow: in any order, with gaps between many of them, and each with the
    /// layout of a datatype of its own, one run or pieces with gaps.
    pub fn scattered(rng: &mut Rng, blocks: &[Vec<u8>]) -> SimBlocks {
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        if rng.below(2) == 0 {
            (1..order.len()).rev().for_each(|i| order.swap(i, rng.below(i + 1)));
        }
        let mut places = vec![Place { at: 0, len: 0, layout: None }; blocks.len()];
        let mut end = GUARD;
        for member in order {
            let len = blocks[member].len();
            let piece = 1 + rng.below(20);
            let layout = (rng.below(3) == 0).then(|| (piece, piece + 1 + rng.below(4)));
            places[member] = Place { at: end, len, layout };
            end += layout.map_or(len, |(piece, stride)| len.div_ceil(piece) * stride) + [0, 0, 1, 7][rng.below(4)];
        }
        SimBlocks::fill(places, end + GUARD, blocks)
    }

    fn fill(places: Vec<Place>, bytes: usize, blocks: &[Vec<u8>]) -> SimBlocks {
        let filled = SimBlocks { memory: Memory::new(vec![GAP; bytes]), places };
        for (member, block) in blocks.iter().enumerate() {
            filled.pieces(member, 0, block.len(), |at, piece| filled.memory.write(at, &block[piece]));
        }
        filled
    }

    /// Calls `each` for the pieces that bytes `at..at + len` of a block lie in: where in memory, which of the
    /// bytes.
    fn pieces(&self, member: usize, at: usize, len: usize, mut each: impl FnMut(usize, Range<usize>)) {
        let place = self.places[member];
        assert!(at <= place.len && len <= place.len - at, "{len} bytes at {at} of a block of {}", place.len);
        let Some((piece, stride)) = place.layout else { return each(place.at + at, 0..len) };
        let mut done = 0;
        while done < len {
            let (number, offset) = ((at + done) / piece, (at + done) % piece);
            let next = (piece - offset).min(len - done);
            each(place.at + number * stride + offset, done..done + next);
            done += next;
        }
    }

    /// The packed bytes of a block.
    pub fn contents(&self, member: usize) -> Vec<u8> {
        let len = self.places[member].len;
        let mut bytes = Vec::with_capacity(len);
        self.pieces(member, 0, len, |at, piece| bytes.extend(self.memory.read(at, piece.len())));
        bytes
    }

    /// True when no byte outside the blocks was ever written.
    pub fn gaps_intact(&self) -> bool {
        let mut all = self.memory.read(0, self.memory.len());
        for (member, place) in self.places.iter().enumerate() {
            self.pieces(member, 0, place.len, |at, piece| all[at..at + piece.len()].fill(GAP));
        }
        all.iter().all(|&byte| byte == GAP)
    }
}

/// Bytes before the first block and after the last one.
const GUARD: usize = 16;

impl Blocks for SimBlocks {
    fn len(&self, member: usize) -> usize {
        self.places[member].len
    }

    fn each(&self) -> Option<usize> {
        let first = self.places.first()?.len;
        self.places.iter().all(|place| place.len == first).then_some(first)
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        let places = &self.places[members];
        let adjacent = places.windows(2).all(|pair| pair[0].at + pair[0].len == pair[1].at);
        if !adjacent || places.iter().any(|place| place.layout.is_some()) {
            return None;
        }
        let at = places.first().map_or(GUARD, |first| first.at);
        // SAFETY: the simulator checks every access against the memory that it knows.
        Some(unsafe { Span::new(self.memory.at(at as isize), places.iter().map(|place| place.len).sum(), 1) })
    }

    fn pack(&self, member: usize, at: usize, to: Span) -> Result<()> {
        assert!(self.places[member].layout.is_some(), "a direct block is not packed");
        assert!(to.is_empty() || to.extent() == 1, "a block is packed into bytes");
        let mut bytes = vec![0; to.len()];
        let memory = &self.memory;
        self.pieces(member, at, to.len(), |at, piece| {
            bytes[piece.clone()].copy_from_slice(&memory.read(at, piece.len()));
        });
        // SAFETY: who made the span promised valid memory, and the algorithm has no post in flight on it.
        unsafe { UnitType::BYTE.scatter(&bytes, to) };
        Ok(())
    }

    fn unpack(&self, member: usize, at: usize, from: Span) -> Result<()> {
        assert!(self.places[member].layout.is_some(), "a direct block is not unpacked");
        assert!(from.is_empty() || from.extent() == 1, "a block is unpacked from bytes");
        // SAFETY: who made the span promised valid memory, and the algorithm has no receive in flight on it.
        let bytes = unsafe { UnitType::BYTE.gather(from) };
        self.pieces(member, at, from.len(), |at, piece| self.memory.write(at, &bytes[piece]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::UnitBuffer;

    fn blocks() -> Vec<Vec<u8>> {
        [5, 0, 31, 1, 0, 0, 64, 7].iter().map(|&len| (0..len).map(|i| i + len).collect()).collect()
    }

    #[test]
    fn runs_are_direct_in_any_part() {
        let blocks = blocks();
        let run = SimBlocks::run(&blocks);
        for from in 0..=blocks.len() {
            for to in from..=blocks.len() {
                let span = run.direct(from..to).unwrap();
                // SAFETY: the span is the blocks' own memory.
                assert_eq!(unsafe { UnitType::BYTE.gather(span) }, blocks[from..to].concat());
            }
        }
        assert!(run.gaps_intact());
    }

    #[test]
    fn scattered_blocks_hold_the_same() {
        let blocks = blocks();
        let mut seen = [0; 2];
        for seed in 0..40 {
            let scattered = SimBlocks::scattered(&mut Rng::new(seed), &blocks);
            for (member, block) in blocks.iter().enumerate() {
                assert_eq!((scattered.len(member), &scattered.contents(member)), (block.len(), block));
                let direct = scattered.direct(member..member + 1);
                seen[usize::from(direct.is_some())] += 1;
                if let Some(span) = direct {
                    // SAFETY: the span is the blocks' own memory.
                    assert_eq!(unsafe { UnitType::BYTE.gather(span) }, *block);
                    continue;
                }
                let (at, len) = (block.len() / 3, block.len() / 2);
                let packed = UnitBuffer::new(UnitType::BYTE, len);
                scattered.pack(member, at, packed.span()).unwrap();
                assert_eq!(packed.data(), block[at..at + len]);
                packed.fill(9);
                scattered.unpack(member, at, packed.span()).unwrap();
                let mut expected = block.clone();
                expected[at..at + len].fill(9);
                assert_eq!(scattered.contents(member), expected);
            }
            assert!(scattered.gaps_intact());
            // Direct in one run only where they lie in this order without gaps.
            for from in 0..blocks.len() - 1 {
                let Some(span) = scattered.direct(from..from + 2) else { continue };
                let contents = [scattered.contents(from), scattered.contents(from + 1)].concat();
                // SAFETY: the span is the blocks' own memory.
                assert_eq!(unsafe { UnitType::BYTE.gather(span) }, contents);
            }
        }
        assert!(seen[0] > 50 && seen[1] > 100, "both kinds come up: {seen:?}");
    }

    #[test]
    fn a_write_outside_the_blocks_is_noticed() {
        for seed in 0..10 {
            let scattered = SimBlocks::scattered(&mut Rng::new(seed), &blocks());
            scattered.memory.write(GUARD - 1, &[0]);
            assert!(!scattered.gaps_intact());
        }
    }
}
