// SPDX-License-Identifier: BSD-3-Clause
//! Short operations of one member with all others: Bcast, Gather, Scatter; and Barrier.

use super::Short;
use crate::endpoint::{Blocks, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::op::block::{Block, all_lengths, longest, transfer};
use crate::shm::op::unequal::{Of, Taken, take_block, take_data};
use crate::shm::op::{bcast, gather, is_short, is_short_gathered, scatter, told};
use crate::shm::policy::Operation;
use crate::shm::protocol::turn::{Current, Turn};
use std::iter;

/// Barrier: everybody publishes nothing, and waits for everybody: a cache line from each of the others, all
/// on their way at the same time.
pub struct Barrier;

impl Short for Barrier {
    #[inline(always)]
    fn fits(&self, _: &Turn<'_>) -> bool {
        true
    }

    #[inline(always)]
    fn room(&self, _: &Turn<'_>) -> Option<usize> {
        Some(0)
    }

    #[inline(always)]
    fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
        turn.around()
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        Some((0, turn.payload(source)))
    }
}

/// Bcast: the root writes, all others read that.
pub struct Bcast<S> {
    /// Who writes.
    pub root: Member,
    /// The root's, or where they go.
    pub data: S,
    /// From how many bytes on readers may read the root's memory.
    pub zero_copy: usize,
    /// The root may help them.
    pub divide: bool,
}

impl<S: Stream> Short for Bcast<S> {
    const WRITES_OR_READS: bool = true;
    const SAYS: bool = true;
    const COMPARES: bool = true;

    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        is_short(turn, Operation::Bcast, self.data.len(), self.zero_copy)
    }

    #[inline(always)]
    fn room(&self, turn: &Turn<'_>) -> Option<usize> {
        if turn.me() == self.root { Some(self.data.len()) } else { None }
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let len = self.data.len();
        // SAFETY: free, and they fit.
        unsafe { copy::pack(&self.data, 0, len, turn.room(self.root, len)) }
    }

    #[inline(always)]
    fn sources(&self, _: &Turn<'_>) -> impl Iterator<Item = Member> {
        iter::once(self.root)
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, root: Member) -> Option<(usize, *const u8)> {
        let len = self.data.len();
        Some((len, turn.room(root, len)))
    }

    #[inline(always)]
    unsafe fn read(&self, turn: &Turn<'_>, root: Member) -> Result<()> {
        let len = self.data.len();
        // SAFETY: published, and they fit.
        unsafe { copy::unpack(&self.data, 0, len, turn.room(root, len), false) }
    }

    fn take_other<'a>(&'a self, turn: Current<'a>, root: Member) -> Taken<'a> {
        take_data(turn, root, &self.data)
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        bcast::long(turn, self.root, &self.data, self.zero_copy, self.divide).await
    }
}

/// Gather at a member that is not the root: it writes its block.
pub struct Give<S> {
    /// Who reads.
    pub root: Member,
    /// The caller's block.
    pub own: S,
    /// From how many bytes on the root may read it where it lies.
    pub zero_copy: usize,
}

impl<S: Stream> Short for Give<S> {
    const WRITES_OR_READS: bool = true;
    const SAYS: bool = true;

    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        is_short_gathered(turn, Operation::Gather, self.own.len(), self.zero_copy)
    }

    #[inline(always)]
    fn room(&self, _: &Turn<'_>) -> Option<usize> {
        Some(self.own.len()).filter(|&len| len > 0)
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let len = self.own.len();
        // SAFETY: free, and they fit.
        unsafe { copy::pack(&self.own, 0, len, turn.room(turn.me(), len)) }
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        gather::send_long(turn.narrowed().halved(), self.root, &self.own, self.zero_copy).await
    }
}

/// Gather at the root: it reads all blocks.
pub struct Collect<S, B> {
    /// Its own data, if they are not in its block.
    pub own: Option<S>,
    /// Every member's block.
    pub all: B,
    /// From how many bytes on it may read a block where it lies.
    pub zero_copy: usize,
}

impl<S: Stream, B: Blocks> Short for Collect<S, B> {
    const COMPARES: bool = true;

    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        let is_short = |len| is_short_gathered(turn, Operation::Gather, len, self.zero_copy);
        turn.is_still() || all_lengths(&self.all, turn.others(), is_short)
    }

    #[inline(always)]
    fn keep(&self, me: Member) -> Result<()> {
        self.own.as_ref().map_or(Ok(()), |own| transfer(own, &Block::new(&self.all, me)))
    }

    #[inline(always)]
    fn sources(&self, turn: &Turn<'_>) -> impl Iterator<Item = Member> {
        turn.others()
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        let len = self.all.len(source);
        if len > 0 { Some((len, turn.room(source, len))) } else { None }
    }

    #[inline(always)]
    unsafe fn read(&self, turn: &Turn<'_>, source: Member) -> Result<()> {
        let len = self.all.len(source);
        // SAFETY: published, and it holds so much.
        unsafe { copy::unpack(&Block::new(&self.all, source), 0, len, turn.room(source, len), false) }
    }

    fn take_other<'a>(&'a self, turn: Current<'a>, source: Member) -> Taken<'a> {
        take_block(turn, source, &self.all, Of::Gather)
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        let own = self.own.as_ref().map(|own| own as &dyn Stream);
        gather::receive_long(turn.narrowed().halved(), own, &self.all, self.zero_copy).await
    }
}

/// Scatter at the root: it writes each member's block to that one's share of the room.
pub struct Deal<S, B> {
    /// Every member's block.
    pub all: B,
    /// Where its own goes, if it does not stay there.
    pub own: Option<S>,
    /// From how many bytes on members may read their blocks where they lie.
    pub zero_copy: usize,
}

impl<S: Stream, B: Blocks> Short for Deal<S, B> {
    const WRITES_OR_READS: bool = true;
    const DEALS: bool = true;

    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        scatter::rooms(turn, turn.me(), self.zero_copy).hold_all(&self.all, turn.others())
    }

    #[inline(always)]
    fn room(&self, turn: &Turn<'_>) -> Option<usize> {
        let longest = longest(&self.all, turn.others());
        let rooms = scatter::rooms(turn, turn.me(), self.zero_copy);
        if longest > 0 { Some(rooms.want(turn.team(), longest)) } else { None }
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let rooms = scatter::rooms(turn, turn.me(), self.zero_copy);
        for member in turn.others() {
            let (block, len) = (Block::new(&self.all, member), self.all.len(member));
            // SAFETY: free, and a share holds so much.
            unsafe { copy::pack(&block, 0, len, rooms.at(turn, member, len)) }?;
        }
        Ok(())
    }

    #[inline(always)]
    fn word(&self, turn: &Turn<'_>) -> u8 {
        told::word_of(turn, &self.all, turn.others(), |_| true)
    }

    #[inline(always)]
    fn note(&self, turn: &Turn<'_>) {
        told::note(turn, &self.all, turn.others(), |_| true);
    }

    #[inline(always)]
    fn keep(&self, me: Member) -> Result<()> {
        self.own.as_ref().map_or(Ok(()), |own| transfer(&Block::new(&self.all, me), own))
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        scatter::send_long(turn, &self.all, self.own.as_ref().map(|own| own as &dyn Stream), self.zero_copy).await
    }
}

/// Scatter at a member that is not the root: it reads its block.
pub struct Take<S> {
    /// Who writes.
    pub root: Member,
    /// Where the caller's block goes.
    pub own: S,
    /// From how many bytes on it may read it where it lies.
    pub zero_copy: usize,
}

impl<S: Stream> Short for Take<S> {
    const COMPARES: bool = true;

    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        scatter::rooms(turn, self.root, self.zero_copy).hold(self.own.len())
    }

    #[inline(always)]
    fn sources(&self, _: &Turn<'_>) -> impl Iterator<Item = Member> {
        iter::once(self.root)
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, root: Member) -> Option<(usize, *const u8)> {
        let len = self.own.len();
        let rooms = scatter::rooms(turn, root, self.zero_copy);
        if len > 0 { Some((len, rooms.at(turn, turn.me(), len))) } else { None }
    }

    #[inline(always)]
    unsafe fn read(&self, turn: &Turn<'_>, root: Member) -> Result<()> {
        let len = self.own.len();
        let from = scatter::rooms(turn, root, self.zero_copy).at(turn, turn.me(), len);
        // SAFETY: published, and a share holds so much.
        unsafe { copy::unpack(&self.own, 0, len, from, false) }
    }

    #[inline(always)]
    fn differs(&self, turn: &Turn<'_>, root: Member, len: usize) -> bool {
        told::differs(turn, root, len, true)
    }

    fn take_other<'a>(&'a self, turn: Current<'a>, root: Member) -> Taken<'a> {
        told::taken(turn, root, &self.own)
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        scatter::receive_long(turn, self.root, &self.own, self.zero_copy).await
    }
}
