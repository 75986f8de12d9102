// SPDX-License-Identifier: BSD-3-Clause
//! Ways to look at blocks: one or several of them as a stream, groups of them as blocks.

use super::{read, write};
use crate::endpoint::{Blocks, Endpoint, Result, Span, Stream};
use crate::pattern::lengths::Lengths;
use std::ops::Range;

/// One block as a stream.
pub struct Block<'b, B> {
    /// The blocks.
    pub blocks: &'b B,
    /// Whose block.
    pub member: usize,
}

impl<B: Blocks> Stream for Block<'_, B> {
    fn len(&self) -> usize {
        self.blocks.len(self.member)
    }

    fn direct(&self) -> Option<Span> {
        self.blocks.direct(self.member..self.member + 1)
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        self.blocks.pack(self.member, at, to)
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        self.blocks.unpack(self.member, at, from)
    }
}

/// A sequence of members.
#[derive(Clone, Copy, Debug)]
pub enum Members<'m> {
    /// `count` members from `first` on, in a circle of `size`.
    Circle {
        /// The first one.
        first: usize,
        /// How many.
        count: usize,
        /// How many there are in the circle.
        size: usize,
    },
    /// `count` members from `first` on, each `step` after the one before.
    Every {
        /// The first one.
        first: usize,
        /// From one to the next.
        step: usize,
        /// How many.
        count: usize,
    },
    /// These.
    List(&'m [usize]),
}

impl Members<'_> {
    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let (first, step, count, size, list) = match *self {
            Members::Circle { first, count, size } => (first, 1, count, size, None),
            Members::Every { first, step, count } => (first, step, count, usize::MAX, None),
            Members::List(list) => (0, 1, list.len(), 1, Some(list)),
        };
        (0..count).map(move |i| list.map_or_else(|| (first + i * step) % size, |list| list[i]))
    }

    /// The same as a range, if every member is the one after the member before.
    fn range(&self) -> Option<Range<usize>> {
        match *self {
            Members::Circle { first, count, size } => (first + count <= size).then_some(first..first + count),
            Members::Every { first, step, count } => (step == 1 || count < 2).then_some(first..first + count),
            Members::List(list) => {
                let first = list.first().copied().unwrap_or(0);
                list.iter().zip(first..).all(|(&m, expected)| m == expected).then_some(first..first + list.len())
            }
        }
    }
}

/// Several blocks, one after the other, as a stream.
pub struct Several<'b, E, B> {
    /// Copies between blocks that are direct and buffers.
    pub ep: &'b E,
    /// The blocks.
    pub blocks: &'b B,
    /// Whose blocks, in which order.
    pub members: Members<'b>,
}

impl<E: Endpoint, B: Blocks> Several<'_, E, B> {
    /// Calls `each` for the parts that bytes `at..at + len` lie in: the block, where in it, which of the
    /// bytes.
    fn parts(
        &self,
        at: usize,
        len: usize,
        mut each: impl FnMut(Block<'_, B>, usize, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let (mut start, end) = (0, at + len);
        for member in self.members.iter() {
            let next = start + self.blocks.len(member);
            let (low, high) = (start.max(at), next.min(end));
            if low < high {
                each(Block { blocks: self.blocks, member }, low - start, low - at..high - at)?;
            }
            start = next;
        }
        Ok(())
    }
}

impl<E: Endpoint, B: Blocks> Stream for Several<'_, E, B> {
    fn len(&self) -> usize {
        self.members.iter().map(|member| self.blocks.len(member)).sum()
    }

    fn direct(&self) -> Option<Span> {
        self.blocks.direct(self.members.range()?)
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        self.parts(at, to.len(), |block, offset, bytes| read(self.ep, &block, offset, to.slice(bytes)))
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        self.parts(at, from.len(), |block, offset, bytes| write(self.ep, &block, offset, from.slice(bytes)))
    }
}

/// A block per group of members: that of group i is made of the blocks of `groups[i]`.
pub struct Grouped<'b, E, B, G = Vec<usize>> {
    /// Copies between blocks that are direct and buffers.
    pub ep: &'b E,
    /// The blocks of the members.
    pub blocks: &'b B,
    /// The members of every group.
    pub groups: &'b [G],
}

impl<E: Endpoint, B: Blocks, G: AsRef<[usize]>> Grouped<'_, E, B, G> {
    fn group(&self, group: usize) -> Several<'_, E, B> {
        Several { ep: self.ep, blocks: self.blocks, members: Members::List(self.groups[group].as_ref()) }
    }
}

impl<E: Endpoint, B: Blocks, G: AsRef<[usize]> + Sync> Blocks for Grouped<'_, E, B, G> {
    fn len(&self, group: usize) -> usize {
        self.group(group).len()
    }

    fn direct(&self, groups: Range<usize>) -> Option<Span> {
        let mut whole: Option<Range<usize>> = None;
        for group in self.groups[groups].iter().map(AsRef::as_ref).filter(|group| !group.is_empty()) {
            let range = Members::List(group).range()?;
            whole = match whole {
                None => Some(range),
                Some(before) if before.end == range.start => Some(before.start..range.end),
                Some(_) => return None,
            };
        }
        whole.map_or(Some(Span::empty()), |range| self.blocks.direct(range))
    }

    fn pack(&self, group: usize, at: usize, to: Span) -> Result<()> {
        self.group(group).pack(at, to)
    }

    fn unpack(&self, group: usize, at: usize, from: Span) -> Result<()> {
        self.group(group).unpack(at, from)
    }
}

/// Blocks that lie one after the other in one run of units, of any kind.
pub struct Packed<'b, E> {
    /// Copies.
    pub ep: &'b E,
    /// All blocks.
    pub span: Span,
    /// Their lengths.
    pub lengths: &'b Lengths,
}

impl<E: Endpoint> Packed<'_, E> {
    fn part(&self, member: usize, at: usize, len: usize) -> Span {
        let start = self.lengths.start(member) + at;
        self.span.slice(start..start + len)
    }
}

impl<E: Endpoint> Blocks for Packed<'_, E> {
    fn len(&self, member: usize) -> usize {
        self.lengths.len(member)
    }

    fn direct(&self, members: Range<usize>) -> Option<Span> {
        Some(self.span.slice(self.lengths.span(members)))
    }

    fn pack(&self, member: usize, at: usize, to: Span) -> Result<()> {
        self.ep.copy(self.part(member, at, to.len()), to);
        Ok(())
    }

    fn unpack(&self, member: usize, at: usize, from: Span) -> Result<()> {
        self.ep.copy(from, self.part(member, at, from.len()));
        Ok(())
    }
}

/// One run of units, of any kind, as a stream.
pub struct Plain<'b, E> {
    /// Copies.
    pub ep: &'b E,
    /// The units.
    pub span: Span,
}

impl<E: Endpoint> Stream for Plain<'_, E> {
    fn len(&self) -> usize {
        self.span.len()
    }

    fn direct(&self) -> Option<Span> {
        Some(self.span)
    }

    fn pack(&self, at: usize, to: Span) -> Result<()> {
        self.ep.copy(self.span.slice(at..at + to.len()), to);
        Ok(())
    }

    fn unpack(&self, at: usize, from: Span) -> Result<()> {
        self.ep.copy(from, self.span.slice(at..at + from.len()));
        Ok(())
    }
}
