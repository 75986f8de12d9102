// SPDX-License-Identifier: BSD-3-Clause
//! The operations of the component.

use crate::shm::policy;

/// An operation, in the order of the shim's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
#[allow(missing_docs)] // their names say it
pub enum Operation {
    Allgather,
    Allgatherv,
    Allreduce,
    Alltoall,
    Alltoallv,
    Alltoallw,
    Barrier,
    Bcast,
    Exscan,
    Gather,
    Gatherv,
    NeighborAllgather,
    NeighborAllgatherv,
    NeighborAlltoall,
    NeighborAlltoallv,
    NeighborAlltoallw,
    Reduce,
    ReduceScatter,
    ReduceScatterBlock,
    Scan,
    Scatter,
    Scatterv,
}

use Operation::*;

const TABLE: [(Operation, &str); Operation::COUNT] = [
    (Allgather, "allgather"),
    (Allgatherv, "allgatherv"),
    (Allreduce, "allreduce"),
    (Alltoall, "alltoall"),
    (Alltoallv, "alltoallv"),
    (Alltoallw, "alltoallw"),
    (Barrier, "barrier"),
    (Bcast, "bcast"),
    (Exscan, "exscan"),
    (Gather, "gather"),
    (Gatherv, "gatherv"),
    (NeighborAllgather, "neighbor_allgather"),
    (NeighborAllgatherv, "neighbor_allgatherv"),
    (NeighborAlltoall, "neighbor_alltoall"),
    (NeighborAlltoallv, "neighbor_alltoallv"),
    (NeighborAlltoallw, "neighbor_alltoallw"),
    (Reduce, "reduce"),
    (ReduceScatter, "reduce_scatter"),
    (ReduceScatterBlock, "reduce_scatter_block"),
    (Scan, "scan"),
    (Scatter, "scatter"),
    (Scatterv, "scatterv"),
];

// The table has every operation at its number.
const _: () = {
    let mut i = 0;
    while i < Operation::COUNT {
        assert!(TABLE[i].0 as usize == i);
        i += 1;
    }
};

impl Operation {
    /// Number of operations.
    pub const COUNT: usize = 22;

    /// Every operation, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Operation> {
        TABLE.iter().map(|(operation, _)| *operation)
    }

    /// From its number.
    pub fn from_number(number: i32) -> Option<Operation> {
        usize::try_from(number).ok().and_then(|n| TABLE.get(n)).map(|(operation, _)| *operation)
    }

    /// As in the names of parameters and counters.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// What the table of ways inside a node calls it.
    pub fn of_ways(self) -> policy::Operation {
        use policy::Operation as Of;
        match self {
            Barrier => Of::Barrier,
            Bcast => Of::Bcast,
            Gather | Gatherv => Of::Gather,
            Scatter | Scatterv => Of::Scatter,
            Allgather | Allgatherv | NeighborAllgather | NeighborAllgatherv => Of::Allgather,
            Alltoall | Alltoallv | Alltoallw => Of::Alltoall,
            NeighborAlltoall | NeighborAlltoallv | NeighborAlltoallw => Of::Alltoall,
            Reduce => Of::Reduce,
            Allreduce => Of::Allreduce,
            ReduceScatter | ReduceScatterBlock => Of::ReduceScatter,
            Scan | Exscan => Of::Scan,
        }
    }

    /// Whether the send side of a call says anything.
    pub fn sends(self, is_root: bool) -> bool {
        match self {
            Barrier | Bcast => false,
            Scatter | Scatterv => is_root,
            _ => true,
        }
    }

    /// Whether the receive side of a call, which is Bcast's buffer, says anything.
    pub fn receives(self, is_root: bool) -> bool {
        match self {
            Barrier => false,
            Gather | Gatherv | Reduce => is_root,
            _ => true,
        }
    }

    /// Whether some ranks wait for nobody in it, and so may run ahead of the others.
    pub fn is_one_way(self) -> bool {
        match self {
            Bcast | Scatter | Scatterv => true,
            Gather | Gatherv | Reduce => true,
            Exscan | Scan => true,
            Allgather | Allgatherv | Allreduce | Barrier => false,
            Alltoall | Alltoallv | Alltoallw => false,
            ReduceScatter | ReduceScatterBlock => false,
            // It depends on the communicator.
            NeighborAllgather | NeighborAllgatherv => false,
            NeighborAlltoall | NeighborAlltoallv | NeighborAlltoallw => false,
        }
    }

    /// Whether it goes along the edges of the communicator's process topology.
    pub fn is_neighbor(self) -> bool {
        use Operation as O;
        matches!(self, O::NeighborAllgather | O::NeighborAllgatherv)
            || matches!(self, O::NeighborAlltoall | O::NeighborAlltoallv | O::NeighborAlltoallw)
    }

    /// Whether there is a block of one length for each rank.
    pub fn has_equal_blocks(self) -> bool {
        matches!(self, Allgather | Alltoall | Gather | ReduceScatterBlock | Scatter)
    }

    /// Whether it combines values.
    pub fn reduces(self) -> bool {
        matches!(self, Allreduce | Exscan | Reduce | ReduceScatter | ReduceScatterBlock | Scan)
    }
}
