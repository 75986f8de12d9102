// SPDX-License-Identifier: BSD-3-Clause
//! A node as the clock sees it: cores, caches, and what things cost there.

use super::Time;
use super::net::Network;

/// How far a core is from another one, or from what it has in its caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The same core.
    Own,
    /// The same level-2 cache.
    L2,
    /// The same level-3 cache.
    L3,
    /// The same NUMA node.
    Numa,
    /// The same socket.
    Socket,
    /// Another socket.
    Node,
}

impl Distance {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// Every distance, near ones first.
    pub const ALL: [Distance; Distance::COUNT] =
        [Distance::Own, Distance::L2, Distance::L3, Distance::Numa, Distance::Socket, Distance::Node];

    /// The word for it in machine files and tables.
    pub const fn name(self) -> &'static str {
        ["own", "l2", "l3", "numa", "socket", "node"][self as usize]
    }
}

/// How many of each part the next larger one has. Cores are numbered through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sockets of the node.
    pub sockets: u32,
    /// NUMA nodes of a socket.
    pub numa_per_socket: u32,
    /// Level-3 caches of a NUMA node.
    pub l3_per_numa: u32,
    /// Level-2 caches below a level-3 cache.
    pub l2_per_l3: u32,
    /// Cores that share a level-2 cache.
    pub cores_per_l2: u32,
}

impl Shape {
    /// Cores of the node.
    pub fn cores(&self) -> u32 {
        self.sockets * self.numa_per_socket * self.l3_per_numa * self.l2_per_l3 * self.cores_per_l2
    }

    /// The level-2 cache, level-3 cache, NUMA node and socket of a core.
    pub fn places(&self, core: u32) -> [u32; 4] {
        let l2 = core / self.cores_per_l2;
        let l3 = l2 / self.l2_per_l3;
        let numa = l3 / self.l3_per_numa;
        [l2, l3, numa, numa / self.numa_per_socket]
    }

    /// How far two cores are from each other.
    pub fn distance(&self, one: u32, other: u32) -> Distance {
        let (one_at, other_at) = (self.places(one), self.places(other));
        let near = (0..4).find(|&level| one_at[level] == other_at[level]);
        match near {
            _ if one == other => Distance::Own,
            Some(level) => Distance::ALL[level + 1],
            None => Distance::Node,
        }
    }
}

/// A node: its shape, and what things cost, in picoseconds. Arrays are by [`Distance`].
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// How many of what it has.
    pub shape: Shape,
    /// To get a line that a core at this distance has written last. `Own`: a hit.
    pub handover: [Time; Distance::COUNT],
    /// For so long the line's home serves one such request, and others wait: many readers of one line.
    pub serve: [Time; Distance::COUNT],
    /// For each line of a long copy out of the caches of a core at this distance.
    pub stream: [Time; Distance::COUNT],
    /// For each line of a long copy to where a core at this distance has the lines.
    pub overwrite: [Time; Distance::COUNT],
    /// To get a line from memory, and for each line of a long copy from there.
    pub memory: [Time; 2],
    /// For so long each line of a long copy occupies what cores share: the level-3 cache that they have in
    /// common; its link, where the line comes from beyond it; and the socket's link.
    pub shared: [Time; 3],
    /// For a store, until the next instruction.
    pub store: Time,
    /// Bytes of a core's own caches, and of its share of the level-3 cache.
    pub caches: [usize; 2],
    /// So many misses of one core are under way at a time, where it does not wait for each.
    pub misses: u32,
    /// A wait that ends makes the processor guess wrong: so long until it goes on.
    pub wrong_guess: Time,
    /// The instructions of a call that touch nothing shared, once.
    pub call: Time,
    /// For each poll of a suspended operation.
    pub poll: Time,
    /// To combine a line of operands that are in the core's own caches.
    pub combine: Time,
    /// A system call that copies another process' memory; for each page of it; and for each page that others
    /// have begun to read of the same process, and not ended.
    pub system_copy: [Time; 3],
    /// What joins it to others like it, where that is known.
    pub network: Option<Network>,
}
