//! The built-in choices, where no parameter says otherwise.

use super::{Allreduce, Barrier, Bcast, Facts, Reduce};
use crate::topo::Level;

/// From here on a message is "large": its time is its bytes, not its steps.
const LARGE: usize = 32 << 10;

/// Segments enough to fill a chain: its far end waits for one segment per member.
fn fills_chain(facts: &Facts) -> bool {
    facts.members > 2 && facts.segments >= 2 * facts.members
}

/// Whether messages of this level stay in one computer.
fn is_memory(level: Level) -> bool {
    level <= Level::Node
}

pub(super) fn bcast(facts: &Facts) -> Bcast {
    match facts {
        Facts { members: 0..=2, .. } => Bcast::Flat,
        _ if fills_chain(facts) => Bcast::Chain,
        Facts { level, bytes, .. } if is_memory(*level) && *bytes < LARGE => Bcast::Knomial(4),
        _ => Bcast::Knomial(2),
    }
}

pub(super) fn reduce(facts: &Facts) -> Reduce {
    match facts {
        Facts { members: 0..=2, .. } => Reduce::Knomial(2),
        _ if fills_chain(facts) => Reduce::Chain,
        Facts { segments: 1, bytes, members, .. } if facts.free() && *bytes >= LARGE && *members >= 4 => {
            Reduce::ReduceScatterGather
        }
        Facts { level, bytes, .. } if is_memory(*level) && *bytes < LARGE => Reduce::Knomial(4),
        _ => Reduce::Knomial(2),
    }
}

pub(super) fn allreduce(facts: &Facts) -> Allreduce {
    match facts {
        Facts { bytes, members, .. } if facts.free() && *bytes >= LARGE && *members > 2 => Allreduce::Rabenseifner,
        _ => Allreduce::RecursiveDoubling,
    }
}

pub(super) fn barrier(_facts: &Facts) -> Barrier {
    Barrier::Dissemination
}

/// A sixteenth of the message, between 8 KiB and 128 KiB: enough segments to fill the levels, large enough to be worth
/// a message. Nothing flows through a single level of two ranks.
pub(super) fn segment_size(bytes: usize, ranks: usize, flat: bool) -> usize {
    if ranks <= 2 || flat || bytes <= 16 << 10 {
        return usize::MAX;
    }
    (bytes / 16).next_power_of_two().clamp(8 << 10, 128 << 10)
}
