// SPDX-License-Identifier: BSD-3-Clause
//! Sequences of operations.

use super::world::{Half, Nodes, both, part};
use crate::data::{Affine, bytes, hash};
use crate::job::Machine;
use crate::random::config;
use coll_rust::algo::reduce::Value;
use coll_rust::endpoint::{Endpoint, Rank, Result};
use coll_rust::hier::Job;
use coll_rust::hier::allreduce::{Specs, allreduce};
use coll_rust::hier::barrier::{barrier, synchronise};
use coll_rust::hier::bcast::bcast;
use coll_rust::hier::reduce::reduce;
use coll_rust::hier::tree::tree;
use coll_rust::select::Spec;
use coll_rust::shm::op::Combine;
use coll_rust::shm::op::tree::Tree;
use coll_rust::sim::{Config, Rng, SimEndpoint, SimStream, Stats, Traffic, UnitBuffer, UnitType, World};
use coll_rust::topo::{Hierarchy, Level, LevelSpec};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Bcast,
    Reduce,
    Allreduce,
    Barrier,
    Synchronise,
    Gather,
    /// With a message from each rank of another node.
    GatherAtOnce,
    Scatter,
    ScatterAtOnce,
    Allgather,
    Alltoall,
    /// Alltoall with a message for each pair of ranks.
    Spread,
    ReduceScatter,
    Scan,
    Exscan,
}

/// An operation with all that its ranks agree on.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub kind: Kind,
    pub id: usize,
    pub root: Rank,
    /// Bytes, or elements.
    pub units: usize,
    pub segment: usize,
    pub window: u8,
    pub zero_copy: usize,
    pub commutative: bool,
    pub in_place: bool,
}

impl Call {
    fn new(rng: &mut Rng, kinds: &[Kind], ranks: usize, element: usize) -> Call {
        let kind = kinds[rng.below(kinds.len())];
        let units = [0, 1, 7, 14, 15, 56, 57, 101, 300, 1000][rng.below(10)];
        Call {
            kind,
            id: rng.below(1 << 30),
            root: rng.below(ranks) as Rank,
            units: if kind == Kind::Bcast { units } else { units / element },
            segment: [1 << 20, 1 << 20, 100, 33][rng.below(4)],
            window: 1 + rng.below(4) as u8,
            zero_copy: [usize::MAX, 80][rng.below(2)],
            commutative: rng.below(2) == 0,
            in_place: rng.below(3) == 0,
        }
    }

    pub fn root(&self) -> Option<Rank> {
        use Kind::{Bcast, Gather, GatherAtOnce, Reduce, Scatter, ScatterAtOnce};
        let rooted = matches!(self.kind, Bcast | Reduce | Gather | GatherAtOnce | Scatter | ScatterAtOnce);
        rooted.then_some(self.root)
    }

    fn combines(&self) -> bool {
        use Kind::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
        matches!(self.kind, Reduce | Allreduce | ReduceScatter | Scan | Exscan)
    }

    /// Whether groups have to be of consecutive ranks.
    fn is_ordered(&self) -> bool {
        self.combines() && (!self.commutative || matches!(self.kind, Kind::Scan | Kind::Exscan))
    }
}

/// What the ranks of a run share.
pub struct Run<'r> {
    pub machine: &'r Machine,
    nodes: &'r Nodes,
    levels: LevelSpec,
    pub affine: Affine,
    /// How many ranks have come to each barrier.
    come: Vec<AtomicUsize>,
}

impl Run<'_> {
    /// What a rank finds.
    pub fn hierarchy(&self, rank: Rank, call: &Call) -> Hierarchy {
        self.machine.hierarchy(rank, &self.levels, call.is_ordered())
    }

    /// The tree of a rank's node: none, along NUMA nodes or along all levels, where they count.
    fn tree(&self, rank: Rank, call: &Call) -> Option<Tree> {
        let spec = ["auto", "numa", "l2,l3,numa,socket", "none"][hash(&[call.id, 3]) as usize % 4];
        let place = self.machine.placement(rank);
        let levels = place.tree_levels(&LevelSpec::parse(spec).unwrap())?;
        let groups = Hierarchy::build(&place, &levels.levels, call.is_ordered()).groups(call.root());
        let local: Vec<Rank> = place.local().iter().map(|&(rank, _)| rank).collect();
        tree(&groups, &local, call.root())
    }

    async fn perform(&self, ep: &Half<'_>, call: Call, slot: usize, number: usize) -> Result<()> {
        let rank = ep.rank();
        let groups = self.hierarchy(rank, &call).groups(call.root());
        let op = call.combines().then_some(&self.affine as &dyn Combine);
        let tree = self.tree(rank, &call);
        let node = self.nodes.node(rank, slot, call.zero_copy, op).map(|node| node.along(tree.as_ref()));
        let job = Job { segment: call.segment, window: call.window, ..part(ep, &groups, node, call.commutative) };
        match call.kind {
            Kind::Bcast => self.bcast(&job, call).await,
            Kind::Reduce | Kind::Allreduce => self.reduce(&job, call).await,
            Kind::ReduceScatter => self.reduce_scatter(&job, call).await,
            Kind::Scan | Kind::Exscan => self.scan(&job, call).await,
            Kind::Barrier | Kind::Synchronise => {
                self.come[number].fetch_add(1, Relaxed);
                match call.kind {
                    Kind::Barrier => barrier(&job, &Spec::AUTO).await?,
                    _ => synchronise(&job).await?,
                }
                assert_eq!(self.come[number].load(Relaxed), self.machine.size(), "who has come when somebody leaves");
                Ok(())
            }
            _ => self.move_blocks(&job, call).await,
        }
    }

    async fn bcast<E: Endpoint>(&self, job: &Job<'_, E>, call: Call) -> Result<()> {
        let (rank, data) = (job.ep.rank(), bytes(&[call.id], call.units));
        let before = if rank == call.root { data.clone() } else { bytes(&[call.id, 1], call.units) };
        let stream = match hash(&[call.id, rank as usize]) % 3 {
            0 => SimStream::strided(&before, 3, 5),
            _ => SimStream::direct(&before),
        };
        bcast(job, &Spec::AUTO, &stream, rank == call.root).await?;
        assert_eq!(stream.contents(), data, "{call:?} at rank {rank}");
        Ok(())
    }

    /// A rank's operand. Where operands are said to commute, all maps are shifts.
    pub fn operand(&self, call: &Call, rank: usize) -> Vec<u8> {
        let mut operand = self.affine.operand(&[call.id, rank], call.units);
        if call.commutative {
            operand.iter_mut().step_by(2).for_each(|slope| *slope = 1);
        }
        operand
    }

    /// The combination of some ranks' operands.
    pub fn sum(&self, call: &Call, ranks: Range<usize>) -> Vec<u8> {
        self.affine.oracle(&ranks.map(|rank| self.operand(call, rank)).collect::<Vec<_>>())
    }

    /// Reduce or Allreduce. Compositions of maps do not commute, so sums of theirs tell the order.
    async fn reduce<E: Endpoint>(&self, job: &Job<'_, E>, call: Call) -> Result<()> {
        let rank = job.ep.rank();
        let operand = |rank: Rank| self.operand(&call, rank as usize);
        let unit = UnitType::plain(self.affine.size);
        let (input, output) = (UnitBuffer::with(unit, &operand(rank)), UnitBuffer::new(unit, call.units));
        let wanted = call.kind == Kind::Allreduce || rank == call.root;
        let value = match call.in_place && wanted {
            true => Value::owned(input.span()),
            false => Value::borrowed(input.span()),
        };
        let target = if call.in_place { &input } else { &output };
        let specs = Specs { allreduce: &Spec::AUTO, reduce: &Spec::AUTO, bcast: &Spec::AUTO };
        match call.kind {
            Kind::Reduce => reduce(job, &Spec::AUTO, value, wanted.then(|| target.span())).await?,
            _ => allreduce(job, &specs, value, target.span()).await?,
        }
        assert!(call.in_place || input.data() == operand(rank), "the input of {call:?} has changed at rank {rank}");
        if wanted {
            assert_eq!(target.data(), self.sum(&call, 0..self.machine.size()), "{call:?} at rank {rank}");
        }
        Ok(())
    }
}

/// Sequences of calls in two slots at a time, on a machine whose nodes have memory for `leases`. Says what
/// went as messages.
fn run(
    machine: &Machine,
    levels: LevelSpec,
    kinds: &[Kind],
    element: usize,
    seed: u64,
    leases: impl FnMut(&mut Rng) -> Option<usize>,
) -> Stats {
    let mut rng = Rng::new(seed);
    let nodes = Nodes::new(machine, &mut rng, leases);
    // The same calls whatever memory there is.
    let mut rng = Rng::new(seed ^ 1);
    let length = if machine.size() > 16 { 2 } else { 1 + rng.below(5) };
    let mut calls =
        || -> Vec<Call> { (0..length).map(|_| Call::new(&mut rng, kinds, machine.size(), element)).collect() };
    let sequences = [calls(), calls()];
    let come = (0..2 * length).map(|_| AtomicUsize::new(0)).collect();
    let run = &Run { machine, nodes: &nodes, levels, affine: Affine { size: element.max(2) }, come };
    // Affine maps have two bytes; a world of bytes only moves.
    let unit = UnitType::plain(element);
    let world = World::new(machine.size() as u32).unit(unit).reduce(move |left, right| {
        // SAFETY: both are whole elements that do not overlap.
        unsafe { Affine { size: element }.reduce(left.as_ptr(), right.as_mut_ptr(), 1) }
    });
    let config = Config { max_steps: 300_000, ..Config::from_seed(seed, machine.size() as u32) };
    let sequences = &sequences;
    let work = |ep: SimEndpoint| {
        run.nodes.watch(ep.rank(), async move {
            let ep = &ep;
            let sequence = |which: usize, slot: usize| async move {
                let half = Half { ep, first: 4 * which as u8 };
                for (i, &call) in sequences[which].iter().enumerate() {
                    run.perform(&half, call, slot, which * length + i).await?;
                }
                Ok(())
            };
            both(sequence(0, 0), sequence(1, 3)).await
        })
    };
    world.run(seed, config, work).unwrap_or_else(|failed| panic!("{failed}"))
}

const MOVING: &[Kind] = &[Kind::Bcast, Kind::Bcast, Kind::Barrier, Kind::Synchronise];
const BLOCKS: &[Kind] = &[
    Kind::Bcast,
    Kind::Barrier,
    Kind::Gather,
    Kind::GatherAtOnce,
    Kind::Scatter,
    Kind::ScatterAtOnce,
    Kind::Allgather,
    Kind::Alltoall,
    Kind::Spread,
];
const SCATTERING: &[Kind] = &[Kind::ReduceScatter, Kind::ReduceScatter, Kind::Allreduce, Kind::Barrier];
const PREFIX: &[Kind] = &[Kind::Scan, Kind::Exscan, Kind::Allreduce];
const COMBINING: &[Kind] = &[Kind::Reduce, Kind::Allreduce, Kind::Allreduce, Kind::Barrier, Kind::Synchronise];

/// Plenty of memory.
pub fn plenty(_: &mut Rng) -> Option<usize> {
    Some(usize::MAX)
}

/// Now and then none, or not enough for all streams.
pub fn scarce(rng: &mut Rng) -> Option<usize> {
    [None, Some(0), Some(1), Some(2), Some(5), Some(usize::MAX)][rng.below(6)]
}

/// No message between ranks of one node.
pub fn check_inside(machine: &Machine, stats: &Stats) {
    for level in Level::ALL.into_iter().filter(|&level| level <= Level::Node) {
        assert_eq!(stats.level(level.index()).messages, 0, "at {}", level.name());
    }
    for &(from, to) in stats.pairs.keys() {
        assert_ne!(machine.hosts[from as usize], machine.hosts[to as usize], "rank {from} to rank {to}");
    }
}

/// What went between ranks of different nodes.
fn across(machine: &Machine, stats: &Stats) -> Vec<((Rank, Rank), Traffic)> {
    let apart = |&(from, to): &(Rank, Rank)| machine.hosts[from as usize] != machine.hosts[to as usize];
    let mut across: Vec<_> = stats.pairs.iter().filter(|(pair, _)| apart(pair)).map(|(&pair, &t)| (pair, t)).collect();
    across.sort_by_key(|(pair, _)| *pair);
    across
}

fn node_up() -> LevelSpec {
    LevelSpec::Auto.from_node_up()
}

/// Machines of a size at which polling everybody in vain does not take long.
pub fn machine() -> impl Strategy<Value = Machine> {
    crate::job::machine().prop_filter("small", |machine| machine.size() <= 16)
}

/// The same, of several nodes: on one the topmost group exchanges messages.
fn nodes() -> impl Strategy<Value = Machine> {
    machine().prop_filter("nodes", |machine| machine.hosts.iter().any(|&host| host != machine.hosts[0]))
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn nothing_inside_the_nodes_is_a_message(machine in machine(), seed: u64) {
        check_inside(&machine, &run(&machine, node_up(), MOVING, 1, seed, plenty));
    }

    #[test]
    fn some_nodes_have_little_memory(machine in machine(), seed: u64) {
        run(&machine, node_up(), MOVING, 1, seed, scarce);
    }

    #[test]
    fn reductions(machine in machine(), element in prop_oneof![Just(2usize), Just(6), Just(8)], seed: u64) {
        run(&machine, node_up(), COMBINING, element, seed, plenty);
    }

    #[test]
    fn reductions_where_some_nodes_have_little_memory(machine in machine(), seed: u64) {
        run(&machine, node_up(), COMBINING, 4, seed, scarce);
    }

    #[test]
    fn levels_without_the_node_need_no_memory(machine in machine(), seed: u64) {
        let levels = [LevelSpec::parse("none"), LevelSpec::parse("switch")][seed as usize % 2].clone().unwrap();
        run(&machine, levels, COMBINING, 4, seed, plenty);
    }
}

proptest! {
    #![proptest_config(config(25))]

    #[test]
    fn blocks(machine in nodes(), seed: u64) {
        let stats = run(&machine, node_up(), BLOCKS, 1, seed, plenty);
        let without = run(&machine, node_up(), BLOCKS, 1, seed, |_| None);
        check_inside(&machine, &stats);
        prop_assert_eq!(across(&machine, &stats), across(&machine, &without));
    }

    #[test]
    fn blocks_where_some_nodes_have_little_memory(machine in machine(), seed: u64) {
        run(&machine, node_up(), BLOCKS, 1, seed, scarce);
    }

    #[test]
    fn scattered_reductions(machine in machine(), element in prop_oneof![Just(2usize), Just(6), Just(8)], seed: u64) {
        run(&machine, node_up(), SCATTERING, element, seed, plenty);
    }

    #[test]
    fn prefix_reductions(machine in nodes(), element in prop_oneof![Just(2usize), Just(6), Just(8)], seed: u64) {
        let stats = run(&machine, node_up(), PREFIX, element, seed, plenty);
        let without = run(&machine, node_up(), PREFIX, element, seed, |_| None);
        prop_assert_eq!(across(&machine, &stats), across(&machine, &without));
        if machine.hosts.is_sorted() {
            check_inside(&machine, &stats);
        }
    }

    #[test]
    fn both_where_some_nodes_have_little_memory(machine in machine(), seed: u64) {
        let kinds = [SCATTERING, PREFIX].concat();
        run(&machine, node_up(), &kinds, 4, seed, scarce);
    }
}
