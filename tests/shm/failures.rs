//! What goes wrong for one member must not make the others hang, or decide differently.

use super::operations::{Call, Kind, run};
use super::world::{Work, World};
use coll_rust::endpoint::Error;
use coll_rust::shm::op::barrier::barrier;
use coll_rust::shm::team::Config;
use std::task::Poll;

fn drive(world: &World, works: Vec<Work<'_>>) {
    world.run(1, works);
}

#[test]
fn all_do_without_a_stream_that_one_could_not_lease() {
    for size in 2..6 {
        for poor in 0..size {
            for leases in 0..2 {
                let world = World::new(size, Config::default());
                world.heap.limit(poor, leases);
                let works = world.teams.iter().map(|team| {
                    Box::pin(async move {
                        for _ in 0..3 {
                            // With one lease the control is there, but no queue.
                            let small = team.open(2, 1, false).await.unwrap();
                            assert_eq!(small.is_some(), leases == 1);
                            if let Some(turn) = small {
                                barrier(turn).await.unwrap();
                            }
                            assert!(team.open(2, 1, true).await.unwrap().is_none());
                            // Stream 0 needs no lease.
                            barrier(team.open(0, 0, false).await.unwrap().unwrap()).await.unwrap();
                        }
                    }) as Work<'_>
                });
                drive(&world, works.collect());
            }
        }
    }
}

#[test]
fn a_dropped_operation_fails_the_others() {
    for size in 2..6 {
        let world = World::new(size, Config::default());
        let works = world.teams.iter().map(|team| {
            Box::pin(async move {
                run(team, 0, 0, Call { kind: Kind::Allreduce, id: 5 }).await;
                let turn = team.open(0, 0, true).await.unwrap().unwrap();
                if team.me() == size - 1 {
                    drop(turn);
                } else {
                    assert_eq!(barrier(turn).await, Err(Error::Peer));
                }
                // Nothing works from now on, on any stream.
                for slot in [0, 0, 3] {
                    assert!(team.turn(slot, 0, false).is_none());
                    assert!(matches!(team.open(slot, 0, false).await, Err(Error::Peer)));
                }
            }) as Work<'_>
        });
        let mut works: Vec<_> = works.collect();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..10_000 {
            works.retain_mut(|work| work.as_mut().poll(&mut context).is_pending());
        }
        assert!(works.is_empty(), "{} members wait for ever", works.len());
    }
}

#[test]
fn a_dead_member_ends_the_wait() {
    let world = World::new(3, Config::default());
    world.heap.kill(2);
    let mut works: Vec<Work<'_>> = world.teams[..2]
        .iter()
        .map(|team| {
            Box::pin(async move {
                let turn = team.open(0, 0, false).await.unwrap().unwrap();
                assert_eq!(barrier(turn).await, Err(Error::Peer));
            }) as Work<'_>
        })
        .collect();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..10_000 {
        works.retain_mut(|work| work.as_mut().poll(&mut context).is_pending());
    }
    assert!(works.is_empty());
}

#[test]
fn a_failed_reader_does_not_end_the_wait_for_the_others() {
    let world = World::new(3, Config::default());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut turns = world.teams.iter().map(|team| {
        let mut opening = std::pin::pin!(team.open(0, 0, false));
        match opening.as_mut().poll(&mut context) {
            Poll::Ready(turn) => turn.unwrap().unwrap(),
            Poll::Pending => panic!("all members are there"),
        }
    });
    let [writer, failing, slow] = std::array::from_fn(|_| turns.next().unwrap());
    writer.publish(1);
    let mut together = Box::pin(writer.finish_together());
    drop(failing);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..10_000 {
        // The slow one may be reading the writer's memory.
        assert!(together.as_mut().poll(&mut context).is_pending());
    }
    slow.finish();
    assert_eq!(together.as_mut().poll(&mut context), Poll::Ready(Err(Error::Peer)));
}
