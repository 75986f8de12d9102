// SPDX-License-Identifier: BSD-3-Clause
//! The simulator passes the conformance suite, is reproducible, and counts right; `failures` proves that it
//! objects.

use super::conformance::{self, Kit};
use super::*;
use crate::endpoint::{Endpoint, Span, Tag, TempBuffer};

mod failures;

/// A tag of lane 0.
fn tag(phase: u8) -> Tag {
    Tag { lane: 0, phase, level: 2 }
}

/// `a - 2b` modulo 256: neither commutative nor associative.
fn skew(left: &[u8], right: &mut [u8]) {
    left.iter().zip(right).for_each(|(a, b)| *b = a.wrapping_sub(b.wrapping_mul(2)));
}

/// Binomial broadcast from rank 0.
async fn binomial(ep: &SimEndpoint, data: Span) -> crate::endpoint::Result<()> {
    let (me, size) = (ep.rank(), ep.size());
    let top = if me == 0 { size.next_power_of_two() } else { 1 << me.trailing_zeros() };
    if me != 0 {
        ep.recv(me - top, tag(0), data).await?;
    }
    let children = std::iter::successors(Some(top / 2), |bit| Some(bit / 2)).take_while(|&bit| bit > 0);
    let posts: Vec<_> = children.filter(|bit| me + bit < size).map(|bit| ep.send(me + bit, tag(0), data)).collect();
    for post in posts {
        post.await?;
    }
    Ok(())
}

#[test]
fn passes_the_conformance_suite() {
    let units = [
        UnitType::BYTE,
        UnitType::plain(8),
        UnitType { size: 3, extent: 8, true_lb: -2 },
        UnitType { size: 4, extent: -4, true_lb: 1 },
        UnitType { size: 0, extent: 4, true_lb: 0 },
    ];
    for size in [1, 2, 3, 8, 17] {
        for unit in units {
            let world = World::new(size).unit(unit).reduce(skew);
            let kit = Kit { unit, long: 100, combine: Some(skew) };
            for seed in 0..20 {
                world.run_seed(seed, |ep| async move { conformance::all(&ep, kit).await }).unwrap();
            }
            // Through gateways: all messages, or those between two halves.
            for part in [1, 2] {
                let world = world.clone().through(move |one, other| part == 1 || one % 2 != other % 2);
                for seed in 0..4 {
                    world.run_seed(seed, |ep| async move { conformance::all(&ep, kit).await }).unwrap();
                }
            }
        }
    }
}

#[test]
fn the_suite_objects_to_a_wrong_reduction() {
    let world = World::new(1).reduce(|left, right| right.copy_from_slice(left));
    let kit = Kit { unit: UnitType::BYTE, long: 10, combine: Some(skew) };
    let failed = world.run_seed(1, |ep| async move { conformance::all(&ep, kit).await }).unwrap_err();
    assert!(failed.to_string().contains("reduce_order"), "{failed}");
}

#[test]
fn runs_are_reproducible() {
    let world = World::new(9);
    let mut traces = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let run = || {
            let kit = Kit { unit: UnitType::BYTE, long: 20, combine: None };
            world.run_seed(seed, |ep| async move { conformance::all(&ep, kit).await }).unwrap()
        };
        let stats = run();
        assert_eq!(stats, run());
        traces.insert(stats.trace);
    }
    assert_eq!(traces.len(), 50, "seeds make different runs");
}

#[test]
fn counts_messages_units_and_rounds() {
    for size in [1u32, 2, 3, 8, 13, 64] {
        for seed in 0..10 {
            let buffers: Vec<_> = (0..size).map(|r| UnitBuffer::with(UnitType::BYTE, &[r as u8 + 1; 5])).collect();
            let buffers = &buffers;
            let stats = World::new(size)
                .run_seed(seed, |ep| async move { binomial(&ep, buffers[ep.rank() as usize].span()).await })
                .unwrap();
            assert!(buffers.iter().all(|b| b.data() == [1; 5]));
            let edges = u64::from(size) - 1;
            assert_eq!(stats.total, Traffic { messages: edges, units: 5 * edges });
            assert_eq!(stats.level(2), stats.total);
            assert_eq!(stats.level(0), Traffic::default());
            assert_eq!(stats.pairs.len() as u64, edges);
            let depth = (0..size).map(u32::count_ones).max().unwrap();
            assert_eq!(stats.rounds, depth);
            assert_eq!(stats.port_rounds, size.next_power_of_two().trailing_zeros());
            assert_eq!(stats.sent[0].messages, u64::from(size.next_power_of_two().trailing_zeros()));
            assert!(stats.received[1..].iter().all(|t| t.messages == 1));
        }
    }
}

#[test]
fn counts_temporary_buffers_and_reduced_units() {
    let unit = UnitType::plain(2);
    let stats = World::new(1)
        .unit(unit)
        .run_seed(0, |ep| async move {
            let first = ep.temp(10)?;
            drop(ep.temp(20)?);
            let second = ep.temp(5)?;
            ep.reduce(first.span().slice(0..5), second.span());
            Ok(())
        })
        .unwrap();
    assert_eq!((&stats.temp_peak[..], &stats.reduced[..]), (&[30][..], &[5][..]));
}

#[test]
fn completion_order_is_arbitrary() {
    // Which of two messages from different ranks arrives first depends on the seed.
    for config in [Config::eager(), Config::rendezvous(), Config::default()] {
        let firsts: std::collections::BTreeSet<u8> = (0..200)
            .map(|seed| {
                let first = std::sync::atomic::AtomicU8::new(9);
                let first_ref = &first;
                World::new(3)
                    .run(seed, config, |ep| async move {
                        if ep.rank() > 0 {
                            return ep.send(0, tag(0), ep.temp(1)?.span()).await;
                        }
                        let (a, b) = (ep.temp(1)?, ep.temp(1)?);
                        let mut posts = [ep.recv(1, tag(0), a.span()), ep.recv(2, tag(0), b.span())].map(Box::pin);
                        let mut done = [false; 2];
                        std::future::poll_fn(|cx| {
                            for (i, post) in posts.iter_mut().enumerate() {
                                if !done[i] && post.as_mut().poll(cx).is_ready() {
                                    done[i] = true;
                                    let set = std::sync::atomic::Ordering::Relaxed;
                                    let _ = first_ref.compare_exchange(9, i as u8, set, set);
                                }
                            }
                            if done == [true; 2] { std::task::Poll::Ready(Ok(())) } else { std::task::Poll::Pending }
                        })
                        .await
                    })
                    .unwrap();
                first.into_inner()
            })
            .collect();
        assert_eq!(firsts.len(), 2, "{config:?}");
    }
}

#[test]
fn rendezvous_reads_late_and_eager_at_once() {
    // A sender that changes its data too early, behind the endpoint's back.
    let run = |config| {
        let (from, to) = (UnitBuffer::with(UnitType::BYTE, b"old"), UnitBuffer::new(UnitType::BYTE, 3));
        let buffers = (&from, &to);
        World::new(2)
            .run(3, config, |ep| async move {
                if ep.rank() == 1 {
                    return ep.recv(0, tag(0), buffers.1.span()).await;
                }
                let post = ep.send(1, tag(0), buffers.0.span());
                buffers.0.set(b"new");
                post.await
            })
            .unwrap();
        to.data()
    };
    assert_eq!(run(Config::eager()), b"old");
    assert_eq!(run(Config::rendezvous()), b"new");
}

#[test]
fn biases_hold_ranks_back() {
    // Rank 0 notes when it first runs, among all ranks.
    let place = |bias| {
        let order = std::sync::Mutex::new(Vec::new());
        let order_ref = &order;
        World::new(20)
            .run(5, Config::default().bias(bias), |ep| async move {
                order_ref.lock().unwrap().push(ep.rank());
                Ok(())
            })
            .unwrap();
        order.into_inner().unwrap()
    };
    assert_eq!(place(Bias::Late(3)).last(), Some(&3));
    assert_eq!(place(Bias::Starve(4)).last(), Some(&4));
    assert_eq!(place(Bias::Fifo).len(), 20);
    assert!(place(Bias::Lifo)[0] > 9 && place(Bias::Fifo)[0] < 10);
}

#[test]
fn copes_with_many_ranks() {
    // All to all of 257 ranks: 65792 messages.
    let kit = Kit { unit: UnitType::BYTE, long: 10, combine: None };
    for seed in 0..2 {
        let stats =
            World::new(257).run_seed(seed, |ep| async move { conformance::many_receives(&ep, kit).await }).unwrap();
        assert_eq!(stats.total.messages, 257 * 256);
        assert_eq!(stats.rounds, 1);
        assert_eq!(stats.port_rounds, 256);
    }
}

#[test]
fn gateways_change_when_messages_come_and_nothing_else() {
    let buffers: Vec<UnitBuffer> = (0..9).map(|_| UnitBuffer::with(UnitType::BYTE, &[7; 100])).collect();
    let spans: Vec<Span> = buffers.iter().map(UnitBuffer::span).collect();
    let spans = &spans[..];
    let run = |world: World, seed| {
        world.run_seed(seed, |ep| async move { binomial(&ep, spans[ep.rank() as usize]).await }).unwrap()
    };
    for seed in 0..30 {
        let (near, far) = (run(World::new(9), seed), run(World::new(9).through(|_, _| true), seed));
        assert_eq!((near.total, near.rounds, near.level(2)), (far.total, far.rounds, far.level(2)));
        // Every message takes two steps at least: it leaves, and is taken.
        assert!(far.steps > near.steps, "{} {}", far.steps, near.steps);
    }
}

#[test]
fn a_message_through_gateways_that_nobody_wants_is_found() {
    let buffer = UnitBuffer::with(UnitType::BYTE, &[7; 5]);
    let span = buffer.span();
    for seed in 0..20 {
        let world = World::new(2).through(|_, _| true);
        let failed = world
            .run_seed(seed, |ep| async move { if ep.rank() == 0 { ep.send(1, tag(0), span).await } else { Ok(()) } })
            .unwrap_err();
        assert!(matches!(*failed.failure, Failure::Unmatched { .. }), "{failed}");
    }
}
