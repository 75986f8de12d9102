// SPDX-License-Identifier: BSD-3-Clause
//! Blocks of members: which part of the user's data goes to, or comes from, whom.

use crate::endpoint::{Blocks, Error, Result, Span, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::memory::layout::{LINE, SHARE_ALIGN, SHORT, share};
use crate::shm::protocol::team::{Config, Team};
use crate::shm::protocol::turn::{Alike, View};

/// One member's block as a stream.
pub(super) struct Block<'b, B: ?Sized> {
    blocks: &'b B,
    member: Member,
}

impl<'b, B: Blocks + ?Sized> Block<'b, B> {
    /// The block of `member`.
    #[inline(always)]
    pub fn new(blocks: &'b B, member: Member) -> Block<'b, B> {
        Block { blocks, member }
    }
}

impl<B: Blocks + ?Sized> Stream for Block<'_, B> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.blocks.len(self.member)
    }

    #[inline(always)]
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

/// How the room of a line or a slot is shared by the other members: nobody sends to itself.
#[derive(Clone, Copy)]
pub(super) struct Shares {
    me: Member,
    /// Bytes of each share.
    pub each: usize,
}

/// Shares of fewer bytes have no line to spare.
const SMALL: usize = 1024;

impl Shares {
    /// Shares of `room` bytes for the `members` but `me`, multiples of `align`.
    #[inline(always)]
    pub fn new(room: usize, members: usize, me: Member, align: usize) -> Shares {
        Shares { me, each: share(room, members, align) }
    }

    /// Bytes before the contents of a share that begins with an address: a line, so that copies of them are
    /// as fast as can be, or of small shares what keeps them aligned.
    #[inline(always)]
    pub fn head(&self) -> usize {
        if self.each < SMALL { 16 } else { 64 }
    }

    /// Bytes of contents after that.
    #[inline(always)]
    pub fn part(&self) -> usize {
        self.each - self.head()
    }

    /// Where in the room the share of `member` begins.
    #[inline(always)]
    pub fn at(&self, member: Member) -> usize {
        self.each * index(self.me, member)
    }
}

/// A length that no small slot has room for, as if it were that of a message in a short one.
const SHORTEST: usize = SHORT / 8 + 1;

/// Where short blocks lie: each in its member's share of the line or, if it is too long for that, of the
/// small slot, or of the short one (or, between two, of what [rotates](Config::still) instead).
#[derive(Clone, Copy)]
pub(in crate::shm) struct Rooms {
    writer: Member,
    /// Bytes of a share of each.
    line: usize,
    small: usize,
    slot: usize,
    /// The longest block that is short.
    most: usize,
    /// All that the caller asks about are short, and [lie still](Team::share_lies_still).
    still: bool,
}

/// Whether a short block of `len` bytes that is too long for other places lies in a short slot. Elsewhere it
/// lies, as other short messages do that are not [still](Config::still), in its writer's set: between two
/// members, who have nothing else there.
#[inline(always)]
fn is_still(team: &Team, len: usize) -> bool {
    team.size() != 2 || len <= team.config().still as usize
}

/// Where short blocks of a length lie, whoever writes them.
#[derive(Clone, Copy)]
pub(in crate::shm) struct Place<'t> {
    rooms: Alike<'t>,
    /// Bytes of a share.
    each: usize,
}

impl Place<'_> {
    /// The block of `writer` for `reader`.
    #[inline(always)]
    pub fn of(&self, writer: Member, reader: Member) -> *mut u8 {
        self.rooms.of(writer).wrapping_add(self.each * index(writer, reader))
    }
}

impl Rooms {
    /// Those of `writer`. `still`: all blocks are [known](crate::shm::protocol::turn::View::is_still) to be
    /// short, and to lie still; `limit`: from so many bytes on (but not in a line), another way is wanted.
    #[inline(always)]
    pub fn new(team: &Team, still: bool, writer: Member, limit: usize) -> Rooms {
        let [line, slot] = team.short_shares();
        // A small slot is an eighth of a short one.
        let small = if team.config().small > 0 { slot / 8 / SHARE_ALIGN * SHARE_ALIGN } else { 0 };
        Rooms { writer, line, small, slot, most: slot.min(limit.saturating_sub(1)).max(line), still }
    }

    /// Whether a block of `len` bytes is short.
    #[inline(always)]
    pub fn hold(&self, len: usize) -> bool {
        self.still || len <= self.most
    }

    /// Where short blocks of `len` bytes lie.
    #[inline(always)]
    pub fn place<'t>(&self, turn: &View<'t>, len: usize) -> Place<'t> {
        if len <= self.line {
            return Place { rooms: turn.lines(), each: self.line };
        }
        if len <= self.small {
            return Place { rooms: turn.small_slots(), each: self.small };
        }
        Place {
            rooms: if self.still || is_still(turn.team(), len) { turn.short_slots() } else { turn.rotated_slots() },
            each: self.slot,
        }
    }

    /// Whether the blocks of all these members are short.
    #[inline(always)]
    pub fn hold_all(&self, blocks: &(impl Blocks + ?Sized), members: impl Iterator<Item = Member>) -> bool {
        all_lengths(blocks, members, |len| self.hold(len))
    }

    /// A length for which [`room_taken`](crate::shm::protocol::turn::View::room_taken) asks for what short
    /// blocks want, the longest of which has so many bytes: the line, and with it the small slot, or the
    /// short slot too, or the set.
    #[inline(always)]
    pub fn want(&self, team: &Team, longest: usize) -> usize {
        match longest {
            _ if longest <= self.small.max(self.line) => LINE,
            _ if self.still || is_still(team, longest) => SHORTEST,
            _ => longest,
        }
    }

    /// Where the block of `len` bytes for `member` is.
    #[inline(always)]
    pub fn at(&self, turn: &View<'_>, member: Member, len: usize) -> *mut u8 {
        self.place(turn, len).of(self.writer, member)
    }
}

/// Whether it is `so` of the lengths of all these members' blocks: asked once, where all blocks are as long
/// (then also if there are no members).
#[inline(always)]
pub fn all_lengths(
    blocks: &(impl Blocks + ?Sized),
    mut members: impl Iterator<Item = Member>,
    so: impl Fn(usize) -> bool,
) -> bool {
    match blocks.each() {
        Some(len) => so(len),
        None => members.all(|m| so(blocks.len(m))),
    }
}

/// Bytes of the longest of these members' blocks: asked once, where all blocks are as long (then also if
/// there are no members).
#[inline(always)]
pub(super) fn longest(blocks: &(impl Blocks + ?Sized), members: impl Iterator<Item = Member>) -> usize {
    match blocks.each() {
        Some(len) => len,
        None => members.fold(0, |longest, m| longest.max(blocks.len(m))),
    }
}

/// The sum of the lengths of these members' blocks that are `so`: asked once, where all blocks are as long.
pub(super) fn sum_lengths(
    blocks: &(impl Blocks + ?Sized),
    members: impl Iterator<Item = Member>,
    so: impl Fn(usize) -> bool,
) -> usize {
    match blocks.each() {
        Some(len) if so(len) => len.saturating_mul(members.count()),
        Some(_) => 0,
        None => members.map(|m| blocks.len(m)).filter(|&len| so(len)).fold(0, usize::saturating_add),
    }
}

/// A length for which [`room_taken`](crate::shm::protocol::turn::View::room_taken) asks for what these blocks
/// want, not all of which are short: the set, and about how much of it.
pub(super) fn want_set(
    config: &Config,
    blocks: &(impl Blocks + ?Sized),
    members: impl Iterator<Item = Member>,
) -> usize {
    sum_lengths(blocks, members, |_| true).max(config.short.max(LINE) + 1)
}

/// The place of `member` among all but `me`.
#[inline(always)]
pub(super) fn index(me: Member, member: Member) -> usize {
    debug_assert_ne!(me, member);
    member - usize::from(member > me)
}

/// Copies a stream over another one of the same length, both in the caller's private memory.
#[inline(always)]
pub(super) fn transfer<S: Stream + ?Sized, T: Stream + ?Sized>(from: &S, to: &T) -> Result<()> {
    let len = from.len();
    if len > to.len() {
        return too_long(to.len());
    }
    match (from.direct(), to.direct()) {
        // SAFETY: who made the spans promised valid memory; they may be one and the same.
        (Some(source), Some(target)) => unsafe {
            copy::within(source.slice(0..len).ptr(), target.slice(0..len).ptr(), len);
            Ok(())
        },
        (source, target) => transfer_packed(from, to, source, target, len),
    }
}

/// What becomes of data that are longer than the place for them, of so many bytes: an error. Without any
/// place the caller keeps them, as Open MPI's own operations do.
#[cold]
#[inline(never)]
fn too_long(room: usize) -> Result<()> {
    if room == 0 { Ok(()) } else { Err(Error::Lengths) }
}

/// The same where not both are in one piece.
#[cold]
#[inline(never)]
fn transfer_packed<S: Stream + ?Sized, T: Stream + ?Sized>(
    from: &S,
    to: &T,
    source: Option<Span>,
    target: Option<Span>,
    len: usize,
) -> Result<()> {
    match (source, target) {
        (None, Some(target)) => from.pack(0, target.slice(0..len)),
        (Some(source), None) => to.unpack(0, source.slice(0..len)),
        _ => {
            let mut room = vec![0_u8; len.min(65536)];
            for at in (0..len).step_by(65536) {
                // SAFETY: the buffer holds so much, and outlives both calls.
                let piece = unsafe { Span::new(room.as_mut_ptr(), (len - at).min(65536), 1) };
                from.pack(at, piece)?;
                to.unpack(at, piece)?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::config::LEAST_SHARE;

    #[test]
    fn contents_of_shares_begin_with_lines_of_their_own_where_there_is_room() {
        let heads = |room, members| {
            let shares = Shares::new(room, members, 0, 64);
            assert_eq!(shares.head() + shares.part(), shares.each);
            (shares.head(), shares.part())
        };
        assert_eq!([(1024, 2), (4096, 4)].map(|(room, members)| heads(room, members)), [(64, 960), (64, 1280)]);
        assert_eq!([(1023, 2), (4096, 9)].map(|(room, members)| heads(room, members)), [(16, 944), (16, 496)]);
        // Of the smallest fragments that a team has.
        assert!([2, 3, 64, 1000].iter().all(|&members| heads(LEAST_SHARE * members, members).1 >= 112));
    }

    /// Blocks that have lengths only.
    struct Lengths(&'static [usize], Option<usize>);

    impl Blocks for Lengths {
        fn len(&self, member: usize) -> usize {
            self.1.unwrap_or_else(|| self.0[member])
        }
        fn each(&self) -> Option<usize> {
            self.1
        }
        fn direct(&self, _: std::ops::Range<usize>) -> Option<Span> {
            None
        }
        fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
            unreachable!("lengths only")
        }
        fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
            unreachable!("lengths only")
        }
    }

    #[test]
    fn only_lengths_that_are_so_are_added_up() {
        let each = |len| Lengths(&[], Some(len));
        let unlike = Lengths(&[3, 40, 500, usize::MAX], None);
        assert_eq!(sum_lengths(&unlike, 0..3, |len| len > 3), 540);
        assert_eq!(sum_lengths(&unlike, [0, 2].into_iter(), |_| true), 503);
        assert_eq!(sum_lengths(&unlike, 0..4, |_| true), usize::MAX);
        assert_eq!([7, 8].map(|len| sum_lengths(&each(len), 0..3, |len| len > 7)), [0, 24]);
        assert_eq!(sum_lengths(&each(usize::MAX), 0..3, |_| true), usize::MAX);
    }
    #[test]
    fn what_is_not_short_wants_a_set_however_little_it_is() {
        let want = |short, each| {
            let config = Config { short, ..Config::default() };
            want_set(&config, &Lengths(&[], Some(each)), 0..2)
        };
        // Shares of a line among three hold 24 bytes.
        assert!([0, 64, SHORT].into_iter().all(|short| want(short, 26) > short.max(LINE)));
        assert_eq!(want(SHORT, 5000), 10_000);
    }
}
