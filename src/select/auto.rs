// SPDX-License-Identifier: BSD-3-Clause
//! The built-in choices, where no parameter says otherwise. Sizes in bytes.

use super::cost;
use super::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Facts, Gather, Neighbor, Reduce, ReduceScatter, Scan, Scatter,
    Whole,
};
use crate::topo::{Level, Shape};

/// From here on a message is "large": its time is its bytes, not its steps.
const LARGE: usize = 32 << 10;
/// From here on it pays to share the work of a reduction among the processes of a node.
const SHARED_WORK: usize = 512 << 10;
/// A segment that crosses the network: transports send it at once (btl/tcp up to 64 KiB with headers, UCX
/// about as much), without a handshake that would queue behind the data of the other direction.
const NETWORK_SEGMENT: usize = 32 << 10;
/// A segment within a node, where a handshake is cheap and a wake-up is not.
const MEMORY_SEGMENT: usize = 128 << 10;

/// Whether messages of this level stay in one computer.
fn is_memory(facts: &Facts) -> bool {
    facts.level <= Level::Node
}

/// Segments enough to fill a chain over the network: its far end waits for one segment per member.
fn fills_chain(facts: &Facts) -> bool {
    !is_memory(facts) && facts.members > 2 && facts.segments >= 2 * facts.members
}

pub(super) fn bcast(facts: &Facts) -> Bcast {
    match facts.members {
        0..=2 => Bcast::Flat,
        _ if fills_chain(facts) => Bcast::Chain,
        _ if is_memory(facts) => Bcast::Knomial(4),
        _ => Bcast::Knomial(2),
    }
}

pub(super) fn reduce(facts: &Facts) -> Reduce {
    let large = if is_memory(facts) { SHARED_WORK } else { LARGE };
    match facts.members {
        0..=2 => Reduce::Knomial(2),
        _ if fills_chain(facts) => Reduce::Chain,
        6.. if facts.free() && facts.segments == 1 && facts.bytes >= large => Reduce::ReduceScatterGather,
        _ if is_memory(facts) => Reduce::Knomial(4),
        _ => Reduce::Knomial(2),
    }
}

pub(super) fn allreduce(facts: &Facts) -> Allreduce {
    match facts.members {
        // Two halves that are sent at once beat a whole that needs a handshake (btl/vader: 4 KiB), and from
        // 128 KiB on the shared work counts.
        2 if facts.free() && is_memory(facts) && matches!(facts.bytes, 2049..=8192 | 131_072..) => {
            Allreduce::Rabenseifner
        }
        0..=2 => Allreduce::RecursiveDoubling,
        // Where processes take turns, every message costs a turn: 2 (p − 1) of them instead of p log p.
        _ if facts.crowded && facts.bytes < SHARED_WORK => Allreduce::ReduceBcast,
        // Of three, recursive doubling has one hand in its value and get the result: three ways far across,
        // where up and down again are two, with as many messages.
        3 if facts.level == Level::Grid && facts.bytes / facts.segments < LARGE => Allreduce::ReduceBcast,
        // Each segment runs on its own, so its size counts.
        _ if facts.free() && facts.bytes / facts.segments >= LARGE => Allreduce::Rabenseifner,
        _ => Allreduce::RecursiveDoubling,
    }
}

pub(super) fn barrier(facts: &Facts) -> Barrier {
    if facts.crowded { Barrier::Tree(4) } else { Barrier::Dissemination }
}

/// Up to so many bytes in all, Allgather takes few steps rather than few copies.
const FEW_STEPS: usize = 64 << 10;
/// Up to so many bytes, and from so many members on, blocks go to or from the root along a tree.
const TREE_BLOCK: usize = 1 << 10;
const TREE_MEMBERS: usize = 16;
/// Below so many bytes the blocks of Alltoall travel together ("Bruck"), and up to so many several at a time.
const TOGETHER: usize = 256;
const AT_ONCE: usize = 32 << 10;
/// Messages under way at a time.
const POSTS: usize = 8;
/// From so many bytes in all on, Reduce_scatter combines every block at its owner.
const AT_OWNER: usize = 512 << 10;

/// Whether blocks go along a tree. The v forms do not know their lengths: they take the way that copies
/// nothing.
fn is_tree(whole: &Whole) -> bool {
    whole.members >= TREE_MEMBERS && whole.block.is_some_and(|block| block <= TREE_BLOCK)
}

pub(super) fn gather(whole: &Whole) -> Gather {
    match () {
        () if cost::is_rooted_through_leaders(whole) => Gather::Hierarchical,
        () if is_tree(whole) => Gather::Knomial(2),
        () => Gather::Linear(POSTS),
    }
}

pub(super) fn scatter(whole: &Whole) -> Scatter {
    match () {
        () if cost::is_rooted_through_leaders(whole) => Scatter::Hierarchical,
        () if is_tree(whole) => Scatter::Knomial(2),
        () => Scatter::Linear(POSTS),
    }
}

pub(super) fn allgather(whole: &Whole) -> Allgather {
    match whole.members {
        _ if cost::is_across_nodes(whole) => Allgather::Hierarchical,
        _ if cost::is_side_by_side(whole) => Allgather::RecursiveDoubling,
        _ if cost::has_leaders(whole) => Allgather::Hierarchical,
        members if whole.bytes.is_some_and(|bytes| bytes <= FEW_STEPS) => match members.is_power_of_two() {
            true => Allgather::RecursiveDoubling,
            false => Allgather::Bruck,
        },
        members if members.is_multiple_of(2) => Allgather::NeighborExchange,
        _ => Allgather::Ring,
    }
}

pub(super) fn alltoall(whole: &Whole) -> Alltoall {
    match whole.block {
        Some(block) if cost::is_exchanged_through_leaders(whole, block) => Alltoall::Hierarchical,
        // Among few, each with each is as few messages, and no copies.
        Some(block) if block < TOGETHER && whole.members > 4 => Alltoall::Bruck(2),
        _ if cost::has_leaders(whole) => Alltoall::Spread,
        Some(block) if block > AT_ONCE => Alltoall::Pairwise,
        _ => Alltoall::Linear(POSTS),
    }
}

pub(super) fn reduce_scatter(whole: &Whole) -> ReduceScatter {
    let large = whole.bytes.is_none_or(|bytes| bytes >= AT_OWNER);
    match whole.members {
        _ if !whole.reproducible && cost::has_leaders(whole) => ReduceScatter::Hierarchical,
        0..=2 => ReduceScatter::Pairwise,
        _ if large => ReduceScatter::Pairwise,
        _ if whole.commutative => ReduceScatter::RecursiveHalving,
        _ if whole.bytes.is_some_and(|bytes| bytes <= TREE_BLOCK) => ReduceScatter::ReduceScatterv(2),
        _ => ReduceScatter::Pairwise,
    }
}

pub(super) fn scan(whole: &Whole) -> Scan {
    if !whole.reproducible && cost::has_leaders(whole) { Scan::Hierarchical } else { Scan::RecursiveDoubling }
}

/// Bundles save messages between nodes, and cost two more steps: not where processes take turns on the cores,
/// and elsewhere it has not been measured.
pub(super) fn neighbor(_: &Whole) -> Neighbor {
    Neighbor::Direct(32)
}

/// Over the network an eighth of the message, between 8 KiB and [`NETWORK_SEGMENT`]; within a node
/// [`MEMORY_SEGMENT`]. Where one level joins everybody only a chain gains from segments, which is for large
/// messages over the network.
pub(super) fn segment_size(bytes: usize, ranks: usize, shape: Shape, chain: bool) -> usize {
    let whole = usize::MAX;
    match shape {
        _ if ranks <= 2 => whole,
        Shape { nodes: 1, flat: true, .. } => whole,
        Shape { nodes: 1, .. } if bytes <= MEMORY_SEGMENT => whole,
        Shape { nodes: 1, .. } => MEMORY_SEGMENT,
        Shape { flat: true, .. } if !chain || bytes < 2 * ranks * NETWORK_SEGMENT => whole,
        _ if bytes <= 16 << 10 => whole,
        _ => (bytes / 8).next_power_of_two().clamp(8 << 10, NETWORK_SEGMENT),
    }
}
