// SPDX-License-Identifier: BSD-3-Clause
//! Cutting a run of units into nearly equal chunks.

use std::ops::Range;

/// Cuts `total` units into `count` chunks; the first `total % count` have one unit more.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    total: usize,
    count: usize,
}

impl Chunks {
    /// `count` is at least 1.
    pub fn new(total: usize, count: usize) -> Chunks {
        Chunks { total, count: count.max(1) }
    }

    fn start(&self, index: usize) -> usize {
        let (each, more) = (self.total / self.count, self.total % self.count);
        index * each + index.min(more)
    }

    /// Units of chunk `index`.
    pub fn get(&self, index: usize) -> Range<usize> {
        self.start(index)..self.start(index + 1)
    }

    /// Units of chunks `from..to`.
    pub fn span(&self, from: usize, to: usize) -> Range<usize> {
        self.start(from)..self.start(to)
    }

    /// Units of the largest chunk.
    pub fn largest(&self) -> usize {
        self.total.div_ceil(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_tile_the_whole_and_differ_by_one() {
        for total in 0..=130 {
            for count in 1..=64 {
                let chunks = Chunks::new(total, count);
                let mut next = 0;
                for i in 0..count {
                    let r = chunks.get(i);
                    assert_eq!(r.start, next);
                    assert!(r.len() <= chunks.largest() && r.len() + 1 >= chunks.largest());
                    next = r.end;
                    assert_eq!(chunks.span(i, count), r.start..total);
                }
                assert_eq!(next, total);
            }
        }
    }
}
