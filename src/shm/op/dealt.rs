//! Scatter where members take turns on the cores: each member's block goes to it as a whole, so that one turn is enough for it.
//!
//! The set is a ring. The root writes the blocks one after the other, longer ones in portions of about half the ring, and waits for readers only where their portions
//! stand in the way. (So one who does not read its long block keeps those after it waiting.) In the root's short slot each member finds where its first portion lies, and its number.
//! Those notes, and all that is short, are published as step 1, portion i, from 0, as step i + 2. A member's progress as a reader counts its own portions.

use super::block::{Block, Rooms, Shares};
use super::{get, put};
use crate::endpoint::{Blocks, Result, Stream};
use crate::shm::copy;
use crate::shm::layout::SHARE_ALIGN;
use crate::shm::memory::Member;
use crate::shm::turn::Turn;
use std::ops::Range;

/// Bytes of a note: an address to read the block at, or 0; where the first portion lies in the ring; its number.
const NOTE: usize = 24;

/// Where the notes lie in the root's short slot.
fn notes(turn: &Turn<'_>, root: Member) -> Shares {
    Shares::new(turn.team().config().short, turn.size(), root, SHARE_ALIGN)
}

/// The note for a member.
fn note(turn: &Turn<'_>, root: Member, member: Member) -> *mut u8 {
    turn.short(root).wrapping_add(notes(turn, root).at(member))
}

/// Whether this is the way, the same for all members.
pub(super) fn is_wanted(turn: &Turn<'_>) -> bool {
    turn.team().config().waiting.crowded && notes(turn, 0).each >= NOTE
}

/// The set as a ring.
#[derive(Clone, Copy)]
struct Ring {
    bytes: usize,
    /// The longest portion.
    limit: usize,
}

impl Ring {
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

/// As the root, whose line and set are free, writes the notes to all members whose blocks are not short. `address(i)`: where member i may read its block, or 0.
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
        put(note, address);
        put(note.wrapping_add(8), ring.place(dealer.at, ring.portion(len, 0).len()).start as u64);
        put(note.wrapping_add(16), dealer.count as u64);
        if address == 0 {
            for k in 0..ring.portions(len) {
                dealer.next(ring.portion(len, k).len());
            }
        }
    }
    turn.steps(dealer.count + 2).map(drop)
}

/// As the root, gives every member its block, if it is neither short nor `away`: those for which there was no address.
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
        for k in 0..ring.portions(len) {
            let part = ring.portion(len, k);
            let place = dealer.next(part.len());
            while let Some(i) = given.iter().position(|g| g.place.start < place.end && place.start < g.place.end) {
                let before = given.swap_remove(i);
                turn.read(before.reader, before.read).await?;
            }
            let to = turn.slot(turn.me(), 0).wrapping_add(place.start);
            // SAFETY: nobody reads there any more; it is within the set.
            unsafe { copy::pack(&block, part.start, part.len(), turn.mine(to, part.len())) }?;
            turn.publish(dealer.count as u32 + 1);
            given.push(Given { place, reader: member, read: k as u32 + 1 });
        }
    }
    Ok(())
}

/// The address to read the caller's block at, if there is one: told with step 1.
pub(super) fn address(turn: &Turn<'_>, root: Member) -> u64 {
    get(note(turn, root, turn.me()))
}

/// Receives the caller's block, which is neither short nor read elsewhere, from `root`.
pub(super) async fn receive<S: Stream + ?Sized>(turn: Turn<'_>, root: Member, own: &S) -> Result<()> {
    let len = own.len();
    let bypass = len >= turn.team().config().bypass_min;
    let note = note(&turn, root, turn.me());
    let (ring, at, count) = (Ring::of(&turn), get(note.wrapping_add(8)), get(note.wrapping_add(16)));
    // Where the program is wrong, and the block short on the other side, these are anything.
    let (at, count) = ((at as usize).min(ring.bytes), turn.steps(count as usize)? as usize);
    let mut dealer = Dealer { ring, at, count };
    let portions = ring.portions(len);
    turn.steps(count + portions + 2)?;
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
