// SPDX-License-Identifier: BSD-3-Clause
//! A user's data as a packed stream.

use super::UnitType;
use super::memory::Memory;
use crate::endpoint::{Result, Span, Stream};

/// Pattern of the bytes between the blocks of a strided stream.
const GAP: u8 = 0x5a;

/// A [`Stream`] over memory of its own, in one run or scattered.
pub struct SimStream {
    memory: Memory,
    len: usize,
    /// Bytes that lie together, and the distance from one such block to the next; none when all lie together.
    layout: Option<(usize, usize)>,
}

impl SimStream {
    /// A stream that lies in memory as one run.
    pub fn direct(bytes: &[u8]) -> SimStream {
        SimStream { memory: Memory::new(bytes.to_vec()), len: bytes.len(), layout: None }
    }

    /// A stream in blocks of `block` bytes, `stride` bytes from one to the next.
    ///
    /// # Panics
    /// When blocks are empty or overlap.
    pub fn strided(bytes: &[u8], block: usize, stride: usize) -> SimStream {
        assert!(0 < block && block <= stride, "blocks of {block} bytes every {stride}");
        let memory = Memory::new(vec![GAP; bytes.len().div_ceil(block) * stride]);
        let stream = SimStream { memory, len: bytes.len(), layout: Some((block, stride)) };
        stream.pieces(0, bytes.len(), |at, piece| stream.memory.write(at, &bytes[piece]));
        stream
    }

    /// Calls `each` for the pieces that bytes `at..at + len` of the stream lie in: where in memory, which of
    /// the bytes.
    fn pieces(&self, at: usize, len: usize, mut each: impl FnMut(usize, std::ops::Range<usize>)) {
        assert!(at <= self.len && len <= self.len - at, "{len} bytes at {at} of a stream of {}", self.len);
        let Some((block, stride)) = self.layout else { return each(at, 0..len) };
        let mut done = 0;
        while done < len {
            let (number, offset) = ((at + done) / block, (at + done) % block);
            let piece = (block - offset).min(len - done);
            each(number * stride + offset, done..done + piece);
            done += piece;
        }
    }

    /// The packed bytes.
    pub fn contents(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len);
        self.pieces(0, self.len, |at, piece| bytes.extend(self.memory.read(at, piece.len())));
        bytes
    }

    /// True when no byte between the blocks was ever written.
    pub fn gaps_intact(&self) -> bool {
        let mut all = self.memory.read(0, self.memory.len());
        self.pieces(0, self.len, |at, piece| all[at..at + piece.len()].fill(GAP));
        self.layout.is_none() || all.iter().all(|&byte| byte == GAP)
    }
}

impl Stream for SimStream {
    fn len(&self) -> usize {
        self.len
    }

    fn direct(&self) -> Option<Span> {
        // SAFETY: it is this memory, and the simulator checks every access.
        self.layout.is_none().then(|| unsafe { Span::new(self.memory.at(0), self.len, 1) })
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        assert!(to.is_empty() || to.extent() == 1, "a stream is packed into bytes");
        let mut bytes = vec![0; to.len()];
        self.pieces(at, to.len(), |at, piece| bytes[piece.clone()].copy_from_slice(&self.memory.read(at, piece.len())));
        // SAFETY: who made the span promised valid memory, and the algorithm has no post in flight on it.
        unsafe { UnitType::BYTE.scatter(&bytes, to) };
        Ok(())
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        assert!(from.is_empty() || from.extent() == 1, "a stream is unpacked from bytes");
        // SAFETY: who made the span promised valid memory, and the algorithm has no receive in flight on it.
        let bytes = unsafe { UnitType::BYTE.gather(from) };
        self.pieces(at, from.len(), |at, piece| self.memory.write(at, &bytes[piece]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::UnitBuffer;

    #[test]
    fn strided_and_direct_hold_the_same_stream() {
        let bytes: Vec<u8> = (0..101).collect();
        for (block, stride) in [(1, 1), (1, 3), (7, 7), (7, 11), (200, 300)] {
            let strided = SimStream::strided(&bytes, block, stride);
            assert!(strided.direct().is_none());
            assert_eq!(strided.contents(), bytes);
            for (at, len) in [(0, 0), (0, 101), (3, 17), (6, 2), (100, 1), (101, 0)] {
                let packed = UnitBuffer::new(UnitType::BYTE, len);
                strided.pack(at, packed.span()).unwrap();
                assert_eq!(packed.data(), bytes[at..at + len]);
                packed.fill(9);
                let other = SimStream::strided(&bytes, block, stride);
                other.unpack(at, packed.span()).unwrap();
                let mut expected = bytes.clone();
                expected[at..at + len].fill(9);
                assert_eq!(other.contents(), expected);
                assert!(other.gaps_intact());
            }
        }
        let direct = SimStream::direct(&bytes);
        let span = direct.direct().unwrap();
        assert_eq!((span.len(), direct.len()), (101, 101));
        // SAFETY: the span is the stream's own memory.
        assert_eq!(unsafe { UnitType::BYTE.gather(span) }, bytes);
    }

    #[test]
    fn a_write_between_blocks_is_noticed() {
        let stream = SimStream::strided(&[1, 2, 3, 4], 2, 3);
        stream.memory.write(2, &[0]);
        assert!(!stream.gaps_intact());
    }
}
