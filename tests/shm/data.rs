// SPDX-License-Identifier: BSD-3-Clause
//! Contents, a reduction that does not commute, and settings.

use coll_rust::endpoint::{Result, Span};
use coll_rust::shm::op::Combine;
use coll_rust::shm::protocol::team::Config;
use coll_rust::sim::{Rng, SimStream};
use coll_rust::sync::wait::{Mode, Waiting};
use std::sync::Mutex;

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

/// What is not there is this.
const MISSING: u8 = 0xee;

/// [`Affine`] of an operand that comes only when it is asked for, some bytes at a time, and of a result that
/// is looked at when it is said to be final.
pub struct Late {
    op: Affine,
    operand: Vec<u8>,
    /// Bytes that come at a time.
    each: usize,
    from: Span,
    to: Span,
    state: Mutex<Seen>,
}

/// What has been asked for and said.
struct Seen {
    /// Which pieces of the operand have come.
    come: Vec<bool>,
    /// From where on how much of the result was final, and what that was.
    made: Vec<(usize, Vec<u8>)>,
}

impl Late {
    /// The operand at `from` goes away, unless it is to be there `at_once`.
    pub fn new(op: Affine, from: Span, to: Span, each: usize, at_once: bool) -> Late {
        // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
        let (from, to) = (from.bytes(), unsafe { Span::new(to.ptr(), to.bytes().len(), 1) });
        let mut operand = vec![0; from.len()];
        // SAFETY: the span holds so many bytes, which nobody else uses yet.
        unsafe {
            from.ptr().copy_to_nonoverlapping(operand.as_mut_ptr(), operand.len());
            if !at_once {
                from.ptr().write_bytes(MISSING, operand.len());
            }
        }
        let come = vec![at_once; operand.len().div_ceil(each)];
        Late { op, operand, each, from, to, state: Mutex::new(Seen { come, made: Vec::new() }) }
    }

    /// What was final has not changed since, and nothing was said to be twice. Of a result of so many bytes,
    /// how many were.
    pub fn check(&self, result: &[u8]) -> usize {
        let made = &mut self.state.lock().unwrap().made;
        made.sort();
        assert!(made.windows(2).all(|pair| pair[0].0 + pair[0].1.len() <= pair[1].0), "said twice");
        for (at, bytes) in made.iter() {
            assert!(result[*at..at + bytes.len()] == bytes[..], "not final at {at}");
        }
        made.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

impl Combine for Late {
    fn size(&self) -> usize {
        self.op.size
    }

    fn needs(&self, at: *const u8, bytes: usize) -> Result<()> {
        let start = at.addr().wrapping_sub(self.from.ptr().addr());
        if bytes == 0 || start >= self.from.len() {
            return Ok(());
        }
        let come = &mut self.state.lock().unwrap().come;
        let pieces = start / self.each..(start + bytes).div_ceil(self.each);
        for (piece, come) in come.iter_mut().enumerate().take(pieces.end).skip(pieces.start) {
            if !std::mem::replace(come, true) {
                let (at, end) = (piece * self.each, self.operand.len().min((piece + 1) * self.each));
                // SAFETY: a part of the span, which has not been needed so far.
                unsafe { self.from.ptr().add(at).copy_from_nonoverlapping(self.operand[at..].as_ptr(), end - at) };
            }
        }
        Ok(())
    }

    fn made(&self, at: *const u8, bytes: usize) {
        if bytes > 0 {
            // SAFETY: a part of the caller's result.
            let now = unsafe { std::slice::from_raw_parts(at, bytes) }.to_vec();
            self.state.lock().unwrap().made.push((at.addr() - self.to.ptr().addr(), now));
        }
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        unsafe { self.op.reduce(left, right, count) };
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

/// A buffer as bytes.
pub fn span(room: &mut [u8]) -> Span {
    // SAFETY: the tests keep their buffers until the operations on them are over.
    unsafe { Span::new(room.as_mut_ptr(), room.len(), 1) }
}

/// The elements of a vector.
pub fn elements(data: &mut Vec<u8>, size: usize) -> Span {
    // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
    unsafe { Span::new(data.as_mut_ptr(), data.len() / size, size as isize) }
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
        rotates: rng.chance(128),
        waiting,
        first_op: [1, 0, u32::MAX, u32::MAX - 3, u32::MAX - 12, i32::MAX as u32 - 3][rng.below(6)],
    }
}

/// How many seeds a test tries: a quarter of the usual number, so that a plain run does not take long.
pub fn seeds(usual: u64) -> u64 {
    let asked = std::env::var("SHM_SEEDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(if cfg!(miri) { usual.div_ceil(100) } else { usual.div_ceil(4) })
}
