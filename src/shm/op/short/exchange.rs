// SPDX-License-Identifier: BSD-3-Clause
//! Short exchanges of all members' blocks: Allgather and Alltoall, also among neighbours.

use super::Short;
use crate::endpoint::{Blocks, Error, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::memory::layout::UNSAID;
use crate::shm::op::alltoall::places;
use crate::shm::op::block::{Block, all_lengths, longest, transfer};
use crate::shm::op::peers::Peers;
use crate::shm::op::unequal::{self, Of, Taken, take_block};
use crate::shm::op::{allgather, alltoall, is_short_gathered, told};
use crate::shm::policy::Operation;
use crate::shm::protocol::turn::{Current, Turn};
use crate::shm::thresholds::Reads;

/// Allgather: everybody writes its block, and reads the others'.
pub struct Allgather<S, B, P> {
    /// The caller's data, if they are not in its block.
    pub own: Option<S>,
    /// Every member's block.
    pub all: B,
    /// Whom the caller exchanges blocks with.
    pub peers: P,
    /// From how many bytes on others may read a block where it lies.
    pub zero_copy: usize,
}

impl<S: Stream, B: Blocks, P: Peers> Allgather<S, B, P> {
    /// The others get what is to be in the caller's block.
    #[inline(always)]
    fn agrees(&self, me: Member) -> Result<()> {
        match &self.own {
            Some(own) if own.len() != self.all.len(me) => Err(Error::Lengths),
            _ => Ok(()),
        }
    }
}

impl<S: Stream, B: Blocks, P: Peers> Short for Allgather<S, B, P> {
    const SAYS: bool = true;
    const COMPARES: bool = true;

    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        let is_short = |len| is_short_gathered(turn, Operation::Allgather, len, self.zero_copy);
        turn.is_still() || is_short(self.all.len(turn.me())) && all_lengths(&self.all, self.peers.from(), is_short)
    }

    #[inline(always)]
    fn room(&self, turn: &Turn<'_>) -> Option<usize> {
        Some(self.all.len(turn.me())).filter(|&len| len > 0)
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let (me, len) = (turn.me(), self.all.len(turn.me()));
        self.agrees(me)?;
        let room = turn.room(me, len);
        // SAFETY: free, and they fit.
        unsafe {
            match &self.own {
                Some(own) => copy::pack(own, 0, len, room),
                None => copy::pack(&Block::new(&self.all, me), 0, len, room),
            }
        }
    }

    #[inline(always)]
    fn keep(&self, me: Member) -> Result<()> {
        self.agrees(me)?;
        self.own.as_ref().map_or(Ok(()), |own| transfer(own, &Block::new(&self.all, me)))
    }

    #[inline(always)]
    fn sources(&self, _: &Turn<'_>) -> impl Iterator<Item = Member> {
        self.peers.from()
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        let len = self.all.len(source);
        if len > 0 { Some((len, turn.room(source, len))) } else { None }
    }

    #[inline(always)]
    unsafe fn read(&self, turn: &Turn<'_>, source: Member) -> Result<()> {
        let len = self.all.len(source);
        let bypass = allgather::bypasses(turn, len);
        // SAFETY: published, and it holds so much.
        unsafe { copy::unpack(&Block::new(&self.all, source), 0, len, turn.room(source, len), bypass) }
    }

    fn take_other<'a>(&'a self, turn: Current<'a>, source: Member) -> Taken<'a> {
        take_block(turn, source, &self.all, Of::Allgather)
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        self.agrees(turn.me())?;
        let own = self.own.as_ref().map(|own| own as &dyn Stream);
        allgather::long(turn.halved(), self.peers, own, &self.all, self.zero_copy).await
    }
}

/// Alltoall: everybody writes a block for each of the others to that one's share of its room, and reads its
/// share of theirs.
pub struct Alltoall<O, I, P> {
    /// What is sent; `None`: what is in `into`.
    pub out: Option<O>,
    /// What is received.
    pub into: I,
    /// Whom the caller exchanges blocks with.
    pub peers: P,
    /// Blocks of so many bytes others may read where they lie.
    pub zero_copy: Reads,
}

impl<O: Blocks, I: Blocks, P: Peers> Short for Alltoall<O, I, P> {
    const DEALS: bool = true;
    const COMPARES: bool = true;

    #[inline(always)]
    fn fits(&self, turn: &Turn<'_>) -> bool {
        let Some(out) = &self.out else { return false };
        let rooms = places::rooms(turn, self.zero_copy.from, 0);
        turn.is_still()
            || rooms.hold(longest(out, self.peers.to())) && rooms.hold_all(&self.into, self.peers.from())
            || alltoall::in_one_round(turn, self.zero_copy, self.peers, out, &self.into)
    }

    #[inline(always)]
    fn room(&self, turn: &Turn<'_>) -> Option<usize> {
        let out = self.out.as_ref()?;
        let longest = longest(out, self.peers.to());
        if longest > 0 { Some(places::want(turn, self.zero_copy.from, longest, out, self.peers.to())) } else { None }
    }

    #[inline(always)]
    unsafe fn write(&self, turn: &Turn<'_>) -> Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        for member in self.peers.to() {
            let (block, len) = (Block::new(out, member), out.len(member));
            let to = places::begin(turn, self.zero_copy.from, len, member);
            // SAFETY: free, and a share holds so much.
            unsafe { copy::pack(&block, 0, len, to) }?;
        }
        Ok(())
    }

    #[inline(always)]
    fn word(&self, turn: &Turn<'_>) -> u8 {
        let Some(out) = &self.out else { return UNSAID };
        let rooms = places::rooms(turn, self.zero_copy.from, turn.me());
        told::word_of(turn, out, self.peers.to(), |len| rooms.hold(len))
    }

    #[inline(always)]
    fn note(&self, turn: &Turn<'_>) {
        if let Some(out) = &self.out {
            let rooms = places::rooms(turn, self.zero_copy.from, turn.me());
            told::note(turn, out, self.peers.to(), |len| rooms.hold(len));
        }
    }

    #[inline(always)]
    fn keep(&self, me: Member) -> Result<()> {
        self.out.as_ref().map_or(Ok(()), |out| transfer(&Block::new(out, me), &Block::new(&self.into, me)))
    }

    #[inline(always)]
    fn sources(&self, _: &Turn<'_>) -> impl Iterator<Item = Member> {
        self.peers.from()
    }

    #[inline(always)]
    fn awaits(&self, turn: &Turn<'_>, source: Member) -> Option<(usize, *const u8)> {
        let len = self.into.len(source);
        if len > 0 { Some((len, places::at(turn, self.zero_copy.from, len, source))) } else { None }
    }

    #[inline(always)]
    unsafe fn read(&self, turn: &Turn<'_>, source: Member) -> Result<()> {
        let len = self.into.len(source);
        let from = places::at(turn, self.zero_copy.from, len, source);
        // SAFETY: published, and a share holds so much.
        unsafe { copy::unpack(&Block::new(&self.into, source), 0, len, from, false) }
    }

    #[inline(always)]
    fn differs(&self, turn: &Turn<'_>, source: Member, len: usize) -> bool {
        let short = places::rooms(turn, self.zero_copy.from, source).hold(len);
        told::differs(turn, source, len, short) || places::differs(turn, self.zero_copy.from, len, source)
    }

    fn take_other<'a>(&'a self, turn: Current<'a>, source: Member) -> Taken<'a> {
        match self.peers.is_one_block(source) {
            true => told::taken_block(turn, source, &self.into),
            false => unequal::refused(),
        }
    }

    async fn long(self, turn: Turn<'_>) -> Result<()> {
        let out = self.out.as_ref().map(|out| out as &dyn Blocks);
        alltoall::long(turn, self.peers, out, &self.into, self.zero_copy).await
    }
}
