// SPDX-License-Identifier: BSD-3-Clause
//! Ways by lines that carry their own number: contents and flag go from core to core at once. For short
//! messages.

use std::sync::atomic::Ordering;

use super::ground::{CONTENTS, Flag, Ground, LINES, Line, wait};

/// Numbers of a line that are contents.
const WORDS: usize = CONTENTS / 8;
/// Round trips of one call.
pub const ROUND_TRIPS: u64 = 32;

/// The longest message, in bytes.
pub const LONGEST: usize = LINES * CONTENTS;

impl Ground {
    /// Hands one line to and fro, [`ROUND_TRIPS`] times. Each rank still holds the other one's line when that
    /// one writes to it again.
    pub fn ping_pong(&self) {
        for _ in 0..ROUND_TRIPS {
            let number = self.number.get() + 1;
            self.number.set(number);
            let word = [number; WORDS];
            if self.me == 0 {
                write(self.line(0, 0), word, number);
            }
            let answer = read(self.line(self.you, 0), number);
            debug_assert_eq!(answer, word);
            if self.me == 1 {
                write(self.line(1, 0), answer, number);
            }
        }
    }

    /// Waits until the peer has read this rank's lines, and takes those of the next message back into this
    /// core's cache.
    pub fn own_lines(&self, bytes: usize) {
        self.await_flag(Flag::Done, self.count(Flag::Done));
        for i in 0..bytes.div_ceil(CONTENTS) {
            let number = &self.line(self.me, i)[WORDS];
            // A store of what it holds anyway: the only writer is this rank.
            number.store(number.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Rank 0 writes lines, rank 1 reads them.
    pub fn lines_one_way(&self, bytes: usize) {
        let number = self.next_message();
        if self.me == 0 {
            self.write_lines(bytes, number);
        } else {
            self.read_lines(bytes, number, false);
        }
        self.raise(Flag::Done);
    }

    /// Both write and read; with `sum`, they add what they read to their own.
    pub fn lines_exchange(&self, bytes: usize, sum: bool) {
        let number = self.next_message();
        self.write_lines(bytes, number);
        self.read_lines(bytes, number, sum);
        self.raise(Flag::Done);
    }

    fn next_message(&self) -> u64 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    fn write_lines(&self, bytes: usize, number: u64) {
        for i in 0..bytes.div_ceil(CONTENTS) {
            // SAFETY: buffers have room for whole lines beyond the message, and begin with a page.
            let words = unsafe { self.send().add(i * CONTENTS).cast::<[u64; WORDS]>().read() };
            write(self.line(self.me, i), words, number);
        }
    }

    fn read_lines(&self, bytes: usize, number: u64, sum: bool) {
        for i in 0..bytes.div_ceil(CONTENTS) {
            let mut words = read(self.line(self.you, i), number);
            if sum {
                // SAFETY: as in `write_lines`.
                let own = unsafe { self.send().add(i * CONTENTS).cast::<[u64; WORDS]>().read() };
                words = std::array::from_fn(|w| add_two(words[w], own[w]));
            }
            // SAFETY: as in `write_lines`.
            unsafe { self.recv().add(i * CONTENTS).cast::<[u64; WORDS]>().write(words) };
        }
    }
}

#[inline(always)]
fn write(line: &Line, words: [u64; WORDS], number: u64) {
    for (place, word) in line.iter().zip(words) {
        place.store(word, Ordering::Relaxed);
    }
    // SYNC(the line's contents are visible to its reader): pairs with the Acquire in `read`.
    line[WORDS].store(number, Ordering::Release);
}

#[inline(always)]
fn read(line: &Line, number: u64) -> [u64; WORDS] {
    // SYNC(the line's contents are visible to its reader): pairs with the Release in `write`.
    wait(|| line[WORDS].load(Ordering::Acquire) == number);
    std::array::from_fn(|w| line[w].load(Ordering::Relaxed))
}

/// Adds the two `f32` that each word holds.
#[inline(always)]
fn add_two(a: u64, b: u64) -> u64 {
    let half = |shift: u32| {
        let sum = f32::from_bits((a >> shift) as u32) + f32::from_bits((b >> shift) as u32);
        u64::from(sum.to_bits()) << shift
    };
    half(0) | half(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sums_in_a_word() {
        let word = |low: f32, high: f32| u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32;
        assert_eq!(add_two(word(1.0, 255.0), word(2.5, 255.0)), word(3.5, 510.0));
    }

    #[test]
    fn a_line_gives_back_what_was_written() {
        let line = Line::default();
        let words = std::array::from_fn(|w| 100 + w as u64);
        write(&line, words, 7);
        assert_eq!(read(&line, 7), words);
    }
}
