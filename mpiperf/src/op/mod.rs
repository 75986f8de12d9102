// SPDX-License-Identifier: BSD-3-Clause
//! What can be measured: operations, and cases made of them.
//!
//! [`table`] names the operations. [`shape`] says who sends what to whom, [`types`], [`content`] and
//! [`reduction`] what the bytes are, [`buffers`] fills and checks them, [`call`] makes the MPI calls, and
//! [`collective`] puts these together; [`communicator`] does the same for functions that make communicators,
//! [`pairs`] for messages.

pub mod bare;
mod buffers;
mod call;
mod collective;
mod communicator;
mod content;
mod known;
pub mod memory;
pub mod overlap;
pub mod pairs;
mod reduction;
mod shape;
mod table;
mod topology;
mod types;

use crate::error::{Error, Result};
use crate::mpi::Comm;

pub use reduction::REDUCTIONS;
pub use table::{Kind, Operation, find, operations};
pub use types::GRAMMAR as DATATYPES;

/// How a call of the operation is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// `MPI_Bcast`.
    Blocking,
    /// `MPI_Ibcast` and its wait.
    Nonblocking,
    /// `MPI_Start` of what `MPI_Bcast_init` made, and its wait.
    Persistent,
}

/// Everything that says what a case is, equal on all ranks.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Setting {
    /// The operation's name: `bcast`, `ibcast`, `bcast_init`, `neighbor_alltoallv`, `comm_dup` …
    pub operation: String,
    /// Message size in bytes, in the sense of the operation (a block for gather, alltoall …).
    pub bytes: usize,
    /// Datatype: `byte`, `int32`, `double` …, or a derived one (`vector:…`), see `op::types`.
    pub datatype: String,
    /// Reduction: `sum`, `max`, …
    pub reduction: String,
    /// Root of rooted operations: a rank, or rotating.
    pub root: Root,
    /// `MPI_IN_PLACE`.
    pub in_place: bool,
    /// Distribution of the vector operations' counts.
    pub counts: Counts,
    /// The state of the caches.
    pub cache: Cache,
    /// Alignment of the buffers in bytes, a power of two.
    pub align: usize,
    /// Computation put between start and wait of a nonblocking call.
    pub overlap: Option<Overlap>,
    /// Verify results.
    pub verify: bool,
    /// Seed of contents and irregular counts.
    pub seed: u64,
    /// Virtual topology of the neighbour collectives.
    #[serde(default)]
    pub topology: Topology,
    /// Pairs of ranks that send messages; 0: as many as there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pairs: usize,
    /// Messages of a call of a stream; 0 for other operations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub window: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Default for Setting {
    /// `bcast` of 8 bytes from rank 0, warm buffers, verified.
    fn default() -> Setting {
        Setting {
            operation: "bcast".to_owned(),
            bytes: 8,
            datatype: "byte".to_owned(),
            reduction: "sum".to_owned(),
            root: Root::Fixed(0),
            in_place: false,
            counts: Counts::Regular,
            cache: Cache::Warm,
            align: 64,
            overlap: None,
            verify: true,
            seed: 1,
            topology: Topology::Torus,
            pairs: 0,
            window: 0,
        }
    }
}

/// Who is whose neighbour in the neighbour collectives.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// A periodic two-dimensional grid, as square as the number of processes allows: four neighbours.
    #[default]
    Torus,
    /// A distributed graph: rank r sends to r + 1, r + 2 and r + 4 (modulo size).
    Graph,
}

/// The root of a rooted operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Root {
    /// One rank, always.
    Fixed(usize),
    /// Call number modulo size.
    Rotating,
}

/// How many bytes each rank has in the vector operations; the mean is the message size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Counts {
    /// All the same.
    Regular,
    /// Uniformly between 0 and twice the mean, from the seed.
    Random,
    /// From 0 at the first rank to twice the mean at the last.
    Linear,
    /// All at one rank.
    Spike,
}

/// The state of the caches when a call starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// One set of buffers, used again and again.
    Warm,
    /// Every call has buffers that no call touched for longer than the last level cache holds.
    Cold,
}

/// Computation beside a nonblocking operation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Overlap {
    /// Seconds of computation between start and wait.
    pub compute: f64,
    /// Seconds between two calls of `MPI_Test` within it; 0: none.
    pub test_every: f64,
}

/// One call of a case.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Its number, counted from 0 and equal on all ranks. Contents and rotating roots follow from it.
    pub number: u64,
}

/// One operation at one setting on one communicator, with its buffers.
///
/// The engine calls, for every measured call and on every rank: `prepare`, then (at the scheduled moment)
/// `run`, then `verify`. Only `run` is timed: it must do nothing but call MPI.
pub trait Case {
    /// Chooses buffers, fills them with the contents of this call, cools caches. Local.
    fn prepare(&mut self, call: Call) -> Result<()>;
    /// The call.
    fn run(&mut self) -> Result<()>;
    /// Compares what `run` gave with what it must give. Local; an error of kind
    /// [`crate::error::Error::Wrong`].
    fn verify(&mut self) -> Result<()>;
    /// Bytes of buffers that this rank holds.
    fn memory(&self) -> usize;
    /// Flips one bit of the last call's result on this rank, for tests of the verification; false where there
    /// is no result.
    fn spoil(&mut self) -> bool {
        false
    }
}

/// Whether MPI (or this tool, for `affine`) defines a reduction on a datatype. False for unknown names, too.
pub fn defined(reduction: &str, datatype: &str) -> bool {
    let both = reduction::Reduction::parse(reduction).ok().zip(types::Layout::parse(datatype).ok());
    both.is_some_and(|(reduction, layout)| layout.plain.is_some_and(|base| reduction.takes(base)))
}

/// Makes the case of a setting on `comm`, which must outlive it. Collective; fails alike on all ranks where
/// the failure is one of usage, and says how many bytes are wanted where there is too little memory. Nothing
/// is communicated on `comm` itself (but topologies are made from it), so that the first call measured is the
/// first.
///
/// The case expects calls numbered one by one: with [`Cache::Cold`], the buffers of a call are filled long
/// before it.
pub fn make(comm: &Comm, setting: &Setting) -> Result<Box<dyn Case>> {
    let operation = find(&setting.operation)?;
    if comm.size() < 2 {
        return Err(Error::usage(format!(
            "{} needs at least 2 processes, and there is 1: a collective of one process communicates with nobody, so there is \
             nothing to measure; start more (mpiexec -n 2 …)",
            operation.name
        )));
    }
    make_beside(comm, &comm.dup()?, setting)
}

/// As [`make`], but the call is made by a [bare] way instead of MPI's function; `crowded`: there are more
/// ranks than cores. `None`: the way is not possible here. Collective; `comm` must outlive the case.
pub fn make_bare(comm: &Comm, setting: &Setting, way: bare::Way, crowded: bool) -> Result<Option<Box<dyn Case>>> {
    let operation = find(&setting.operation)?;
    let case = collective::Collective::new(comm, comm, operation, setting)?;
    Ok(case.barely(comm, way, crowded)?.map(|case| Box::new(case) as Box<dyn Case>))
}

/// The bare ways of an operation that are among `named`, all where that is empty; an error where it, or the
/// setting, has none of them.
pub fn bare_ways(setting: &Setting, named: &[bare::Way]) -> Result<Vec<bare::Way>> {
    let operation = find(&setting.operation)?;
    bare::check(operation, setting, types::Layout::parse(&setting.datatype)?.derived())?;
    bare::chosen(operation, named)
}

/// As [`make`], with the messages of the tool on `own`, a communicator of the same processes.
pub fn make_beside(comm: &Comm, own: &Comm, setting: &Setting) -> Result<Box<dyn Case>> {
    let operation = find(&setting.operation)?;
    if operation.communicator() {
        return Ok(Box::new(communicator::CommCase::new(comm, operation)?));
    }
    if operation.pairs() {
        return Ok(Box::new(pairs::Pairs::new(comm, own, operation, setting)?));
    }
    Ok(Box::new(collective::Collective::new(comm, own, operation, setting)?))
}
