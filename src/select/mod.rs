// SPDX-License-Identifier: BSD-3-Clause
//! Which algorithm runs where.
//!
//! Pure, and only of what every member of the group knows: the level, the group's size, the operation's total
//! bytes and number of segments, whether the operation commutes, and the parameters. All algorithms are in
//! one [`table`].
#![forbid(unsafe_code)]

mod auto;
pub mod cost;
pub mod decision;
mod listing;
pub mod memo;
mod operation;
mod spec;
pub mod table;

pub use decision::{Choice, Decision, Given, Sharing};
pub use listing::documentation;
pub use memo::Memo;
pub use operation::Operation;
pub use spec::{Setting, Spec};
pub use table::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Family, Gather, Known, Need, Neighbor, Reduce, ReduceScatter, Row,
    Scan, Scatter,
};

use crate::topo::{Level, Shape};

/// What the choice of a level's algorithm may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The level of the group.
    pub level: Level,
    /// Members of the group.
    pub members: usize,
    /// Bytes of the whole operation (packed).
    pub bytes: usize,
    /// Segments that the operation is cut into.
    pub segments: usize,
    /// Whether operands may be exchanged.
    pub commutative: bool,
    /// Whether all ranks cut the data alike.
    pub divisible: bool,
    /// Whether the processes take turns on the cores of one node.
    pub crowded: bool,
}

/// Whether a number of members is what an algorithm needs.
fn suits(members: usize, need: Need) -> bool {
    match need {
        Need::Even => members.is_multiple_of(2),
        Need::PowerOfTwo => members.is_power_of_two(),
        Need::Commutative | Need::Divisible | Need::Placed => true,
    }
}

impl Known for Facts {
    fn of(_: &Whole) -> Option<&Facts> {
        None
    }

    fn level(&self) -> Level {
        self.level
    }

    fn meets(&self, need: Need) -> bool {
        match need {
            Need::Commutative => self.commutative,
            Need::Divisible => self.divisible,
            _ => suits(self.members, need),
        }
    }
}

impl Facts {
    /// Whether an algorithm may combine parts of the data in any order.
    fn free(&self) -> bool {
        self.commutative && self.divisible
    }
}

/// What the choice of the algorithm of a whole operation may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Whole {
    /// The operation.
    pub operation: Operation,
    /// Processes of the communicator.
    pub members: usize,
    /// The shape of the communicator.
    pub shape: Shape,
    /// Whether what stays within nodes may go through shared memory.
    pub shared: bool,
    /// Bytes of a block; `None` where there are no blocks of one length.
    pub block: Option<usize>,
    /// Bytes of all data: of all blocks together, or of one process' vector; `None` where not all ranks know.
    pub bytes: Option<usize>,
    /// Whether operands may be exchanged.
    pub commutative: bool,
    /// Whether results must not depend on the placement: then the shape must not be looked at.
    pub reproducible: bool,
}

impl Known for Whole {
    fn of(whole: &Whole) -> Option<&Whole> {
        Some(whole)
    }

    /// That of messages between any two.
    fn level(&self) -> Level {
        if self.shape.nodes > 1 { Level::Cluster } else { Level::Node }
    }

    fn meets(&self, need: Need) -> bool {
        match need {
            Need::Commutative => self.commutative,
            Need::Placed => !self.reproducible,
            _ => suits(self.members, need),
        }
    }
}

/// Size of the segments, in bytes, that `bytes` are cut into; `usize::MAX` for one segment. `setting` is the
/// parameter's value (0: never cut), `None` where it is "auto". `ranks`: of the communicator; `shape`: its
/// shape; `chain`: whether the operation may run along a chain.
pub fn segment_size(setting: Option<usize>, bytes: usize, ranks: usize, shape: Shape, chain: bool) -> usize {
    match setting {
        Some(0) => usize::MAX,
        Some(size) => size,
        None => auto::segment_size(bytes, ranks, shape, chain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts {
        level: Level::Node,
        members: 8,
        bytes: 1 << 20,
        segments: 8,
        commutative: false,
        divisible: true,
        crowded: false,
    };

    #[test]
    fn operands_that_do_not_commute_never_meet_an_algorithm_that_exchanges_them() {
        for text in ["auto", "reduce_scatter_gather", "node:reduce_scatter_gather"] {
            let spec = Spec::<Reduce>::parse(text).unwrap();
            assert_ne!(spec.choose(&FACTS), Reduce::ReduceScatterGather);
            let whole = Facts { commutative: true, divisible: false, ..FACTS };
            assert_ne!(spec.choose(&whole), Reduce::ReduceScatterGather);
        }
        for text in ["auto", "ring", "rabenseifner"] {
            let spec = Spec::<Allreduce>::parse(text).unwrap();
            assert!(matches!(spec.choose(&FACTS), Allreduce::RecursiveDoubling | Allreduce::ReduceBcast));
            let whole = Facts { commutative: true, divisible: false, ..FACTS };
            assert!(matches!(spec.choose(&whole), Allreduce::RecursiveDoubling | Allreduce::ReduceBcast));
        }
    }

    #[test]
    fn a_level_can_have_its_own_algorithm() {
        let spec = Spec::<Bcast>::parse("node:chain,switch:knomial/3,flat").unwrap();
        assert_eq!(spec.choose(&FACTS), Bcast::Chain);
        assert_eq!(spec.choose(&Facts { level: Level::Switch(2), ..FACTS }), Bcast::Knomial(3));
        assert_eq!(spec.choose(&Facts { level: Level::Numa, ..FACTS }), Bcast::Flat);
    }

    #[test]
    fn segments() {
        let shape =
            Shape { nodes: 4, flat: false, crowded: false, even: false, even_nodes: false, clusters: 1, joined: true };
        assert_eq!(segment_size(Some(0), 1 << 30, 8, shape, true), usize::MAX);
        assert_eq!(segment_size(Some(4096), 1 << 30, 8, shape, true), 4096);
        assert_eq!(segment_size(None, 100, 8, shape, true), usize::MAX);
        assert!(segment_size(None, 1 << 20, 8, shape, true) < 1 << 20);
        assert_eq!(segment_size(None, 1 << 20, 8, Shape { flat: true, ..shape }, false), usize::MAX);
        assert!(segment_size(None, 1 << 20, 8, Shape { flat: true, ..shape }, true) < 1 << 20);
        assert_eq!(segment_size(None, 1 << 20, 8, Shape { nodes: 1, flat: true, ..shape }, true), usize::MAX);
    }

    /// What is chosen is what the operation has, and what it needs is given: by the built-in choice, and
    /// whatever the parameter says.
    #[test]
    fn every_choice_is_possible() {
        fn check<A: Family<Facts = Whole> + PartialEq + std::fmt::Debug>() {
            let fits = |choice: A, whole: &Whole| {
                let row = choice.row().unwrap();
                row.serves(whole.operation) && row.needs.iter().all(|&need| whole.meets(need))
            };
            let mut chosen = Vec::new();
            for bits in 0..8_u32 {
                for members in 2..=70_usize {
                    for size in [
                        None,
                        Some(0),
                        Some(1),
                        Some(255),
                        Some(256),
                        Some(32 << 10),
                        Some((32 << 10) + 1),
                        Some(1 << 20),
                    ] {
                        let even = bits & 1 == 1 && members.is_power_of_two();
                        let nodes = 1 + (bits as usize & 1);
                        let even_nodes = bits & 1 == 1 && members % 5 > 0;
                        let shape = Shape {
                            nodes,
                            flat: bits & 1 == 0,
                            crowded: false,
                            even,
                            even_nodes,
                            clusters: 1,
                            joined: true,
                        };
                        for &operation in A::OPERATIONS {
                            let (commutative, reproducible) = (bits & 2 == 0, bits & 4 == 0);
                            let block = size.filter(|_| operation.has_equal_blocks());
                            let bytes = size.map(|block: usize| block * members);
                            let shared = bits & 1 == 1 && members % 3 > 0;
                            let whole =
                                Whole { operation, members, shape, shared, block, bytes, commutative, reproducible };
                            let auto = Spec::<A>::AUTO.choose(&whole);
                            assert!(fits(auto, &whole), "{auto:?} {whole:?}");
                            if !chosen.contains(&auto) {
                                chosen.push(auto);
                            }
                            for row in A::ROWS.iter().filter(|row| row.serves(operation)) {
                                let choice = Spec::<A>::parse_for(operation, row.name).unwrap().choose(&whole);
                                assert!(fits(choice, &whole), "{choice:?} {whole:?}");
                                let met = row.needs.iter().all(|&need| whole.meets(need));
                                let expected = if met { row.name } else { row.instead };
                                assert_eq!(choice.row().map(|row| row.name), Some(expected));
                            }
                        }
                    }
                }
            }
            assert!(!chosen.is_empty());
        }
        check::<Gather>();
        check::<Scatter>();
        check::<Allgather>();
        check::<Alltoall>();
        check::<ReduceScatter>();
        check::<Scan>();
        check::<Neighbor>();
    }
}
