// SPDX-License-Identifier: BSD-3-Clause
//! What is decided about a call, from what all ranks know: whether it may go through shared memory, and by
//! which algorithm it goes by messages.

use super::cost;
use super::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Family, Gather, Neighbor, Operation, Reduce, ReduceScatter, Scan,
    Scatter, Setting, Whole,
};
use crate::topo::{Level, LevelSpec};

/// Blocks of up to so many bytes along edges within nodes and between them all go by messages, at once: those
/// to other nodes take longest anyway, and a second way beside theirs costs more than it saves
/// (docs/design/several-nodes.md: with blocks of 64 bytes; up to where is an estimate).
const SHORT_BLOCK: usize = 1 << 10;

/// Which processes could share memory. The same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// None.
    Nobody,
    /// Those of each node, which are several on some.
    Nodes,
    /// All: they are on one node.
    All,
}

/// Of what a decision depends on, what is not the same in all calls of an operation on a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Bytes of a block; `None` where there are no blocks of one length.
    pub block: Option<usize>,
    /// Bytes of all data; `None` where not all ranks know.
    pub bytes: Option<usize>,
    /// Whether operands may be exchanged.
    pub commutative: bool,
}

/// An algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the families' names say it
pub enum Choice {
    Allgather(Allgather),
    Allreduce(Allreduce),
    Alltoall(Alltoall),
    Barrier(Barrier),
    Bcast(Bcast),
    Gather(Gather),
    Neighbor(Neighbor),
    Reduce(Reduce),
    ReduceScatter(ReduceScatter),
    Scan(Scan),
    Scatter(Scatter),
}

impl Choice {
    /// What goes in its place where ranks are in several clusters: through the leaders of these, whatever the
    /// parameters say. Reductions whose bits must not depend on the placement keep their algorithm, which
    /// [one process](crate::hier::central) runs for all ranks.
    fn between_clusters(self, reproducible: bool) -> Choice {
        match self {
            Choice::Allgather(_) => Choice::Allgather(Allgather::Hierarchical),
            Choice::Alltoall(_) => Choice::Alltoall(Alltoall::Hierarchical),
            Choice::Gather(_) => Choice::Gather(Gather::Hierarchical),
            Choice::Scatter(_) => Choice::Scatter(Scatter::Hierarchical),
            Choice::ReduceScatter(_) if !reproducible => Choice::ReduceScatter(ReduceScatter::Hierarchical),
            Choice::Scan(_) if !reproducible => Choice::Scan(Scan::Hierarchical),
            Choice::Neighbor(Neighbor::Aggregated(posts)) => Choice::Neighbor(Neighbor::Direct(posts)),
            // Along the groups, or as said.
            Choice::Allreduce(_)
            | Choice::Barrier(_)
            | Choice::Bcast(_)
            | Choice::Reduce(_)
            | Choice::ReduceScatter(_)
            | Choice::Scan(_)
            | Choice::Neighbor(_) => self,
        }
    }

    /// The algorithm's name, as parameters have it.
    pub fn name(self) -> &'static str {
        let row = match self {
            Choice::Allgather(algorithm) => algorithm.row(),
            Choice::Allreduce(algorithm) => algorithm.row(),
            Choice::Alltoall(algorithm) => algorithm.row(),
            Choice::Barrier(algorithm) => algorithm.row(),
            Choice::Bcast(algorithm) => algorithm.row(),
            Choice::Gather(algorithm) => algorithm.row(),
            Choice::Neighbor(algorithm) => algorithm.row(),
            Choice::Reduce(algorithm) => algorithm.row(),
            Choice::ReduceScatter(algorithm) => algorithm.row(),
            Choice::Scan(algorithm) => algorithm.row(),
            Choice::Scatter(algorithm) => algorithm.row(),
        };
        row.map_or("", |row| row.name)
    }
}

/// What is decided about a call. The same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may go through shared memory: all of it, where all processes share some, else what happens
    /// within the nodes.
    pub shares: bool,
    /// The algorithm of the whole operation; `None`: every level has its own.
    pub choice: Option<Choice>,
    /// Whether leaders are [those of all nodes](cost::is_across_nodes), in one group.
    pub across: bool,
    /// That of messages between any two ranks: cluster, or node where all are on one.
    pub level: Level,
    /// Whether ranks are in several clusters: not all may have messages with each other.
    pub apart: bool,
}

impl Decision {
    /// Of a call that is not this component's.
    pub const NONE: Decision =
        Decision { shares: false, choice: None, across: false, level: Level::Cluster, apart: false };

    /// By the parameters of an operation, `setting` being that of its algorithm.
    pub fn new(setting: &dyn Setting, levels: &LevelSpec, sharing: Sharing, whole: &Whole) -> Decision {
        let apart = whole.shape.clusters > 1;
        let choice = match apart {
            true => setting.choice(whole).map(|choice| choice.between_clusters(whole.reproducible)),
            false => setting.choice(whole),
        };
        let wanted = || is_shared_within_node(setting, levels, whole.operation, whole.reproducible);
        let shares = match (sharing, choice) {
            (Sharing::Nobody, _) => false,
            (Sharing::All, _) | (_, None) => wanted(),
            (Sharing::Nodes, Some(Choice::Neighbor(algorithm))) => {
                let direct = matches!(algorithm, Neighbor::Direct(_)) && !setting.names_shm();
                wanted() && !(direct && whole.block.is_some_and(|block| block <= SHORT_BLOCK))
            }
            // Others are over all processes.
            (Sharing::Nodes, Some(choice)) => leaves_nodes(choice) && levels.is_auto() && wanted(),
        };
        let level = if whole.shape.nodes > 1 { Level::Cluster } else { Level::Node };
        Decision { shares, choice, across: !apart && cost::is_across_nodes(whole), level, apart }
    }
}

/// Whether an algorithm between nodes leaves it open how ranks of a node come together.
fn leaves_nodes(choice: Choice) -> bool {
    match choice {
        Choice::Allgather(algorithm) => algorithm == Allgather::Hierarchical,
        Choice::Alltoall(algorithm) => matches!(algorithm, Alltoall::Hierarchical | Alltoall::Spread),
        Choice::Gather(algorithm) => matches!(algorithm, Gather::Hierarchical | Gather::Linear(_)),
        Choice::ReduceScatter(algorithm) => algorithm == ReduceScatter::Hierarchical,
        Choice::Scan(algorithm) => algorithm == Scan::Hierarchical,
        Choice::Scatter(algorithm) => matches!(algorithm, Scatter::Hierarchical | Scatter::Linear(_)),
        _ => false,
    }
}

/// In shared memory, values are combined in another order than by messages.
fn is_in_any_order(operation: Operation, reproducible: bool) -> bool {
    !(operation.reduces() && reproducible)
}

/// Whether the parameters leave an operation to shared memory within a node. The same on all ranks.
pub fn is_shared_within_node(
    setting: &dyn Setting,
    levels: &LevelSpec,
    operation: Operation,
    reproducible: bool,
) -> bool {
    let levels = levels.is_auto() || (setting.names_shm() && levels.holds(Level::Node));
    is_in_any_order(operation, reproducible) && setting.is_shared_within_node() && levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::{Memo, Spec};
    use crate::topo::Shape;

    const SHAPE: Shape =
        Shape { nodes: 4, flat: false, crowded: false, even: true, even_nodes: true, clusters: 1, joined: true };

    fn decide(setting: &dyn Setting, sharing: Sharing, operation: Operation, given: Given) -> Decision {
        let Given { block, bytes, commutative } = given;
        let whole = Whole {
            operation,
            members: 32,
            shape: SHAPE,
            shared: sharing == Sharing::Nodes,
            block,
            bytes,
            commutative,
            reproducible: false,
        };
        Decision::new(setting, &LevelSpec::Auto, sharing, &whole)
    }

    fn blocks(len: usize) -> Given {
        Given { block: Some(len), bytes: Some(32 * len), commutative: false }
    }

    fn bytes(len: usize, commutative: bool) -> Given {
        Given { block: None, bytes: Some(len), commutative }
    }

    /// Two calls that go different ways, one after the other and again: neither goes that of the other.
    #[test]
    fn no_decision_stands_in_for_another() {
        let untold = Given { block: None, bytes: None, commutative: false };
        let apart = [
            (Operation::Allgather, blocks(64), blocks(64 << 10)),
            (Operation::Allgatherv, bytes(4 << 10, false), bytes(4 << 20, false)),
            (Operation::Alltoall, blocks(64), blocks(64 << 10)),
            (Operation::Gather, blocks(8), blocks(4 << 20)),
            (Operation::Scatter, blocks(8), blocks(4 << 20)),
            (Operation::Gather, blocks(4 << 20), Given { block: None, ..blocks(4 << 20) }),
        ];
        let halving = Spec::<ReduceScatter>::parse("recursive_halving").unwrap();
        let named = [(Operation::ReduceScatter, bytes(8, true), bytes(8, false))];
        let auto = |operation| -> &dyn Setting {
            match operation {
                Operation::Allgather | Operation::Allgatherv => const { &Spec::<Allgather>::AUTO },
                Operation::Alltoall => const { &Spec::<Alltoall>::AUTO },
                Operation::Gather => const { &Spec::<Gather>::AUTO },
                _ => const { &Spec::<Scatter>::AUTO },
            }
        };
        let apart = apart.map(|(operation, one, other)| (auto(operation), operation, one, other));
        let named = named.map(|(operation, one, other)| (&halving as &dyn Setting, operation, one, other));
        for (setting, operation, one, other) in apart.into_iter().chain(named) {
            let (memo, found) = (Memo::default(), std::cell::Cell::new(0));
            let ask = |given| {
                memo.answer(given, || {
                    found.set(found.get() + 1);
                    Ok::<_, ()>(decide(setting, Sharing::Nodes, operation, given))
                })
            };
            let expected = |given| Ok(decide(setting, Sharing::Nodes, operation, given));
            assert_ne!(expected(one), expected(other), "{operation:?}: the test would say nothing");
            for given in [one, one, other, other, one, untold, other] {
                assert_eq!(ask(given), expected(given), "{operation:?} {given:?}");
            }
            assert_eq!(found.get(), 5, "who asks the same again is told the same");
        }
    }

    #[test]
    fn who_shares_memory() {
        let shares = |setting: &dyn Setting, operation, given| {
            [Sharing::Nobody, Sharing::Nodes, Sharing::All].map(|who| decide(setting, who, operation, given).shares)
        };
        let auto = Spec::<Gather>::AUTO;
        let named = |name| Spec::<Gather>::parse(name).unwrap();
        let (short, long) = (blocks(8), blocks(4 << 20));
        assert_eq!(shares(&auto, Operation::Gather, short), [false, true, true], "through leaders");
        assert_eq!(shares(&auto, Operation::Gather, long), [false, true, true], "at once, beside the node");
        assert_eq!(shares(&named("linear"), Operation::Gather, short), [false, true, true]);
        assert_eq!(shares(&named("knomial"), Operation::Gather, short), [false, false, true], "over all processes");
        assert_eq!(shares(&named("hierarchical"), Operation::Gather, short), [false, true, true]);
        for name in ["node:linear", "node:linear,hierarchical", "fallback"] {
            assert_eq!(shares(&named(name), Operation::Gather, short), [false; 3], "{name}");
        }
        assert_eq!(shares(&Spec::<Alltoall>::AUTO, Operation::Alltoall, blocks(1 << 20)), [false, true, true]);
        assert_eq!(shares(&Spec::<Bcast>::AUTO, Operation::Bcast, bytes(8, false)), [false, true, true]);
        assert_eq!(
            shares(&Spec::<Bcast>::parse("flat").unwrap(), Operation::Bcast, bytes(8, false)),
            [false, true, true]
        );
        assert_eq!(shares(&Spec::<Bcast>::parse("node:flat").unwrap(), Operation::Bcast, bytes(8, false)), [false; 3]);
        let edges = Given { block: None, bytes: None, commutative: false };
        assert_eq!(shares(&Spec::<Neighbor>::AUTO, Operation::NeighborAlltoall, edges), [false, true, true]);
        let edges = |block| Given { block: Some(block), bytes: None, commutative: false };
        let around = |setting: &Spec<Neighbor>, given| shares(setting, Operation::NeighborAlltoall, given);
        let (short, longer) = (edges(SHORT_BLOCK), edges(SHORT_BLOCK + 1));
        assert_eq!(around(&Spec::<Neighbor>::AUTO, short), [false, false, true], "all by messages, at once");
        assert_eq!(around(&Spec::<Neighbor>::AUTO, longer), [false, true, true]);
        for name in ["shm", "node:shm,aggregated"] {
            assert!(around(&Spec::<Neighbor>::parse(name).unwrap(), short)[1], "{name}");
        }
        // A sum must not depend on who shares memory.
        for (reproducible, sharing) in [(true, Sharing::All), (true, Sharing::Nodes), (false, Sharing::All)] {
            let (setting, operation) = (&Spec::<Scan>::AUTO, Operation::Scan);
            let Given { block, bytes, commutative } = bytes(8, true);
            let (members, shape, shared) = (32, SHAPE, true);
            let whole = Whole { operation, members, shape, shared, block, bytes, commutative, reproducible };
            assert_eq!(Decision::new(setting, &LevelSpec::Auto, sharing, &whole).shares, !reproducible);
        }
    }

    /// Whatever a parameter names: over several clusters only what goes along groups is left, or what one
    /// process runs for all.
    #[test]
    fn over_several_clusters_no_algorithm_goes_from_rank_to_rank() {
        fn check<A: Family<Facts = Whole>>(expected: &str) {
            let joined = Shape { clusters: 2, ..SHAPE };
            for (&operation, row) in A::OPERATIONS.iter().flat_map(|of| A::ROWS.iter().map(move |row| (of, row))) {
                for (name, reproducible) in [(row.name, false), ("auto", false), ("fallback", false), (row.name, true)]
                {
                    let Ok(spec) = Spec::<A>::parse_for(operation, name) else { continue };
                    let (block, bytes, commutative) = (Some(8), Some(256), true);
                    let (members, shape, shared) = (32, joined, true);
                    let whole = Whole { operation, members, shape, shared, block, bytes, commutative, reproducible };
                    let decision = Decision::new(&spec, &LevelSpec::Auto, Sharing::Nodes, &whole);
                    assert!(decision.apart && !decision.across);
                    let combines = matches!(decision.choice, Some(Choice::ReduceScatter(_) | Choice::Scan(_)));
                    let found = decision.choice.map_or("", Choice::name);
                    assert!(found == expected || (reproducible && combines), "{operation:?} {name}: {found}");
                }
            }
        }
        check::<Gather>("hierarchical");
        check::<Scatter>("hierarchical");
        check::<Allgather>("hierarchical");
        check::<Alltoall>("hierarchical");
        check::<ReduceScatter>("hierarchical");
        check::<Scan>("hierarchical");
        check::<Neighbor>("direct");
    }
}
