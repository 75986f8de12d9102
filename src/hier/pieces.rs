// SPDX-License-Identifier: BSD-3-Clause
//! Parts of blocks: what one segment of an operation has of each.

use crate::endpoint::{Blocks, Result, Span, Stream};
use std::ops::Range;

/// Of each rank's block the bytes `cuts` says.
pub struct Pieces<'b, B> {
    /// The blocks.
    pub blocks: &'b B,
    /// By rank.
    pub cuts: &'b [Range<usize>],
}

impl<B: Blocks> Blocks for Pieces<'_, B> {
    fn len(&self, member: usize) -> usize {
        self.cuts[member].len()
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        let filled = |member: &usize| !self.cuts[*member].is_empty();
        let Some(first) = members.clone().find(filled) else { return Some(Span::empty()) };
        let last = members.rev().find(filled).unwrap_or(first);
        let whole_end = |member: usize| self.cuts[member].end == self.blocks.len(member);
        // In between, a block without bytes is one that has none.
        let inner = (first..last).all(whole_end) && (first + 1..=last).all(|member| self.cuts[member].start == 0);
        if !inner {
            return None;
        }
        let span = self.blocks.direct(first..last + 1)?;
        Some(span.slice(self.cuts[first].start..span.len() - (self.blocks.len(last) - self.cuts[last].end)))
    }

    fn pack(&self, member: usize, at: usize, to: Span) -> Result<()> {
        self.blocks.pack(member, self.cuts[member].start + at, to)
    }

    fn unpack(&self, member: usize, at: usize, from: Span) -> Result<()> {
        self.blocks.unpack(member, self.cuts[member].start + at, from)
    }
}

/// The bytes `cut` of a stream.
pub struct Piece<'b, S> {
    /// The stream.
    pub stream: &'b S,
    /// Which bytes of it.
    pub cut: Range<usize>,
}

impl<S: Stream> Stream for Piece<'_, S> {
    fn len(&self) -> usize {
        self.cut.len()
    }

    fn direct(&self) -> Option<Span> {
        Some(self.stream.direct()?.slice(self.cut.clone()))
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        self.stream.pack(self.cut.start + at, to)
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        self.stream.unpack(self.cut.start + at, from)
    }
}

/// Of each rank what lies within `range` where the blocks of each of `parts` follow each other.
pub fn cuts(parts: &[Vec<usize>], lens: impl Fn(usize) -> usize, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut cuts = vec![0..0; parts.iter().map(Vec::len).sum()];
    for part in parts {
        let mut start = 0;
        for &rank in part {
            let len = lens(rank);
            let within = |at: usize| at.clamp(start, start + len) - start;
            cuts[rank] = within(range.start)..within(range.end);
            start += len;
        }
    }
    cuts
}
