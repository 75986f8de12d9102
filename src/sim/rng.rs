// SPDX-License-Identifier: BSD-3-Clause
//! A small generator of random numbers: splitmix64.
//!
//! Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014,
//! doi:10.1145/2660193.2660195.

#![forbid(unsafe_code)]

/// The generator. Equal seeds give equal numbers, on every machine.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts at `seed`.
    pub const fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// True in `chance` of 256 cases.
    pub fn chance(&mut self, chance: u16) -> bool {
        self.below(256) < usize::from(chance)
    }
}
