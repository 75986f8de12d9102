// SPDX-License-Identifier: BSD-3-Clause
//! What a payload of DATA looks like: a kind (u32), a tag (i32), a value (u64), and data.

use super::Memory;

/// What goes before the data.
pub const HEAD: usize = 16;
/// Kinds: a message with its data; the offer of one.
pub const BRINGS: u32 = 1;
pub const OFFERS: u32 = 2;
/// An offer's answer; a piece; and what comes in place of pieces.
pub const IS_CLEAR: u32 = 3;
pub const IS_PIECE: u32 = 4;
pub const GIVES_UP: u32 = 5;
/// In place of the receive's number: the data are not wanted.
pub const UNWANTED: u64 = u64::MAX;

/// Appends what goes before the data.
pub fn head(to: &mut Vec<u8>, what: u32, tag: i32, value: u64) {
    to.extend_from_slice(&what.to_le_bytes());
    to.extend_from_slice(&tag.to_le_bytes());
    to.extend_from_slice(&value.to_le_bytes());
}

/// Appends bytes of a message.
pub fn read(memory: &impl Memory, at: usize, bytes: usize, to: &mut Vec<u8>) -> Result<(), i32> {
    let begin = to.len();
    to.resize(begin + bytes, 0);
    memory.read(at, &mut to[begin..])
}

/// Kind, tag, value and data of a payload.
pub fn split(payload: &[u8]) -> Option<(u32, i32, u64, &[u8])> {
    let (head, data) = payload.split_first_chunk::<HEAD>()?;
    let [w0, w1, w2, w3, t0, t1, t2, t3, value @ ..] = *head;
    let (what, tag) = (u32::from_le_bytes([w0, w1, w2, w3]), i32::from_le_bytes([t0, t1, t2, t3]));
    Some((what, tag, u64::from_le_bytes(value), data))
}
