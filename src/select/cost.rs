//! Whether it costs less to go through the leaders of nodes than from rank to rank, by a model of one message each and one copy.
//!
//! Counted is the time of the busiest process, in nanoseconds: what a message costs it, and what it copies. What goes over the links
//! between nodes is the same either way.

use super::Whole;

/// A message over the network, and one within the node: round numbers of the size that btl/tcp and btl/vader show.
const NETWORK: usize = 4000;
const MEMORY: usize = 600;
/// Until who waited for a message has sent the next one on: what every further level costs an operation with a root. (In Alltoall
/// everybody waits for everybody anyway.)
const HOP: usize = 10_000;
/// Bytes copied in a nanosecond.
const COPIED: usize = 4;

/// Whether there are groups with leaders: several nodes, with several processes on some or with switches between them.
pub fn has_leaders(whole: &Whole) -> bool {
    whole.shape.nodes > 1 && !whole.shape.flat
}

/// Whether the blocks of Gather or Scatter go through leaders: the root has a message for each node and not for each process, and a
/// leader copies the blocks of its node once more. Where lengths are not known they must be told first, and blocks may be long:
/// then only where nodes have many processes.
pub fn is_rooted_through_leaders(whole: &Whole) -> bool {
    let (nodes, ranks) = (whole.shape.nodes, whole.members);
    let copied = |block: usize| block.saturating_mul(2 * ranks.div_ceil(nodes)) / COPIED;
    // Nodes and switches.
    let passed = |block: usize| copied(block) + 2 * HOP;
    has_leaders(whole) && whole.block.map_or(ranks >= 8 * nodes, |block| passed(block) < (ranks - nodes) * NETWORK)
}

/// Whether the blocks of Alltoall go through leaders: one message for each pair of nodes and not of processes, and all blocks of a
/// node through its leader's memory.
pub fn is_exchanged_through_leaders(whole: &Whole, block: usize) -> bool {
    let (nodes, ranks) = (whole.shape.nodes, whole.members);
    if !has_leaders(whole) || ranks < 2 * nodes {
        return false;
    }
    let each = ranks.div_ceil(nodes);
    let apart = (ranks - each) * NETWORK + (each - 1) * MEMORY;
    // Into the leader's buffer, out of it in another order, and through memory once more each time.
    let copied = block.saturating_mul(4 * each * ranks) / COPIED;
    let together = 2 * (each - 1) * MEMORY + (nodes - 1) * NETWORK + copied;
    together < apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::Operation;
    use crate::topo::Shape;

    fn whole(nodes: usize, each: usize, block: usize) -> Whole {
        Whole {
            operation: Operation::Alltoall,
            members: nodes * each,
            shape: Shape { nodes, flat: nodes == 1 || each == 1, crowded: false },
            block: Some(block),
            bytes: Some(nodes * each * block),
            commutative: true,
            reproducible: false,
        }
    }

    fn together(nodes: usize, each: usize, block: usize) -> bool {
        is_exchanged_through_leaders(&whole(nodes, each, block), block)
    }

    #[test]
    fn alltoall_knows_the_shape() {
        assert!(together(4, 2, 64) && together(64, 36, 8));
        assert!(!together(4, 2, 64 << 10) && !together(64, 36, 4 << 10));
        assert!(!together(1, 8, 8) && !together(8, 1, 8), "one node, or one process on each");
        // The more processes a leader has to serve, the shorter blocks must be; and there is one length from which on they are too long.
        let limit = |nodes: usize, each: usize| (0..20).take_while(|&i| together(nodes, each, 1 << i)).count();
        assert!(limit(16, 2) > limit(16, 8) && limit(16, 8) > limit(16, 64));
        for (nodes, each) in [(2, 2), (4, 8), (64, 36)] {
            assert!((limit(nodes, each)..40).all(|i| !together(nodes, each, 1 << i)));
        }
    }

    #[test]
    fn long_blocks_go_to_the_root_at_once() {
        assert!(
            is_rooted_through_leaders(&whole(4, 8, 4 << 10)) && is_rooted_through_leaders(&whole(64, 36, 64 << 10))
        );
        assert!(
            !is_rooted_through_leaders(&whole(4, 2, 256 << 10)) && !is_rooted_through_leaders(&whole(64, 36, 1 << 20))
        );
        assert!(!is_rooted_through_leaders(&whole(4, 2, 8)), "few messages less, and hops more");
        assert!(!is_rooted_through_leaders(&whole(1, 8, 8)) && !is_rooted_through_leaders(&whole(8, 1, 8)));
        let untold = |nodes, each| is_rooted_through_leaders(&Whole { block: None, ..whole(nodes, each, 0) });
        assert!(untold(4, 8) && !untold(4, 2));
    }
}
