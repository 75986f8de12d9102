// SPDX-License-Identifier: BSD-3-Clause
//! The network as the clock sees it: LogGP for each level, and links that messages share.
//!
//! Latency L, overhead o, gap g and gap per byte G are those of Alexandrov, Ionescu, Schauser, Scheiman,
//! "LogGP: Incorporating Long Messages into the LogP Model" (SPAA 1995). What is of a message alone is a
//! level's; what many messages share is a link's.

use super::super::Time;
use super::super::machine::{Distance, Machine};
use crate::endpoint::Rank;

/// Bytes whose time is kept: all rates are times of so many.
pub const BYTES: u64 = 64;

/// So many bytes, each 64 of which take this.
pub fn takes(bytes: usize, each: Time) -> Time {
    bytes as u64 * each / BYTES
}

/// What messages between two nodes take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// L: from the sender's adapter to the receiver's.
    pub latency: Time,
    /// o: of either process, for each message.
    pub overhead: Time,
    /// g: an adapter begins one message in so long.
    pub gap: Time,
    /// G: of one message alone, for [`BYTES`].
    pub each: Time,
    /// Up to so many bytes a message leaves at once; a longer one waits for its receiver.
    pub eager: usize,
}

/// What messages between two processes of a node take, besides the machine's copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Of either process, for each message.
    pub overhead: Time,
    /// Hand-overs of a line until the receiver has a short message.
    pub lines: u64,
    /// Up to so many bytes a message is copied twice, through a shared buffer; of a longer one the receiver
    /// reads the sender's memory.
    pub eager: usize,
}

/// The switches of one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// Nodes below each leaf switch; above that, switches of the next lower layer below each.
    pub below: u32,
    /// Between nodes that this is the lowest layer of.
    pub messages: Messages,
    /// All that a switch has to the next layer up, in each direction, for [`BYTES`]. Nothing for the last.
    pub uplink: Time,
}

/// The network of a cluster whose nodes are all alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Within a node.
    pub inside: Inside,
    /// Adapters of a node; each serves the same number of neighbouring cores.
    pub nics: u32,
    /// What an adapter carries in each direction, for [`BYTES`].
    pub nic: Time,
    /// Leaf switches first. The last layer joins all.
    pub layers: Vec<Layer>,
}

impl Network {
    /// Nodes that it can have.
    pub fn nodes(&self) -> u64 {
        self.layers.iter().map(|layer| u64::from(layer.below)).product()
    }
}

/// How many levels messages can have: the distances within a node, then layers of switches.
pub const LEVELS: usize = Distance::COUNT + 4;

/// The word for a level of messages.
pub const fn level_name(level: usize) -> &'static str {
    match level {
        0..Distance::COUNT => Distance::ALL[level].name(),
        _ => ["switch1", "switch2", "switch3", "switch4"][level - Distance::COUNT],
    }
}

/// Where the ranks of a job are: as many on each node, one node after the other.
pub struct Places<'m> {
    /// What a node is.
    pub machine: &'m Machine,
    /// What joins them.
    pub network: &'m Network,
    /// The cores of a node's ranks.
    pub cores: Vec<u32>,
    /// Number of nodes.
    pub nodes: u32,
}

impl Places<'_> {
    /// Number of ranks.
    pub fn size(&self) -> u32 {
        self.nodes * self.cores.len() as u32
    }

    /// The node of a rank.
    pub fn node(&self, rank: Rank) -> u32 {
        rank / self.cores.len() as u32
    }

    /// Its core.
    pub fn core(&self, rank: Rank) -> u32 {
        self.cores[rank as usize % self.cores.len()]
    }

    /// The level of messages between two ranks.
    pub fn level(&self, one: Rank, other: Rank) -> usize {
        let (mut here, mut there) = (self.node(one), self.node(other));
        if here == there {
            return self.machine.shape.distance(self.core(one), self.core(other)) as usize;
        }
        let joins = |layer: &super::Layer| {
            (here, there) = (here / layer.below, there / layer.below);
            here == there
        };
        let last = self.network.layers.len() - 1;
        Distance::COUNT + self.network.layers.iter().position(joins).unwrap_or(last)
    }

    /// The adapter of a rank, counted over all nodes.
    pub fn nic(&self, rank: Rank) -> usize {
        let (nics, cores) = (u64::from(self.network.nics), u64::from(self.machine.shape.cores()));
        (u64::from(self.node(rank)) * nics + u64::from(self.core(rank)) * nics / cores) as usize
    }
}
