// SPDX-License-Identifier: BSD-3-Clause
//! Frames: a header of 32 bytes, little endian, and a payload of at most 65,536.
//!
//! | bytes | field | of DATA to the gateway | of DATA from the gateway |
//! |---|---|---|---|
//! | 0..4 | length of the payload | | |
//! | 4 | kind | 6 | 6 |
//! | 5 | version | 2 | 2 |
//! | 6..8 | cluster, an index into the list of the HELLO | of the receiver | of the sender |
//! | 8..16 | process (`jobid << 32 \| vpid`) | the receiver | the sender |
//! | 16..24 | key | the component's | the component's |
//! | 24..32 | number | the component's | the component's |
//!
//! In HELLO, cluster and process are the sender's own. In LOST they say who is lost. Elsewhere all four
//! are zero.

use std::fmt;
use std::time::Duration;

/// Bytes of a header.
pub const HEADER: usize = 32;
/// Bytes of a payload at most.
pub const PAYLOAD: usize = 65_536;
/// The version that this code speaks.
pub const VERSION: u8 = 2;
/// In LOST, for the process: all processes of the cluster.
pub const ALL: u64 = u64::MAX;
/// After so long without another frame the gateway sends a sign of life.
pub const ALIVE: Duration = Duration::from_secs(1);
/// Bytes of the payload of HELLO at most; its names have limits that come to this.
pub const HELLO: usize = 4582;
/// Bytes of the text of REFUSED and LOST at most.
pub const TEXT: usize = 4096;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A process says who it is.
    Hello = 1,
    /// The gateway's nonce and proof.
    Challenge = 2,
    /// The process's proof.
    Proof = 3,
    /// DATA may go both ways.
    Welcome = 4,
    /// The gateway does not serve this process; the payload says why. Nothing follows.
    Refused = 5,
    /// A part of the component's traffic.
    Data = 6,
    /// Nothing more comes from the sender. A connection that ends without it counts as a crash.
    Bye = 7,
    /// A process, or [`ALL`] of a cluster, cannot be reached any more; the payload says why.
    Lost = 8,
    /// From the gateway: it lives, and has had nothing else to say for [`ALIVE`].
    Alive = 9,
}

impl Kind {
    fn new(byte: u8) -> Option<Kind> {
        use Kind::*;
        [Hello, Challenge, Proof, Welcome, Refused, Data, Bye, Lost, Alive].into_iter().find(|kind| *kind as u8 == byte)
    }

    /// The lengths that a payload may have.
    fn lengths(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Kind::Hello => 0..=HELLO,
            Kind::Challenge => 64..=64,
            Kind::Proof => 32..=32,
            Kind::Welcome | Kind::Bye | Kind::Alive => 0..=0,
            Kind::Refused | Kind::Lost => 0..=TEXT,
            Kind::Data => 0..=PAYLOAD,
        }
    }
}

/// What is wrong with bytes that should be a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not [`VERSION`].
    Version(u8),
    /// No [`Kind`].
    Kind(u8),
    /// A length that this kind cannot have.
    Length(Kind, u32),
    /// The payload of a HELLO is not one; what is wrong with it.
    Hello(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Version(version) => write!(f, "a frame of version {version}, this side speaks version {VERSION}"),
            Fault::Kind(kind) => write!(f, "a frame of the unknown kind {kind}"),
            Fault::Length(kind, length) => write!(f, "a frame of kind {kind:?} with {length} bytes"),
            Fault::Hello(what) => write!(f, "a HELLO with {what}"),
        }
    }
}

impl std::error::Error for Fault {}

/// The first bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the payload.
    pub length: u32,
    /// What the frame is for.
    pub kind: Kind,
    /// Index into the list of clusters of the HELLO.
    pub cluster: u16,
    /// `jobid << 32 | vpid`.
    pub peer: u64,
    /// The component's.
    pub key: u64,
    /// The component's.
    pub number: u64,
}

impl Header {
    /// Of a frame that concerns no process.
    pub fn plain(kind: Kind, length: usize) -> Header {
        Header { length: length as u32, kind, cluster: 0, peer: 0, key: 0, number: 0 }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4] = self.kind as u8;
        bytes[5] = VERSION;
        bytes[6..8].copy_from_slice(&self.cluster.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.peer.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.key.to_le_bytes());
        bytes[24..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// Reads it back, and checks version, kind and length.
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Header, Fault> {
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        // The version comes first: another one may have other kinds.
        if bytes[5] != VERSION {
            return Err(Fault::Version(bytes[5]));
        }
        let kind = Kind::new(bytes[4]).ok_or(Fault::Kind(bytes[4]))?;
        let length = u32::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        if !kind.lengths().contains(&(length as usize)) {
            return Err(Fault::Length(kind, length));
        }
        let cluster = u16::from_le_bytes([bytes[6], bytes[7]]);
        Ok(Header { length, kind, cluster, peer: long(8), key: long(16), number: long(24) })
    }

    /// Bytes of the whole frame.
    pub fn frame(&self) -> usize {
        HEADER + self.length as usize
    }
}

/// A frame in a buffer that holds received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its header.
    pub header: Header,
    /// What follows the header.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the beginning of `bytes`; `None` if more bytes have to come first. It takes
    /// `header.frame()` bytes. A faulty header is found as soon as it is complete.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Frame<'a>>, Fault> {
        let Some(head) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
        let header = Header::decode(head)?;
        Ok(bytes.get(HEADER..header.frame()).map(|payload| Frame { header, payload }))
    }

    /// The text of REFUSED and LOST.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.payload).into_owned()
    }
}

/// The bytes of a whole frame; the header's length is that of the payload, which must not be longer than its
/// kind allows (else the text of REFUSED and LOST is cut, and other payloads are a fault of the caller that
/// the receiver reports).
pub fn encode(header: Header, payload: &[u8]) -> Vec<u8> {
    let payload = match header.kind {
        Kind::Refused | Kind::Lost => &payload[..payload.len().min(TEXT)],
        _ => payload,
    };
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend(Header { length: payload.len() as u32, ..header }.encode());
    bytes.extend(payload);
    bytes
}

/// A frame of one kind that concerns no process.
pub fn plain(kind: Kind, payload: &[u8]) -> Vec<u8> {
    encode(Header::plain(kind, payload.len()), payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_comes_back() {
        let header =
            Header { length: 5, kind: Kind::Data, cluster: 3, peer: 7 << 32 | 9, key: u64::MAX - 1, number: 4 };
        let bytes = encode(header, b"hello");
        assert_eq!(bytes.len(), HEADER + 5);
        assert_eq!(Frame::parse(&bytes), Ok(Some(Frame { header, payload: b"hello" })));
        for short in 0..bytes.len() {
            assert_eq!(Frame::parse(&bytes[..short]), Ok(None), "{short}");
        }
    }

    #[test]
    fn its_bytes_stand_where_the_table_says() {
        let header = Header { length: 1, kind: Kind::Lost, cluster: 0x0203, peer: 4, key: 5, number: 6 };
        let bytes = encode(header, b"x");
        assert_eq!(bytes[..8], [1, 0, 0, 0, 8, VERSION, 3, 2]);
        assert_eq!((bytes[8], bytes[16], bytes[24], bytes[32]), (4, 5, 6, b'x'));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut bytes = Header::plain(Kind::Welcome, 0).encode();
        bytes[5] = VERSION + 1;
        assert_eq!(Frame::parse(&bytes), Err(Fault::Version(VERSION + 1)));
        bytes[5] = VERSION;
        bytes[4] = 10;
        assert_eq!(Frame::parse(&bytes), Err(Fault::Kind(10)));
        let long = Header::plain(Kind::Data, PAYLOAD + 1).encode();
        assert_eq!(Frame::parse(&long), Err(Fault::Length(Kind::Data, 65_537)));
        assert_eq!(Frame::parse(&plain(Kind::Bye, b"x")), Err(Fault::Length(Kind::Bye, 1)));
        assert_eq!(Fault::Version(7).to_string(), "a frame of version 7, this side speaks version 2");
    }

    #[test]
    fn a_long_text_is_cut() {
        let bytes = plain(Kind::Refused, &[b'a'; TEXT + 9]);
        assert_eq!(Frame::parse(&bytes).unwrap().unwrap().text(), "a".repeat(TEXT));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some(frame)) = Frame::parse(&bytes) {
                prop_assert_eq!(encode(frame.header, frame.payload), &bytes[..frame.header.frame()]);
            }
        }

        #[test]
        fn nearly_right_bytes_too(kind in 0u8..10, version in 0u8..3, length in 0u32..100, rest in any::<[u8; 64]>()) {
            let mut bytes = rest;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            (bytes[4], bytes[5]) = (kind, version);
            match Frame::parse(&bytes) {
                Ok(Some(frame)) => prop_assert_eq!(encode(frame.header, frame.payload), &bytes[..frame.header.frame()]),
                Ok(None) => prop_assert!(length > 32),
                Err(fault) => prop_assert!(!fault.to_string().is_empty()),
            }
        }
    }
}
