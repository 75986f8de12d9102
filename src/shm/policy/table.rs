// SPDX-License-Identifier: BSD-3-Clause
//! The table of ways.

use super::Operation;
use Operation::*;

/// A way: how bytes get from their writer to their readers inside a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // the table says it
pub enum Way {
    Inline,
    Slot,
    Whole,
    Pipeline,
    SingleCopy,
    TwoSided,
    Ring,
    Split,
    ReduceBcast,
    Relay,
    Chain,
    Tree,
}

/// What the table says of a way.
#[derive(Debug)]
pub struct Row {
    /// The way.
    pub way: Way,
    /// Its name: the value of parameters, the name in what is printed.
    pub name: &'static str,
    /// What happens, in a sentence.
    pub what: &'static str,
    /// What it needs.
    pub needs: &'static str,
    /// What may differ from call to call, or from setting to setting.
    pub parameters: &'static str,
    /// A number and its setting. Times are relative to those of Open MPI's coll/tuned where it does not say
    /// otherwise.
    pub gain: &'static str,
    /// The operations that have it.
    pub operations: &'static [Operation],
}

const ALL: &[Operation] =
    &[Barrier, Bcast, Gather, Scatter, Allgather, Alltoall, Reduce, Allreduce, ReduceScatter, Scan];
const DATA: &[Operation] = &[Bcast, Gather, Scatter, Allgather, Alltoall, Reduce, Allreduce, ReduceScatter, Scan];

/// All ways, in the order of their numbers.
pub const TABLE: &[Row] = &[
    Row {
        way: Way::Inline,
        name: "inline",
        what: "The data travel in the cache line of the flag that publishes them.",
        needs: "up to 56 bytes; of Scatter and Alltoall up to a block's share of them",
        parameters: "none",
        gain: "Barrier 0.54, Bcast 0.63 and Allreduce 0.58 of 8 bytes, two ranks with a core each",
        operations: ALL,
    },
    Row {
        way: Way::Slot,
        name: "slot",
        what: "The writer fills one eager slot, and the flag says that it is full.",
        needs: "up to 4 KiB (shm_fragment_size may make it less); of Scatter and Alltoall a block's share of them",
        parameters: "slots in use: as many as sets, or 4 where members share cores",
        gain: "Bcast 0.55, Allreduce 0.49 and Alltoallv 0.51 of 512 bytes, two ranks with a core each",
        operations: DATA,
    },
    Row {
        way: Way::Whole,
        name: "whole",
        what: "The same with a whole set of fragments as one slot, so that whoever has a core does all its part.",
        needs: "members that share cores; up to 64 KiB, or 256 KiB of what up to eight gather",
        parameters: "none",
        gain: "2 to 64 KiB of six operations 0.414, in fragments 0.431, four ranks on two cores",
        operations: &[Bcast, Gather, Allgather, Alltoall, Reduce, Allreduce, ReduceScatter],
    },
    Row {
        way: Way::Pipeline,
        name: "pipeline",
        what: "Pieces go through the slots of a set in turn: readers copy out while the writer copies in.",
        needs: "nothing",
        parameters: "bytes of a piece: a quarter of the message, 4 KiB at least, a fragment at most; a fragment where \
                     members share cores",
        gain: "Bcast 0.26 of 16 KiB and 0.38 of 64 KiB, two ranks with a core each",
        operations: &[Bcast, Gather, Scatter, Allgather, Alltoall, Reduce, Allreduce],
    },
    Row {
        way: Way::SingleCopy,
        name: "single_copy",
        what: "The reader copies from the private memory of the writer, who announces an address and waits; members \
               of an Allreduce read their parts of all operands.",
        needs: "members that can read each other's memory (shm_zero_copy), and data in one run of bytes; the writer \
                announces where they are not, and pipeline, or ring, stands in",
        parameters: "from how many bytes on (shm_zero_copy_min)",
        gain: "Alltoall and Alltoallv of 256 KiB to 1 MiB 0.87 to 0.98, through the queue 1.16 to 1.37, four ranks on two \
               cores",
        operations: &[Bcast, Gather, Scatter, Allgather, Alltoall, Allreduce],
    },
    Row {
        way: Way::TwoSided,
        name: "two_sided",
        what: "The reader copies one part from the writer's memory, while the writer copies the rest to the reader's.",
        needs: "a blocking call, a core for each member, and memory that others can write; single_copy stands in",
        parameters: "the writer's part: 1 / members, three quarters of that where it has a block of its own",
        gain: "at best half the time of single_copy with two members; measured once in each job, and taken where it pays",
        operations: &[Bcast, Gather, Scatter],
    },
    Row {
        way: Way::Ring,
        name: "ring",
        what: "The root takes its set as a ring. It writes the blocks one after the other, each as a whole or in \
               halves of the ring.",
        needs: "members that share cores, up to 128 of them; pipeline stands in",
        parameters: "none",
        gain: "Scatter of 16, 32 and 64 KiB 0.52, 0.61 and 0.79, by pipeline 0.79, 0.78 and 0.87, eight ranks on two \
               cores",
        operations: &[Scatter],
    },
    Row {
        way: Way::Split,
        name: "split",
        what: "Each member combines a part of every piece; all, or the root, collect the parts.",
        needs: "members with a core each (but Reduce_scatter), more than two for Reduce",
        parameters: "from how many bytes on: 8 KiB, 32 KiB of two members, 512 B to 2 KiB of eight and more",
        gain: "Allreduce of 64 KiB 0.47 on two cores of an Intel Xeon; not measured against pipeline",
        operations: &[Reduce, Allreduce, ReduceScatter],
    },
    Row {
        way: Way::ReduceBcast,
        name: "reduce_bcast",
        what: "Member 0 combines piece after piece, and all others read the results from its slots.",
        needs: "members that share cores",
        parameters: "from how many bytes on: 8 KiB, but not what travels whole",
        gain: "Allreduce of 64 KiB 0.35 and of 256 KiB 0.42, four ranks on two cores; not measured against split",
        operations: &[Allreduce],
    },
    Row {
        way: Way::Relay,
        name: "relay",
        what: "One member of the upper half combines that half, piece by piece ahead of the root, which combines the \
               rest.",
        needs: "a blocking call of three or more members that share cores",
        parameters: "128 KiB of a set are in use at a time, 256 KiB among up to eight",
        gain: "Reduce of 64 KiB to 1 MiB 0.636, by pipeline 0.679, four ranks on two cores",
        operations: &[Reduce],
    },
    Row {
        way: Way::Chain,
        name: "chain",
        what: "Each member combines its operand with what the member before has left in its slot, and leaves the result \
               for the next.",
        needs: "nothing",
        parameters: "from how many bytes on: 1 KiB",
        gain: "Scan 0.47 and Exscan 0.55 of 8 B to 1 MiB in the mean, two ranks; not measured against another way",
        operations: &[Scan],
    },
    Row {
        way: Way::Tree,
        name: "tree",
        what: "Data go along a tree of groups, such as those of a level-3 cache each; along each edge inline, in a slot, or \
               in pieces.",
        needs: "levels inside the node (coll_rust_levels), or eight members with a core each, and data too short for \
                another way of their own",
        parameters: "the levels; of a large group eight make one",
        gain: "not measured: no machine with so many cores was at hand; predicted in docs/design/many-cores.md",
        operations: &[Barrier, Bcast, Reduce, Allreduce],
    },
];

// The table has every way at its number.
const _: () = {
    let mut i = 0;
    while i < TABLE.len() {
        assert!(TABLE[i].way as usize == i);
        i += 1;
    }
};

impl Way {
    /// What the table says of it.
    pub const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The way of this name.
    pub fn named(name: &str) -> Option<Way> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.way)
    }

    /// Whether all of the data is published with the first step.
    pub const fn is_short(self) -> bool {
        matches!(self, Way::Inline | Way::Slot | Way::Whole)
    }

    /// Whether somebody reads the private memory of another member, of one block or more.
    pub const fn reads_peers(self) -> bool {
        matches!(self, Way::SingleCopy | Way::TwoSided)
    }

    /// Whether an operation has it.
    pub fn serves(self, operation: Operation) -> bool {
        self.row().operations.contains(&operation)
    }
}
