// SPDX-License-Identifier: BSD-3-Clause
//! Scatter where members take turns on the cores: each member's block goes to it as a whole, so that one turn
//! is enough for it.
//!
//! The set is a ring. The root writes the blocks one after the other, longer ones in portions of about half
//! the ring, and waits for readers only where their portions stand in the way. (So one who does not read its
//! long block keeps those after it waiting.) In the root's short slot each member finds where its first
//! portion lies, and its number. Those notes, and all that is short, are published as step 1, portion i, from
//! 0, as step i + 2. A member's progress as a reader counts its own portions. Where the ring holds all blocks
//! at once, each in one portion, the root writes them and is through ([`send_all`]): with four members, of
//! equal blocks and built-in sizes, that is so up to some 170 KiB, with eight up to 73 KiB.

use super::block::{Block, Rooms, Shares};
use super::{get, put};
use crate::endpoint::{Blocks, Error, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::memory::layout::SHARE_ALIGN;
use crate::shm::policy::{Operation, Way};
use crate::shm::protocol::turn::Turn;
use std::ops::Range;

/// Bytes of a note: an address to read the block at, or 0; where the first portion lies in the ring; its
/// number; bytes of the block.
const NOTE: usize = crate::shm::policy::choose::NOTE;
const _: () = assert!(NOTE == 4 * size_of::<u64>());

/// Bytes that are worth being published before the next block is there; no more than a quarter of the ring.
const WORTH: usize = 8 << 10;

/// Where the notes lie in the root's short slot.
fn notes(turn: &Turn<'_>, root: Member) -> Shares {
    Shares::new(turn.team().config().short, turn.size(), root, SHARE_ALIGN)
}

/// The note for a member.
fn note(turn: &Turn<'_>, root: Member, member: Member) -> *mut u8 {
    turn.short(root).wrapping_add(notes(turn, root).at(member))
}

/// Writes one.
#[inline(always)]
fn write_note(note: *mut u8, address: u64, place: usize, number: usize, len: usize) {
    put(note, address);
    put(note.wrapping_add(8), place as u64);
    put(note.wrapping_add(16), number as u64);
    put(note.wrapping_add(24), len as u64);
}

/// Whether this is the way, the same for all members.
#[inline(always)]
pub(super) fn is_wanted(turn: &Turn<'_>) -> bool {
    let others = [Way::Pipeline, Way::SingleCopy];
    let named = turn.forced(Operation::Scatter).is_some_and(|way| others.contains(&way));
    turn.shares_cores() && notes(turn, 0).each >= NOTE && !named
}

/// The set as a ring.
#[derive(Clone, Copy)]
struct Ring {
    bytes: usize,
    /// The longest portion.
    limit: usize,
}

impl Ring {
    #[inline(always)]
    fn of(turn: &Turn<'_>) -> Ring {
        let bytes = turn.depth() as usize * turn.fragment();
        Ring { bytes, limit: (bytes / 2).next_multiple_of(64) }
    }

    /// How many portions a block of `len` bytes is.
    fn portions(self, len: usize) -> usize {
        len.div_ceil(self.limit)
    }

    /// Portion `k` of a block.
    fn portion(self, len: usize, k: usize) -> Range<usize> {
        k * self.limit..len.min((k + 1) * self.limit)
    }

    /// Where `len` bytes lie that follow what ends at `at`: in one piece.
    fn place(self, at: usize, len: usize) -> Range<usize> {
        let start = at.next_multiple_of(64);
        let start = if start + len <= self.bytes { start } else { 0 };
        start..start + len
    }
}

/// A portion that its reader may still be reading.
struct Given {
    place: Range<usize>,
    reader: Member,
    /// The reader is through with it when it has read so many.
    read: u32,
}

/// Portions that follow each other in the ring.
struct Dealer {
    ring: Ring,
    /// Where the last one ends.
    at: usize,
    /// How many there were.
    count: usize,
}

impl Dealer {
    fn new(turn: &Turn<'_>) -> Dealer {
        Dealer { ring: Ring::of(turn), at: 0, count: 0 }
    }

    /// Where the next one lies, of `len` bytes.
    fn next(&mut self, len: usize) -> Range<usize> {
        let place = self.ring.place(self.at, len);
        self.at = place.end;
        self.count += 1;
        place
    }
}

/// As the root, whose line and set are free, writes the notes to all members whose blocks are not short.
/// `address(i)`: where member i is to read its block, which is not dealt then; or 0.
pub(super) fn tell<B: Blocks + ?Sized>(
    turn: &Turn<'_>,
    rooms: &Rooms,
    all: &B,
    address: impl Fn(Member) -> u64,
) -> Result<()> {
    let mut dealer = Dealer::new(turn);
    let ring = dealer.ring;
    for member in turn.others().filter(|&m| !rooms.hold(all.len(m))) {
        let (note, len, address) = (note(turn, turn.me(), member), all.len(member), address(member));
        write_note(note, address, ring.place(dealer.at, ring.portion(len, 0).len()).start, dealer.count, len);
        if address == 0 {
            for k in 0..ring.portions(len) {
                dealer.next(ring.portion(len, k).len());
            }
        }
    }
    turn.steps(dealer.count + 2).map(drop)
}

/// As the root, gives every member its block, if it is neither short nor `away`, portion by portion.
pub(super) async fn send<B: Blocks + ?Sized>(
    turn: &Turn<'_>,
    rooms: &Rooms,
    all: &B,
    away: impl Fn(Member) -> bool,
) -> Result<()> {
    let mut dealer = Dealer::new(turn);
    let ring = dealer.ring;
    let mut given: Vec<Given> = Vec::new();
    for member in turn.others().filter(|&m| !rooms.hold(all.len(m)) && !away(m)) {
        let (block, len) = (Block::new(all, member), all.len(member));
        // As if all blocks were as long as this one. All wait for the one who writes: half as many will do.
        let past = turn.writes_past(len.saturating_mul(2 * (turn.size() - 1)));
        for k in 0..ring.portions(len) {
            let part = ring.portion(len, k);
            let place = dealer.next(part.len());
            while let Some(i) = given.iter().position(|g| g.place.start < place.end && place.start < g.place.end) {
                let before = given.swap_remove(i);
                turn.read(before.reader, before.read).await?;
            }
            let to = turn.slot(turn.me(), 0).wrapping_add(place.start);
            // SAFETY: nobody reads there any more; it is within the set.
            unsafe { copy::pack_past(&block, part.start, part.len(), to, past) }?;
            turn.publish(dealer.count as u32 + 1);
            given.push(Given { place, reader: member, read: k as u32 + 1 });
        }
    }
    Ok(())
}

/// Whether the ring holds all blocks that are not short, each in one portion.
#[inline(always)]
pub(super) fn holds_all<B: Blocks + ?Sized>(turn: &Turn<'_>, rooms: &Rooms, all: &B) -> bool {
    let ring = Ring::of(turn);
    let room = |len: usize| if rooms.hold(len) { 0 } else { len.next_multiple_of(64) };
    match all.each() {
        Some(len) => len <= ring.limit && room(len) * (turn.size() - 1) <= ring.bytes,
        None => {
            let mut left = Some(ring.bytes);
            for member in turn.others() {
                let len = all.len(member);
                left = left.filter(|_| len <= ring.limit).and_then(|left| left.checked_sub(room(len)));
            }
            left.is_some()
        }
    }
}

/// As the root, whose line and set are free, gives every member its block, which the ring [holds](holds_all),
/// and ends the operation: nobody is waited for.
#[inline(never)]
pub(super) fn send_all<B: Blocks + ?Sized>(turn: Turn<'_>, rooms: Rooms, all: &B) -> Result<()> {
    let me = turn.me();
    let mut dealer = Dealer::new(&turn);
    for member in turn.others() {
        let len = all.len(member);
        if rooms.hold(len) {
            // SAFETY: free, and a share holds so much.
            unsafe { copy::pack(&Block::new(all, member), 0, len, rooms.at(&turn, member, len)) }?;
        } else {
            let number = dealer.count;
            write_note(note(&turn, me, member), 0, dealer.next(len).start, number, len);
        }
    }
    let set = turn.slot(me, 0);
    // The same places as in the notes.
    let (mut dealer, mut published) = (Dealer::new(&turn), 0);
    let worth = WORTH.min(dealer.ring.bytes / 4);
    for member in turn.others() {
        let len = all.len(member);
        if rooms.hold(len) {
            continue;
        }
        if dealer.at - published >= worth {
            turn.publish(dealer.count as u32 + 1);
            published = dealer.at;
        }
        let place = dealer.next(len);
        debug_assert!(published <= place.start && place.end <= dealer.ring.bytes, "the ring holds all");
        let to = set.wrapping_add(place.start);
        // SAFETY: the set is free, and the place within it.
        unsafe { copy::pack(&Block::new(all, member), 0, len, to) }?;
    }
    turn.publish_and_finish(dealer.count as u32 + 1);
    Ok(())
}

/// The address to read the caller's block at, if there is one: told with step 1.
pub(super) fn address(turn: &Turn<'_>, root: Member) -> u64 {
    get(note(turn, root, turn.me()))
}

/// Bytes of the caller's block, told with it.
pub(super) fn length(turn: &Turn<'_>, root: Member) -> u64 {
    get(note(turn, root, turn.me()).wrapping_add(24))
}

/// Where the caller's first portion lies, its number, and bytes of its block.
fn told(turn: &Turn<'_>, root: Member) -> [usize; 3] {
    let note = note(turn, root, turn.me());
    [8, 16, 24].map(|at| get(note.wrapping_add(at)) as usize)
}

/// Receives the caller's block, which is not short, from `root`, whose step 1 has come.
pub(super) async fn receive<S: Stream + ?Sized>(turn: Turn<'_>, root: Member, own: &S) -> Result<()> {
    let len = own.len();
    let bypass = turn.bypasses(turn.size() - 1, len);
    let [at, count, bytes] = told(&turn, root);
    let (ring, portions) = (Ring::of(&turn), Ring::of(&turn).portions(len));
    // Where the program is wrong, and the block short on the other side, these are anything.
    if bytes != len || at > ring.bytes {
        return Err(Error::Lengths);
    }
    turn.steps(count.saturating_add(portions + 2))?;
    let mut dealer = Dealer { ring, at, count };
    for k in 0..portions {
        let part = ring.portion(len, k);
        let place = dealer.next(part.len());
        turn.wrote(root, dealer.count as u32 + 1).await?;
        // SAFETY: published, and within the set.
        unsafe { copy::unpack(own, part.start, part.len(), turn.slot(root, 0).wrapping_add(place.start), bypass) }?;
        if k + 1 < portions {
            turn.acknowledge(k as u32 + 1);
        }
    }
    turn.finish();
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn portions_lie_within_the_ring_and_end_where_the_block_ends() {
        for bytes in [64, 192, 256, 320, 4096] {
            let ring = Ring { bytes, limit: (bytes / 2).next_multiple_of(64) };
            for len in (1..40).chain([bytes - 1, bytes, bytes + 1, 3 * bytes + 7]) {
                let parts: Vec<_> = (0..ring.portions(len)).map(|k| ring.portion(len, k)).collect();
                assert_eq!((parts[0].start, parts[parts.len() - 1].end), (0, len));
                assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
                for at in (0..=bytes).chain([usize::MAX]) {
                    for part in &parts {
                        let place = ring.place(at.min(bytes), part.len());
                        assert!(place.end <= bytes && place.start.is_multiple_of(64) && place.len() == part.len());
                        assert!(place.start >= at.min(bytes) || place.start == 0);
                    }
                }
            }
        }
    }
}
