// SPDX-License-Identifier: BSD-3-Clause
//! Frames between two gateways, inside the encrypted session: a header of 40 bytes, little endian, and a
//! payload. Length of the payload (u32), kind, version, two zero bytes; then four numbers (u64) whose
//! meaning depends on the kind.
//!
//! | kind | source | destination | key | number | payload |
//! |---|---|---|---|---|---|
//! | RESUME | frames received | credit of every destination | destinations at most | | own state's name, that of the other's |
//! | DATA | process | process | the component's | the component's | the component's |
//! | LEFT | process | | | 0 crashed, 1 left, 2 is back | why |
//! | ACK | | | | frames received | |
//! | GRANT | | process | | its credit in all | |
//! | CLOSE | | | | 0 the job has ended there, 1 lost | why |
//!
//! DATA and LEFT are counted from the beginning of the job on, over all connections; the others are not.

use coll_rust::relay::frame::{PAYLOAD, TEXT};
use std::fmt;

/// Bytes of a header.
pub const HEAD: usize = 40;
/// What this code speaks.
pub const VERSION: u8 = 1;
/// Bytes that a frame takes beside its payload, as both sides count them: header, allocation, its place in a
/// queue.
pub const OVERHEAD: u64 = 128;
/// The cost of the longest frame.
pub const MOST: u64 = cost(PAYLOAD);

/// What a frame of DATA counts for in credits and in memory.
pub const fn cost(payload: usize) -> u64 {
    payload as u64 + OVERHEAD
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The first of each side on a connection.
    Resume = 1,
    /// From a process to a process.
    Data = 2,
    /// A process has left, or is back.
    Left = 3,
    /// How far the sender has received; also the sign of life.
    Ack = 4,
    /// What may be sent to a process.
    Grant = 5,
    /// Nothing more comes, on any connection.
    Close = 6,
}

/// What is wrong with bytes that should be a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not [`VERSION`].
    Version(u8),
    /// No [`Kind`].
    Kind(u8),
    /// A length that this kind cannot have.
    Length(u8, u32),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Version(version) => write!(f, "a frame of version {version}, this gateway speaks {VERSION}"),
            Fault::Kind(kind) => write!(f, "a frame of the unknown kind {kind}"),
            Fault::Length(kind, length) => write!(f, "a frame of kind {kind} with {length} bytes"),
        }
    }
}

/// The first bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the payload.
    pub length: u32,
    /// What it is for.
    pub kind: Kind,
    /// See the table.
    pub source: u64,
    /// See the table.
    pub destination: u64,
    /// See the table.
    pub key: u64,
    /// See the table.
    pub number: u64,
}

impl Head {
    /// A header with all numbers zero.
    pub fn new(kind: Kind, length: usize) -> Head {
        Head { length: length as u32, kind, source: 0, destination: 0, key: 0, number: 0 }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        (bytes[4], bytes[5]) = (self.kind as u8, VERSION);
        let numbers = [self.source, self.destination, self.key, self.number];
        for (place, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads it back, and checks version, kind and length.
    pub fn decode(bytes: &[u8; HEAD]) -> Result<Head, Fault> {
        if bytes[5] != VERSION {
            return Err(Fault::Version(bytes[5]));
        }
        let length = u32::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        let (kind, lengths) = match bytes[4] {
            1 => (Kind::Resume, 32..=32),
            2 => (Kind::Data, 0..=PAYLOAD),
            3 => (Kind::Left, 0..=TEXT),
            4 => (Kind::Ack, 0..=0),
            5 => (Kind::Grant, 0..=0),
            6 => (Kind::Close, 0..=TEXT),
            other => return Err(Fault::Kind(other)),
        };
        if !lengths.contains(&(length as usize)) {
            return Err(Fault::Length(bytes[4], length));
        }
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Ok(Head { length, kind, source: long(8), destination: long(16), key: long(24), number: long(32) })
    }
}

/// A whole frame.
pub fn encode(head: Head, payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(if head.kind == Kind::Data { PAYLOAD } else { TEXT })];
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    bytes.extend(Head { length: payload.len() as u32, ..head }.encode());
    bytes.extend(payload);
    bytes
}

/// The frame at the beginning of `bytes`, and its payload; `None` if more bytes have to come first.
pub fn parse(bytes: &[u8]) -> Result<Option<(Head, &[u8])>, Fault> {
    let Some(first) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
    let head = Head::decode(first)?;
    Ok(bytes.get(HEAD..HEAD + head.length as usize).map(|payload| (head, payload)))
}

/// What each side says first on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The name of the sender's state for this job and pair; another one means that it has forgotten.
    pub me: [u8; 16],
    /// The name of the receiver's state as the sender knows it; zeros if it knows none.
    pub you: [u8; 16],
    /// Counted frames that the sender has received.
    pub received: u64,
    /// The credit that every destination has from the beginning.
    pub base: u64,
    /// Destinations at most.
    pub destinations: u64,
}

impl Resume {
    /// As a frame.
    pub fn encode(&self) -> Vec<u8> {
        let head = Head::new(Kind::Resume, 32);
        let head = Head { source: self.received, destination: self.base, key: self.destinations, ..head };
        encode(head, &[self.me, self.you].concat())
    }

    /// From a frame of its kind.
    pub fn decode(head: &Head, payload: &[u8]) -> Option<Resume> {
        let (me, you) = payload.split_first_chunk::<16>()?;
        let you = you.try_into().ok()?;
        Some(Resume { me: *me, you, received: head.source, base: head.destination, destinations: head.key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        let head = Head { length: 3, kind: Kind::Data, source: 1, destination: 2, key: 3, number: u64::MAX };
        let bytes = encode(head, b"abc");
        assert_eq!(parse(&bytes), Ok(Some((head, &b"abc"[..]))));
        for short in 0..bytes.len() {
            assert_eq!(parse(&bytes[..short]), Ok(None));
        }
        let resume = Resume { me: [1; 16], you: [2; 16], received: 3, base: 4, destinations: 5 };
        let bytes = resume.encode();
        let (head, payload) = parse(&bytes).unwrap().unwrap();
        assert_eq!(Resume::decode(&head, payload), Some(resume));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut bytes = Head::new(Kind::Ack, 0).encode();
        bytes[4] = 7;
        assert_eq!(parse(&bytes), Err(Fault::Kind(7)));
        bytes[5] = 9;
        assert_eq!(parse(&bytes), Err(Fault::Version(9)));
        assert_eq!(parse(&Head::new(Kind::Data, PAYLOAD + 1).encode()), Err(Fault::Length(2, 65_537)));
        assert_eq!(parse(&Head::new(Kind::Resume, 31).encode()), Err(Fault::Length(1, 31)));
    }
}
