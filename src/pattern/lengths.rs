// SPDX-License-Identifier: BSD-3-Clause
//! The lengths of one block per member, and where each begins when they lie one after another.

use std::ops::Range;

/// Lengths of the blocks of members 0..count, in units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// All blocks have one length.
    Equal {
        /// That length.
        len: usize,
        /// Number of members.
        count: usize,
    },
    /// The starts of the blocks, and the end of the last one.
    Starts(Box<[usize]>),
}

impl Lengths {
    /// `count` blocks of `len` units.
    pub fn equal(len: usize, count: usize) -> Lengths {
        Lengths::Equal { len, count }
    }

    /// Blocks of these lengths.
    pub fn each(lengths: impl IntoIterator<Item = usize>) -> Lengths {
        let mut end = 0;
        let starts = lengths.into_iter().map(|len| {
            // Some are told by other ranks: what cannot be is no memory, not too little.
            end = usize::saturating_add(end, len);
            end
        });
        Lengths::Starts(std::iter::once(0).chain(starts).collect())
    }

    /// Number of blocks.
    pub fn count(&self) -> usize {
        match self {
            Lengths::Equal { count, .. } => *count,
            Lengths::Starts(starts) => starts.len() - 1,
        }
    }

    /// Units before block `index`, which may be one past the last.
    pub fn start(&self, index: usize) -> usize {
        match self {
            Lengths::Equal { len, .. } => index * len,
            Lengths::Starts(starts) => starts[index],
        }
    }

    /// Length of block `index`.
    pub fn len(&self, index: usize) -> usize {
        self.get(index).len()
    }

    /// True without units.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Units of block `index`.
    pub fn get(&self, index: usize) -> Range<usize> {
        self.span(index..index + 1)
    }

    /// Units of these blocks.
    pub fn span(&self, blocks: Range<usize>) -> Range<usize> {
        self.start(blocks.start)..self.start(blocks.end)
    }

    /// Units of all blocks.
    pub fn total(&self) -> usize {
        self.start(self.count())
    }

    /// Units of `count` blocks from `first` on, in a circle.
    pub fn circle(&self, first: usize, count: usize) -> usize {
        match (first + count).checked_sub(self.count()) {
            Some(wrapped) => self.total() - self.start(first) + self.start(wrapped),
            None => self.span(first..first + count).len(),
        }
    }

    /// Length of the longest block.
    pub fn largest(&self) -> usize {
        (0..self.count()).map(|index| self.len(index)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_one_after_another() {
        for lens in [&[3, 0, 5, 0, 0, 2, 1][..], &[4, 4, 4], &[0], &[]] {
            let lengths = Lengths::each(lens.iter().copied());
            assert_eq!((lengths.count(), lengths.total()), (lens.len(), lens.iter().sum()));
            assert_eq!(lengths.largest(), lens.iter().copied().max().unwrap_or(0));
            assert_eq!(lengths.is_empty(), lens.iter().all(|&len| len == 0));
            let mut at = 0;
            for (i, &len) in lens.iter().enumerate() {
                assert_eq!((lengths.len(i), lengths.get(i)), (len, at..at + len));
                at += len;
                for count in 0..=lens.len() {
                    let sum: usize = (0..count).map(|j| lens[(i + j) % lens.len()]).sum();
                    assert_eq!(lengths.circle(i, count), sum, "{lens:?}: {count} from {i}");
                }
            }
        }
    }

    #[test]
    fn equal_lengths_are_a_special_case() {
        let (equal, each) = (Lengths::equal(7, 5), Lengths::each([7; 5]));
        assert_eq!((equal.count(), equal.total(), equal.largest()), (each.count(), each.total(), each.largest()));
        for i in 0..5 {
            assert_eq!(equal.get(i), each.get(i));
            (0..=5).for_each(|count| assert_eq!(equal.circle(i, count), each.circle(i, count)));
        }
    }
}
