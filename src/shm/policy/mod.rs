// SPDX-License-Identifier: BSD-3-Clause
//! What an operation does inside a node: one table of ways, and one function that chooses among them.
//!
//! Pure: numbers in, a row out. This module imports nothing, and knows no memory, no team and no MPI. The
//! files in [`op`](super::op) gather the [`Facts`], ask [`choose()`], and run what it names.
//!
//! * [`table`]: the ways. Each has a name, what it needs, a sentence, and its gain where that was measured.
//! * [`choose`](choose::choose): total; the [`Rule`] that it answers with says why.
//!
//! `docs/reference/ways.md` is made from both, and a test keeps it so.
//!
//! Words: a *way* is how the bytes of an operation get from their writer to their readers. The *flag* is the
//! word by which a writer publishes; its cache line has room for a few bytes. An *eager slot* holds a short
//! message. A *fragment* is one slot of a *set*, through which longer messages flow.

pub mod choose;
pub mod table;
// Numbers only: too many of them for an interpreter.
#[cfg(all(test, not(miri)))]
mod tests;

use choose::is_available;
pub use choose::{Choice, Rule, Writer, choose, forced_limit, share_among, writers_part};
pub use table::{Row, TABLE, Way};

/// The operations that the table tells apart. Vector forms, and those of neighbourhoods, are chosen for block
/// by block, as the operation that they extend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // their names say it
pub enum Operation {
    Barrier,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    /// And Exscan.
    Scan,
}

impl Operation {
    /// Every operation, in the order of their numbers.
    pub const ALL: [Operation; 10] = [
        Operation::Barrier,
        Operation::Bcast,
        Operation::Gather,
        Operation::Scatter,
        Operation::Allgather,
        Operation::Alltoall,
        Operation::Reduce,
        Operation::Allreduce,
        Operation::ReduceScatter,
        Operation::Scan,
    ];

    /// Its name in what is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Barrier => "barrier",
            Operation::Bcast => "bcast",
            Operation::Gather => "gather",
            Operation::Scatter => "scatter",
            Operation::Allgather => "allgather",
            Operation::Alltoall => "alltoall",
            Operation::Reduce => "reduce",
            Operation::Allreduce => "allreduce",
            Operation::ReduceScatter => "reduce_scatter",
            Operation::Scan => "scan",
        }
    }
}

/// How the members have cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Each has one for itself.
    Dedicated,
    /// They take turns on fewer, or give them away where they wait.
    Shared,
}

/// How the operation was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All members are within the call until it is over.
    Blocking,
    /// Members may compute meanwhile.
    Nonblocking,
    /// As nonblocking.
    Persistent,
}

/// The groups of a tree of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// There is no tree.
    None,
    /// By what the machine has, which nobody has asked for.
    Unasked,
    /// Others.
    Given,
}

/// What members can do with each other's private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Nobody,
    /// Read.
    Reads,
    /// Read and write.
    Writes,
}

impl Access {
    /// Whether a member can read another's.
    fn reads(self) -> bool {
        self != Access::Nobody
    }
}

/// Bytes that each place has room for, of what the choice is about: of the data, or of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rooms {
    /// The flag's cache line, or a block's share of it.
    pub line: usize,
    /// An eager slot, or a block's share of it.
    pub slot: usize,
    /// A set taken as one slot, or a block's share of it; 0 where sets are not taken so.
    pub whole: usize,
}

/// Limits that were measured or configured; the same for all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From so many bytes on the peer's memory is read, ...
    pub reads_from: usize,
    /// ... and up to so many, which are not.
    pub reads_end: usize,
    /// From so many bytes on members share the work of a reduction.
    pub shared_work: usize,
    /// The smallest part that is worth being copied by the writer where both sides copy.
    pub divided: usize,
}

/// What is known where a way is chosen: by all whom the choice concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What is done.
    pub operation: Operation,
    /// Bytes of all data, or, in Gather, Scatter, Allgather and Alltoall, of one block. `None`: the caller
    /// does not know them, as in the vector forms of others' blocks.
    pub bytes: Option<usize>,
    /// Bytes of an element of a reduction.
    pub element: usize,
    /// Number of members.
    pub members: usize,
    /// How they have cores.
    pub cores: Cores,
    /// How it was called.
    pub mode: Mode,
    /// What members can do with each other's memory.
    pub access: Access,
    /// What has room where.
    pub rooms: Rooms,
    /// Limits.
    pub limits: Limits,
    /// Whether there is a tree of groups of members that the root leads.
    pub tree: Groups,
    /// The blocks to be sent lie where those to be received go (Alltoall).
    pub in_place: bool,
    /// The way that a parameter names, if one does. Where it cannot be, another one is chosen.
    pub forced: Option<Way>,
}

impl Facts {
    /// The same for so many bytes: their way.
    #[inline]
    pub fn way(&self, bytes: usize) -> Way {
        choose(&Facts { bytes: Some(bytes), ..*self }).way
    }

    /// The way that a parameter names, where what it needs is there, whatever the length.
    pub fn forced(&self) -> Option<Way> {
        self.forced.filter(|&way| is_available(self, way))
    }

    /// Whether members share cores, and are all within the call.
    fn is_crowded(&self) -> bool {
        self.cores == Cores::Shared && self.mode == Mode::Blocking
    }
}
