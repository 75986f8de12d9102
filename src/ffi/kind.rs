//! The operations of the component, and the modes they come in.

use super::glue;

/// An operation; the values are those of `enum cr_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    Allgather = glue::CR_ALLGATHER as usize,
    Allgatherv = glue::CR_ALLGATHERV as usize,
    Allreduce = glue::CR_ALLREDUCE as usize,
    Alltoall = glue::CR_ALLTOALL as usize,
    Alltoallv = glue::CR_ALLTOALLV as usize,
    Alltoallw = glue::CR_ALLTOALLW as usize,
    Barrier = glue::CR_BARRIER as usize,
    Bcast = glue::CR_BCAST as usize,
    Exscan = glue::CR_EXSCAN as usize,
    Gather = glue::CR_GATHER as usize,
    Gatherv = glue::CR_GATHERV as usize,
    Reduce = glue::CR_REDUCE as usize,
    ReduceScatter = glue::CR_REDUCE_SCATTER as usize,
    ReduceScatterBlock = glue::CR_REDUCE_SCATTER_BLOCK as usize,
    Scan = glue::CR_SCAN as usize,
    Scatter = glue::CR_SCATTER as usize,
    Scatterv = glue::CR_SCATTERV as usize,
}

const TABLE: [(Kind, &str); Kind::COUNT] = [
    (Kind::Allgather, "allgather"),
    (Kind::Allgatherv, "allgatherv"),
    (Kind::Allreduce, "allreduce"),
    (Kind::Alltoall, "alltoall"),
    (Kind::Alltoallv, "alltoallv"),
    (Kind::Alltoallw, "alltoallw"),
    (Kind::Barrier, "barrier"),
    (Kind::Bcast, "bcast"),
    (Kind::Exscan, "exscan"),
    (Kind::Gather, "gather"),
    (Kind::Gatherv, "gatherv"),
    (Kind::Reduce, "reduce"),
    (Kind::ReduceScatter, "reduce_scatter"),
    (Kind::ReduceScatterBlock, "reduce_scatter_block"),
    (Kind::Scan, "scan"),
    (Kind::Scatter, "scatter"),
    (Kind::Scatterv, "scatterv"),
];

// The table has every operation at its number.
const _: () = {
    let mut i = 0;
    while i < Kind::COUNT {
        assert!(TABLE[i].0 as usize == i);
        i += 1;
    }
};

impl Kind {
    /// Number of operations.
    pub const COUNT: usize = glue::CR_KINDS as usize;

    /// Every operation, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Kind> {
        TABLE.iter().map(|(kind, _)| *kind)
    }

    /// From the shim's number.
    pub fn from_number(number: i32) -> Option<Kind> {
        usize::try_from(number).ok().and_then(|n| TABLE.get(n)).map(|(kind, _)| *kind)
    }

    /// As in the names of parameters and counters.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Whether the send side of a call says anything.
    pub fn sends(self, is_root: bool) -> bool {
        match self {
            Kind::Barrier | Kind::Bcast => false,
            Kind::Scatter | Kind::Scatterv => is_root,
            _ => true,
        }
    }

    /// Whether the receive side of a call, which is Bcast's buffer, says anything.
    pub fn receives(self, is_root: bool) -> bool {
        match self {
            Kind::Barrier => false,
            Kind::Gather | Kind::Gatherv | Kind::Reduce => is_root,
            _ => true,
        }
    }

    /// Whether some ranks wait for nobody in it, and so may run ahead of the others.
    pub fn is_one_way(self) -> bool {
        match self {
            Kind::Bcast | Kind::Scatter | Kind::Scatterv => true,
            Kind::Gather | Kind::Gatherv | Kind::Reduce => true,
            Kind::Exscan | Kind::Scan => true,
            Kind::Allgather | Kind::Allgatherv | Kind::Allreduce | Kind::Barrier => false,
            Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw => false,
            Kind::ReduceScatter | Kind::ReduceScatterBlock => false,
        }
    }
}

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
