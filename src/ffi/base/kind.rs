// SPDX-License-Identifier: BSD-3-Clause
//! The shim's numbers of operations, and the modes that operations come in.

use crate::ffi::base::glue;

pub use crate::select::Operation as Kind;

// The operations are numbered as in `enum cr_kind`.
const _: () = {
    assert!(Kind::COUNT == glue::CR_KINDS as usize);
    assert!(Kind::Allgather as usize == glue::CR_ALLGATHER as usize);
    assert!(Kind::Allgatherv as usize == glue::CR_ALLGATHERV as usize);
    assert!(Kind::Allreduce as usize == glue::CR_ALLREDUCE as usize);
    assert!(Kind::Alltoall as usize == glue::CR_ALLTOALL as usize);
    assert!(Kind::Alltoallv as usize == glue::CR_ALLTOALLV as usize);
    assert!(Kind::Alltoallw as usize == glue::CR_ALLTOALLW as usize);
    assert!(Kind::Barrier as usize == glue::CR_BARRIER as usize);
    assert!(Kind::Bcast as usize == glue::CR_BCAST as usize);
    assert!(Kind::Exscan as usize == glue::CR_EXSCAN as usize);
    assert!(Kind::Gather as usize == glue::CR_GATHER as usize);
    assert!(Kind::Gatherv as usize == glue::CR_GATHERV as usize);
    assert!(Kind::NeighborAllgather as usize == glue::CR_NEIGHBOR_ALLGATHER as usize);
    assert!(Kind::NeighborAllgatherv as usize == glue::CR_NEIGHBOR_ALLGATHERV as usize);
    assert!(Kind::NeighborAlltoall as usize == glue::CR_NEIGHBOR_ALLTOALL as usize);
    assert!(Kind::NeighborAlltoallv as usize == glue::CR_NEIGHBOR_ALLTOALLV as usize);
    assert!(Kind::NeighborAlltoallw as usize == glue::CR_NEIGHBOR_ALLTOALLW as usize);
    assert!(Kind::Reduce as usize == glue::CR_REDUCE as usize);
    assert!(Kind::ReduceScatter as usize == glue::CR_REDUCE_SCATTER as usize);
    assert!(Kind::ReduceScatterBlock as usize == glue::CR_REDUCE_SCATTER_BLOCK as usize);
    assert!(Kind::Scan as usize == glue::CR_SCAN as usize);
    assert!(Kind::Scatter as usize == glue::CR_SCATTER as usize);
    assert!(Kind::Scatterv as usize == glue::CR_SCATTERV as usize);
};

/// In which form an operation is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Blocking,
    Nonblocking,
    Persistent,
}

impl Mode {
    /// Every mode, in the order of their numbers.
    pub const ALL: [Mode; 3] = [Mode::Blocking, Mode::Nonblocking, Mode::Persistent];

    /// As in the names of counters.
    pub fn name(self) -> &'static str {
        ["blocking", "nonblocking", "persistent"][self as usize]
    }
}

/// Whether every neighbour gets the same.
pub fn is_same(kind: Kind) -> bool {
    matches!(kind, Kind::NeighborAllgather | Kind::NeighborAllgatherv)
}

/// Whether each edge has as much data as any other edge of the same rank.
pub fn has_equal_blocks(kind: Kind) -> bool {
    matches!(kind, Kind::NeighborAllgather | Kind::NeighborAlltoall)
}
