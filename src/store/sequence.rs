// SPDX-License-Identifier: BSD-3-Clause
//! A list of numbers, compact where it is regular: rank → node where ranks are dealt by blocks or
//! round-robin, node → lowest rank, process → module.
//!
//! The first word is the length. Then come parts, each with a head (kind, and how many):
//!
//! | kind | words after the head | stands for |
//! | --- | --- | --- |
//! | cycle | first value and step; block and period | `first + step · (i / block mod period)` |
//! | runs | length and value of each run | as many times the value |
//! | plain | two values a word | themselves |
//!
//! An irregular list takes 4 bytes a number, or 8 a run if that is less.

use super::Error;
use super::image::Words;

/// The longest list that is read: what a wrong length may cost.
pub const MOST: usize = 1 << 24;

const CYCLE: u64 = 0;
const RUNS: u64 = 1;
const PLAIN: u64 = 2;

/// Runs that a cycle has at least: it takes three words.
const LEAST: usize = 4;

/// The list as words; at most [`MOST`] numbers.
pub fn encode(values: &[u32]) -> Vec<u64> {
    let runs: Vec<(u32, u32)> = values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect();
    let mut words = vec![values.len() as u64];
    let (mut at, mut pending) = (0, 0);
    while at < runs.len() {
        let cycle = Cycle::at(&runs[at..]);
        if cycle.runs < LEAST {
            at += 1;
            continue;
        }
        irregular(&runs[pending..at], &mut words);
        words.push(CYCLE | u64::from(cycle.values) << 2);
        words.push(pair(cycle.first, cycle.step));
        words.push(pair(cycle.block, cycle.period));
        at += cycle.runs;
        pending = at;
    }
    irregular(&runs[pending..], &mut words);
    words
}

fn pair(upper: u32, lower: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(lower)
}

fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// Runs as they are, or their values one by one.
fn irregular(runs: &[(u32, u32)], words: &mut Vec<u64>) {
    let count: usize = runs.iter().map(|run| run.1 as usize).sum();
    if runs.is_empty() {
    } else if runs.len() < count.div_ceil(2) {
        words.push(RUNS | (runs.len() as u64) << 2);
        words.extend(runs.iter().map(|&(value, len)| pair(len, value)));
    } else {
        words.push(PLAIN | (count as u64) << 2);
        let values: Vec<u32> = runs.iter().flat_map(|&(value, len)| (0..len).map(move |_| value)).collect();
        words.extend(values.chunks(2).map(|two| pair(two.get(1).copied().unwrap_or(0), two[0])));
    }
}

/// The longest cycle at the beginning of runs.
struct Cycle {
    first: u32,
    step: u32,
    block: u32,
    period: u32,
    runs: usize,
    values: u32,
}

impl Cycle {
    fn at(runs: &[(u32, u32)]) -> Cycle {
        let (first, block) = runs[0];
        let step = runs.get(1).map_or(0, |run| run.0.wrapping_sub(first));
        let (mut period, mut count, mut values) = (u32::MAX, 0_usize, 0);
        for &(value, len) in runs {
            if period == u32::MAX && count > 1 && value == first {
                period = count as u32;
            }
            let expected = first.wrapping_add(step.wrapping_mul(count as u32 % period));
            if value != expected || len > block {
                break;
            }
            count += 1;
            values += len;
            if len < block {
                break; // the last block may be cut off
            }
        }
        Cycle { first, step, block, period, runs: count, values }
    }
}

/// A list that was encoded.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    parts: Words<'a>,
    len: usize,
}

impl<'a> Sequence<'a> {
    /// What begins with the first of these words.
    pub fn new(words: Words<'a>) -> Result<Sequence<'a>, Error> {
        let len = usize::try_from(words.at(0)?).ok().filter(|len| *len <= MOST).ok_or(Error::Corrupt)?;
        Ok(Sequence { parts: words.from(1)?, len })
    }

    /// How many numbers.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// All numbers.
    pub fn to_vec(self) -> Result<Vec<u32>, Error> {
        let mut values = Vec::with_capacity(self.len);
        let mut at = 0;
        while values.len() < self.len {
            let (part, next) = self.part(at, self.len - values.len())?;
            part.append(self.parts, &mut values)?;
            at = next;
        }
        Ok(values)
    }

    /// The number at a place: in the time of a few reads for each part, and for each run before it.
    pub fn at(self, mut place: usize) -> Result<u32, Error> {
        if place >= self.len {
            return Err(Error::Corrupt);
        }
        let (mut at, mut left) = (0, self.len);
        loop {
            let (part, next) = self.part(at, left)?;
            if place < part.values {
                return part.value(self.parts, place);
            }
            place -= part.values;
            left -= part.values;
            at = next;
        }
    }

    /// The part at a word, which has at most `left` values; and where the next one is.
    fn part(self, at: usize, left: usize) -> Result<(Part, usize), Error> {
        let head = self.parts.at(at)?;
        let count = usize::try_from(head >> 2).map_err(|_| Error::Corrupt)?;
        if count == 0 || count > left {
            return Err(Error::Corrupt);
        }
        let (kind, words, values) = match head & 3 {
            CYCLE => {
                let (first, step) = halves(self.parts.at(at + 1)?);
                let (block, period) = halves(self.parts.at(at + 2)?);
                if block == 0 || period == 0 {
                    return Err(Error::Corrupt);
                }
                (Kind::Cycle { first, step, block, period }, 2, count)
            }
            RUNS => {
                let mut values = 0_usize;
                for run in 0..count {
                    values += halves(self.parts.at(at + 1 + run)?).0 as usize;
                    if values > left {
                        return Err(Error::Corrupt);
                    }
                }
                (Kind::Runs(count), count, values)
            }
            PLAIN => (Kind::Plain, count.div_ceil(2), count),
            _ => return Err(Error::Corrupt),
        };
        if values == 0 {
            return Err(Error::Corrupt);
        }
        Ok((Part { kind, at: at + 1, values }, at + 1 + words))
    }
}

enum Kind {
    Cycle { first: u32, step: u32, block: u32, period: u32 },
    Runs(usize),
    Plain,
}

/// A part: its kind, the word after its head, how many values it has.
struct Part {
    kind: Kind,
    at: usize,
    values: usize,
}

impl Part {
    fn value(&self, words: Words<'_>, place: usize) -> Result<u32, Error> {
        match self.kind {
            Kind::Cycle { first, step, block, period } => {
                Ok(first.wrapping_add(step.wrapping_mul((place as u32 / block) % period)))
            }
            Kind::Runs(count) => {
                let mut before = 0;
                for run in 0..count {
                    let (len, value) = halves(words.at(self.at + run)?);
                    before += len as usize;
                    if place < before {
                        return Ok(value);
                    }
                }
                Err(Error::Corrupt)
            }
            Kind::Plain => {
                let (odd, even) = halves(words.at(self.at + place / 2)?);
                Ok(if place % 2 == 1 { odd } else { even })
            }
        }
    }

    fn append(&self, words: Words<'_>, values: &mut Vec<u32>) -> Result<(), Error> {
        match self.kind {
            Kind::Cycle { first, step, block, period } => {
                let (mut left, mut number) = (self.values, 0);
                while left > 0 {
                    let len = left.min(block as usize);
                    let value = first.wrapping_add(step.wrapping_mul(number));
                    values.resize(values.len() + len, value);
                    left -= len;
                    number = if number + 1 == period { 0 } else { number + 1 };
                }
            }
            Kind::Runs(count) => {
                for run in 0..count {
                    let (len, value) = halves(words.at(self.at + run)?);
                    values.resize(values.len() + len as usize, value);
                }
            }
            Kind::Plain => {
                for place in 0..self.values {
                    values.push(self.value(words, place)?);
                }
            }
        }
        Ok(())
    }
}
