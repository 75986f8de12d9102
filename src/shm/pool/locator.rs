// SPDX-License-Identifier: BSD-3-Clause
//! What a process tells others about its pool, and about its side of a new group: plain bytes of fixed
//! length, which go through a message.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::shm::memory::Page;
use crate::shm::os::failure::Failure;
use crate::shm::pool::mailbox::GroupId;
use crate::version::{BUILD_BYTES, PROTOCOL, build};

/// Bytes of a [`Locator`].
pub const LOCATOR_BYTES: usize = 256;
/// Bytes of a [`Hello`].
pub const HELLO_BYTES: usize = LOCATOR_BYTES + 48;
/// Bytes of the longest path of a pool.
pub const LONGEST_PATH: usize = LOCATOR_BYTES - FIXED;

/// Bytes of a locator before the path.
const FIXED: usize = 58 + BUILD_BYTES;
/// At the start of every locator.
const MAGIC: u32 = 0x6372_7300 | PROTOCOL;

/// Where a pool is, and how to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locator {
    /// Its owner.
    pub pid: i32,
    /// The owner's PID name space (inode number); 0: unknown.
    pub pid_space: u64,
    /// Its descriptor in the owner.
    pub fd: i32,
    /// Its bytes.
    pub length: u64,
    /// The random bytes that stand at its start.
    pub token: [u8; 16],
    /// The owner's number among the processes of the job on this node, and how many those are.
    pub place: Place,
    /// Its name, where it has one. `None`: memfd.
    pub path: Option<PathBuf>,
}

/// A process' number among the processes of its job on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number, from 0.
    pub local: u32,
    /// Number of processes.
    pub locals: u32,
}

/// The caller's PID name space (inode number); 0: unknown.
pub fn pid_space() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |data| data.ino())
}

impl Locator {
    /// The locator as bytes.
    pub fn encode(&self) -> [u8; LOCATOR_BYTES] {
        let path = self.path.as_deref().map_or(&[][..], |path| path.as_os_str().as_bytes());
        let mut bytes = Writer { bytes: [0; LOCATOR_BYTES], at: 0 };
        bytes.put(MAGIC.to_le_bytes());
        bytes.put(build());
        bytes.put(self.pid.to_le_bytes());
        bytes.put(self.pid_space.to_le_bytes());
        bytes.put(self.fd.to_le_bytes());
        bytes.put(self.length.to_le_bytes());
        bytes.put(self.token);
        bytes.put(self.place.local.to_le_bytes());
        bytes.put(self.place.locals.to_le_bytes());
        // A path that is too long stays out (`Store::create` makes none); the reader finds it inconsistent.
        bytes.put((path.len() as u16).to_le_bytes());
        bytes.put([u8::from(self.path.is_some()), 0, 0, 0]);
        debug_assert_eq!(bytes.at, FIXED);
        if path.len() <= LONGEST_PATH {
            bytes.bytes[FIXED..][..path.len()].copy_from_slice(path);
        }
        bytes.bytes
    }

    /// Reads a locator.
    pub fn decode(bytes: &[u8; LOCATOR_BYTES]) -> Result<Locator, Failure> {
        let mut from = Reader { bytes, at: 0 };
        let magic = u32::from_le_bytes(from.get());
        if magic != MAGIC {
            return Err(Failure::new(format!(
                "a pool of another version: its locator begins with {magic:#x}, not {MAGIC:#x}"
            )));
        }
        if from.get() != build() {
            return Err(Failure::new("a pool of another build"));
        }
        let mut locator = Locator {
            pid: i32::from_le_bytes(from.get()),
            pid_space: u64::from_le_bytes(from.get()),
            fd: i32::from_le_bytes(from.get()),
            length: u64::from_le_bytes(from.get()),
            token: from.get(),
            place: Place { local: u32::from_le_bytes(from.get()), locals: u32::from_le_bytes(from.get()) },
            path: None,
        };
        let length = usize::from(u16::from_le_bytes(from.get()));
        let [named, ..] = from.get::<4>();
        if named != 0 {
            let path = bytes[FIXED..].get(..length).map(|path| Path::new(OsStr::from_bytes(path)));
            let path = path.filter(|path| path.is_absolute());
            locator.path = Some(path.ok_or_else(|| Failure::new("a locator without a path that can be"))?.to_owned());
        }
        Ok(locator)
    }
}

/// What a member of a new group tells the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its pool.
    pub locator: Locator,
    /// Page of its control block.
    pub control: Page,
    /// Its number for the group.
    pub group: GroupId,
    /// Address and contents of a number in its private memory, by which to probe reading it; `None`: not
    /// wanted, or not possible.
    pub secret: Option<(u64, [u8; 16])>,
    /// A component may read its private memory.
    pub smsc: bool,
}

impl Hello {
    /// What a member says that has no memory for the group.
    pub const UNABLE: [u8; HELLO_BYTES] = [0; HELLO_BYTES];

    /// Whether a message came from another build of the component: nothing else in it, nor in its memory,
    /// means what it means here.
    pub fn is_of_another_build(bytes: &[u8; HELLO_BYTES]) -> bool {
        let mut from = Reader { bytes, at: 0 };
        *bytes != Hello::UNABLE && (u32::from_le_bytes(from.get()), from.get()) != (MAGIC, build())
    }

    /// The message.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = Writer { bytes: [0; HELLO_BYTES], at: 0 };
        bytes.put(self.locator.encode());
        bytes.put(1u32.to_le_bytes());
        bytes.put(self.control.to_le_bytes());
        bytes.put(self.group.to_le_bytes());
        bytes.put(u32::from(self.secret.is_some()).to_le_bytes());
        let (address, secret) = self.secret.unwrap_or_default();
        bytes.put(address.to_le_bytes());
        bytes.put(secret);
        bytes.put(u32::from(self.smsc).to_le_bytes());
        bytes.bytes
    }

    /// Reads a message.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Hello, Failure> {
        let mut from = Reader { bytes, at: 0 };
        let locator: [u8; LOCATOR_BYTES] = from.get();
        if u32::from_le_bytes(from.get()) != 1 {
            return Err(Failure::new("it has no memory for the group"));
        }
        let control = Page::from_le_bytes(from.get());
        let group = GroupId::from_le_bytes(from.get());
        let probing = u32::from_le_bytes(from.get()) != 0;
        let secret = (u64::from_le_bytes(from.get()), from.get());
        let smsc = u32::from_le_bytes(from.get()) != 0;
        Ok(Hello { locator: Locator::decode(&locator)?, control, group, secret: probing.then_some(secret), smsc })
    }
}

struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    fn put<const K: usize>(&mut self, value: [u8; K]) {
        self.bytes[self.at..][..K].copy_from_slice(&value);
        self.at += K;
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn get<const K: usize>(&mut self) -> [u8; K] {
        let mut value = [0; K];
        value.copy_from_slice(&self.bytes[self.at..][..K]);
        self.at += K;
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn hellos()(pid: i32, pid_space: u64, fd: i32, length: u64, token: [u8; 16], local: u32, locals: u32,
            path in prop::option::of(prop::collection::vec(1u8.., 0..LONGEST_PATH)), control: Page, group: GroupId,
            secret: Option<(u64, [u8; 16])>, smsc: bool) -> Hello {
            let path = path.map(|path| PathBuf::from(OsStr::from_bytes(&[b"/", &path[..]].concat())));
            let locator = Locator { pid, pid_space, fd, length, token, place: Place { local, locals }, path };
            Hello { locator, control, group, secret, smsc }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 8 } else { 256 }, ..ProptestConfig::default() })]
        #[test]
        fn arrives_as_it_was(hello in hellos()) {
            prop_assert_eq!(Hello::decode(&hello.encode()).unwrap(), hello);
        }

        #[test]
        fn garbage_is_an_error_or_a_hello(garbage in prop::collection::vec(any::<u8>(), HELLO_BYTES), honest: bool) {
            let mut bytes: [u8; HELLO_BYTES] = garbage.try_into().unwrap();
            if honest {
                bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
                bytes[4..][..BUILD_BYTES].copy_from_slice(&build());
                bytes[LOCATOR_BYTES..][..4].copy_from_slice(&1u32.to_le_bytes());
            }
            drop(Hello::decode(&bytes));
        }
    }

    #[test]
    fn another_build_is_noticed() {
        let place = Place { local: 0, locals: 1 };
        let locator = Locator { pid: 1, pid_space: 2, fd: 3, length: 4, token: [5; 16], place, path: None };
        let hello = Hello { locator, control: 1, group: 2, secret: None, smsc: false };
        let mut bytes = hello.encode();
        assert!(!Hello::is_of_another_build(&bytes) && !Hello::is_of_another_build(&Hello::UNABLE));
        for at in [0, 4, 4 + BUILD_BYTES - 1] {
            bytes[at] ^= 1;
            assert!(Hello::is_of_another_build(&bytes) && Hello::decode(&bytes).is_err(), "byte {at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn unable_is_said() {
        assert!(Hello::decode(&Hello::UNABLE).unwrap_err().to_string().contains("no memory"));
    }
}
