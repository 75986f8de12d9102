// SPDX-License-Identifier: BSD-3-Clause
//! What goes wrong for one process ends the operation of all processes of its node, with an error.

use super::world::{Half, part};
use crate::data::Affine;
use coll_rust::algo::data::Role;
use coll_rust::algo::reduce::Value;
use coll_rust::algo::scan::Scan;
use coll_rust::endpoint::{Endpoint, Error, Rank, Result, Span};
use coll_rust::hier::Job;
use coll_rust::hier::allgather::{self, Exchange, allgather};
use coll_rust::hier::allreduce::{Specs, allreduce};
use coll_rust::hier::alltoall::alltoall;
use coll_rust::hier::barrier::barrier;
use coll_rust::hier::bcast::bcast;
use coll_rust::hier::gather::{self, gather};
use coll_rust::hier::parts::Parts;
use coll_rust::hier::reduce::reduce;
use coll_rust::hier::scan::{Prefix, scan};
use coll_rust::hier::scatter::scatter;
use coll_rust::hier::tree::tree;
use coll_rust::select::Spec;
use coll_rust::shm::exec::node::Node;
use coll_rust::shm::memory::heap::Heap;
use coll_rust::shm::op::Combine;
use coll_rust::shm::op::tree::Tree;
use coll_rust::shm::protocol::team::{Config, Team};
use coll_rust::shm::thresholds::Thresholds;
use coll_rust::sim::{self, SimBlocks, SimEndpoint, SimStream, UnitType, World};
use coll_rust::topo::{Group, Hardware, Hierarchy, LevelSpec, Locality, Modules, Placement};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Ranks 0 to 2 share a node; rank 3 has one for itself.
const HOSTS: [u32; 4] = [0, 0, 0, 1];
const UNITS: usize = 400;

/// Polled whenever the scheduler likes: who waits for a dead process must look again and again.
struct Restless<F>(Pin<Box<F>>);

impl<F: Future> Future for Restless<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.0.as_mut().poll(context);
        if polled.is_pending() {
            context.waker().wake_by_ref();
        }
        polled
    }
}

fn hierarchy(rank: Rank) -> Hierarchy {
    Hierarchy::build(&placement(rank), &LevelSpec::Auto.from_node_up(), false)
}

/// Ranks 1 and 2 share a NUMA node.
fn placement(rank: Rank) -> Placement {
    let at = |numa| Locality { numa: Some(numa), ..Locality::default() };
    let hw = Hardware { numa: Modules { modules: 2, cores: 4 }, ..Hardware::default() };
    Placement::new(rank, HOSTS.to_vec(), vec![], vec![(0, at(0)), (1, at(1)), (2, at(1))], hw)
}

/// The tree of the first node.
fn numa_nodes(rank: Rank) -> Option<Tree> {
    let levels = placement(rank).tree_levels(&LevelSpec::parse("numa").unwrap())?;
    tree(&Hierarchy::build(&placement(rank), &levels.levels, false).groups(None), &[0, 1, 2], None)
}

fn groups(rank: Rank) -> Vec<Group> {
    hierarchy(rank).groups(None)
}

/// Gather to rank 0, or Scatter from there, of blocks of so many units.
async fn rooted<'a>(gathers: bool, job: &Job<'a, Half<'a>>, units: usize) -> Result<()> {
    let rank = job.ep.rank();
    let blocks = vec![vec![1_u8; units]; HOSTS.len()];
    let (all, own) = (SimBlocks::run(&blocks), SimStream::direct(&blocks[0]));
    let role = match rank {
        0 => Role::Root { all: &all, own: Some(&own) },
        _ => Role::Other { own: &own },
    };
    let parts = Parts::rooted(&hierarchy(rank), job.groups, rank, 0);
    match gathers {
        true => gather(job, &parts, &gather::Tree::auto, Some(units), 0, &role).await,
        false => scatter(job, &parts, &gather::Tree::auto, Some(units), &role).await,
    }
}

/// Allgather, where the own block is of so many units, and the place for it like all others.
async fn joined<'a>(job: &Job<'a, Half<'a>>, units: usize) -> Result<()> {
    let (own, into) = (SimStream::direct(&vec![1; units]), SimBlocks::run(&vec![vec![0; UNITS]; HOSTS.len()]));
    let parts = Parts::joined(&hierarchy(job.ep.rank()), job.groups, job.ep.rank());
    let specs =
        allgather::Specs { trees: &gather::Tree::auto, exchange: &Exchange::auto, bcast: &Spec::AUTO, order: &[] };
    allgather(job, &parts, &specs, Some(&own), &into).await
}

async fn perform<'a>(kind: usize, job: &Job<'a, Half<'a>>, units: usize) -> Result<()> {
    let mut room = vec![1_u8; 2 * units];
    // SAFETY: the memory outlives the operation, and nothing else uses it meanwhile.
    let span = unsafe { Span::new(room.as_mut_ptr(), units, 2) };
    let specs = Specs { allreduce: &Spec::AUTO, reduce: &Spec::AUTO, bcast: &Spec::AUTO };
    match kind {
        0 => barrier(job, &Spec::AUTO).await,
        1 => bcast(job, &Spec::AUTO, &span.bytes(), job.ep.rank() == 0).await,
        2 => reduce(job, &Spec::AUTO, Value::borrowed(span), None).await,
        4 => rooted(true, job, units).await,
        5 => rooted(false, job, units).await,
        7 => joined(job, units).await,
        6 => scan(job, &Prefix::auto, 2, Scan::Inclusive, span, span).await,
        _ => allreduce(job, &specs, Value::owned(span), span).await,
    }
}

/// Ranks for which `alive` come to an operation on `segment`s; the leader gives up where `fails`, and the
/// rank of the other node does not come then. Says how it went for each rank.
fn run(
    kind: usize,
    segment: usize,
    alive: &[Rank],
    fails: bool,
    along: bool,
    units: impl Fn(Rank) -> usize,
) -> Vec<Option<Result<()>>> {
    let heap = Heap::new(3, usize::MAX, false);
    let teams: Vec<Team> = (0..3).map(|member| Team::new(heap.member(member), Config::default())).collect();
    (0..3).filter(|member| !alive.contains(&(*member as Rank))).for_each(|member| heap.kill(member));
    let teams = &teams;
    let work = |ep: SimEndpoint| {
        let alive = alive.contains(&ep.rank()) || (ep.rank() == 3 && !fails);
        let units = units(ep.rank());
        Restless(Box::pin(async move {
            let rank = ep.rank();
            if !alive {
                return Ok(());
            }
            let team = teams.get(rank as usize);
            if let Some(team) = team.filter(|_| fails && rank == 0) {
                // As an operation that meets an error elsewhere.
                team.fail();
                Err(Error::Mpi(1))
            } else {
                let (half, groups, affine) = (Half { ep: &ep, first: 0 }, groups(rank), Affine { size: 2 });
                let tree = numa_nodes(rank).filter(|_| along);
                let combine = matches!(kind, 2 | 3 | 6).then_some(&affine as &dyn Combine);
                let node = team.map(|team| Node::new(team, 0, Thresholds::all(usize::MAX), combine));
                let node = node.map(|node| node.along(tree.as_ref()));
                perform(kind, &Job { segment, window: 3, ..part(&half, &groups, node, true) }, units).await
            }
        }))
    };
    let config = sim::Config { max_steps: 300_000, ..sim::Config::default() };
    // Affine maps have two bytes.
    let unit = if matches!(kind, 2 | 3 | 6) { UnitType::plain(2) } else { UnitType::BYTE };
    World::new(4).unit(unit).judge(kind as u64, config, work).unwrap_or_else(|failed| panic!("{failed}"))
}

#[test]
fn a_leader_that_fails_ends_the_wait_of_its_node() {
    for kind in [0, 1, 3, 5, 6] {
        for (segment, along) in [(1 << 20, false), (100, false), (1 << 20, true), (100, true)] {
            let ended = run(kind, segment, &[0, 1, 2], true, along, |_| UNITS);
            assert!(ended[1..3].iter().all(|result| *result == Some(Err(Error::Peer))), "{kind}: {ended:?}");
        }
    }
}

#[test]
fn a_dead_process_ends_the_operation_of_its_node() {
    for kind in [0, 2, 3, 4, 6] {
        for (segment, along) in [(1 << 20, false), (100, false), (1 << 20, true), (100, true)] {
            let ended = run(kind, segment, &[0, 1], false, along, |_| UNITS);
            assert_eq!(ended[0], Some(Err(Error::Peer)), "{kind}");
            // The other one may have handed in its data and left.
            let may_leave = matches!(kind, 2 | 4);
            assert!(ended[1] == Some(Err(Error::Peer)) || (may_leave && ended[1] == Some(Ok(()))), "{kind}: {ended:?}");
            // So does the other node, where it needs anything from there.
            let needs = matches!(kind, 0 | 3 | 6);
            assert!(ended[3] == Some(Err(Error::Peer)) || (!needs && ended[3] == Some(Ok(()))), "{kind}: {ended:?}");
        }
    }
}

#[test]
fn nobody_waits_where_a_rank_has_another_length() {
    for kind in 1..8 {
        for (odd, units, along) in [0, 1, 2, 3].into_iter().flat_map(|odd| [(odd, 100, false), (odd, 800, true)]) {
            let length = |rank| if rank == odd { units } else { UNITS };
            let ended = run(kind, 1 << 20, &[0, 1, 2], false, along, length);
            let context = format!("operation {kind}, rank {odd} has {units}: {ended:?}");
            assert!(ended.iter().all(Option::is_some), "{context}: somebody waits");
            // Whose room is longer than what comes may have success.
            let is_short = match kind {
                1 | 5 => (odd == 0) == (units > UNITS),
                4 => (odd == 0) == (units < UNITS),
                // Who calls compares the own lengths.
                7 => false,
                _ => true,
            };
            assert!(!is_short || ended.iter().any(|end| *end != Some(Ok(()))), "{context}: nobody notices");
            let receives = matches!(kind, 1 | 5) && odd != 0;
            assert!(!(is_short && receives) || ended[odd as usize] == Some(Err(Error::Lengths)), "{context}");
        }
    }
}

/// Gathers at rank 3, or scatters from there, blocks of these lengths, which only the root knows.
async fn rooted_at_last<'a>(gathers: bool, job: &Job<'a, Half<'a>>, lens: [usize; 4]) -> Result<()> {
    let (rank, root) = (job.ep.rank(), 3);
    let blocks = lens.map(|len| vec![1_u8; len]);
    let (all, own) = (SimBlocks::run(&blocks), SimStream::direct(&blocks[rank as usize]));
    let role = match rank == root {
        true => Role::Root { all: &all, own: Some(&own) },
        false => Role::Other { own: &own },
    };
    let hierarchy = hierarchy(rank);
    let groups = hierarchy.groups(Some(root));
    let parts = Parts::rooted(&hierarchy, &groups, rank, root);
    let job = Job { groups: &groups, ..*job };
    match gathers {
        true => gather(&job, &parts, &gather::Tree::auto, None, root, &role).await,
        false => scatter(&job, &parts, &gather::Tree::auto, None, &role).await,
    }
}

/// Alltoall, or, where not all ranks know the lengths, Alltoallv, in which ranks so far `apart` have no data.
async fn exchanged<'a>(equal: bool, apart: usize, job: &Job<'a, Half<'a>>) -> Result<()> {
    let rank = job.ep.rank() as usize;
    let len = |other: usize| if other.abs_diff(rank) == apart { 0 } else { UNITS };
    let blocks: Vec<_> = (0..HOSTS.len()).map(|other| vec![1_u8; len(other)]).collect();
    let (out, into) = (SimBlocks::run(&blocks), SimBlocks::run(&blocks));
    let parts = Parts::joined(&hierarchy(job.ep.rank()), job.groups, job.ep.rank());
    alltoall(job, &parts, &gather::Tree::auto, equal.then_some(UNITS), Some(&out), &into).await
}

/// The rank `bad` has met an error before. `leases`: of shared memory, that its node's processes may have.
fn run_after_an_error(kind: usize, leases: usize, bad: Rank, config: sim::Config) -> Vec<Option<Result<()>>> {
    let heap = Heap::new(3, leases, false);
    let teams: Vec<Team> = (0..3).map(|member| Team::new(heap.member(member), Config::default())).collect();
    let teams = &teams;
    let combines = matches!(kind, 2 | 3 | 6);
    let work = |ep: SimEndpoint| {
        Restless(Box::pin(async move {
            let rank = ep.rank();
            if rank == bad {
                ep.note(Error::Peer);
            }
            let (half, groups, affine) = (Half { ep: &ep, first: 0 }, groups(rank), Affine { size: 2 });
            let combine = combines.then_some(&affine as &dyn Combine);
            let node = teams.get(rank as usize).map(|team| Node::new(team, 0, Thresholds::all(usize::MAX), combine));
            let job = Job { segment: 1 << 20, window: 3, ..part(&half, &groups, node, true) };
            match kind {
                8 => exchanged(true, usize::MAX, &job).await,
                9 | 10 => rooted_at_last(kind == 9, &job, [UNITS; 4]).await,
                14.. => exchanged(false, kind - 14, &job).await,
                // The leader of the others has none.
                12 | 13 => rooted_at_last(kind == 12, &job, [0, UNITS, 0, 8]).await,
                11 => exchanged(false, usize::MAX, &job).await,
                _ => perform(kind, &job, UNITS).await,
            }
        }))
    };
    let unit = if combines { UnitType::plain(2) } else { UnitType::BYTE };
    let config = sim::Config { max_steps: 50_000, ..config };
    World::new(4).unit(unit).judge(kind as u64, config, work).unwrap_or_else(|failed| panic!("{failed}"))
}

/// With shared memory and without: where some process had none, all of its node know before the error.
#[test]
fn nobody_waits_for_a_rank_that_met_an_error() {
    for leases in [0, usize::MAX] {
        for kind in 0..18 {
            for bad in 0..4 {
                for config in [sim::Config::eager(), sim::Config::rendezvous()] {
                    let ends = run_after_an_error(kind, leases, bad, config);
                    let context = format!("operation {kind}, {leases} leases, rank {bad}, {config:?}: {ends:?}");
                    assert!(ends.iter().all(Option::is_some), "{context}");
                    assert_eq!(ends[bad as usize], Some(Err(Error::Peer)), "{context}");
                }
            }
        }
    }
}
