//! `coll_rust_show=decisions`: which way calls go, and why, once per operation and size class.
//!
//! The process that is rank 0 of MPI_COMM_WORLD prints, of the calls that it makes itself. A size class is
//! what has the same next power of two; the line says how long the data of its first call were.

use super::call::Call;
use super::comm::Comm;
use super::kind::Kind;
use super::shared::is_eligible;
use super::startup;
use crate::endpoint::Endpoint;
use crate::hier::Job;
use crate::hier::allreduce::Specs;
use crate::select::{Facts, Family, Spec};
use crate::shm::op::choice;
use crate::shm::policy::{Operation, Rule};
use crate::shm::thresholds::{Reads, Thresholds};
use crate::shm::turn::Turn;
use crate::topo::Level;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Whether this process prints.
static SHOWN: AtomicBool = AtomicBool::new(false);
/// By operation, the size classes that were printed: a bit each.
static SAID: [AtomicU64; Kind::COUNT] = [const { AtomicU64::new(0) }; Kind::COUNT];

/// From now on this process prints.
pub fn show() {
    SHOWN.store(true, Relaxed);
}

/// The bit of a size class; the last one is for lengths that not all ranks know.
fn class(bytes: Option<usize>) -> u64 {
    let last = u64::BITS - 1;
    let number = bytes.map_or(last, |bytes| bytes.max(1).next_power_of_two().trailing_zeros().min(last - 1));
    1 << number
}

/// Whether a call is the first one of its operation and size class that this process has to print.
pub fn is_due(call: &Call) -> bool {
    let bit = class(length(call));
    SHOWN.load(Relaxed) && SAID[call.kind as usize].fetch_or(bit, Relaxed) & bit == 0
}

/// Whether the choice is about a block, and all ranks know how long blocks are.
fn is_by_block(kind: Kind) -> bool {
    matches!(kind, Kind::Gather | Kind::Scatter | Kind::Allgather | Kind::Alltoall)
}

/// Bytes of a block, where blocks have one length, else of all data.
fn length(call: &Call) -> Option<usize> {
    match call.kind {
        Kind::Barrier => Some(0),
        kind if is_by_block(kind) => call.block(),
        Kind::Gatherv | Kind::Scatterv | Kind::Allgatherv | Kind::Alltoallv | Kind::Alltoallw => None,
        kind if kind.is_neighbor() => None,
        _ => call.bytes(),
    }
}

fn say(comm: &Comm, call: &Call, text: &str) {
    let long = match length(call) {
        _ if call.kind == Kind::Barrier => String::new(),
        None => " of blocks whose lengths not all ranks know".to_owned(),
        Some(bytes) if is_by_block(call.kind) => format!(" of {bytes} bytes a block"),
        Some(bytes) => format!(" of {bytes} bytes"),
    };
    startup::print(&format!("coll/rust: decision: {}{long}, {} processes: {text}", call.kind.name(), comm.size()));
}

/// What the table of ways calls an operation.
fn operation(kind: Kind) -> Operation {
    match kind {
        Kind::Barrier => Operation::Barrier,
        Kind::Bcast => Operation::Bcast,
        Kind::Gather | Kind::Gatherv => Operation::Gather,
        Kind::Scatter | Kind::Scatterv => Operation::Scatter,
        Kind::Allgather | Kind::Allgatherv | Kind::NeighborAllgather | Kind::NeighborAllgatherv => Operation::Allgather,
        Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw => Operation::Alltoall,
        Kind::NeighborAlltoall | Kind::NeighborAlltoallv | Kind::NeighborAlltoallw => Operation::Alltoall,
        Kind::Reduce => Operation::Reduce,
        Kind::Allreduce => Operation::Allreduce,
        Kind::ReduceScatter | Kind::ReduceScatterBlock => Operation::ReduceScatter,
        Kind::Scan | Kind::Exscan => Operation::Scan,
    }
}

/// From how many bytes on an operation reads others' memory.
fn reads(thresholds: &Thresholds, operation: Operation) -> Reads {
    match operation {
        Operation::Bcast => thresholds.bcast.into(),
        Operation::Gather => thresholds.gather.into(),
        Operation::Scatter => thresholds.scatter.into(),
        Operation::Allgather => thresholds.allgather.into(),
        Operation::Alltoall => thresholds.alltoall,
        Operation::Allreduce => thresholds.allreduce.into(),
        Operation::Barrier | Operation::Reduce | Operation::ReduceScatter | Operation::Scan => usize::MAX.into(),
    }
}

/// Of a call on one node, through shared memory; `tree`: there is a tree.
pub fn within_node(comm: &Comm, call: &Call, turn: &Turn<'_>, thresholds: &Thresholds, tree: bool) {
    if !is_due(call) {
        return;
    }
    let operation = operation(call.kind);
    let element = if call.op.is_null() { 1 } else { call.units().info.extent as usize };
    let in_place = operation == Operation::Alltoall && call.send.is_none();
    let found = choice(turn, operation, length(call), reads(thresholds, operation), (element, tree, in_place));
    let way = match found.rule {
        Rule::SenderChooses => "shm, a way for each block,".to_owned(),
        _ => format!("shm:{}", found.way.name()),
    };
    say(comm, call, &format!("{way} within the node: {}", found.rule.text()));
}

/// Of a call whose whole operation has one algorithm; `shared`: what is within a node goes through shared
/// memory.
pub fn whole(comm: &Comm, call: &Call, shared: bool) {
    let Some(choice) = call.decision.choice else { return };
    if is_due(call) {
        let within = if shared { ", within nodes through shared memory" } else { "" };
        say(comm, call, &format!("{}{within}: {}", choice.name(), rule(comm, call)));
    }
}

/// The algorithms of a call by level, from the lowest one on.
pub fn levels<E: Endpoint, A: Family<Facts = Facts>>(job: &Job<'_, E>, spec: &Spec<A>, units: usize) -> String {
    join(&job.algorithms(spec, units))
}

fn join(levels: &[(Level, Option<&'static str>)]) -> String {
    let levels = levels.iter().map(|(level, name)| format!("{}:{}", level.name(), name.unwrap_or("shm")));
    levels.collect::<Vec<_>>().join(",")
}

/// The same of an allreduce: up to the topmost group, there, and down.
pub fn up_and_down<E: Endpoint>(job: &Job<'_, E>, specs: &Specs<'_>, units: usize) -> String {
    let (up, down) = (job.algorithms(specs.reduce, units), job.algorithms(specs.bcast, units));
    match job.algorithms(specs.allreduce, units).last() {
        Some((level, Some(top))) if *top != "reduce_bcast" => {
            let below = up.len().saturating_sub(1);
            let [up, down] = [&up[..below], &down[..below]].map(join);
            format!("{up} up, {}:{top} on top, {down} down", level.name())
        }
        _ => format!("{} up, {} down", join(&up), join(&down)),
    }
}

/// Of a call each of whose levels has an algorithm; `text`: which.
pub fn by_level(comm: &Comm, call: &Call, text: &str) {
    say(comm, call, &format!("{text}: {}", rule(comm, call)));
}

/// Of a reduction along a tree that only the number of ranks decides.
pub fn fixed(comm: &Comm, call: &Call) {
    if is_due(call) {
        say(comm, call, "knomial/2 over all ranks: by coll_rust_reproducible");
    }
}

/// Why a call goes by messages as it does.
fn rule(comm: &Comm, call: &Call) -> String {
    if comm.config().algorithm(call.kind).names_algorithm() {
        return format!("by coll_rust_{}_algorithm", call.kind.name());
    }
    match call.decision.shares && !is_eligible(call) {
        true => {
            "the built-in choice for what cannot go through shared memory (user-defined operations, elements with gaps)"
        }
        false => "the built-in choice",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn what_has_the_same_next_power_of_two_is_of_one_class() {
        let number = |bytes| class(bytes).trailing_zeros();
        assert_eq!([0, 1, 2, 3, 4, 5, 4096, 4097].map(|bytes| number(Some(bytes))), [0, 0, 1, 2, 2, 3, 12, 13]);
        assert_eq!([Some(1 << 62), None].map(number), [62, 63]);
    }
}
