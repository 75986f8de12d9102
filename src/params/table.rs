// SPDX-License-Identifier: BSD-3-Clause
//! The table: in one file, though a long one, since it is nothing but a row for each parameter, in the order
//! in which they are printed.

use super::values::{Kind, backing, boolean, integer, op_levels, report, size, stores, times, wait, within, zero_copy};
use super::{Config, Gateways};
use crate::endpoint::MAX_LANES;
use crate::params::Show;
use crate::select::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Gather, Neighbor, Operation, Reduce, ReduceScatter, Scan, Scatter,
    Spec,
};
use crate::topo::LevelSpec;

/// One row of the table.
pub struct Param {
    /// Name without [`PREFIX`](super::PREFIX).
    pub name: &'static str,
    /// Names that it had in earlier releases, which are still understood.
    pub was: &'static [&'static str],
    /// What Open MPI registers it as.
    pub kind: Kind,
    /// Default value, as text.
    pub default: &'static str,
    /// What it does, for `ompi_info`: at most [`HELP_MAX`] characters, the first sentence says what.
    pub help: &'static str,
    /// What else the documentation says.
    pub details: &'static str,
    /// MPI_T verbosity level, 1 (end user, basic) to 9 (developer, all).
    pub level: u8,
    pub(super) accepted: fn() -> String,
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
}

/// The longest help text, in characters.
pub const HELP_MAX: usize = 160;

impl Param {
    /// The values that are understood.
    pub fn accepted(&self) -> String {
        (self.accepted)()
    }
}

const LEVELS_HELP: &str = "auto, none (one flat group), or a comma list: l2, l3, numa, socket, node, switch (every layer) or \
                           switch1 to switch4, cluster, grid (several clusters)";
const SIZE_HELP: &str = "auto, 0 (never cut), or a number of bytes with k, m or g after it for KiB, MiB, GiB";

fn levels_text() -> String {
    LEVELS_HELP.to_owned()
}
fn op_levels_text() -> String {
    format!("inherit (the value of coll_rust_levels), {LEVELS_HELP}")
}
fn size_text() -> String {
    SIZE_HELP.to_owned()
}
fn bool_text() -> String {
    "0, 1".to_owned()
}

macro_rules! levels_param {
    ($field:ident, $name:literal, $help:literal) => {
        Param {
            name: $name,
            was: &[],
            kind: Kind::Text,
            default: "inherit",
            help: $help,
            details: "",
            level: 3,
            accepted: op_levels_text,
            set: |c, t| op_levels(t).map(|v| c.$field.levels = v),
        }
    };
}

macro_rules! algorithm_param {
    ($family:ident of $operation:ident, $field:ident $(.$part:ident)?, $name:expr, $help:expr, $details:expr) => {
        Param {
            name: $name,
            was: &[],
            kind: Kind::Text,
            default: "auto",
            help: $help,
            details: $details,
            level: 3,
            accepted: || Spec::<$family>::accepted(Operation::$operation),
            set: |c, t| Spec::parse_for(Operation::$operation, t).map(|v| c.$field $(.$part)? = v),
        }
    };
}

/// What all details of algorithms end with.
macro_rules! within_nodes {
    ($details:expr) => {
        concat!(
            $details,
            "Within a node, data go through shared memory where there is some: shm:WAY says how (docs/reference/ways.md), and \
             only node:ALGORITHM makes them messages there, too."
        )
    };
}

macro_rules! flat_algorithm_param {
    ($family:ident of $operation:ident, $field:ident) => {
        flat_algorithm_param!($family of $operation, $field, "hierarchical leaves")
    };
    ($family:ident of $operation:ident, $field:ident, $leaves_nodes:literal) => {
        algorithm_param!(
            $family of $operation,
            $field,
            concat!(stringify!($field), "_algorithm"),
            concat!("Algorithm of ", stringify!($field), " by messages: between nodes, and within one that shares no memory."),
            within_nodes!(concat!(
                "On several nodes, ", $leaves_nodes, " what is within them to shared memory; the others are over all \
                 processes. "
            ))
        )
    };
}

macro_rules! neighbor_algorithm_param {
    ($family:ident of $operation:ident, $field:ident) => {
        neighbor_algorithm_param!($family of $operation, $field, but "")
    };
    ($family:ident of $operation:ident, $field:ident, with blocks) => {
        neighbor_algorithm_param!(
            $family of $operation,
            $field,
            but "Blocks of up to 1k on a Cartesian communicator of several nodes go by direct everywhere, unless shm is named. "
        )
    };
    ($family:ident of $operation:ident, $field:ident, but $but:literal) => {
        algorithm_param!(
            $family of $operation,
            $field,
            concat!(stringify!($field), "_algorithm"),
            concat!("Algorithm of ", stringify!($field), " by messages: between nodes, and within one that shares no memory."),
            within_nodes!($but)
        )
    };
}

macro_rules! segment_param {
    ($field:ident, $name:literal, $help:literal) => {
        Param {
            name: $name,
            was: &[],
            kind: Kind::Size { auto: true },
            default: "auto",
            help: $help,
            details: "",
            level: 4,
            accepted: size_text,
            set: |c, t| size(t).map(|v| c.$field.segment_size = v),
        }
    };
}

/// Every parameter.
pub const TABLE: &[Param] = &[
    Param {
        name: "priority",
        was: &[],
        kind: Kind::Int { auto: false },
        default: "45",
        help: "Priority of the component: above tuned and han, below sync, self and accelerator. Negative: not \
               used.",
        details: "",
        level: 6,
        accepted: || "a whole number from -1 to 100".to_owned(),
        set: |c, t| integer(t, -1, 100).map(|v| c.priority = v as i32),
    },
    Param {
        name: "verbose",
        was: &[],
        kind: Kind::Int { auto: false },
        default: "0",
        help: "How much is told. 0: errors and warnings. 1: version and job once, from rank 0. 2: also a line \
               per communicator and rank.",
        details: "",
        level: 8,
        accepted: || "0, 1, 2".to_owned(),
        set: |c, t| integer(t, 0, 2).map(|v| c.verbose = v as u8),
    },
    Param {
        name: "strict",
        was: &[],
        kind: Kind::Bool,
        default: "0",
        help: "A name coll_rust_... that is no parameter ends the job, instead of a warning.",
        details: "In the environment, on the command line and in parameter files.",
        level: 3,
        accepted: bool_text,
        set: |c, t| boolean(t).map(|v| c.strict = v),
    },
    Param {
        name: "levels",
        was: &[],
        kind: Kind::Text,
        default: "auto",
        help: "Levels of the hierarchy of groups. auto takes every level that the machine has and that changes \
               the groups.",
        details: "A level above the node, or within it, brings the node level with it. In shared memory, short \
               Bcast, Reduce and Allreduce, and Barrier, go along the levels inside the node that are listed, \
               if their algorithm is shm; with auto, and 24 processes or more with a core each, along level-3 \
               caches of a few processes, NUMA nodes, or by number.",
        level: 2,
        accepted: levels_text,
        set: |c, t| LevelSpec::parse(t).map(|v| c.levels = v),
    },
    levels_param!(bcast, "bcast_levels", "Levels of the hierarchy of Bcast."),
    algorithm_param!(
        Bcast of Bcast,
        bcast.algorithm,
        "bcast_algorithm",
        "Algorithm of Bcast by messages, one for all levels or one per level.",
        within_nodes!("Allreduce uses it on the way down. ")
    ),
    segment_param!(
        bcast,
        "bcast_segment_size",
        "Segment size of Bcast in bytes: segments flow through all levels at once."
    ),
    levels_param!(reduce, "reduce_levels", "Levels of the hierarchy of Reduce."),
    algorithm_param!(
        Reduce of Reduce,
        reduce.algorithm,
        "reduce_algorithm",
        "Algorithm of Reduce by messages, one for all levels or one per level.",
        within_nodes!("Allreduce uses it on the way up. ")
    ),
    segment_param!(
        reduce,
        "reduce_segment_size",
        "Segment size of Reduce in bytes, rounded down to whole elements. User-defined operations are never cut."
    ),
    levels_param!(allreduce, "allreduce_levels", "Levels of the hierarchy of Allreduce."),
    algorithm_param!(
        Allreduce of Allreduce,
        allreduce.algorithm,
        "allreduce_algorithm",
        "How Allreduce is composed. reduce_bcast reduces to rank 0 and broadcasts; the others run in the topmost group.",
        within_nodes!("They run between the way up and the way down. ")
    ),
    segment_param!(
        allreduce,
        "allreduce_segment_size",
        "Segment size of Allreduce in bytes, rounded down to whole elements. User-defined operations are never cut."
    ),
    levels_param!(barrier, "barrier_levels", "Levels of the hierarchy of Barrier."),
    algorithm_param!(
        Barrier of Barrier,
        barrier.algorithm,
        "barrier_algorithm",
        "Algorithm of Barrier by messages, one for all levels or one per level.",
        within_nodes!("Below the topmost group, members arrive by it and are released along a tree. ")
    ),
    flat_algorithm_param!(Gather of Gather, gather, "hierarchical and linear leave"),
    flat_algorithm_param!(Gather of Gatherv, gatherv, "hierarchical and linear leave"),
    flat_algorithm_param!(Scatter of Scatter, scatter, "hierarchical and linear leave"),
    flat_algorithm_param!(Scatter of Scatterv, scatterv, "hierarchical and linear leave"),
    flat_algorithm_param!(Allgather of Allgather, allgather),
    flat_algorithm_param!(Allgather of Allgatherv, allgatherv),
    flat_algorithm_param!(Alltoall of Alltoall, alltoall, "hierarchical and spread leave"),
    flat_algorithm_param!(Alltoall of Alltoallv, alltoallv, "hierarchical and spread leave"),
    flat_algorithm_param!(Alltoall of Alltoallw, alltoallw, "hierarchical and spread leave"),
    flat_algorithm_param!(ReduceScatter of ReduceScatter, reduce_scatter),
    flat_algorithm_param!(ReduceScatter of ReduceScatterBlock, reduce_scatter_block),
    flat_algorithm_param!(Scan of Scan, scan),
    flat_algorithm_param!(Scan of Exscan, exscan),
    neighbor_algorithm_param!(Neighbor of NeighborAllgather, neighbor_allgather, with blocks),
    neighbor_algorithm_param!(Neighbor of NeighborAllgatherv, neighbor_allgatherv),
    neighbor_algorithm_param!(Neighbor of NeighborAlltoall, neighbor_alltoall, with blocks),
    neighbor_algorithm_param!(Neighbor of NeighborAlltoallv, neighbor_alltoallv),
    neighbor_algorithm_param!(Neighbor of NeighborAlltoallw, neighbor_alltoallw),
    Param {
        name: "window",
        was: &[],
        kind: Kind::Int { auto: false },
        default: "8",
        help: "Segments of one operation that are in flight at a time.",
        details: "",
        level: 5,
        accepted: || format!("a whole number from 1 to {MAX_LANES}"),
        set: |c, t| integer(t, 1, i64::from(MAX_LANES)).map(|v| c.window = v as u8),
    },
    Param {
        name: "flow_limit",
        was: &[],
        kind: Kind::Int { auto: false },
        default: "64",
        help: "Operations on a communicator after which the next one synchronises, so that a rank that runs \
               ahead floods no buffers. 0: never.",
        details: "Those count that some ranks need not wait in (Bcast, Reduce, Gather, Scatter, Scan and their \
               other forms; on distributed graphs, those with neighbours) and that go point-to-point.",
        level: 5,
        accepted: || "a whole number from 0 to 1000000".to_owned(),
        set: |c, t| integer(t, 0, 1_000_000).map(|v| c.flow_limit = v as u32),
    },
    Param {
        name: "first_calls",
        was: &[],
        kind: Kind::Int { auto: false },
        default: "3",
        help: "So many of a communicator's first blocking calls go to the component below: to make shared memory \
               for them would take longer.",
        details: "Not those along edges, nor Reduce_scatter, nor operations whose algorithm or levels are set, and \
               none at all with coll_rust_reproducible or coll_rust_show = decisions. 0: every call is the \
               component's own from the first one on.",
        level: 5,
        accepted: || "a whole number from 0 to 1000000".to_owned(),
        set: |c, t| integer(t, 0, 1_000_000).map(|v| c.first_calls = v as u32),
    },
    Param {
        name: "network_file",
        was: &[],
        kind: Kind::Text,
        default: "auto",
        help: "Which switches the nodes hang on: as Slurm tells each task (auto), unknown (none), or as a file says.",
        details: "A table, or Slurm's topology.conf or topology.yaml (docs/reference/network.md). It may name several clusters (docs/guide/clusters.md).",
        level: 2,
        accepted: || "auto, none, or the path of a readable file".to_owned(),
        set: |c, t| {
            c.network_file = t.trim().to_owned();
            Ok(())
        },
    },
    Param {
        name: "gateway",
        was: &[],
        kind: Kind::Text,
        default: "none",
        help: "Where the gateways of the clusters are that the network file names (docs/guide/clusters.md).",
        details: "Messages of collectives between clusters then go through the gateway of one's own cluster, and not \
                  point-to-point.",
        level: 2,
        accepted: || "none, HOST:PORT, or a comma list of CLUSTER=HOST:PORT".to_owned(),
        set: |c, t| Gateways::parse(t).map(|v| c.gateways = v),
    },
    Param {
        name: "gateway_key",
        was: &[],
        kind: Kind::Text,
        default: "",
        help: "The file with the key that the gateways know.",
        details: "Its first line has 64 hex digits, or a name, a colon, and these; nobody but its owner, who runs the \
                  program, may read it.",
        level: 2,
        accepted: || "the path, from / on, of a file with mode 0600 or 0400".to_owned(),
        set: |c, t| {
            let path = t.trim();
            // The runtime may start processes in any folder.
            if !(path.is_empty() || path.starts_with('/')) {
                return Err("it does not begin with /".to_owned());
            }
            c.gateway_key = path.to_owned();
            Ok(())
        },
    },
    Param {
        name: "shm_node_limit",
        was: &["shm_limit"],
        kind: Kind::Size { auto: true },
        default: "auto",
        help: "Shared memory of all processes of a job on one node together. Each process has an equal share. \
               0: no shared memory.",
        details: "Where a share is spent, point-to-point messages take over. auto: 256m, or an eighth of the memory that the \
                  processes may use (control groups, the machine), if that is less.",
        level: 3,
        accepted: || "auto, or a number of bytes with k, m or g after it for KiB, MiB, GiB".to_owned(),
        set: |c, t| size(t).map(|v| c.shm.limit = v.map(|v| v as u64)),
    },
    Param {
        name: "shm_backing",
        was: &[],
        kind: Kind::Text,
        default: "auto",
        help: "Where shared memory comes from: anonymous files (memfd), or files in a folder.",
        details: "Files have names only where processes cannot open each other's descriptors, and until all have \
               opened them. auto: memfd, and /dev/shm where they cannot. A folder in which no file can be made is told; \
               point-to-point messages take over.",
        level: 5,
        accepted: || "auto, memfd, or the absolute path of a folder".to_owned(),
        set: |c, t| backing(t).map(|v| c.shm.backing = v),
    },
    Param {
        name: "shm_fragment_size",
        was: &[],
        kind: Kind::Size { auto: true },
        default: "auto",
        help: "Bytes of a fragment. Larger messages go through shared memory in fragments.",
        details: "Rounded up to a multiple of 64, and to 128 bytes for each process. auto: 16k; 32k where up to 8 \
               processes of a communicator share fewer cores. (Some operations make longer ones of \
               several: a long Alltoall there, for example, and blocking long Gathers and Allgathers.)",
        level: 5,
        accepted: || "auto, or a number of bytes from 128 to 16m".to_owned(),
        set: |c, t| within(t, 128, 16 << 20).map(|v| c.shm.fragment_size = v),
    },
    Param {
        name: "shm_fragments",
        was: &[],
        kind: Kind::Int { auto: true },
        default: "auto",
        help: "Fragments of a process' queue in shared memory, over all sets. Rounded down to a power of two.",
        details: "auto: 32, and fewer where a node has more than 32 processes. 128 on processors of AMD's where 2 \
               to 4 processes of a communicator have a core each: so 2m are a ring of slots. That is if neither \
               this nor coll_rust_shm_fragment_size nor coll_rust_shm_sets is given. And each process' share of \
               coll_rust_shm_node_limit must be 16m or more.",
        level: 5,
        accepted: || "auto, or a whole number from 1 to 64".to_owned(),
        set: |c, t| within(t, 1, 64).map(|v| c.shm.fragments = v),
    },
    Param {
        name: "shm_sets",
        was: &[],
        kind: Kind::Int { auto: true },
        default: "auto",
        help: "Sets that a queue in shared memory is divided into. So many operations may be about at a time.",
        details: "Rounded down to a power of two, and to 4 where processes share cores. auto: 2; 8 \
               where slots are a ring (coll_rust_shm_fragments).",
        level: 5,
        accepted: || "auto, or a whole number from 1 to 8".to_owned(),
        set: |c, t| within(t, 1, 8).map(|v| c.shm.sets = v),
    },
    Param {
        name: "shm_stores",
        was: &[],
        kind: Kind::Choice(&["auto", "cached", "streaming"]),
        default: "auto",
        help: "How a process writes 4k and more to its queues. cached: through its caches; streaming: past them \
               (on x86-64; elsewhere as cached).",
        details: "auto: past them while such writes take as long as if cache lines had to come back from far. So, \
               too, on processors of AMD's, in long Gathers and Scatters of more processes than cores. Through the caches in any case: what is not contiguous, and what is computed in its place, as \
               results of Scan.",
        level: 5,
        accepted: || "auto, cached, streaming".to_owned(),
        set: |c, t| stores(t).map(|v| c.shm.stores = v),
    },
    Param {
        name: "shm_wait",
        was: &["wait"],
        kind: Kind::Choice(&["auto", "spin", "yield", "block"]),
        default: "auto",
        help: "How a blocking operation waits in shared memory. spin; yield the core after every look; block: \
               sleep until woken.",
        details: "auto spins, and yields, then sleeps where there are more processes than cores that they may use \
               (affinity, quotas of control groups); on one of several nodes it sleeps soon there, and so with \
               mpi_yield_when_idle. All ways look after other communication at least every millisecond.",
        level: 4,
        accepted: || "auto, spin, yield, block".to_owned(),
        set: |c, t| wait(t).map(|v| c.shm.wait = v),
    },
    Param {
        name: "shm_zero_copy",
        was: &["zero_copy"],
        kind: Kind::Choice(&["auto", "cma", "smsc", "off"]),
        default: "auto",
        help: "How processes of a node read large messages from each other's memory, where that works between \
               all of them. off: they do not.",
        details: "cma: by cross memory attach (process_vm_readv, and process_vm_writev where both sides share the \
               work). smsc: by what Open MPI's framework smsc has selected, such as XPMEM (Open MPI 5.0; \
               --mca smsc chooses). auto: by smsc if that maps memory, as XPMEM does; else by cma; else by \
               smsc. Not by one that reads only what was registered before (KNEM).",
        level: 4,
        accepted: || "auto, cma, smsc (with Open MPI 5.0), off".to_owned(),
        set: |c, t| zero_copy(t).map(|v| c.shm.zero_copy = v),
    },
    Param {
        name: "shm_zero_copy_min",
        was: &["zero_copy_min"],
        kind: Kind::Size { auto: true },
        default: "auto",
        help: "Messages of so many bytes (blocks, in operations that have them) are read from the other's \
               memory.",
        details: "auto: for each operation as follows from shm_times. With cma, not from 1m on in a blocking \
               Alltoall of two processes on one node whose slots are a ring (unless shm_stores is cached). Where there are no times: 16k in Scatter, 64k in Alltoall, and never \
               elsewhere. Where n processes of a communicator share fewer cores: 16m / n² in Scatter, 4m / n² in \
               Alltoall and Neighbor_alltoall, at least 128k; never elsewhere. With cma on \
               processors of AMD's, and up to 8 processes, never in Alltoall there (unless shm_stores is \
               cached); on one of several nodes, with mpi_yield_when_idle, 128k.",
        level: 5,
        accepted: || "auto, or a number of bytes with k, m or g after it for KiB, MiB, GiB".to_owned(),
        set: |c, t| size(t).map(|v| c.shm.zero_copy_min = v),
    },
    Param {
        name: "shm_times",
        was: &[],
        kind: Kind::Text,
        default: "auto",
        help: "How long the ways of copying take between two cores of the node, from which shm_zero_copy_min = \
               auto follows.",
        details: "auto: as usual for processors of the kind. measure: the first blocking operation on the first \
               communicator of a process measures them, which takes some milliseconds; with coll_rust_verbose = 2 \
               it says them, as this parameter takes them: a site can measure once, and give them in \
               openmpi-mca-params.conf. Otherwise nanoseconds, each for 16, 64 and 256 KiB. The \
               first four are of a broadcast between two processes: through the queue, through the queue and the \
               caches, read, shared between both. The last is of a copy within a process.",
        level: 6,
        accepted: || {
            "auto, measure, or five times three times, such as 2100/6200/15000,2100/6200/15000,3600/9200/22000,1500/5000/12000,500/1600/6500".to_owned()
        },
        set: |c, t| times(t).map(|v| c.shm.times = v),
    },
    Param {
        name: "reproducible",
        was: &[],
        kind: Kind::Bool,
        default: "0",
        help: "Floating-point results of reductions are bitwise equal for any placement of the same ranks, any root, any segment size.",
        details: "Values of Reduce and Allreduce are combined along a fixed tree over the ranks. Reduce_scatter, \
               Reduce_scatter_block, Scan and Exscan go point-to-point, in an order that only the algorithm and \
               the number of ranks decide.",
        level: 2,
        accepted: bool_text,
        set: |c, t| boolean(t).map(|v| c.reproducible = v),
    },
    Param {
        name: "show",
        was: &[],
        kind: Kind::Text,
        default: "none",
        help: "Printed by rank 0: groups as text (hierarchy) or for Graphviz (dot), parameters in force (config), \
               which way calls go (decisions).",
        details: "By rank 0 of MPI_COMM_WORLD, once. Where the groups fill more than 25 lines, equal ones are printed once. decisions: at the \
               first call of each operation and power of two in size, the rule that chose, and what: the way \
               inside the node, or the algorithm of each level. Calls take longer then.",
        level: 2,
        accepted: || "none, or a comma list of hierarchy, dot, config, decisions".to_owned(),
        set: |c, t| {
            c.show = Show::default();
            for word in t.split(',').map(str::trim) {
                match word {
                    "none" => {}
                    "hierarchy" => c.show.hierarchy = true,
                    "dot" => c.show.dot = true,
                    "config" => c.show.config = true,
                    "decisions" => c.show.decisions = true,
                    _ => return Err(format!("\"{word}\" cannot be shown")),
                }
            }
            Ok(())
        },
    },
    Param {
        name: "report",
        was: &[],
        kind: Kind::Text,
        default: "none",
        help: "Counters that MPI_Finalize reports. sum: one table over all ranks; ranks: every rank's; json:FOLDER: a file of every rank's.",
        details: "They count calls handled and passed on, and messages and bytes per level. For sum, the ranks send theirs to rank 0 of \
                  MPI_COMM_WORLD when all have reached MPI_Finalize; who sends nothing for five seconds is left out, and the table says so; in several clusters every rank reports its own. \
                  1 stands for ranks, 0 for none.",
        level: 2,
        accepted: || "none, sum, ranks, json:FOLDER".to_owned(),
        set: |c, t| report(t).map(|v| c.report = v),
    },
];
