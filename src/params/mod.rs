// SPDX-License-Identifier: BSD-3-Clause
//! The parameters: one table ([`TABLE`]), from which registration, `ompi_info`, parsing, checks, the docs and
//! the tests are made.
#![forbid(unsafe_code)]

mod gateways;
mod hooks;
mod messages;
mod table;
mod unknown;
mod values;

pub use gateways::Gateways;
pub use hooks::set_for_tests;
pub use messages::Topic;
pub use table::{HELP_MAX, Param, TABLE};
pub use unknown::{from_environment, unknown_names};
pub use values::Kind;

use crate::select::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Family, Gather, Neighbor, Operation, Reduce, ReduceScatter, Scan,
    Scatter, Setting, Spec,
};
use crate::sync::cache::Stores;
use crate::sync::wait::Mode;
use crate::topo::LevelSpec;

/// Prefix of every parameter's full name.
pub const PREFIX: &str = "coll_rust_";

/// No message is longer than this, if no parameter says otherwise: the longest that every transport below is
/// known to carry whole.
const MAX_MESSAGE: usize = 256 << 20;

/// What the user asked to be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Show {
    /// The tree of groups as text.
    pub hierarchy: bool,
    /// The tree of groups as Graphviz.
    pub dot: bool,
    /// The parameters in force.
    pub config: bool,
    /// Which way calls go, and why.
    pub decisions: bool,
}

/// What is told in MPI_Finalize of what was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Report {
    /// Nothing.
    #[default]
    None,
    /// One table, over all ranks.
    Sum,
    /// The counters of every rank.
    Ranks,
    /// A file for every rank, in this folder.
    Json(std::path::PathBuf),
}

/// Parameters of one operation.
#[derive(Clone, Debug)]
pub struct OpConfig<A> {
    /// Levels of its hierarchy; `None`: those of [`Config::levels`].
    pub levels: Option<LevelSpec>,
    /// Its algorithms.
    pub algorithm: Spec<A>,
    /// Bytes in a segment (0: never cut); `None`: chosen by size. Not for Barrier.
    pub segment_size: Option<usize>,
}

impl<A: Family> Default for OpConfig<A> {
    fn default() -> Self {
        OpConfig { levels: None, algorithm: Spec::AUTO, segment_size: None }
    }
}

/// Where shared memory comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ShmBacking {
    /// memfd, or /dev/shm where processes cannot open each other's.
    #[default]
    Auto,
    /// Anonymous files.
    Memfd,
    /// Files in this folder.
    Folder(std::path::PathBuf),
}

/// How processes of a node read each other's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroCopy {
    /// As works best.
    #[default]
    Auto,
    /// By process_vm_readv.
    Cma,
    /// By Open MPI's framework smsc.
    Smsc,
    /// They do not.
    Off,
}

/// How long the ways of copying take on this kind of machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// As usual for the kind of processor.
    #[default]
    Usual,
    /// The first blocking operation measures.
    Measured,
    /// So long, in ns: of each way, 16, 64 and 256 KiB.
    Given([[u32; 3]; 5]),
}

/// Shared memory within a node.
#[derive(Clone, Debug)]
pub struct Shm {
    /// Bytes of a fragment; `None`: built-in.
    pub fragment_size: Option<usize>,
    /// Fragments of a queue; `None`: built-in.
    pub fragments: Option<usize>,
    /// Sets of a queue; `None`: built-in.
    pub sets: Option<usize>,
    /// Bytes per node over all processes; 0: no shared memory. `None`: by what memory there is.
    pub limit: Option<u64>,
    /// Where it comes from.
    pub backing: ShmBacking,
    /// How to write to queues.
    pub stores: Stores,
    /// How to wait.
    pub wait: Mode,
    /// How processes may read each other's memory.
    pub zero_copy: ZeroCopy,
    /// From so many bytes on they do; `None`: built-in.
    pub zero_copy_min: Option<usize>,
    /// From which that follows.
    pub times: Times,
}

impl Default for Shm {
    fn default() -> Self {
        Shm {
            fragment_size: None,
            fragments: None,
            sets: None,
            limit: None,
            backing: ShmBacking::Auto,
            stores: Stores::Auto,
            wait: Mode::Auto,
            zero_copy: ZeroCopy::Auto,
            zero_copy_min: None,
            times: Times::Usual,
        }
    }
}

/// The parsed parameters.
#[derive(Clone, Debug)]
pub struct Config {
    /// Selection priority; negative: the component declines.
    pub priority: i32,
    /// 0: errors and warnings only.
    pub verbose: u8,
    /// A name that is no parameter ends the job.
    pub strict: bool,
    /// Levels of the hierarchy.
    pub levels: LevelSpec,
    /// Bcast.
    pub bcast: OpConfig<Bcast>,
    /// Reduce.
    pub reduce: OpConfig<Reduce>,
    /// Allreduce.
    pub allreduce: OpConfig<Allreduce>,
    /// Barrier.
    pub barrier: OpConfig<Barrier>,
    /// Gather.
    pub gather: Spec<Gather>,
    /// Gatherv.
    pub gatherv: Spec<Gather>,
    /// Scatter.
    pub scatter: Spec<Scatter>,
    /// Scatterv.
    pub scatterv: Spec<Scatter>,
    /// Allgather.
    pub allgather: Spec<Allgather>,
    /// Allgatherv.
    pub allgatherv: Spec<Allgather>,
    /// Alltoall.
    pub alltoall: Spec<Alltoall>,
    /// Alltoallv.
    pub alltoallv: Spec<Alltoall>,
    /// Alltoallw.
    pub alltoallw: Spec<Alltoall>,
    /// Reduce_scatter.
    pub reduce_scatter: Spec<ReduceScatter>,
    /// Reduce_scatter_block.
    pub reduce_scatter_block: Spec<ReduceScatter>,
    /// Scan.
    pub scan: Spec<Scan>,
    /// Exscan.
    pub exscan: Spec<Scan>,
    /// Neighbor_allgather.
    pub neighbor_allgather: Spec<Neighbor>,
    /// Neighbor_allgatherv.
    pub neighbor_allgatherv: Spec<Neighbor>,
    /// Neighbor_alltoall.
    pub neighbor_alltoall: Spec<Neighbor>,
    /// Neighbor_alltoallv.
    pub neighbor_alltoallv: Spec<Neighbor>,
    /// Neighbor_alltoallw.
    pub neighbor_alltoallw: Spec<Neighbor>,
    /// Segments in flight per operation.
    pub window: u8,
    /// Rooted operations between two that synchronise; 0: never.
    pub flow_limit: u32,
    /// A communicator's first blocking calls, which go to the component below.
    pub first_calls: u32,
    /// Bytes in a point-to-point message at most.
    pub max_message: usize,
    /// Largest tag to use; `None`: the largest that the point-to-point layer has.
    pub max_tag: Option<i32>,
    /// `auto`, `none` (or empty), or the path of the network file.
    pub network_file: String,
    /// The gateways between clusters.
    pub gateways: Gateways,
    /// The file with the key for them; empty: none.
    pub gateway_key: String,
    /// Shared memory.
    pub shm: Shm,
    /// Bitwise equal sums for any placement.
    pub reproducible: bool,
    /// What to show at the start.
    pub show: Show,
    /// What to print of the counters at the end.
    pub report: Report,
    /// What tests set besides.
    pub tests: Tests,
}

/// Settings of the placement store, for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tests {
    /// From so many processes on they are looked up in the store.
    pub store_from: usize,
    /// The process is killed at this one of its steps there.
    pub store_kill: Option<u32>,
    /// It pauses for a second there.
    pub store_pause: Option<u32>,
}

impl Default for Tests {
    fn default() -> Tests {
        Tests { store_from: STORE_FROM, store_kill: None, store_pause: None }
    }
}

/// For fewer processes it takes as long to find the store as to ask for each.
const STORE_FROM: usize = 16;

impl Default for Config {
    fn default() -> Self {
        Config {
            priority: 45,
            verbose: 0,
            strict: false,
            levels: LevelSpec::Auto,
            bcast: OpConfig::default(),
            reduce: OpConfig::default(),
            allreduce: OpConfig::default(),
            barrier: OpConfig::default(),
            gather: Spec::AUTO,
            gatherv: Spec::AUTO,
            scatter: Spec::AUTO,
            scatterv: Spec::AUTO,
            allgather: Spec::AUTO,
            allgatherv: Spec::AUTO,
            alltoall: Spec::AUTO,
            alltoallv: Spec::AUTO,
            alltoallw: Spec::AUTO,
            reduce_scatter: Spec::AUTO,
            reduce_scatter_block: Spec::AUTO,
            scan: Spec::AUTO,
            exscan: Spec::AUTO,
            neighbor_allgather: Spec::AUTO,
            neighbor_allgatherv: Spec::AUTO,
            neighbor_alltoall: Spec::AUTO,
            neighbor_alltoallv: Spec::AUTO,
            neighbor_alltoallw: Spec::AUTO,
            window: 8,
            flow_limit: 64,
            first_calls: 3,
            max_message: MAX_MESSAGE,
            max_tag: None,
            network_file: "auto".to_owned(),
            gateways: Gateways::default(),
            gateway_key: String::new(),
            shm: Shm::default(),
            reproducible: false,
            show: Show::default(),
            report: Report::None,
            tests: Tests::default(),
        }
    }
}

impl Config {
    /// The parameter `coll_rust_<operation>_algorithm`.
    pub fn algorithm(&self, operation: Operation) -> &dyn Setting {
        match operation {
            Operation::Bcast => &self.bcast.algorithm,
            Operation::Reduce => &self.reduce.algorithm,
            Operation::Allreduce => &self.allreduce.algorithm,
            Operation::Barrier => &self.barrier.algorithm,
            Operation::Gather => &self.gather,
            Operation::Gatherv => &self.gatherv,
            Operation::Scatter => &self.scatter,
            Operation::Scatterv => &self.scatterv,
            Operation::Allgather => &self.allgather,
            Operation::Allgatherv => &self.allgatherv,
            Operation::Alltoall => &self.alltoall,
            Operation::Alltoallv => &self.alltoallv,
            Operation::Alltoallw => &self.alltoallw,
            Operation::ReduceScatter => &self.reduce_scatter,
            Operation::ReduceScatterBlock => &self.reduce_scatter_block,
            Operation::Scan => &self.scan,
            Operation::Exscan => &self.exscan,
            Operation::NeighborAllgather => &self.neighbor_allgather,
            Operation::NeighborAllgatherv => &self.neighbor_allgatherv,
            Operation::NeighborAlltoall => &self.neighbor_alltoall,
            Operation::NeighborAlltoallv => &self.neighbor_alltoallv,
            Operation::NeighborAlltoallw => &self.neighbor_alltoallw,
        }
    }
}

/// A parameter's value, and where it was set: empty where that does not matter.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// As the user wrote it.
    pub text: &'a str,
    /// For messages, such as "in file, line 3".
    pub place: &'a str,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value { text, place: "" }
    }
}

/// Parses values in the order of [`TABLE`]. The error is one message that names the parameter, its value,
/// where it was set, and what is accepted.
pub fn parse<'a, V: Into<Value<'a>>>(values: impl IntoIterator<Item = V>) -> Result<Config, String> {
    let mut config = Config::default();
    for (param, value) in TABLE.iter().zip(values) {
        let Value { text, place } = value.into();
        (param.set)(&mut config, text).map_err(|why| {
            let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
            format!("{PREFIX}{} = \"{text}\"{place}: {why}. Accepted: {}.", param.name, param.accepted())
        })?;
    }
    config.gateways.check(&config.gateway_key)?;
    Ok(config)
}

/// The documentation page, as Markdown.
pub fn documentation() -> String {
    let mut page = String::from(
        "# Parameters\n\nMade from the table in `src/params/table.rs`; `ompi_info --param coll rust --level 9` prints the same. Set one with\n\
         `mpiexec --mca coll_rust_<name> <value>`, in the environment as `OMPI_MCA_coll_rust_<name>`, or as\n\
         `coll_rust_<name> = <value>` in a file for `mpiexec --mca mca_base_param_files <file>`. A value that is not understood stops the job with one\n\
         message; a name that does not exist is a warning. Sizes may have k, m or g after them; `ompi_info` shows `unset` for auto. All ranks of a job must have the same\n\
         values; the first collective that the component does itself checks that.\n\n| parameter | default | what it does | accepted |\n|---|---|---|---|\n",
    );
    for p in TABLE {
        let default = if p.default.is_empty() { "(empty)" } else { p.default };
        let details = if p.details.is_empty() { String::new() } else { format!(" {}", p.details) };
        page += &format!("| `{PREFIX}{}` | `{default}` | {}{details} | {} |\n", p.name, p.help, p.accepted());
    }
    page += "\n## Earlier names\n\nOpen MPI understands them too, and `ompi_info` lists them as deprecated.\n\n| earlier | now |\n|---|---|\n";
    for p in TABLE {
        for was in p.was {
            page += &format!("| `{PREFIX}{was}` | `{PREFIX}{}` |\n", p.name);
        }
    }
    page += "\nThe algorithm `fallback` was called `below`, which is accepted too.\n\n\
             ## Changed meanings\n\n\
             The name of an algorithm without a level was for messages within a node, too: one had no shared memory then. \
             Now it is for messages between nodes, and within those that share no memory; `node:NAME,NAME` is what \
             `NAME` was. `coll_rust_shm_zero_copy` = `smsc` used KNEM in Bcast, Gather and Allgather; now it warns, and nothing \
             is read.\n";
    page
}

#[cfg(test)]
mod tests;
