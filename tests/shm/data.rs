//! Contents, a reduction that does not commute, and settings.

use coll_rust::endpoint::Span;
use coll_rust::shm::op::Combine;
use coll_rust::shm::team::Config;
use coll_rust::sim::{Rng, SimStream};
use coll_rust::sync::wait::{Mode, Waiting};

/// A number that depends on all of `parts`.
pub fn hash(parts: &[usize]) -> u64 {
    parts.iter().fold(0x1234_5678, |state, &part| Rng::new(state ^ part as u64).bits())
}

/// `len` bytes that depend on all of `parts`.
pub fn bytes(parts: &[usize], len: usize) -> Vec<u8> {
    let mut rng = Rng::new(hash(parts));
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.bits().to_ne_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// A stream of these bytes, in one run or strided.
pub fn stream(content: &[u8], rng: &mut Rng) -> SimStream {
    match rng.below(3) {
        0 => SimStream::strided(content, 1 + rng.below(9), 10),
        _ => SimStream::direct(content),
    }
}

/// Maps x → a·x + b on bytes, composed: associative, not commutative. An element has several of them.
pub struct Affine {
    pub size: usize,
}

fn compose(left: [u8; 2], right: [u8; 2]) -> [u8; 2] {
    [left[0].wrapping_mul(right[0]), left[0].wrapping_mul(right[1]).wrapping_add(left[1])]
}

impl Affine {
    /// The composition of all operands.
    pub fn oracle(&self, operands: &[Vec<u8>]) -> Vec<u8> {
        let mut result = operands[0].clone();
        for operand in &operands[1..] {
            for (left, right) in result.chunks_mut(2).zip(operand.chunks(2)) {
                left.copy_from_slice(&compose([left[0], left[1]], [right[0], right[1]]));
            }
        }
        result
    }

    /// An operand: slopes are odd, so that no information is lost.
    pub fn operand(&self, parts: &[usize], count: usize) -> Vec<u8> {
        let mut operand = bytes(parts, count * self.size);
        operand.iter_mut().step_by(2).for_each(|slope| *slope |= 1);
        operand
    }
}

impl Combine for Affine {
    fn size(&self) -> usize {
        self.size
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        for i in (0..count * self.size).step_by(2) {
            // SAFETY: by the caller's promise.
            unsafe {
                let both = compose([*left.add(i), *left.add(i + 1)], [*right.add(i), *right.add(i + 1)]);
                right.add(i).write(both[0]);
                right.add(i + 1).write(both[1]);
            }
        }
    }
}

/// Sums of `f32`, whose result depends on the order.
pub struct Floats;

impl Combine for Floats {
    fn size(&self) -> usize {
        4
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        for i in 0..count {
            // SAFETY: by the caller's promise.
            unsafe {
                let (left, right) = (left.cast::<f32>().add(i), right.cast::<f32>().add(i));
                right.write_unaligned(left.read_unaligned() + right.read_unaligned());
            }
        }
    }
}

/// The elements of a vector.
pub fn elements(data: &mut Vec<u8>, size: usize) -> Span {
    Span::new(data.as_mut_ptr(), data.len() / size, size as isize)
}

/// Settings that depend on the seed: tiny fragments, so that there are many rounds, or at times longer ones,
/// in which what is short rotates; and numbers near their wrap-around.
pub fn config(rng: &mut Rng) -> Config {
    let config = tiny(rng);
    if rng.chance(192) {
        return config;
    }
    let (fragment, still) = ([1024, 4096, 12352][rng.below(3)], [600, 1024][rng.below(2)]);
    let waiting = Waiting { crowded: false, ..config.waiting };
    Config { fragment, short: fragment.min(4096), still, rotates: true, waiting, ..config }
}

fn tiny(rng: &mut Rng) -> Config {
    let waiting = Waiting { mode: Mode::Block, crowded: rng.chance(128), yields: false, spin: 1 + rng.below(2) as u32 };
    let sets = [1, 2, 2, 4, 8][rng.below(5)];
    Config {
        fragment: [64, 128, 192, 512][rng.below(4)],
        fragments: sets * [1, 2, 4, 8, 32][rng.below(5)],
        sets: sets as u8,
        lines: [8, 16, 32][rng.below(3)],
        short: [0, 100, 300, 1000, 9999][rng.below(5)],
        still: [0, 64, 200, 9999][rng.below(4)],
        shorts: [1, 2, 4, 8, 32][rng.below(5)],
        small: 0,
        window: [0, 8, 10, 63][rng.below(4)],
        whole: [0, 200, 1 << 20][rng.below(3)],
        whole_gathered: [0, 200, 1 << 20][rng.below(3)],
        shared_work_min: [0, 200, usize::MAX][rng.below(3)],
        piece_min: [64, 128, 4096][rng.below(3)],
        divided_min: [1, 100, u32::MAX][rng.below(3)],
        bypass_min: [0, usize::MAX][rng.below(2)],
        past: rng.chance(128),
        keeps: rng.chance(128),
        rotates: rng.chance(128),
        waiting,
        first_op: [1, 0, u32::MAX, u32::MAX - 3, u32::MAX - 12, i32::MAX as u32 - 3][rng.below(6)],
    }
}

/// How many seeds a test tries.
pub fn seeds(usual: u64) -> u64 {
    let asked = std::env::var("SHM_SEEDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(if cfg!(miri) { usual.div_ceil(100) } else { usual })
}
