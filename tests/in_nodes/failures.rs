//! What goes wrong for one process ends the operation of all processes of its node, with an error.

use super::world::{Half, part};
use crate::data::Affine;
use coll_rust::algo::reduce::Value;
use coll_rust::endpoint::{Error, Rank, Result, Span};
use coll_rust::hier::Job;
use coll_rust::hier::allreduce::{Specs, allreduce};
use coll_rust::hier::barrier::barrier;
use coll_rust::hier::bcast::bcast;
use coll_rust::hier::reduce::reduce;
use coll_rust::select::Spec;
use coll_rust::shm::heap::Heap;
use coll_rust::shm::node::Node;
use coll_rust::shm::rates::Thresholds;
use coll_rust::shm::team::{Config, Team};
use coll_rust::sim::{self, SimEndpoint, World};
use coll_rust::topo::{Group, Hardware, Hierarchy, LevelSpec, Placement};
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

fn groups(rank: Rank) -> Vec<Group> {
    let placement = Placement::new(rank, HOSTS.to_vec(), vec![], vec![], Hardware::default());
    Hierarchy::build(&placement, &LevelSpec::Auto.from_node_up(), false).groups(None)
}

async fn perform<'a>(kind: usize, job: &Job<'a, Half<'a>>) -> Result<()> {
    let mut room = vec![1_u8; 2 * UNITS];
    let span = Span::new(room.as_mut_ptr(), UNITS, 2);
    let specs = Specs { allreduce: &Spec::AUTO, reduce: &Spec::AUTO, bcast: &Spec::AUTO };
    match kind {
        0 => barrier(job, &Spec::AUTO).await,
        1 => bcast(job, &Spec::AUTO, &span.bytes(), false).await,
        2 => reduce(job, &Spec::AUTO, Value::borrowed(span), None).await,
        _ => allreduce(job, &specs, Value::owned(span), span).await,
    }
}

/// Ranks for which `alive` come to an operation on `segment`s; the leader gives up where `fails`. Says how it went for each rank.
fn run(kind: usize, segment: usize, alive: &[Rank], fails: bool) -> Vec<Option<Result<()>>> {
    let heap = Heap::new(3, usize::MAX, false);
    let teams: Vec<Team> = (0..3).map(|member| Team::new(heap.member(member), Config::default())).collect();
    (0..3).filter(|member| !alive.contains(&(*member as Rank))).for_each(|member| heap.kill(member));
    let ended = std::sync::Mutex::new(vec![None; 3]);
    let (teams, ended_ref) = (&teams, &ended);
    let work = |ep: SimEndpoint| {
        let alive = alive.contains(&coll_rust::endpoint::Endpoint::rank(&ep));
        Restless(Box::pin(async move {
            let rank = coll_rust::endpoint::Endpoint::rank(&ep);
            if !alive {
                return Ok(());
            }
            let team = &teams[rank as usize];
            let result = if fails && rank == 0 {
                // As an operation that meets an error elsewhere.
                team.fail();
                Err(Error::Mpi(1))
            } else {
                let (half, groups, affine) = (Half { ep: &ep, first: 0 }, groups(rank), Affine { size: 2 });
                let node = Node::new(team, 0, Thresholds::all(usize::MAX), (kind > 1).then_some(&affine));
                let job = Job { segment, window: 3, ..part(&half, &groups, Some(node), true) };
                let result = perform(kind, &job).await;
                if result.is_err() {
                    team.fail();
                }
                result
            };
            ended_ref.lock().unwrap()[rank as usize] = Some(result);
            Ok(())
        }))
    };
    let stats =
        World::new(4).run(kind as u64, sim::Config::default(), work).unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!(stats.total.messages, 0);
    ended.into_inner().unwrap()
}

#[test]
fn a_leader_that_fails_ends_the_wait_of_its_node() {
    for kind in [0, 1, 3] {
        for segment in [1 << 20, 100] {
            let ended = run(kind, segment, &[0, 1, 2], true);
            assert!(ended[1..].iter().all(|result| *result == Some(Err(Error::Peer))), "{kind}: {ended:?}");
        }
    }
}

#[test]
fn a_dead_process_ends_the_operation_of_its_node() {
    for kind in [0, 2, 3] {
        for segment in [1 << 20, 100] {
            let ended = run(kind, segment, &[0, 1], false);
            assert_eq!(ended[0], Some(Err(Error::Peer)), "{kind}");
            // In a reduction the other one may have handed in its value and left.
            assert!(ended[1] == Some(Err(Error::Peer)) || (kind == 2 && ended[1] == Some(Ok(()))), "{kind}: {ended:?}");
        }
    }
}
