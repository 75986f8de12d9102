// SPDX-License-Identifier: BSD-3-Clause
//! A tiny wrong algorithm for each failure.

use super::*;
use crate::endpoint::{Error, MAX_LANES, PHASES, Rank, Result};
use std::future::Future;

/// Runs under many seeds and both ways of sending; all runs have to fail. Returns the failures.
fn fails<F, Fut>(size: u32, rank: F) -> Vec<Failure>
where
    F: Fn(SimEndpoint) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let world = World::new(size).unit(UnitType::plain(4));
    let mut failures = Vec::new();
    for seed in 0..20 {
        for config in [Config::eager(), Config::rendezvous(), Config::from_seed(seed, size)] {
            let failed = world.run(seed, config, &rank).unwrap_err();
            let again = world.run(seed, config, &rank).unwrap_err();
            assert_eq!(failed, again, "a failure is reproducible");
            assert!(failed.to_string().starts_with(&format!("seed {seed}, step ")), "{failed}");
            failures.push(*failed.failure);
        }
    }
    failures
}

/// Runs as `fails` does; all failures have to match the pattern.
macro_rules! assert_fails {
    ($size:expr, $pattern:pat $(if $guard:expr)?, $rank:expr) => {
        for failure in fails($size, $rank) {
            assert!(matches!(&failure, $pattern $(if $guard)?), "{failure}");
        }
    };
}

#[test]
fn length_mismatch() {
    assert_fails!(2, Failure::Length { send, recv } if (send.units, recv.units) == (3, 4), |ep| async move {
        let temp = ep.temp(4)?;
        match ep.rank() {
            0 => ep.send(1, tag(0), temp.span().slice(0..3)).await,
            _ => ep.recv(0, tag(0), temp.span()).await,
        }
    });
}

#[test]
fn deadlock_of_receives() {
    assert_fails!(3, Failure::Deadlock { ranks, pending, .. } if ranks == &[0, 1, 2] && pending.len() == 3, |ep| async move {
        let temp = ep.temp(1)?;
        ep.recv((ep.rank() + 1) % 3, tag(0), temp.span()).await?;
        ep.send((ep.rank() + 2) % 3, tag(0), temp.span()).await
    });
}

#[test]
fn deadlock_of_sends_without_buffers() {
    // Right only where sends are eager.
    let rank = |ep: SimEndpoint| async move {
        let temps = (ep.temp(1)?, ep.temp(1)?);
        ep.send(1 - ep.rank(), tag(0), temps.0.span()).await?;
        ep.recv(1 - ep.rank(), tag(0), temps.1.span()).await
    };
    let world = World::new(2).unit(UnitType::plain(4));
    for seed in 0..20 {
        world.run(seed, Config::eager(), rank).unwrap();
        let failed = world.run(seed, Config::rendezvous(), rank).unwrap_err();
        assert!(matches!(*failed.failure, Failure::Deadlock { .. }), "{failed}");
    }
}

#[test]
fn deadlock_by_tags_lists_what_waits() {
    let failures = fails(2, |ep| async move {
        let temp = ep.temp(7)?;
        match ep.rank() {
            0 => ep.send(1, tag(0), temp.span()).await,
            _ => ep.recv(0, tag(5), temp.span()).await,
        }
    });
    for failure in failures {
        let text = failure.to_string();
        assert!(
            text.contains("rank 1: receive of 7 units from rank 0 (lane 0, phase 5, level 2; unmatched)"),
            "{text}"
        );
        assert!(text.contains("rank 0: send of 7 units to rank 1 (lane 0, phase 0, level 2; unmatched)"), "{text}");
    }
}

#[test]
fn waiting_for_nothing_is_a_deadlock() {
    for failure in fails(2, |ep| async move { if ep.rank() == 1 { std::future::pending().await } else { Ok(()) } }) {
        assert!(failure.to_string().contains("rank 1: nothing that it posted"), "{failure}");
    }
}

#[test]
fn unmatched_send() {
    // Sent eagerly, it is left over; otherwise its sender waits for ever.
    assert_fails!(2, Failure::Unmatched { .. } | Failure::Deadlock { .. }, |ep| async move {
        if ep.rank() == 0 { ep.send(1, tag(0), ep.temp(2)?.span()).await } else { Ok(()) }
    });
    let world = World::new(2).unit(UnitType::plain(4));
    let failed = world
        .run(0, Config::eager(), |ep| async move {
            if ep.rank() == 0 { ep.send(1, tag(0), ep.temp(2)?.span()).await } else { Ok(()) }
        })
        .unwrap_err();
    assert!(matches!(&*failed.failure, Failure::Unmatched { sends } if sends[0].units == 2), "{failed}");
}

#[test]
fn dropped_post() {
    assert_fails!(2, Failure::Dropped { .. }, |ep| async move {
        let temps = (ep.temp(1)?, ep.temp(1)?);
        let recv = ep.recv(1 - ep.rank(), tag(0), temps.1.span());
        ep.send(1 - ep.rank(), tag(0), temps.0.span()).await?;
        drop(recv);
        Ok(())
    });
}

#[test]
fn early_return_drops_posts() {
    assert_fails!(2, Failure::Dropped { post } if post.rank == 0 && post.side == Side::Send, |ep| async move {
        let temp = ep.temp(1)?;
        if ep.rank() == 0 {
            let _post = ep.send(1, tag(0), temp.span());
            return Ok(());
        }
        ep.recv(0, tag(0), temp.span()).await
    });
}

#[test]
fn forgotten_post() {
    assert_fails!(1 + 1, Failure::Forgotten { rank: 1, posts } if posts.len() == 1, |ep| async move {
        if ep.rank() == 1 {
            std::mem::forget(ep.recv(0, tag(0), Span::empty()));
        }
        Ok(())
    });
}

#[test]
fn error_of_a_rank() {
    // What it leaves in flight is no second failure.
    assert_fails!(3, Failure::Rank { rank: 2, error: Error::Mpi(15) }, |ep| async move {
        let temp = ep.temp(1)?;
        let _post = ep.recv((ep.rank() + 1) % 3, tag(0), temp.span());
        if ep.rank() == 2 { Err(Error::Mpi(15)) } else { std::future::pending().await }
    });
}

#[test]
fn panic_of_a_rank() {
    assert_fails!(3, Failure::Panic { rank: 1, message } if message == "lost at 7", |ep| async move {
        let temp = ep.temp(1)?;
        let post = ep.recv((ep.rank() + 1) % 3, tag(0), temp.span());
        assert!(ep.rank() != 1, "lost at {}", 7);
        post.await
    });
}

/// A rank 0 that receives into units 0..4 of a buffer of 8 and sends units 4..8, and does `wrong` before
/// waiting.
fn race(access: Access, side: Side, wrong: impl Fn(&SimEndpoint, Span, Span) + Copy) {
    assert_fails!(2, Failure::Race { rank: 0, access: a, post } if *a == access && post.side == side, |ep| async move {
        let (temp, other) = (ep.temp(8)?, ep.temp(8)?);
        let peer = 1 - ep.rank();
        let posts = [ep.recv(peer, tag(0), temp.span().slice(0..4)), ep.send(peer, tag(0), temp.span().slice(4..8))];
        if ep.rank() == 0 {
            // Sending what is being sent is right.
            ep.send(peer, tag(2), temp.span().slice(5..6)).await?;
            wrong(&ep, temp.span(), other.span());
        } else {
            ep.recv(peer, tag(2), other.span().slice(0..1)).await?;
        }
        for post in posts {
            post.await?;
        }
        Ok(())
    });
}

#[test]
fn access_to_memory_in_flight() {
    let post = |ep: &SimEndpoint, recv: bool, span| {
        std::mem::forget(if recv { ep.recv(1, tag(1), span) } else { ep.send(1, tag(1), span) });
    };
    race(Access::Recv, Side::Recv, move |ep, temp, _| post(ep, true, temp.slice(3..5)));
    race(Access::Recv, Side::Send, move |ep, temp, _| post(ep, true, temp.slice(7..8)));
    race(Access::Send, Side::Recv, move |ep, temp, _| post(ep, false, temp.slice(3..4)));
    race(Access::ReduceLeft, Side::Recv, |ep, temp, other| ep.reduce(temp.slice(2..3), other.slice(0..1)));
    race(Access::ReduceRight, Side::Recv, |ep, temp, other| ep.reduce(other.slice(0..1), temp.slice(2..3)));
    race(Access::ReduceRight, Side::Send, |ep, temp, other| ep.reduce(other.slice(0..1), temp.slice(6..7)));
    race(Access::CopyFrom, Side::Recv, |ep, temp, other| ep.copy(temp, other));
    race(Access::CopyTo, Side::Recv, |ep, temp, other| ep.copy(other, temp));
    race(Access::CopyTo, Side::Send, |ep, temp, other| ep.copy(other.slice(0..1), temp.slice(4..5)));
}

#[test]
fn receive_buffer_written_past_the_endpoint() {
    use crate::endpoint::Stream;
    let (zeros, world) = (SimStream::direct(&[0; 3]), World::new(2));
    for seed in 0..20 {
        let failed = world.run_seed(seed, |ep| {
            let zeros = &zeros;
            async move {
                let temp = ep.temp(3)?;
                if ep.rank() == 1 {
                    return ep.send(0, tag(0), temp.span()).await;
                }
                let post = ep.recv(1, tag(0), temp.span());
                zeros.pack(1, temp.span().slice(2..3))?;
                post.await
            }
        });
        let failed = failed.unwrap_err();
        assert!(matches!(*failed.failure, Failure::Overwritten { post } if post.rank == 0), "{failed}");
    }
}

#[test]
fn temporary_buffer_returned_in_flight() {
    assert_fails!(2, Failure::TempInFlight { post } if post.units == 3, |ep| async move {
        let temp = ep.temp(3)?;
        let peer = 1 - ep.rank();
        let post = if peer == 1 { ep.send(peer, tag(0), temp.span()) } else { ep.recv(peer, tag(0), temp.span()) };
        drop(temp);
        post.await
    });
}

#[test]
fn gap_of_a_temporary_buffer_written() {
    let unit = UnitType { size: 3, extent: 5, true_lb: -1 };
    let write = |at: isize| {
        World::new(1).unit(unit).run_seed(0, |ep| async move {
            let temp = ep.temp(3)?;
            // SAFETY: the address is inside the buffer's guards, and nothing is in flight.
            unsafe { temp.span().ptr().offset(at).write(1) };
            Ok(())
        })
    };
    for at in [-1, 0, 1, 4, 9, 11] {
        write(at).unwrap();
    }
    for at in [-2, 2, 3, 7, 8, 12, 13] {
        let failed = write(at).unwrap_err();
        assert_eq!(*failed.failure, Failure::GapWritten { rank: 0 }, "{at}");
    }
}

#[test]
fn bad_peers_and_tags() {
    let send = |to: Rank, tag: Tag| move |ep: SimEndpoint| async move { ep.send(to, tag, Span::empty()).await };
    let recv = |to: Rank, tag: Tag| move |ep: SimEndpoint| async move { ep.recv(to, tag, Span::empty()).await };
    assert_fails!(1, Failure::ToSelf { .. }, send(0, tag(0)));
    assert_fails!(1, Failure::ToSelf { .. }, recv(0, tag(0)));
    assert_fails!(2, Failure::RankRange { size: 2, post } if post.peer == 2, send(2, tag(0)));
    assert_fails!(2, Failure::RankRange { size: 2, post } if post.peer == 3, recv(3, tag(0)));
    for bad in [tag(PHASES), Tag { lane: MAX_LANES, ..tag(0) }] {
        let only = |ep: SimEndpoint| async move {
            if ep.rank() == 0 { ep.send(1, bad, Span::empty()).await } else { std::future::pending().await }
        };
        assert_fails!(2, Failure::TagRange { post } if post.tag == bad, only);
    }
}

#[test]
fn ranks_that_must_not_have_messages() {
    let world = World::new(3).only(|one, other| one + other < 3);
    let run = |from: Rank, to: Rank| {
        let ends = move |ep: SimEndpoint| async move {
            match ep.rank() {
                rank if rank == from => ep.send(to, tag(0), Span::empty()).await,
                rank if rank == to => ep.recv(from, tag(0), Span::empty()).await,
                _ => Ok(()),
            }
        };
        world.run_seed(1, ends)
    };
    assert!(run(0, 1).is_ok() && run(2, 0).is_ok());
    for (from, to) in [(1, 2), (2, 1)] {
        let failed = run(from, to).unwrap_err();
        assert!(matches!(*failed.failure, Failure::Apart { .. }), "{failed}");
    }
}

#[test]
fn bad_local_operations() {
    assert_fails!(1, Failure::Extent { extent: 1, unit: 4, .. }, |ep| async move {
        let temp = ep.temp(2)?;
        // SAFETY: one unit of the temporary buffer, though with another extent: the simulator refuses it.
        ep.copy(unsafe { Span::new(temp.span().ptr(), 1, 1) }, temp.span().slice(1..2));
        Ok(())
    });
    assert_fails!(1, Failure::LocalLength { left: 1, right: 2, .. }, |ep| async move {
        let temp = ep.temp(3)?;
        ep.reduce(temp.span().slice(0..1), temp.span().slice(1..3));
        Ok(())
    });
    assert_fails!(1, Failure::LocalOverlap { .. }, |ep| async move {
        let temp = ep.temp(3)?;
        ep.reduce(temp.span().slice(0..2), temp.span().slice(1..3));
        Ok(())
    });
}

#[test]
fn step_limit() {
    let world = World::new(2);
    let config = Config { max_steps: 1000, ..Config::default() };
    let failed = world
        .run(0, config, |ep| async move {
            std::future::poll_fn(|cx| {
                // A rank that polls itself for ever.
                cx.waker().wake_by_ref();
                if ep.rank() == 0 { std::task::Poll::Ready(Ok(())) } else { std::task::Poll::Pending }
            })
            .await
        })
        .unwrap_err();
    assert_eq!(*failed.failure, Failure::StepLimit { steps: 1000, ranks: vec![1] });
}
