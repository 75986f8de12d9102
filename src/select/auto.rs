//! The built-in choices, where no parameter says otherwise. Sizes in bytes.

use super::{Allreduce, Barrier, Bcast, Facts, Reduce};
use crate::topo::{Level, Shape};

/// From here on a message is "large": its time is its bytes, not its steps.
const LARGE: usize = 32 << 10;
/// From here on it pays to share the work of a reduction among the processes of a node.
const SHARED_WORK: usize = 512 << 10;
/// A segment that crosses the network: transports send it at once (btl/tcp up to 64 KiB with headers, UCX about as much),
/// without a handshake that would queue behind the data of the other direction.
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
        // Two halves that are sent at once beat a whole that needs a handshake (btl/vader: 4 KiB), and from 128 KiB on the
        // shared work counts.
        2 if facts.free() && is_memory(facts) && matches!(facts.bytes, 2049..=8192 | 131_072..) => {
            Allreduce::Rabenseifner
        }
        0..=2 => Allreduce::RecursiveDoubling,
        // Where processes take turns, every message costs a turn: 2 (p − 1) of them instead of p log p.
        _ if facts.crowded && facts.bytes < SHARED_WORK => Allreduce::ReduceBcast,
        // Each segment runs on its own, so its size counts.
        _ if facts.free() && facts.bytes / facts.segments >= LARGE => Allreduce::Rabenseifner,
        _ => Allreduce::RecursiveDoubling,
    }
}

pub(super) fn barrier(facts: &Facts) -> Barrier {
    if facts.crowded { Barrier::Tree(4) } else { Barrier::Dissemination }
}

/// Over the network an eighth of the message, between 8 KiB and [`NETWORK_SEGMENT`]; within a node [`MEMORY_SEGMENT`]. Where one
/// level joins everybody only a chain gains from segments, which is for large messages over the network.
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
