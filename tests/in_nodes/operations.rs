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
use coll_rust::select::Spec;
use coll_rust::shm::op::Combine;
use coll_rust::sim::{Config, Rng, SimEndpoint, SimStream, Stats, UnitBuffer, UnitType, World};
use coll_rust::topo::{Group, Level, LevelSpec};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Bcast,
    Reduce,
    Allreduce,
    Barrier,
    Synchronise,
}

/// An operation with all that its ranks agree on.
#[derive(Clone, Copy, Debug)]
struct Call {
    kind: Kind,
    id: usize,
    root: Rank,
    /// Bytes, or elements.
    units: usize,
    segment: usize,
    window: u8,
    zero_copy: usize,
    commutative: bool,
    in_place: bool,
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

    fn has_root(&self) -> bool {
        matches!(self.kind, Kind::Bcast | Kind::Reduce)
    }
}

/// What the ranks of a run share.
struct Run<'r> {
    machine: &'r Machine,
    nodes: &'r Nodes,
    levels: LevelSpec,
    affine: Affine,
    /// How many ranks have come to each barrier.
    come: Vec<AtomicUsize>,
}

impl Run<'_> {
    fn groups(&self, rank: Rank, call: &Call) -> Vec<Group> {
        let ordered = !call.commutative && matches!(call.kind, Kind::Reduce | Kind::Allreduce);
        let root = call.has_root().then_some(call.root);
        self.machine.groups(&self.levels, ordered, root).swap_remove(rank as usize)
    }

    async fn perform(&self, ep: &Half<'_>, call: Call, slot: usize, number: usize) -> Result<()> {
        let rank = ep.rank();
        let groups = self.groups(rank, &call);
        let combines = matches!(call.kind, Kind::Reduce | Kind::Allreduce);
        let op = combines.then_some(&self.affine as &dyn Combine);
        let node = self.nodes.node(rank, slot, call.zero_copy, op);
        let job = Job { segment: call.segment, window: call.window, ..part(ep, &groups, node, call.commutative) };
        match call.kind {
            Kind::Bcast => self.bcast(&job, call).await,
            Kind::Reduce | Kind::Allreduce => self.reduce(&job, call).await,
            Kind::Barrier | Kind::Synchronise => {
                self.come[number].fetch_add(1, Relaxed);
                match call.kind {
                    Kind::Barrier => barrier(&job, &Spec::AUTO).await?,
                    _ => synchronise(&job).await?,
                }
                assert_eq!(self.come[number].load(Relaxed), self.machine.size(), "who has come when somebody leaves");
                Ok(())
            }
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

    /// Reduce or Allreduce. Compositions of maps do not commute, so sums of theirs tell the order; where operands are said to commute, all
    /// maps are shifts.
    async fn reduce<E: Endpoint>(&self, job: &Job<'_, E>, call: Call) -> Result<()> {
        let rank = job.ep.rank();
        let operand = |rank: Rank| {
            let mut operand = self.affine.operand(&[call.id, rank as usize], call.units);
            if call.commutative {
                operand.iter_mut().step_by(2).for_each(|slope| *slope = 1);
            }
            operand
        };
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
            let operands: Vec<_> = (0..self.machine.size() as Rank).map(operand).collect();
            assert_eq!(target.data(), self.affine.oracle(&operands), "{call:?} at rank {rank}");
        }
        Ok(())
    }
}

/// Sequences of calls in two slots at a time, on a machine whose nodes have memory for `leases`. Says what went as messages.
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
const COMBINING: &[Kind] = &[Kind::Reduce, Kind::Allreduce, Kind::Allreduce, Kind::Barrier, Kind::Synchronise];

/// Plenty of memory.
fn plenty(_: &mut Rng) -> Option<usize> {
    Some(usize::MAX)
}

/// Now and then none, or not enough for all streams.
fn scarce(rng: &mut Rng) -> Option<usize> {
    [None, Some(0), Some(1), Some(2), Some(5), Some(usize::MAX)][rng.below(6)]
}

/// No message between ranks of one node.
fn check_inside(machine: &Machine, stats: &Stats) {
    for level in Level::ALL.into_iter().filter(|&level| level <= Level::Node) {
        assert_eq!(stats.level(level.index()).messages, 0, "at {}", level.name());
    }
    for &(from, to) in stats.pairs.keys() {
        assert_ne!(machine.hosts[from as usize], machine.hosts[to as usize], "rank {from} to rank {to}");
    }
}

fn node_up() -> LevelSpec {
    LevelSpec::Auto.from_node_up()
}

/// Machines of a size at which polling everybody in vain does not take long.
fn machine() -> impl Strategy<Value = Machine> {
    crate::job::machine().prop_filter("small", |machine| machine.size() <= 16)
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
