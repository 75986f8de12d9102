// SPDX-License-Identifier: BSD-3-Clause
//! Blocks of members: their lengths, their bytes, and what must hold of them after an operation.

use super::data::bytes;
use coll_rust::pattern::lengths::Lengths;
use coll_rust::sim::{Rng, SimBlocks, Stats};

/// Sizes of groups in the tests of operations on blocks.
pub const SIZES: [usize; 9] = [1, 2, 3, 5, 7, 8, 11, 16, 64];

/// Lengths of blocks of members: equal ones (none, one, primes) and others, many of them zero.
pub fn lengths(rng: &mut Rng, size: usize) -> Vec<Vec<usize>> {
    // Many members, few units: the runs are to be quick.
    let (equal, most): (&[usize], usize) = if size > 16 { (&[3], 8) } else { (&[0, 1, 13, 101], 30) };
    let mut all: Vec<Vec<usize>> = equal.iter().map(|&len| vec![len; size]).collect();
    all.push((0..size).map(|_| [0, 1, 7, most, 3 * most][rng.below(5)] * rng.below(2)).collect());
    all.push((0..size).map(|_| rng.below(most)).collect());
    let mut one = vec![0; size];
    one[rng.below(size)] = 67;
    all.push(one);
    all
}

/// Calls `each` with two seeds for all sizes from `from` on and lengths of blocks.
pub fn sweep(from: usize, mut each: impl FnMut(u64, usize, &[usize])) {
    let mut rng = Rng::new(from as u64);
    for size in SIZES.into_iter().filter(|&size| size >= from) {
        for lens in lengths(&mut rng, size) {
            (0..2).for_each(|_| each(rng.bits(), size, &lens));
        }
    }
}

/// The same for all roots; some of them for the larger groups.
pub fn sweep_roots(mut each: impl FnMut(u64, usize, usize, &[usize])) {
    let mut rng = Rng::new(11);
    sweep(1, |seed, size, lens| match size {
        0..=11 => (0..size).for_each(|root| each(seed ^ root as u64, size, root, lens)),
        _ => [0, rng.below(size), size - 1].into_iter().for_each(|root| each(seed, size, root, lens)),
    });
}

/// Random bytes for blocks of these lengths.
pub fn contents(rng: &mut Rng, lens: &[usize]) -> Vec<Vec<u8>> {
    lens.iter().map(|&len| bytes(rng, len)).collect()
}

/// Blocks of these bytes in a layout that is `rng`'s choice.
pub fn user_blocks(rng: &mut Rng, blocks: &[Vec<u8>]) -> SimBlocks {
    if rng.below(2) == 0 { SimBlocks::run(blocks) } else { SimBlocks::scattered(rng, blocks) }
}

/// Checks the blocks, and that nothing else was written.
pub fn check(blocks: &SimBlocks, expected: &[Vec<u8>], context: &str) {
    for (member, block) in expected.iter().enumerate() {
        assert_eq!(blocks.contents(member), *block, "block {member}: {context}");
    }
    assert!(blocks.gaps_intact(), "bytes outside the blocks: {context}");
}

/// The lengths as an algorithm takes them; equal ones in either form.
pub fn known(rng: &mut Rng, lens: &[usize]) -> Lengths {
    match lens.windows(2).all(|w| w[0] == w[1]) && rng.below(2) == 0 {
        true => Lengths::equal(lens[0], lens.len()),
        false => Lengths::each(lens.iter().copied()),
    }
}

/// The number of lengths that are not zero.
pub fn filled(lens: impl IntoIterator<Item = usize>) -> usize {
    lens.into_iter().filter(|&len| len > 0).count()
}

/// Non-zero digits of a number.
pub fn digits(number: usize, radix: usize) -> usize {
    let higher = std::iter::successors(Some(number), |n| Some(n / radix)).take_while(|&n| n > 0);
    higher.filter(|n| n % radix != 0).count()
}

/// A future that may be polled from any thread, as those of operations must be.
pub fn send<F: Future + Send>(future: F) -> F {
    future
}

/// Checks that no message was empty: both ends know the lengths.
pub fn no_empty_message(stats: &Stats) {
    assert_eq!(stats.empty, 0, "messages without units");
}

#[test]
fn digits_are_counted() {
    assert_eq!((digits(0, 2), digits(0b1011, 2), digits(1002, 10), digits(1000, 10)), (0, 3, 2, 1));
}
