// SPDX-License-Identifier: BSD-3-Clause
//! Whether it costs less to go through the leaders of nodes than from rank to rank, by a model of one message
//! each and one copy.
//!
//! Counted is the time of the busiest process, in nanoseconds: what a message costs it, and what it copies.
//! What goes over the links between nodes is the same either way.

use super::Whole;

/// To send or to receive a message over the network, and one within the node: half of what `ci/test-nodes.sh
/// --costs` shows for both, with btl/tcp (4.5 to 6.7 µs in four runs) and btl/vader (0.33 µs).
const NETWORK: usize = 3100;
const MEMORY: usize = 165;
/// Until who waited for a message has sent the next one on: what every further level costs an operation with
/// a root. (In Alltoall everybody waits for everybody anyway.) The same command's `way`: 8 to 21 µs between
/// nodes, 2 to 5 µs within one whose processes are not bound.
const HOP: usize = 12_000;
/// Bytes copied in a nanosecond.
const COPIED: usize = 4;

/// Whether there are groups with leaders: several nodes, with several processes on some or with switches
/// between them.
pub fn has_leaders(whole: &Whole) -> bool {
    whole.shape.nodes > 1 && !whole.shape.flat
}

/// Up to so many bytes in all, blocks of Allgather go side by side, or from node to node: measured
/// (docs/design/several-nodes.md).
const SIDE_BY_SIDE: usize = 128 << 10;

/// Whether an allgather is [recursive doubling](crate::hier::allgather::side_by_side) over the whole
/// communicator, where it is even: every step costs a rank one message, where leaders cost a message up for
/// each rank of the node, one for each step between nodes, and the way down. What is large gains more from
/// segments that are on all levels at once.
pub fn is_side_by_side(whole: &Whole) -> bool {
    whole.shape.even && whole.bytes.is_some_and(|bytes| bytes <= SIDE_BY_SIDE)
}

/// Whether the leaders of all nodes are one group in an allgather, which goes [from the top
/// down](crate::topo::Hierarchy::leaders_across): each has a message for each step between nodes, and the
/// others none. Two steps within the node, which cost little through shared memory.
pub fn is_across_nodes(whole: &Whole) -> bool {
    has_leaders(whole)
        && whole.shape.even_nodes
        && whole.shared
        && whole.bytes.is_some_and(|bytes| bytes <= SIDE_BY_SIDE)
}

/// Whether the blocks of Gather or Scatter go through leaders: the root has a message for each node and not
/// for each process, and a leader copies the blocks of its node once more. Where lengths are not known they
/// must be told first, and blocks may be long: then only where nodes have many processes.
pub fn is_rooted_through_leaders(whole: &Whole) -> bool {
    let (nodes, ranks) = (whole.shape.nodes, whole.members);
    let copied = |block: usize| block.saturating_mul(2 * ranks.div_ceil(nodes)) / COPIED;
    // Nodes and switches.
    let passed = |block: usize| copied(block) + 2 * HOP;
    has_leaders(whole) && whole.block.map_or(ranks >= 8 * nodes, |block| passed(block) < (ranks - nodes) * NETWORK)
}

/// Whether the blocks of Alltoall go through leaders: one message for each pair of nodes and not of
/// processes, and all blocks of a node through its leader's memory.
pub fn is_exchanged_through_leaders(whole: &Whole, block: usize) -> bool {
    let (nodes, ranks) = (whole.shape.nodes, whole.members);
    if !has_leaders(whole) || ranks < 2 * nodes {
        return false;
    }
    let each = ranks.div_ceil(nodes);
    // Each is sent, and one received.
    let apart = 2 * ((ranks - each) * NETWORK + (each - 1) * MEMORY);
    // Into the leader's buffer, out of it in another order, and through memory once more each time.
    let copied = block.saturating_mul(4 * each * ranks) / COPIED;
    let together = 2 * (each - 1) * MEMORY + 2 * (nodes - 1) * NETWORK + copied;
    together < apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::{Allgather, Operation};
    use crate::topo::Shape;

    fn whole(nodes: usize, each: usize, block: usize) -> Whole {
        Whole {
            operation: Operation::Alltoall,
            members: nodes * each,
            shape: Shape {
                nodes,
                flat: nodes == 1 || each == 1,
                crowded: false,
                even: false,
                even_nodes: false,
                clusters: 1,
                joined: true,
            },
            shared: true,
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
        // The more processes a leader has to serve, the shorter blocks must be; and there is one length from
        // which on they are too long.
        let limit = |nodes: usize, each: usize| (0..20).take_while(|&i| together(nodes, each, 1 << i)).count();
        assert!(limit(16, 2) > limit(16, 8) && limit(16, 8) > limit(16, 64));
        for (nodes, each) in [(2, 2), (4, 8), (64, 36)] {
            assert!((limit(nodes, each)..40).all(|i| !together(nodes, each, 1 << i)));
        }
    }

    #[test]
    fn short_blocks_of_even_communicators_go_side_by_side() {
        let even = |block, even| {
            let mut whole = whole(4, 2, block);
            whole.shape.even = even;
            is_side_by_side(&whole)
        };
        assert!(even(4 << 10, true) && !even(4 << 10, false) && !even(256 << 10, true));
        assert!(!is_side_by_side(&Whole { bytes: None, ..whole(4, 2, 8) }));
    }

    #[test]
    fn leaders_of_even_nodes_are_one_group_where_nodes_share_memory() {
        let chosen = |edit: fn(&mut Whole)| {
            let mut whole = whole(4, 2, 4 << 10);
            (whole.shape.even, whole.shape.even_nodes) = (true, true);
            edit(&mut whole);
            (is_across_nodes(&whole), crate::select::auto::allgather(&whole))
        };
        let (leaders, each) = (Allgather::Hierarchical, Allgather::RecursiveDoubling);
        assert_eq!(chosen(|_| ()), (true, leaders));
        assert_eq!(chosen(|whole| whole.shape.even = false), (true, leaders));
        assert_eq!(chosen(|whole| whole.shared = false), (false, each));
        assert_eq!(chosen(|whole| (whole.shared, whole.shape.even) = (false, false)), (false, leaders));
        assert_eq!(chosen(|whole| whole.shape.flat = true), (false, each));
        assert!(!chosen(|whole| whole.shape.even_nodes = false).0 && !chosen(|whole| whole.bytes = None).0);
        assert!(!chosen(|whole| whole.bytes = Some(SIDE_BY_SIDE + 1)).0);
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
