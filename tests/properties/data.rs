// SPDX-License-Identifier: BSD-3-Clause
//! Units, values and operations, and the oracles.

use coll_rust::endpoint::{Result, Span, Stream};
use coll_rust::sim::{Rng, SimStream, UnitBuffer, UnitType, World};

/// Layouts of a unit of `size` bytes: dense, with gaps, beginning before or after the origin, running
/// downwards.
pub fn layouts(size: usize) -> [UnitType; 4] {
    let extent = size as isize;
    [
        UnitType::plain(size),
        UnitType { size, extent: extent + 3, true_lb: -5 },
        UnitType { size, extent: -extent - 1, true_lb: 2 },
        UnitType { size, extent: -extent, true_lb: -extent },
    ]
}

/// `len` random bytes.
pub fn bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.below(256) as u8).collect()
}

/// Operations on values of [`Op::SIZE`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A sum modulo 2^64, and beside it a hash of the expression that made it: the sum commutes, its bits do
    /// not.
    Sum,
    /// Two sums of floating-point numbers: they commute, but are not associative.
    Float,
    /// Composition of affine maps modulo 2^64: associative, does not commute.
    Affine,
}

impl Op {
    /// Bytes of a value.
    pub const SIZE: usize = 16;

    /// Whether an MPI program would declare it commutative.
    pub fn commutes(self) -> bool {
        self != Op::Affine
    }

    /// `right = left ⊕ right`.
    pub fn combine(self, left: &[u8], right: &mut [u8]) {
        let ((a, b), (c, d)) = (words(left), words(right));
        let (first, second) = match self {
            Op::Sum => (a.wrapping_add(c), b.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ d),
            Op::Float => (add(a, c), add(b, d)),
            Op::Affine => (a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b)),
        };
        right[..8].copy_from_slice(&first.to_le_bytes());
        right[8..].copy_from_slice(&second.to_le_bytes());
    }

    /// `units` random values.
    pub fn values(self, rng: &mut Rng, units: usize) -> Vec<u8> {
        let mut data = bytes(rng, units * Op::SIZE);
        for value in data.chunks_exact_mut(Op::SIZE) {
            match self {
                Op::Sum => {}
                // An even factor would lose bits, and hide what is right of it.
                Op::Affine => value[0] |= 1,
                Op::Float => {
                    for float in value.chunks_exact_mut(8) {
                        let number = f64::from(rng.below(1 << 30) as u32) * 10f64.powi(rng.below(24) as i32 - 12);
                        float.copy_from_slice(&number.to_le_bytes());
                    }
                }
            }
        }
        data
    }

    /// What of some values does not depend on the order of evaluation where the operation allows another one.
    pub fn exact(self, data: &[u8]) -> Vec<u8> {
        match self {
            Op::Sum => data.chunks_exact(Op::SIZE).flat_map(|value| value[..8].to_vec()).collect(),
            Op::Float => Vec::new(),
            Op::Affine => data.to_vec(),
        }
    }

    /// `left ⊕ right` for whole vectors.
    fn both(self, left: &[u8], right: &[u8]) -> Vec<u8> {
        let mut result = right.to_vec();
        left.chunks(Op::SIZE).zip(result.chunks_mut(Op::SIZE)).for_each(|(l, r)| self.combine(l, r));
        result
    }

    /// The oracle: all inputs from left to right.
    pub fn fold(self, inputs: &[Vec<u8>]) -> Vec<u8> {
        inputs[1..].iter().fold(inputs[0].clone(), |left, right| self.both(&left, right))
    }

    /// The oracle of the reproducible tree: neighbours by `radix`, those results by `radix`, and so on.
    pub fn tree(self, inputs: &[Vec<u8>], radix: usize) -> Vec<u8> {
        let next: Vec<_> = inputs.chunks(radix).map(|chunk| self.fold(chunk)).collect();
        if next.len() == 1 { next[0].clone() } else { self.tree(&next, radix) }
    }

    /// A world of `size` ranks with this operation on units of this layout.
    pub fn world(self, size: usize, unit: UnitType) -> World {
        World::new(size as u32).unit(unit).reduce(move |left, right| self.combine(left, right))
    }
}

fn words(value: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| value[at + i]));
    (word(0), word(8))
}

fn add(a: u64, b: u64) -> u64 {
    (f64::from_bits(a) + f64::from_bits(b)).to_bits()
}

/// One rank's buffers in a reduction, as the user gives them.
pub struct Buffers {
    before: Vec<u8>,
    send: UnitBuffer,
    receive: UnitBuffer,
    in_place: bool,
}

impl Buffers {
    /// A rank that contributes `input`. In place, the input lies in the receive buffer.
    pub fn new(unit: UnitType, input: &[u8], in_place: bool) -> Buffers {
        let send = UnitBuffer::with(unit, input);
        let receive = UnitBuffer::new(unit, send.len());
        receive.fill(0x3c);
        if in_place {
            receive.set(input);
        }
        Buffers { before: input.to_vec(), send, receive, in_place }
    }

    /// Where the input lies.
    pub fn input(&self) -> Span {
        if self.in_place { self.receive.span() } else { self.send.span() }
    }

    /// Where the result is wanted.
    pub fn target(&self) -> Span {
        self.receive.span()
    }

    /// Whether the input is in place.
    pub fn in_place(&self) -> bool {
        self.in_place
    }

    /// The data of the receive buffer.
    pub fn result(&self) -> Vec<u8> {
        self.receive.data()
    }

    /// Checks what must be as before: the send buffer, and all bytes between and around the units; the
    /// receive buffer too where it means nothing.
    pub fn check(&self, receives: bool) {
        assert_eq!(self.send.data(), self.before, "send buffer");
        assert!(self.send.gaps_intact() && self.receive.gaps_intact(), "bytes outside the units");
        if !receives {
            assert!(self.receive.data().iter().all(|&byte| byte == 0x3c), "receive buffer where there is none");
        }
    }
}

/// A user's stream: one run of bytes with guards around, or blocks with gaps.
pub enum UserStream {
    Run(UnitBuffer),
    Blocks(SimStream),
}

impl UserStream {
    /// A stream of these bytes in a layout that is `rng`'s choice.
    pub fn new(rng: &mut Rng, data: &[u8]) -> UserStream {
        if rng.below(2) == 0 {
            return UserStream::Run(UnitBuffer::with(UnitType::BYTE, data));
        }
        let block = 1 + rng.below(30);
        UserStream::Blocks(SimStream::strided(data, block, block + rng.below(5)))
    }

    /// Checks the packed bytes, and that nothing else was written.
    pub fn check(&self, expected: &[u8]) {
        let (data, intact) = match self {
            UserStream::Run(buffer) => (buffer.data(), buffer.gaps_intact()),
            UserStream::Blocks(stream) => (stream.contents(), stream.gaps_intact()),
        };
        assert_eq!(data, expected, "contents");
        assert!(intact, "bytes outside the stream");
    }
}

impl Stream for UserStream {
    fn len(&self) -> usize {
        match self {
            UserStream::Run(buffer) => buffer.len(),
            UserStream::Blocks(stream) => stream.len(),
        }
    }

    fn direct(&self) -> Option<Span> {
        match self {
            UserStream::Run(buffer) => Some(buffer.span()),
            UserStream::Blocks(stream) => stream.direct(),
        }
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        match self {
            UserStream::Run(_) => panic!("a direct stream is not packed"),
            UserStream::Blocks(stream) => stream.pack(at, to),
        }
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        match self {
            UserStream::Run(_) => panic!("a direct stream is not unpacked"),
            UserStream::Blocks(stream) => stream.unpack(at, from),
        }
    }
}

#[test]
fn the_operations_are_what_they_say() {
    let mut rng = Rng::new(1);
    for op in [Op::Sum, Op::Float, Op::Affine] {
        let [a, b, c] = std::array::from_fn(|_| op.values(&mut rng, 20));
        let (ab, ba) = (op.both(&a, &b), op.both(&b, &a));
        let (left, right) = (op.both(&ab, &c), op.both(&a, &op.both(&b, &c)));
        assert_eq!(op.exact(&ab) == op.exact(&ba), op.commutes());
        assert_eq!(op.exact(&left), op.exact(&right));
        // The bits tell an expression from another one.
        assert_eq!(left == right, op == Op::Affine);
        assert_eq!(ab == ba, op == Op::Float);
        assert_eq!(op.fold(&[a.clone(), b.clone(), c.clone()]), left);
        assert_eq!(op.tree(&[a, b, c], 2), left);
    }
}
