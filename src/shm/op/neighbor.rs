// SPDX-License-Identifier: BSD-3-Clause
//! Neighbourhood exchange: Alltoall, or Allgather, in which a member only has to do with some others.
//!
//! All blocks from one member to another travel one after the other, in the order in which they are matched,
//! as one block of [`alltoall`]. Where a member has the same for all, it is written once, as
//! in [`allgather`](super::allgather); of several edges between the same two members the first one gets it,
//! and the others a copy.
//!
//! A member without anything to receive waits for nobody, unless its memory is full of what others have not
//! read yet, or is read by them.

use super::alltoall;
use super::block::{Block, transfer};
use super::peers::Peers;
use super::short;
use super::short::exchange::{Allgather, Alltoall};
use crate::endpoint::{Blocks, Result, Span, Stream};
use crate::pattern::neighborhood::{Edge, Neighbors};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::protocol::turn::Turn;
use std::ops::Range;

/// The edges of a member with the others of its team, and with itself.
#[derive(Clone, Debug)]
pub struct Edges {
    out: Ends,
    into: Ends,
}

impl Edges {
    /// Those of member `me` of a team of `size`; the edges' ends are members of it.
    pub fn new(me: Member, size: usize, neighbors: &Neighbors) -> Edges {
        let (from, to): (Vec<_>, Vec<_>) = neighbors.own.iter().copied().unzip();
        Edges {
            out: Ends::new(me, size, &neighbors.destinations, from),
            into: Ends::new(me, size, &neighbors.sources, to),
        }
    }
}

/// One end of the edges of a member.
#[derive(Clone, Debug)]
struct Ends {
    /// The others, in the order in which the member turns to them.
    members: Vec<Member>,
    /// Slots of the buffer, by member, of each in the order in which they are matched; and where those of a
    /// member begin.
    slots: Vec<usize>,
    starts: Vec<usize>,
}

impl Ends {
    fn new(me: Member, size: usize, edges: &[Edge], own: Vec<usize>) -> Ends {
        let mut all: Vec<(Member, usize)> = edges.iter().map(|edge| (edge.peer, edge.slot)).collect();
        all.extend(own.into_iter().map(|slot| (me, slot)));
        // Stable: edges between the same two members stay in their order.
        all.sort_by_key(|&(member, _)| member);
        let starts = (0..=size).map(|member| all.partition_point(|&(other, _)| other < member)).collect();
        let mut members: Vec<Member> = all.iter().map(|&(member, _)| member).filter(|&member| member != me).collect();
        members.dedup();
        let after = members.partition_point(|&member| member < me);
        members.rotate_left(after);
        Ends { members, slots: all.into_iter().map(|(_, slot)| slot).collect(), starts }
    }

    #[inline(always)]
    fn of(&self, member: Member) -> &[usize] {
        &self.slots[self.starts[member]..self.starts[member + 1]]
    }
}

impl Peers for &Edges {
    #[inline(always)]
    fn to(self) -> impl Iterator<Item = Member> + Clone {
        self.out.members.iter().copied()
    }

    #[inline(always)]
    fn from(self) -> impl Iterator<Item = Member> + Clone {
        self.into.members.iter().copied()
    }

    fn is_one_block(self, from: Member) -> bool {
        self.into.of(from).len() == 1
    }
}

/// The blocks of a member, one after the other.
pub struct Joined<'b, B: ?Sized> {
    blocks: &'b B,
    ends: &'b Ends,
}

impl<B: Blocks + ?Sized> Joined<'_, B> {
    /// Calls `each` with the parts of bytes `at..at + span.len()` that lie in one block: its slot, where in
    /// the block the part begins, and the part of the span.
    fn parts(
        &self,
        member: Member,
        at: usize,
        span: Span,
        mut each: impl FnMut(usize, usize, Span) -> Result<()>,
    ) -> Result<()> {
        let (mut start, end) = (0, at + span.len());
        for &slot in self.ends.of(member) {
            let next = start + self.blocks.len(slot);
            let (first, last) = (at.max(start), end.min(next));
            if first < last {
                each(slot, first - start, span.slice(first - at..last - at))?;
            }
            start = next;
        }
        Ok(())
    }
}

impl<B: Blocks + ?Sized> Blocks for Joined<'_, B> {
    #[inline(always)]
    fn len(&self, member: Member) -> usize {
        self.ends.of(member).iter().map(|&slot| self.blocks.len(slot)).sum()
    }

    /// Of one member: more are not asked for in shared memory.
    #[inline(always)]
    fn direct(&self, members: Range<Member>) -> Option<Span> {
        match self.ends.of(members.start) {
            [] => Some(Span::empty()),
            &[slot] => self.blocks.direct(slot..slot + 1),
            slots => {
                let next_to_it = slots.windows(2).all(|pair| pair[0] + 1 == pair[1]);
                next_to_it.then(|| self.blocks.direct(slots[0]..slots[0] + slots.len())).flatten()
            }
        }
    }

    fn pack(&self, member: Member, at: usize, to: Span) -> Result<()> {
        self.parts(member, at, to, |slot, at, to| {
            // SAFETY: `to` is valid memory of the caller's own.
            unsafe { copy::pack(&Block::new(self.blocks, slot), at, to.len(), to.ptr()) }
        })
    }

    fn unpack(&self, member: Member, at: usize, from: Span) -> Result<()> {
        self.parts(member, at, from, |slot, at, from| {
            // SAFETY: `from` is valid memory, which nobody writes meanwhile.
            unsafe { copy::unpack(&Block::new(self.blocks, slot), at, from.len(), from.ptr(), false) }
        })
    }
}

/// The caller's data as its own block, and the first block from each of the others.
pub struct Firsts<'b, S: ?Sized, B: ?Sized> {
    me: Member,
    own: &'b S,
    edges: &'b Edges,
    blocks: &'b B,
}

impl<S: Stream + ?Sized, B: Blocks + ?Sized> Blocks for Firsts<'_, S, B> {
    #[inline(always)]
    fn len(&self, member: Member) -> usize {
        match (member == self.me, self.edges.into.of(member)) {
            // Nobody reads it where there is nobody to send to.
            (true, _) => {
                if self.edges.out.members.is_empty() {
                    0
                } else {
                    self.own.len()
                }
            }
            (false, []) => 0,
            (false, slots) => self.blocks.len(slots[0]),
        }
    }

    #[inline(always)]
    fn direct(&self, members: Range<Member>) -> Option<Span> {
        match (members.start == self.me, self.edges.into.of(members.start)) {
            (true, _) => self.own.direct(),
            (false, []) => Some(Span::empty()),
            (false, slots) => self.blocks.direct(slots[0]..slots[0] + 1),
        }
    }

    fn pack(&self, _: Member, at: usize, to: Span) -> Result<()> {
        self.own.pack(at, to)
    }

    fn unpack(&self, member: Member, at: usize, from: Span) -> Result<()> {
        let slots = self.edges.into.of(member);
        slots.first().map_or(Ok(()), |&slot| self.blocks.unpack(slot, at, from))
    }
}

/// Sends the blocks of `out` along the edges, and receives those of `into`. From `zero_copy` bytes between
/// two members on, others may read directly.
pub async fn exchange<O: Blocks, I: Blocks>(
    turn: Turn<'_>,
    edges: &Edges,
    out: &O,
    into: &I,
    zero_copy: usize,
) -> Result<()> {
    short::run(turn, exchanging(edges, out, into, zero_copy)).await
}

/// Sends `own` along all edges, and receives the blocks of `into`. From `zero_copy` bytes on, others may read
/// directly.
pub async fn spread<S: Stream, I: Blocks>(
    turn: Turn<'_>,
    edges: &Edges,
    own: &S,
    into: &I,
    zero_copy: usize,
) -> Result<()> {
    let me = turn.me();
    short::run(turn, spreading(me, edges, own, into, zero_copy)).await?;
    fill(me, edges, own, into)
}

/// The exchange of the blocks of `out` along the edges for those of `into`. From `zero_copy` bytes between
/// two members on, others may read directly.
#[inline(always)]
pub fn exchanging<'e, O: Blocks, I: Blocks>(
    edges: &'e Edges,
    out: &'e O,
    into: &'e I,
    zero_copy: usize,
) -> Alltoall<Joined<'e, O>, Joined<'e, I>, &'e Edges> {
    let (out, into) = (Joined { blocks: out, ends: &edges.out }, Joined { blocks: into, ends: &edges.into });
    alltoall::among(edges, Some(out), into, zero_copy.into())
}

/// Sending `own` along all edges, and receiving the first block of `into` from each of the others; the
/// [rest](fill) is for the caller. From `zero_copy` bytes on, others may read directly.
#[inline(always)]
pub fn spreading<'e, S: Stream, I: Blocks>(
    me: Member,
    edges: &'e Edges,
    own: &'e S,
    into: &'e I,
    zero_copy: usize,
) -> Allgather<&'e S, Firsts<'e, S, I>, &'e Edges> {
    let first = Firsts { me, own, edges, blocks: into };
    Allgather { own: None::<&S>, all: first, peers: edges, zero_copy }
}

/// After [`spreading`]: fills the other blocks of `into` from the same members, and those of the caller
/// itself.
pub fn fill(me: Member, edges: &Edges, own: &impl Stream, into: &impl Blocks) -> Result<()> {
    for &slot in edges.into.of(me) {
        transfer(own, &Block::new(into, slot))?;
    }
    for &member in &edges.into.members {
        if let [first, others @ ..] = edges.into.of(member) {
            others.iter().try_for_each(|&slot| transfer(&Block::new(into, *first), &Block::new(into, slot)))?;
        }
    }
    Ok(())
}
