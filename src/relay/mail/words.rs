// SPDX-License-Identifier: BSD-3-Clause
//! What others need to know of messages.

/// A process of another cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The number of its cluster.
    pub cluster: u16,
    /// Its name.
    pub name: u64,
}

/// Where the data of a message lie.
pub trait Memory {
    /// How many bytes.
    fn bytes(&self) -> usize;
    /// Reads bytes from `at` on.
    fn read(&self, at: usize, to: &mut [u8]) -> Result<(), i32>;
    /// Writes bytes from `at` on.
    fn write(&self, at: usize, from: &[u8]) -> Result<(), i32>;
}

/// Why a message did not come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no way to the other process (any more).
    Lost,
    /// The other side gave the message up.
    GivenUp,
    /// The data could not be read or written: why, as the memory says.
    Memory(i32),
}

/// What went wrong with something that arrived: no process of ours sends such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbled;

/// What an operation holds of a message: its number, which is never given out again.
pub type Handle = u64;

/// Where a message goes, and what it is called on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Who gets it.
    pub to: Peer,
    /// The communicator.
    pub comm: u64,
    /// The number of the message at one of its ends.
    pub number: u64,
}

/// What is to be sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Out {
    /// Where to.
    pub address: Address,
    /// The message that is over when this has left.
    pub ends: Option<Handle>,
}
