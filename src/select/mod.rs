//! Which algorithm runs at which level.
//!
//! Pure, and only of what every member of the group knows: the level, the group's size, the operation's total bytes and
//! number of segments, whether the operation commutes, and the parameters.
#![forbid(unsafe_code)]

mod auto;
mod spec;

pub use spec::{Named, Spec};

use crate::topo::Shape;

/// Broadcast within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bcast {
    /// [`crate::algo::bcast::flat`]
    Flat,
    /// [`crate::algo::bcast::knomial`] of this radix
    Knomial(u32),
    /// [`crate::algo::bcast::scatter_allgather`]
    ScatterAllgather,
    /// [`crate::algo::bcast::chain`]
    Chain,
}

/// Reduction within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// [`crate::algo::reduce::flat`]
    Flat,
    /// [`crate::algo::reduce::knomial`] of this radix
    Knomial(u32),
    /// [`crate::algo::reduce::chain`]
    Chain,
    /// [`crate::algo::reduce::reduce_scatter_gather`]
    ReduceScatterGather,
}

/// How an allreduce is composed, and what runs in the topmost group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allreduce {
    /// A hierarchical reduce to rank 0, then a hierarchical broadcast.
    ReduceBcast,
    /// reduce_allreduce_bcast with [`crate::algo::allreduce::recursive_doubling`] on top
    RecursiveDoubling,
    /// reduce_allreduce_bcast with [`crate::algo::allreduce::rabenseifner`] on top
    Rabenseifner,
    /// reduce_allreduce_bcast with [`crate::algo::allreduce::ring`] on top
    Ring,
}

/// Barrier within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// [`crate::algo::barrier::dissemination`]
    Dissemination,
    /// [`crate::algo::barrier::tree`] of this radix
    Tree(u32),
}

/// What the choice of a level's algorithm may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The level of the group.
    pub level: crate::topo::Level,
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

impl Facts {
    /// Whether an algorithm may combine parts of the data in any order.
    fn free(&self) -> bool {
        self.commutative && self.divisible
    }
}

impl Spec<Bcast> {
    /// The broadcast for a group.
    pub fn choose(&self, facts: &Facts) -> Bcast {
        self.at(facts.level).unwrap_or_else(|| auto::bcast(facts))
    }
}

impl Spec<Reduce> {
    /// The reduction for a group. An algorithm that exchanges operands or cuts the data
    /// gives way to the k-nomial tree where that must not be.
    pub fn choose(&self, facts: &Facts) -> Reduce {
        match self.at(facts.level) {
            Some(Reduce::ReduceScatterGather) if !facts.free() => Reduce::Knomial(2),
            Some(choice) => choice,
            None => auto::reduce(facts),
        }
    }
}

impl Spec<Allreduce> {
    /// The composition; `facts` are those of the topmost group. Where operands do not commute or the
    /// data must not be cut, recursive doubling stands in for the algorithms that do so.
    pub fn choose(&self, facts: &Facts) -> Allreduce {
        match self.at(facts.level) {
            Some(Allreduce::Rabenseifner | Allreduce::Ring) if !facts.free() => Allreduce::RecursiveDoubling,
            Some(choice) => choice,
            None => auto::allreduce(facts),
        }
    }
}

impl Spec<Barrier> {
    /// The barrier for a group.
    pub fn choose(&self, facts: &Facts) -> Barrier {
        self.at(facts.level).unwrap_or_else(|| auto::barrier(facts))
    }
}

/// Size of the segments, in bytes, that `bytes` are cut into; `usize::MAX` for one segment. `setting` is the parameter's value
/// (0: never cut), `None` where it is "auto". `ranks`: of the communicator; `shape`: its shape;
/// `chain`: whether the operation may run along a chain.
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
    use crate::topo::Level;

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
        let shape = Shape { nodes: 4, flat: false, crowded: false };
        assert_eq!(segment_size(Some(0), 1 << 30, 8, shape, true), usize::MAX);
        assert_eq!(segment_size(Some(4096), 1 << 30, 8, shape, true), 4096);
        assert_eq!(segment_size(None, 100, 8, shape, true), usize::MAX);
        assert!(segment_size(None, 1 << 20, 8, shape, true) < 1 << 20);
        assert_eq!(segment_size(None, 1 << 20, 8, Shape { flat: true, ..shape }, false), usize::MAX);
        assert!(segment_size(None, 1 << 20, 8, Shape { flat: true, ..shape }, true) < 1 << 20);
        assert_eq!(segment_size(None, 1 << 20, 8, Shape { nodes: 1, flat: true, ..shape }, true), usize::MAX);
    }
}
