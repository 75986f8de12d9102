// SPDX-License-Identifier: BSD-3-Clause
//! `coll_rust_show=decisions`: which way calls go, and why, once per operation and size class.
//!
//! The process that is rank 0 of MPI_COMM_WORLD prints, of the calls that it makes itself. A size class is
//! what has the same next power of two; the line says how long the data of its first call were.

use crate::endpoint::Endpoint;
use crate::ffi::base::kind::{Kind, is_same};
use crate::ffi::base::messages;
use crate::ffi::call::arguments::Call;
use crate::ffi::call::eligible::is_eligible;
use crate::ffi::call::packed::is_packed;
use crate::ffi::comm::state::Comm;
use crate::hier::Job;
use crate::hier::allreduce::Specs;
use crate::select::{Facts, Family, Setting, Spec};
use crate::shm::exec::node::Node;
use crate::shm::memory::layout::LINE;
use crate::shm::op::{choice, tally};
use crate::shm::policy::{Choice, Groups, Operation, Rule, Way};
use crate::shm::protocol::turn::Turn;
use crate::shm::thresholds::{Reads, Thresholds};
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
pub fn is_due(call: &Call<'_>) -> bool {
    let bit = class(length(call));
    SHOWN.load(Relaxed) && SAID[call.kind as usize].fetch_or(bit, Relaxed) & bit == 0
}

/// Whether the choice is about a block, and all ranks know how long blocks are.
fn is_by_block(kind: Kind) -> bool {
    matches!(kind, Kind::Gather | Kind::Scatter | Kind::Allgather | Kind::Alltoall)
}

/// Bytes of a block, where blocks have one length, else of all data.
fn length(call: &Call<'_>) -> Option<usize> {
    match call.kind {
        Kind::Barrier => Some(0),
        kind if is_by_block(kind) => call.block(),
        Kind::Gatherv | Kind::Scatterv | Kind::Allgatherv | Kind::Alltoallv | Kind::Alltoallw => None,
        kind if kind.is_neighbor() => None,
        _ => call.bytes(),
    }
}

fn say(comm: &Comm, call: &Call<'_>, text: &str) {
    let long = match length(call) {
        _ if call.kind == Kind::Barrier => String::new(),
        None => " of blocks whose lengths not all ranks know".to_owned(),
        Some(bytes) if is_by_block(call.kind) => format!(" of {bytes} bytes a block"),
        Some(bytes) => format!(" of {bytes} bytes"),
    };
    messages::print(&format!("coll/rust: decision: {}{long}, {} processes: {text}", call.kind.name(), comm.size()));
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

/// Of a call on one node, through shared memory; `tree`: whether there is a tree.
pub fn within_node(comm: &Comm, call: &Call<'_>, turn: &Turn<'_>, thresholds: &Thresholds, tree: Groups) {
    if !is_due(call) {
        return;
    }
    if is_packed(call) {
        let way = if call.bytes() <= Some(LINE) { Way::Inline } else { Way::Slot };
        let why = "operands are packed (of a user-defined operation, or of elements with gaps), whatever way is named";
        return say(comm, call, &format!("{} within the node: {why}", name(Some(way))));
    }
    let found = chosen(call, turn, thresholds, tree);
    let way = match found.rule {
        Rule::SenderChooses if turn.named().is_none() => "shm, a way for each block,".to_owned(),
        Rule::SenderChooses => format!("{}, or another way for each block,", name(turn.named())),
        _ => name(Some(found.way)),
    };
    say(comm, call, &format!("{way} within the node: {}{}", found.rule.text(), instead(turn.named(), &found)));
}

/// Counts a call that goes in one step, where a parameter names a way. (Others are counted by themselves.)
pub fn count_short(call: &Call<'_>, turn: &Turn<'_>, thresholds: &Thresholds, tree: Groups) {
    let found = chosen(call, turn, thresholds, tree);
    if found.way.is_short() {
        tally::count(call.kind.of_ways(), found.way);
    }
}

/// What is chosen for a call on one node.
fn chosen(call: &Call<'_>, turn: &Turn<'_>, thresholds: &Thresholds, tree: Groups) -> Choice {
    let operation = call.kind.of_ways();
    let element = if call.op.is_null() { 1 } else { call.units().info.extent as usize };
    let in_place = operation == Operation::Alltoall && call.send.is_none();
    let (how, reads) = ((turn.is_blocking(), turn.named()), reads(thresholds, operation));
    choice(turn.team(), how, operation, length(call), reads, (element, tree, in_place))
}

/// Shared memory, and the way there.
fn name(way: Option<Way>) -> String {
    way.map_or("shm".to_owned(), |way| format!("shm:{}", way.name()))
}

/// What is to be said where a parameter names a way, and another one stands in.
fn instead(named: Option<Way>, found: &Choice) -> String {
    match named {
        Some(way) if way != found.way && found.rule == Rule::FitsLine && way != Way::Tree => {
            format!("; {} is for what does not fit it", name(named))
        }
        Some(way) if way != found.way && found.rule != Rule::SenderChooses => {
            format!("; {} is not possible here: it needs {}", name(named), way.row().needs)
        }
        _ => String::new(),
    }
}

/// What of a call happens within nodes, and on how many bytes, where that is sure.
fn parts(call: &Call<'_>) -> &'static [(Operation, bool)] {
    use crate::select::{Allgather, Alltoall, Choice as Of, Gather, Neighbor, ReduceScatter, Scan, Scatter};
    match call.decision.choice {
        Some(Of::Gather(Gather::Linear(_) | Gather::Hierarchical)) => &[(Operation::Gather, true)],
        Some(Of::Scatter(Scatter::Linear(_) | Scatter::Hierarchical)) => &[(Operation::Scatter, true)],
        Some(Of::Allgather(Allgather::Hierarchical)) => &[(Operation::Gather, true), (Operation::Bcast, false)],
        Some(Of::Alltoall(Alltoall::Spread)) => &[(Operation::Alltoall, true)],
        Some(Of::Alltoall(Alltoall::Hierarchical)) => &[(Operation::Gather, false), (Operation::Scatter, false)],
        Some(Of::ReduceScatter(ReduceScatter::Hierarchical)) => {
            &[(Operation::Reduce, false), (Operation::Scatter, false)]
        }
        Some(Of::Scan(Scan::Hierarchical)) => &[(Operation::Scan, false), (Operation::Reduce, false)],
        Some(Of::Neighbor(Neighbor::Direct(_) | Neighbor::Aggregated(_))) if is_same(call.kind) => {
            &[(Operation::Allgather, false)]
        }
        Some(Of::Neighbor(_)) => &[(Operation::Alltoall, false)],
        _ => &[],
    }
}

/// Of a call whose whole operation has one algorithm; `node`: where what is within a node goes through shared
/// memory.
pub fn whole(comm: &Comm, call: &Call<'_>, node: Option<&Node<'_>>) {
    let Some(choice) = call.decision.choice else { return };
    if !is_due(call) {
        return;
    }
    let part = |node: &Node<'_>, &(operation, is_sure): &(Operation, bool)| {
        let reads = reads(&node.zero_copy(), operation);
        let way = match length(call).filter(|_| is_sure) {
            Some(bytes) => name(Some(node.choice(operation, Some(bytes), reads).way)),
            None => name(None),
        };
        format!("{} by {way}", operation.name())
    };
    let parts = node.map(|node| parts(call).iter().map(|of| part(node, of)).collect::<Vec<_>>().join(" and "));
    let within = parts.map_or(String::new(), |parts| format!(", within nodes {parts}"));
    say(comm, call, &format!("{}{within}: {}", choice.name(), rule(comm, call)));
}

/// The algorithms of a call by level, from the lowest one on. `operation`: what happens within nodes.
pub fn levels<E: Endpoint, A: Family<Facts = Facts>>(
    job: &Job<'_, E>,
    spec: &Spec<A>,
    operation: Operation,
    units: usize,
) -> String {
    join(&job.algorithms(spec, units), &way(job, spec, operation, units))
}

/// What happens within the node, on a segment.
fn way<E: Endpoint, A: Family<Facts = Facts>>(
    job: &Job<'_, E>,
    spec: &Spec<A>,
    operation: Operation,
    units: usize,
) -> String {
    let alone = job.segment >= units;
    let Some(node) = job.node.map(|node| node.by_way(spec.way()).reading_if(alone)) else { return String::new() };
    let bytes = if alone { job.bytes } else { job.bytes / units.max(1) * job.segment };
    name(Some(node.choice(operation, Some(bytes), reads(&node.zero_copy(), operation)).way))
}

fn join(levels: &[(Level, Option<&'static str>)], way: &str) -> String {
    let levels = levels.iter().map(|(level, name)| format!("{}:{}", level.name(), name.unwrap_or(way)));
    levels.collect::<Vec<_>>().join(",")
}

/// The same of an allreduce: up to the topmost group, there, and down.
pub fn up_and_down<E: Endpoint>(job: &Job<'_, E>, specs: &Specs<'_>, units: usize) -> String {
    let (up, down) = (job.algorithms(specs.reduce, units), job.algorithms(specs.bcast, units));
    let ways = (way(job, specs.reduce, Operation::Reduce, units), way(job, specs.bcast, Operation::Bcast, units));
    match job.algorithms(specs.allreduce, units).last() {
        Some((level, Some(top))) if *top != "reduce_bcast" => {
            let below = up.len().saturating_sub(1);
            let (up, down) = (join(&up[..below], &ways.0), join(&down[..below], &ways.1));
            format!("{up} up, {}:{top} on top, {down} down", level.name())
        }
        _ => format!("{} up, {} down", join(&up, &ways.0), join(&down, &ways.1)),
    }
}

/// Of a call each of whose levels has an algorithm; `text`: which.
pub fn by_level(comm: &Comm, call: &Call<'_>, text: &str) {
    say(comm, call, &format!("{text}: {}", rule(comm, call)));
}

/// Of a reduction along a tree that only the number of ranks decides.
pub fn fixed(comm: &Comm, call: &Call<'_>) {
    if is_due(call) {
        say(comm, call, "knomial/2 over all ranks: by coll_rust_reproducible");
    }
}

/// Why a call goes by messages as it does.
fn rule(comm: &Comm, call: &Call<'_>) -> String {
    if comm.config().algorithm(call.kind).names_algorithm() {
        return format!("by coll_rust_{}_algorithm", call.kind.name());
    }
    match call.decision.shares && !is_eligible(comm, call) {
        true => {
            "the built-in choice for what cannot go through shared memory (longer data of user-defined operations, \
             or of elements with gaps)"
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
