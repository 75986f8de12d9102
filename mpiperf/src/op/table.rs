// SPDX-License-Identifier: BSD-3-Clause
//! The table of operations: names, kinds, and what each has.

use strsim::levenshtein;

use crate::error::{Error, Result};

use super::Mode;

/// Which MPI function, whatever the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names are MPI's
pub enum Kind {
    Barrier,
    Bcast,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
    Reduce,
    Allreduce,
    ReduceScatter,
    ReduceScatterBlock,
    Scan,
    Exscan,
    NeighborAllgather,
    NeighborAllgatherv,
    NeighborAlltoall,
    NeighborAlltoallv,
    NeighborAlltoallw,
    CommDup,
    CommSplit,
    CommCreate,
    CommFree,
    PingPong,
    Stream,
    Exchange,
}

/// An operation in the table.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// How it is called.
    pub mode: Mode,
    /// Has a root.
    pub rooted: bool,
    /// Has a message size (Barrier and the communicator functions have none).
    pub sized: bool,
    /// Reduces.
    pub reduces: bool,
    /// Has counts of its own for each rank.
    pub vector: bool,
    /// Has a form with `MPI_IN_PLACE`.
    pub in_place: bool,
    /// Works on the neighbours of a virtual topology.
    pub neighbor: bool,
    /// The MPI function.
    pub kind: Kind,
}

impl Operation {
    /// Makes or frees communicators.
    pub fn communicator(&self) -> bool {
        matches!(self.kind, Kind::CommDup | Kind::CommSplit | Kind::CommCreate | Kind::CommFree)
    }

    /// Sends messages between pairs of ranks.
    pub fn pairs(&self) -> bool {
        matches!(self.kind, Kind::PingPong | Kind::Stream | Kind::Exchange)
    }

    /// The datatype to use where none is asked for: one that every library gets right.
    pub fn default_datatype(&self, reduction: &str) -> &'static str {
        match (self.reduces, reduction) {
            (false, _) => "byte",
            (true, "affine") => "pair",
            (true, "band" | "bor" | "bxor" | "land" | "lor" | "lxor") => "int32",
            (true, _) => "float",
        }
    }
}

/// One entry: `flags` holds the letters of `Operation`'s properties: `r`ooted, `s`ized, `o` reduces,
/// `v`ector, `p` in place, `n`eighbor.
const fn entry(kind: Kind, mode: Mode, name: &'static str, flags: &str, about: &'static str) -> Operation {
    Operation {
        name,
        about,
        mode,
        rooted: has(flags, b'r'),
        sized: has(flags, b's'),
        reduces: has(flags, b'o'),
        vector: has(flags, b'v'),
        in_place: has(flags, b'p'),
        neighbor: has(flags, b'n'),
        kind,
    }
}

const fn has(flags: &str, flag: u8) -> bool {
    let (flags, mut i) = (flags.as_bytes(), 0);
    while i < flags.len() {
        if flags[i] == flag {
            return true;
        }
        i += 1;
    }
    false
}

macro_rules! table {
    ($($kind:ident $name:literal $flags:literal $about:literal;)*) => {
        &[
            $(entry(Kind::$kind, Mode::Blocking, $name, $flags, $about),)*
            $(entry(Kind::$kind, Mode::Nonblocking, concat!("i", $name), $flags, concat!($about, "; start and wait")),)*
            $(entry(Kind::$kind, Mode::Persistent, concat!($name, "_init"), $flags, concat!($about, "; persistent")),)*
            entry(Kind::CommDup, Mode::Blocking, "comm_dup", "", "a duplicate of the communicator"),
            entry(Kind::CommSplit, Mode::Blocking, "comm_split", "", "even and odd ranks into communicators of their own"),
            entry(Kind::CommCreate, Mode::Blocking, "comm_create", "", "a communicator of the same group"),
            entry(Kind::CommFree, Mode::Blocking, "comm_free", "", "frees a duplicate"),
            entry(Kind::PingPong, Mode::Blocking, "pingpong", "s", "a message there and one back, in each pair of ranks"),
            entry(Kind::Stream, Mode::Blocking, "stream", "s", "a window of messages one way, and an answer, in each pair"),
            entry(Kind::Exchange, Mode::Blocking, "exchange", "s", "a window of messages each way, in each pair"),
        ]
    };
}

static OPERATIONS: &[Operation] = table! {
    Barrier "barrier" "" "nobody leaves before all arrived";
    Bcast "bcast" "rs" "the root's message to all; size: the message";
    Gather "gather" "rsp" "a block from each to the root; size: a block";
    Gatherv "gatherv" "rsvp" "gather with counts; size: the mean block";
    Scatter "scatter" "rsp" "a block from the root to each; size: a block";
    Scatterv "scatterv" "rsvp" "scatter with counts; size: the mean block";
    Allgather "allgather" "sp" "a block from each to all; size: a block";
    Allgatherv "allgatherv" "svp" "allgather with counts; size: the mean block";
    Alltoall "alltoall" "sp" "a block from each to each; size: a block";
    Alltoallv "alltoallv" "svp" "alltoall with counts; size: the mean block";
    Alltoallw "alltoallw" "svp" "alltoall with counts and datatypes; size: the mean block";
    Reduce "reduce" "rsop" "the reduction of all to the root; size: the vector";
    Allreduce "allreduce" "sop" "the reduction of all to all; size: the vector";
    ReduceScatter "reduce_scatter" "sovp" "the reduction, a block to each, with counts; size: the mean block";
    ReduceScatterBlock "reduce_scatter_block" "sop" "the reduction, a block to each; size: a block";
    Scan "scan" "sop" "the reduction of the ranks up to one's own; size: the vector";
    Exscan "exscan" "sop" "the reduction of the ranks before one's own; size: the vector";
    NeighborAllgather "neighbor_allgather" "sn" "one block to all neighbours; size: the block";
    NeighborAllgatherv "neighbor_allgatherv" "svn" "neighbor_allgather with counts; size: the mean block";
    NeighborAlltoall "neighbor_alltoall" "sn" "a block to each neighbour; size: a block";
    NeighborAlltoallv "neighbor_alltoallv" "svn" "neighbor_alltoall with counts; size: the mean block";
    NeighborAlltoallw "neighbor_alltoallw" "svn" "neighbor_alltoall with counts and datatypes; size: the mean block";
};

/// All operations, in the order of the help.
pub fn operations() -> &'static [Operation] {
    OPERATIONS
}

/// The operation called `name`; otherwise an error that names the nearest and lists those there are.
pub fn find(name: &str) -> Result<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.name == name).ok_or_else(|| {
        let names: Vec<&str> = OPERATIONS.iter().map(|operation| operation.name).collect();
        unknown("operation", name, &names)
    })
}

/// The error for a `name` that is none of `names`.
pub(super) fn unknown(what: &str, name: &str, names: &[&str]) -> Error {
    let plain = name.to_lowercase().replace(['-', ' '], "_");
    let plain = plain.strip_prefix("mpi_").unwrap_or(&plain);
    let nearest = names
        .iter()
        .min_by_key(|known| levenshtein(plain, known))
        .filter(|known| levenshtein(plain, known) <= plain.len() / 2);
    let guess = nearest.map(|known| format!(" Did you mean '{known}'?")).unwrap_or_default();
    Error::usage(format!("there is no {what} '{name}'.{guess} Known: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_unique() {
        for (i, operation) in OPERATIONS.iter().enumerate() {
            assert_eq!(OPERATIONS.iter().position(|other| other.name == operation.name), Some(i));
            assert_eq!(find(operation.name).unwrap().kind, operation.kind);
        }
        assert_eq!(OPERATIONS.len(), 3 * 22 + 4 + 3);
        assert!(
            find("ialltoallw").unwrap().vector
                && find("reduce_init").unwrap().rooted
                && !find("barrier").unwrap().sized
        );
    }

    #[test]
    fn unknown_names_get_the_nearest_and_the_list() {
        let text = find("MPI_Alreduce").unwrap_err().to_string();
        assert!(text.contains("'allreduce'?") && text.contains("comm_free") && text.contains("MPI_Alreduce"), "{text}");
        let text = find("xyzzyplugh").unwrap_err().to_string();
        assert!(!text.contains("did you mean") && text.contains("'xyzzyplugh'. Known: barrier, bcast"), "{text}");
    }
}
