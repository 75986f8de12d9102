// SPDX-License-Identifier: BSD-3-Clause
//! Where blocks are that travel at once: short ones in rooms. Where members take turns on the cores, longer
//! ones are in shares of the writer's set, after an address and their length; it tells which set with the
//! step that it publishes.

use crate::endpoint::Blocks;
use crate::shm::memory::Member;
use crate::shm::op::block::{Rooms, Shares, index, want_set};
use crate::shm::op::{get, put};
use crate::shm::policy::Operation;
use crate::shm::protocol::turn::Turn;

/// Where in a share, after an address, the length of the block is.
pub const LENGTH: usize = size_of::<u64>();

/// Where short blocks of `writer` are. `limit`: from how many bytes on another way is wanted.
#[inline(always)]
pub fn rooms(turn: &Turn<'_>, limit: usize, writer: Member) -> Rooms {
    Rooms::new(turn.team(), turn.is_still(), writer, turn.limit(Operation::Alltoall, limit))
}

/// The length to ask [`room_taken`](crate::shm::protocol::turn::View::room_taken) for, where these are the
/// blocks for others, the longest of so many bytes.
#[inline(always)]
pub fn want(
    turn: &Turn<'_>,
    limit: usize,
    longest: usize,
    blocks: &(impl Blocks + ?Sized),
    members: impl Iterator<Item = Member>,
) -> usize {
    let rooms = rooms(turn, limit, 0);
    match rooms.hold(longest) {
        true => rooms.want(turn.team(), longest),
        false => want_set(turn.team().config(), blocks, members),
    }
}

/// Where the block of `len` bytes for `member` is to lie; writes what comes before it.
#[inline(always)]
pub fn begin(turn: &Turn<'_>, limit: usize, len: usize, member: Member) -> *mut u8 {
    let rooms = rooms(turn, limit, turn.me());
    if rooms.hold(len) {
        return rooms.at(turn, member, len);
    }
    let (share, head) = in_set(turn, turn.me(), member);
    put(share, 0);
    put(share.wrapping_add(LENGTH), len as u64);
    share.wrapping_add(head)
}

/// Whether the block that `member` has published for the caller has other than `len` bytes, if that is in a
/// set.
#[inline(always)]
pub fn differs(turn: &Turn<'_>, limit: usize, len: usize, member: Member) -> bool {
    !rooms(turn, limit, member).hold(len) && {
        let (share, _) = in_set(turn, member, turn.me());
        get(share.wrapping_add(LENGTH)) != len as u64
    }
}

/// Where the block of `len` bytes for the caller lies that `member` has published, or will.
#[inline(always)]
pub fn at(turn: &Turn<'_>, limit: usize, len: usize, member: Member) -> *mut u8 {
    let rooms = rooms(turn, limit, member);
    if rooms.hold(len) {
        return rooms.at(turn, turn.me(), len);
    }
    let (share, head) = in_set(turn, member, turn.me());
    share.wrapping_add(head)
}

/// The share of `reader` in the set of `writer`, and what comes before its contents.
fn in_set(turn: &Turn<'_>, writer: Member, reader: Member) -> (*mut u8, usize) {
    let set = turn.depth() as usize * turn.fragment();
    let shares = Shares::new(set, turn.size(), writer, 64);
    (turn.slot(writer, 0).wrapping_add(shares.each * index(writer, reader)), shares.head())
}
