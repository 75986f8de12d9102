// SPDX-License-Identifier: BSD-3-Clause
//! Lengths of blocks of which a member writes one for each of the others (why:
//! src/shm/protocol/turn/lengths.rs). Where all are as long, or there is one only, its word says that; else
//! there is a number for each.

use super::block::{Block, Rooms, index};
use super::unequal::Taken;
use crate::endpoint::{Blocks, Error, Result, Stream};
use crate::shm::copy;
use crate::shm::memory::Member;
use crate::shm::memory::layout::{LONG, TABLE, UNSAID, said};
use crate::shm::protocol::turn::{Current, Travel, View};
use crate::sync::shared::{will_read, will_write};
use std::future::ready;

/// Of a length that does not travel at once, or has more bits: a part of it stands for the whole, which lies
/// before the block.
const OTHERS: u16 = 1 << 15;

/// The number of a block.
#[inline(always)]
pub(super) fn number(len: usize, short: bool) -> u16 {
    match u16::try_from(len) {
        Ok(len) if short && len < OTHERS => len,
        _ => OTHERS | ((len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as u16,
    }
}

/// Where a member's number for a reader is, if there are any.
#[inline(always)]
fn entry(view: &View<'_>, writer: Member, reader: Member) -> Option<*mut u16> {
    view.numbers(writer).map(|numbers| numbers.wrapping_add(index(writer, reader)))
}

/// What the word of a member says that has these blocks for others: they are `short`, or not.
#[inline(always)]
pub(super) fn word_of(
    view: &View<'_>,
    blocks: &(impl Blocks + ?Sized),
    mut to: impl Iterator<Item = Member>,
    short: impl Fn(usize) -> bool,
) -> u8 {
    let one = if view.size() == 2 { to.next().map(|member| blocks.len(member)) } else { blocks.each() };
    let one = match one {
        None if view.numbers(view.me()).is_some() => return TABLE,
        // Without a queue all are as long, even where the blocks do not say so.
        None => to.next().map(|member| blocks.len(member)).filter(|&len| to.all(|member| blocks.len(member) == len)),
        one => one,
    };
    match one {
        Some(len) if short(len) => said(len),
        Some(_) => LONG,
        None => UNSAID,
    }
}

/// Notes in the caller's line, which is free, what its [word](word_of) does not say.
#[inline(always)]
pub(super) fn note(
    view: &View<'_>,
    blocks: &(impl Blocks + ?Sized),
    mut to: impl Iterator<Item = Member>,
    short: impl Fn(usize) -> bool,
) {
    match view.says() {
        LONG => {
            if let Some(len) = blocks.each().or_else(|| to.next().map(|member| blocks.len(member))) {
                view.note(len, if short(len) { Travel::AtOnce } else { Travel::Otherwise });
            }
        }
        TABLE => {
            // No `for_each`, which is called: then all that it captures would lie in memory.
            for member in to {
                let len = blocks.len(member);
                if let Some(at) = entry(view, view.me(), member) {
                    will_write(at.cast(), size_of::<u16>());
                    // SAFETY: free as the line is; aligned.
                    unsafe { at.write(number(len, short(len))) };
                }
            }
        }
        _ => {}
    }
}

/// Whether what a member, whose first step has come, has for the caller is not of `len` bytes, as far as it
/// says.
#[inline(always)]
pub(super) fn differs(view: &View<'_>, member: Member, len: usize, short: bool) -> bool {
    let said = if short { said(len) } else { LONG };
    let found = view.said_by(member);
    if found != said {
        return differs_from(view, member, found, number(len, short));
    }
    match said {
        LONG if short => view.differs_at_once(member, len),
        LONG => view.noted_length(member) != len,
        _ => false,
    }
}

/// The same where its word says something else, and the caller has a block of that number.
#[inline(always)]
fn differs_from(view: &View<'_>, member: Member, found: u8, number: u16) -> bool {
    match found {
        TABLE => entry_of(view, member) != Some(number),
        UNSAID => false,
        _ => true,
    }
}

/// A member's number for the caller.
#[inline(always)]
fn entry_of(view: &View<'_>, member: Member) -> Option<u16> {
    entry(view, member, view.me()).map(|at| {
        will_read(at.cast(), size_of::<u16>());
        // SAFETY: published, and aligned.
        unsafe { at.read() }
    })
}

/// Takes what a member has for the caller in another length than `data` has: whether that is all.
///
/// # Errors
/// It does not travel at once.
#[cold]
#[inline(never)]
pub(super) fn take<S: Stream + ?Sized>(turn: View<'_>, member: Member, data: &S) -> Result<bool> {
    let len = match turn.said_by(member) {
        TABLE => entry_of(&turn, member).filter(|&number| number < OTHERS).map(usize::from),
        _ => match turn.told(member) {
            Some((len, Travel::AtOnce)) => Some(len),
            _ => None,
        },
    };
    let Some(len) = len else { return Err(Error::Lengths) };
    let [line, _] = turn.team().short_shares();
    let Some(other) = turn.of_other_length(len > line) else { return Err(Error::Lengths) };
    let rooms = Rooms::new(other.team(), false, member, usize::MAX);
    if !rooms.hold(len) {
        return Err(Error::Lengths);
    }
    let part = len.min(data.len());
    if part > 0 {
        let from = rooms.at(&other, other.me(), len);
        // SAFETY: published, and a share holds so much.
        unsafe { copy::unpack(data, 0, part, from, false) }?;
    }
    Ok(part == len)
}

/// [Takes](take) what a short operation gets, as [`take_data`](super::unequal::take_data) does.
#[cold]
#[inline(never)]
pub(super) fn taken<'a, S: Stream>(turn: Current<'a>, member: Member, data: &'a S) -> Taken<'a> {
    Box::pin(ready(take(turn.into(), member, data)))
}

/// The same of a member's block.
#[cold]
#[inline(never)]
pub(super) fn taken_block<'a, B: Blocks>(turn: Current<'a>, member: Member, all: &'a B) -> Taken<'a> {
    Box::pin(ready(take(turn.into(), member, &Block::new(all, member))))
}
