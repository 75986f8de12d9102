// SPDX-License-Identifier: BSD-3-Clause
//! The keys of a machine file: what each means, its unit, and what of a [`Machine`] it sets.

use component::sim::clock::machine::{Machine, Shape};
use component::sim::clock::{Distance, Time};

/// What the number of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// 1024 bytes.
    Kib,
    /// Nanoseconds.
    Ns,
    /// 10⁹ bytes a second; kept as the time of a line.
    GbPerSecond,
}

impl Unit {
    /// As the page has it.
    pub const fn name(self) -> &'static str {
        ["number", "KiB", "ns", "GB/s"][self as usize]
    }

    /// The least and the largest number.
    pub const fn limits(self) -> (f64, f64) {
        match self {
            Unit::Count => (1.0, 512.0),
            Unit::Kib => (1.0, 4194304.0),
            Unit::Ns => (0.0, 1_000_000.0),
            Unit::GbPerSecond => (0.01, 100_000.0),
        }
    }

    /// Whether numbers may have a fraction.
    pub const fn has_fractions(self) -> bool {
        matches!(self, Unit::Ns | Unit::GbPerSecond)
    }

    /// What a machine keeps: picoseconds, those of a line of 64 bytes, bytes.
    pub fn kept(self, number: f64) -> u64 {
        match self {
            Unit::Count => number as u64,
            Unit::Kib => number as u64 * 1024,
            Unit::Ns => (number * 1000.0).round() as Time,
            Unit::GbPerSecond => (64_000.0 / number).round() as Time,
        }
    }
}

/// A key of a section.
pub struct Key<T = Machine> {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// What it is.
    pub what: &'static str,
    /// May be left out where the machine has no two cores so far from each other.
    pub distance: Option<Distance>,
    /// Where it goes.
    pub set: fn(&mut T, u64),
}

/// A section, all of whose keys are wanted.
pub struct Section<T: 'static = Machine> {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub what: &'static str,
    /// Its keys.
    pub keys: &'static [Key<T>],
}

/// A key that is always wanted.
pub const fn key<T>(name: &'static str, unit: Unit, set: fn(&mut T, u64), what: &'static str) -> Key<T> {
    Key { name, unit, what, distance: None, set }
}

/// The keys of an array by distance, of which `own` may be left out where it means nothing.
macro_rules! by_distance {
    ($unit:ident, $field:ident, $($more:expr),*) => {
        &[
            $($more,)*
            far(Distance::L2, Unit::$unit, |m, v| m.$field[1] = v),
            far(Distance::L3, Unit::$unit, |m, v| m.$field[2] = v),
            far(Distance::Numa, Unit::$unit, |m, v| m.$field[3] = v),
            far(Distance::Socket, Unit::$unit, |m, v| m.$field[4] = v),
            far(Distance::Node, Unit::$unit, |m, v| m.$field[5] = v),
        ]
    };
}

const fn far(distance: Distance, unit: Unit, set: fn(&mut Machine, u64)) -> Key {
    let what = match distance {
        Distance::Own => "from the core itself",
        Distance::L2 => "from a core below the same level-2 cache",
        Distance::L3 => "from a core below the same level-3 cache",
        Distance::Numa => "from a core of the same NUMA node, below another level-3 cache",
        Distance::Socket => "from a core of the same socket, of another NUMA node",
        Distance::Node => "from a core of another socket",
    };
    Key { name: distance.name(), unit, what, distance: Some(distance), set }
}

/// All sections. The key `name`, above the first of them, is the machine's name.
pub const SECTIONS: &[Section] = &[
    Section {
        name: "shape",
        what: "How many of each part the next larger one has",
        keys: &[
            key("sockets", Unit::Count, |m, v| m.shape.sockets = v as u32, "sockets of the node"),
            key("numa_per_socket", Unit::Count, |m, v| m.shape.numa_per_socket = v as u32, "NUMA nodes of a socket"),
            key("l3_per_numa", Unit::Count, |m, v| m.shape.l3_per_numa = v as u32, "level-3 caches of a NUMA node"),
            key("l2_per_l3", Unit::Count, |m, v| m.shape.l2_per_l3 = v as u32, "level-2 caches below a level-3 cache"),
            key(
                "cores_per_l2",
                Unit::Count,
                |m, v| m.shape.cores_per_l2 = v as u32,
                "cores that share a level-2 cache",
            ),
        ],
    },
    Section {
        name: "caches",
        what: "What a core keeps, until its lines come from memory",
        keys: &[
            key("own", Unit::Kib, |m, v| m.caches[0] = v as usize, "a core's own caches"),
            key("l3_share", Unit::Kib, |m, v| m.caches[1] = v as usize, "a core's share of the level-3 cache"),
        ],
    },
    Section {
        name: "handover",
        what: "The time until a core has a line that another one has written last",
        keys: by_distance!(Ns, handover, key("own", Unit::Ns, |m, v| m.handover[0] = v, "a hit in the own caches")),
    },
    Section {
        name: "serve",
        what: "For so long a line's home serves one reader, while others wait",
        keys: by_distance!(Ns, serve,),
    },
    Section {
        name: "copy",
        what: "Long copies by one core",
        keys: by_distance!(
            GbPerSecond,
            stream,
            key("own", Unit::GbPerSecond, |m, v| m.stream[0] = v, "out of its own caches")
        ),
    },
    Section {
        name: "overwrite",
        what: "Long copies by one core to where another one has the lines",
        keys: by_distance!(GbPerSecond, overwrite,),
    },
    Section {
        name: "memory",
        what: "What no cache has",
        keys: &[
            key("latency", Unit::Ns, |m, v| m.memory[0] = v, "the time until a core has a line"),
            key("copy", Unit::GbPerSecond, |m, v| m.memory[1] = v, "long copies by one core"),
        ],
    },
    Section {
        name: "shared",
        what: "What all cores of a part have together, however many copy",
        keys: &[
            key("l3", Unit::GbPerSecond, |m, v| m.shared[0] = v, "a level-3 cache"),
            key("l3_link", Unit::GbPerSecond, |m, v| m.shared[1] = v, "what comes from beyond it, memory too"),
            key("socket_link", Unit::GbPerSecond, |m, v| m.shared[2] = v, "what comes from other sockets"),
        ],
    },
    Section {
        name: "core",
        what: "What a core does by itself",
        keys: &[
            key("store", Unit::Ns, |m, v| m.store = v, "a store, until the next instruction"),
            key("misses", Unit::Count, |m, v| m.misses = v as u32, "lines that it can wait for at the same time"),
            key("wrong_guess", Unit::Ns, |m, v| m.wrong_guess = v, "a branch guessed wrong, which ends each wait"),
            key("call", Unit::Ns, |m, v| m.call = v, "instructions of a call that touch nothing shared"),
            key("poll", Unit::Ns, |m, v| m.poll = v, "instructions each time that an operation goes on"),
            key("combine", Unit::GbPerSecond, |m, v| m.combine = v, "adding up numbers of eight bytes in its caches"),
        ],
    },
    Section {
        name: "system_copy",
        what: "process_vm_readv and process_vm_writev",
        keys: &[
            key("call", Unit::Ns, |m, v| m.system_copy[0] = v, "a call"),
            key("page", Unit::Ns, |m, v| m.system_copy[1] = v, "each page of 4 KiB of it, without its copy"),
            key(
                "queued",
                Unit::Ns,
                |m, v| m.system_copy[2] = v,
                "the same for each page under way of the same process",
            ),
        ],
    },
];

/// A machine of which nothing is known yet.
pub fn blank() -> Machine {
    let shape = Shape { sockets: 1, numa_per_socket: 1, l3_per_numa: 1, l2_per_l3: 1, cores_per_l2: 1 };
    Machine {
        name: String::new(),
        shape,
        handover: [0; Distance::COUNT],
        serve: [0; Distance::COUNT],
        stream: [0; Distance::COUNT],
        overwrite: [0; Distance::COUNT],
        memory: [0; 2],
        shared: [0; 3],
        store: 0,
        caches: [0; 2],
        misses: 1,
        wrong_guess: 0,
        call: 0,
        poll: 0,
        combine: 0,
        system_copy: [0; 3],
        network: None,
    }
}

/// Whether two cores of a machine can be so far from each other.
pub fn has(shape: &Shape, distance: Distance) -> bool {
    match distance {
        Distance::Own => true,
        Distance::L2 => shape.cores_per_l2 > 1,
        Distance::L3 => shape.l2_per_l3 > 1,
        Distance::Numa => shape.l3_per_numa > 1,
        Distance::Socket => shape.numa_per_socket > 1,
        Distance::Node => shape.sockets > 1,
    }
}
