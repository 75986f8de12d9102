// SPDX-License-Identifier: BSD-3-Clause
//! Ways through a ring of slots: a message is cut into pieces, so that one rank copies in while the other one
//! copies out.

use super::ground::{Flag, Ground, RING};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A message of `bytes` in pieces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pieces {
    /// Bytes of the message.
    pub bytes: usize,
    /// Bytes of a piece.
    pub piece: usize,
}

impl Pieces {
    /// Number of pieces.
    pub fn count(self) -> usize {
        self.bytes.div_ceil(self.piece)
    }

    /// Where piece `i` begins in the message, and its length.
    pub fn part(self, i: usize) -> (usize, usize) {
        let at = i * self.piece;
        (at, self.piece.min(self.bytes - at))
    }

    /// Slots of the ring.
    fn slots(self) -> u64 {
        (RING / self.slot()) as u64
    }

    /// Bytes of a slot: whole lines.
    fn slot(self) -> usize {
        self.piece.next_multiple_of(LINE)
    }

    /// Where piece number `n`, counted since the beginning, lies in the ring.
    fn place(self, n: u64) -> usize {
        (n % self.slots()) as usize * self.slot()
    }

    /// The lines of the ring that a message takes whose first piece is number `n`: where each begins. A
    /// message longer than the ring takes all.
    fn lines(self, n: u64) -> impl Iterator<Item = usize> {
        let pieces = 0..self.count().min(self.slots() as usize);
        pieces.flat_map(move |i| {
            let place = self.place(n + i as u64);
            (place..place + self.part(i).1).step_by(LINE)
        })
    }
}

impl Ground {
    /// Waits until nothing is in this rank's ring, so that the next call knows it without looking.
    pub fn emptied(&self) {
        self.freed.set(self.await_flag(Flag::Took, self.count(Flag::Wrote)));
    }

    /// The same, and takes the lines of the next message's slots back into this core's cache. The peer has
    /// read them, so its core holds them too. Stores become visible in order: a flag would wait until every
    /// line before it has been given back.
    pub fn own_slots(&self, pieces: Pieces) {
        self.emptied();
        for at in pieces.lines(self.count(Flag::Wrote)) {
            let line = self.ring(self.me, at);
            // SAFETY: within this rank's ring, which nobody reads while it is empty. A store of what it holds
            // anyway.
            unsafe { line.write_volatile(line.read_volatile()) };
        }
    }

    /// Rank 0 copies in, rank 1 copies out.
    pub fn one_way(&self, pieces: Pieces) {
        for i in 0..pieces.count() {
            if self.me == 0 {
                self.put(pieces, i);
            } else {
                self.take(pieces, i);
            }
        }
    }

    /// Both copy in and out, one piece ahead.
    pub fn exchange(&self, pieces: Pieces) {
        self.ahead(pieces, |i| self.take(pieces, i));
    }

    /// Both copy in, and add what the other one copied in to their own.
    pub fn combine_all(&self, pieces: Pieces) {
        self.ahead(pieces, |i| {
            let (at, bytes) = pieces.part(i);
            let theirs = self.arrived(pieces);
            // SAFETY: all three are as long as the part; the peer leaves its slot alone until it is taken.
            unsafe { add(self.recv().add(at), self.send().add(at), theirs, bytes) };
            self.raise(Flag::Took);
        });
    }

    /// Each adds one half of every piece, and copies the other half from the peer: three steps, one piece
    /// apart.
    pub fn combine_shared(&self, pieces: Pieces) {
        let count = pieces.count();
        let [mine, theirs, made] = [Flag::Wrote, Flag::Took, Flag::Made].map(|flag| self.count(flag));
        for step in 0..count + 2 {
            if step < count {
                let (at, bytes) = pieces.part(step);
                let (from, length) = half_of(self.you, bytes);
                let slot = self.free_slot(pieces);
                // SAFETY: the half lies in the piece, and the piece in message and slot.
                unsafe { copy(slot.add(from), self.send().add(at + from), length) };
                self.raise(Flag::Wrote);
            }
            if (1..=count).contains(&step) {
                let (at, bytes) = pieces.part(step - 1);
                let (from, length) = half_of(self.me, bytes);
                let n = step as u64;
                self.await_flag(Flag::Wrote, theirs + n);
                let theirs = self.ring(self.you, pieces.place(theirs + n - 1) + from);
                // The result goes to the part of this rank's slot that it did not copy into.
                let result = self.ring(self.me, pieces.place(mine + n - 1) + from);
                // SAFETY: as above; the peer leaves its part alone until it is taken.
                unsafe { add(result, self.send().add(at + from), theirs, length) };
                self.raise(Flag::Made);
                // SAFETY: as above.
                unsafe { copy(self.recv().add(at + from), result, length) };
            }
            if step >= 2 {
                let (at, bytes) = pieces.part(step - 2);
                let (from, length) = half_of(self.you, bytes);
                let n = step as u64 - 1;
                self.await_flag(Flag::Made, made + n);
                let result = self.ring(self.you, pieces.place(theirs + n - 1) + from);
                // SAFETY: as above.
                unsafe { copy(self.recv().add(at + from), result, length) };
                self.raise(Flag::Took);
            }
        }
    }

    /// Puts piece after piece in, and does `then` with the one before.
    fn ahead(&self, pieces: Pieces, then: impl Fn(usize)) {
        let count = pieces.count();
        for step in 0..=count {
            if step < count {
                self.put(pieces, step);
            }
            if step > 0 {
                then(step - 1);
            }
        }
    }

    /// Copies piece `i` in.
    #[inline]
    fn put(&self, pieces: Pieces, i: usize) {
        let (at, bytes) = pieces.part(i);
        // SAFETY: the piece lies in the message, and is no longer than a slot.
        unsafe { copy(self.free_slot(pieces), self.send().add(at), bytes) };
        self.raise(Flag::Wrote);
    }

    /// Copies piece `i` out.
    #[inline]
    fn take(&self, pieces: Pieces, i: usize) {
        let (at, bytes) = pieces.part(i);
        // SAFETY: the piece lies in the message, and is no longer than a slot.
        unsafe { copy(self.recv().add(at), self.arrived(pieces), bytes) };
        self.raise(Flag::Took);
    }

    /// The next slot of this rank's ring, as soon as the peer has taken out what was in it.
    fn free_slot(&self, pieces: Pieces) -> *mut u8 {
        let n = self.count(Flag::Wrote);
        if n - self.freed.get() >= pieces.slots() {
            self.freed.set(self.await_flag(Flag::Took, n + 1 - pieces.slots()));
        }
        self.ring(self.me, pieces.place(n))
    }

    /// The peer's next slot, as soon as something is in it.
    fn arrived(&self, pieces: Pieces) -> *const u8 {
        let n = self.count(Flag::Took);
        self.await_flag(Flag::Wrote, n + 1);
        self.ring(self.you, pieces.place(n))
    }
}

/// The half of a message or piece that rank `rank` adds: where it begins, and its length; whole numbers.
pub fn half_of(rank: usize, bytes: usize) -> (usize, usize) {
    let half = bytes / 8 * 4;
    if rank == 0 { (0, half) } else { (half, bytes - half) }
}

/// Copies between a private buffer and a slot, or between private buffers.
///
/// # Safety
///
/// Both are valid for `bytes` bytes and do not overlap, and nobody else uses them meanwhile.
#[inline(always)]
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's word.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

/// Adds numbers, with the widest instructions that a compiler takes by itself.
///
/// # Safety
///
/// All three are valid for `bytes` bytes and aligned to 4, `to` overlaps none of the others, and nobody else
/// uses them meanwhile.
#[inline]
pub unsafe fn add(to: *mut u8, a: *const u8, b: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions; the rest is the caller's word.
        return unsafe { add_wide(to, a, b, bytes) };
    }
    // SAFETY: the caller's word.
    unsafe { add_plain(to, a, b, bytes) }
}

/// # Safety
///
/// As [`add`], and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn add_wide(to: *mut u8, a: *const u8, b: *const u8, bytes: usize) {
    // SAFETY: the caller's word.
    unsafe { add_plain(to, a, b, bytes) }
}

/// # Safety
///
/// As [`add`].
#[inline(always)]
unsafe fn add_plain(to: *mut u8, a: *const u8, b: *const u8, bytes: usize) {
    let (to, a, b): (*mut f32, *const f32, *const f32) = (to.cast(), a.cast(), b.cast());
    for i in 0..bytes / 4 {
        // SAFETY: the caller's word.
        unsafe { to.add(i).write(a.add(i).read() + b.add(i).read()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_message_once() {
        for (bytes, piece) in [(8, 8), (4096, 4096), (10_000, 4096), (1 << 20, 65536), (100, 64)] {
            let pieces = Pieces { bytes, piece };
            let mut end = 0;
            for i in 0..pieces.count() {
                let (at, length) = pieces.part(i);
                assert_eq!(at, end);
                assert!(length > 0 && length <= piece);
                end += length;
            }
            assert_eq!(end, bytes);
            assert!(pieces.slots() >= 2);
            let places: Vec<usize> = (0..pieces.slots()).map(|n| pieces.place(n)).collect();
            assert!(places.windows(2).all(|p| p[1] - p[0] >= piece) && places[places.len() - 1] + piece <= RING);
            assert_eq!(pieces.place(pieces.slots()), 0);
        }
    }

    #[test]
    fn lines_are_those_that_the_pieces_touch() {
        for (bytes, piece) in [(8, 8), (4096, 4096), (10_000, 4096), (100, 64), (RING, 65536), (2 * RING, 32768)] {
            let pieces = Pieces { bytes, piece };
            for first in [0, 5, pieces.slots() - 1] {
                let mut touched = vec![false; RING / LINE];
                for i in 0..pieces.count() {
                    let at = pieces.place(first + i as u64);
                    touched[at / LINE..(at + pieces.part(i).1).div_ceil(LINE)].fill(true);
                }
                let mut lines: Vec<usize> = pieces.lines(first).collect();
                lines.sort_unstable();
                let expected = (0..RING / LINE).filter(|line| touched[*line]).map(|line| line * LINE);
                assert_eq!(lines, expected.collect::<Vec<_>>(), "{pieces:?} from piece {first}");
            }
        }
    }

    #[test]
    fn halves_make_the_whole() {
        for bytes in [4, 8, 12, 64, 100, 4096] {
            let (low, high) = (half_of(0, bytes), half_of(1, bytes));
            assert_eq!((low.0, low.1, high.0 + high.1), (0, high.0, bytes));
            assert!(low.1 % 4 == 0 && high.1 - low.1 <= 4);
        }
    }

    #[test]
    fn sums_of_all_lengths() {
        for n in 0..70 {
            let (a, b) = ((0..n).map(|i| i as f32).collect::<Vec<_>>(), vec![0.5f32; n]);
            let mut sum = vec![-1.0f32; n + 1];
            // SAFETY: three vectors of this length.
            unsafe { add(sum.as_mut_ptr().cast(), a.as_ptr().cast(), b.as_ptr().cast(), 4 * n) };
            assert!(sum[..n].iter().enumerate().all(|(i, s)| *s == i as f32 + 0.5) && sum[n] == -1.0);
        }
    }
}
