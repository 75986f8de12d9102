// SPDX-License-Identifier: BSD-3-Clause
//! Links that are cut, that go silent, and gateways that disagree.

use crate::support::*;
use coll_rust::relay::frame::{ALIVE, ALL, Kind};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Streams both ways, while something happens to the link.
async fn streams(pair: &Pair, count: u64, happens: impl AsyncFnOnce()) {
    let [north, south] = pair.two("job", 0, 0).await;
    let most = 20_000;
    let run = tokio::spawn(async move {
        let ((mut out_north, mut in_north), (mut out_south, mut in_south)) = (north, south);
        tokio::join!(
            stream_out(&mut out_north, (1, process(1, 0)), count, most),
            stream_in(&mut in_south, (0, process(0, 0)), count, most),
            stream_out(&mut out_south, (0, process(0, 0)), count, most),
            stream_in(&mut in_north, (1, process(1, 0)), count, most),
        );
        (out_north, in_north, out_south, in_south)
    });
    happens().await;
    let (mut out, _in_north, _out_south, mut into) = run.await.unwrap();
    // Nothing came twice either: the next thing is the next thing.
    out.send(1, process(1, 0), count, &content(count, most)).await.unwrap();
    assert_eq!(into.next().await.unwrap().0.number, count);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_cuts_a_stream_goes_on_whole_and_in_order() {
    let pair = Pair::new().await;
    streams(&pair, 6000, async || {
        let mut random = Random(41);
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(20 + random.below(60))).await;
            pair.set(Does::Cut);
            tokio::time::sleep(Duration::from_millis(random.below(80))).await;
            pair.set(Does::Pass);
        }
    })
    .await;
    let resumed = pair.north.shared.counters.resumed.load(Relaxed);
    assert!(resumed >= 1, "no cut was noticed");
    assert_eq!(pair.north.shared.counters.lost.load(Relaxed), 0);
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_away_for_five_seconds_comes_back() {
    let pair = Pair::new().await;
    streams(&pair, 3000, async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        pair.set(Does::Cut);
        tokio::time::sleep(Duration::from_secs(5)).await;
        pair.set(Does::Pass);
    })
    .await;
    assert!(pair.north.shared.counters.resumed.load(Relaxed) >= 1);
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_is_given_up_and_made_anew() {
    let pair = Pair::new().await;
    streams(&pair, 6000, async || {
        for time in 0..2 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let before = pair.north.shared.counters.resumed.load(Relaxed);
            pair.set(Does::Freeze(time));
            until("it is made anew", || pair.north.shared.counters.resumed.load(Relaxed) > before).await;
            pair.set(Does::Pass);
        }
    })
    .await;
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn either_side_may_be_the_only_one_that_connects() {
    for silent in ["north", "south"] {
        let pair = Pair::with(|config| {
            if config.cluster == silent {
                config.peers.values_mut().for_each(|address| *address = None);
            }
        })
        .await;
        streams(&pair, 1000, async || {
            tokio::time::sleep(Duration::from_millis(100)).await;
            pair.set(Does::Cut);
            tokio::time::sleep(Duration::from_millis(50)).await;
            pair.set(Does::Pass);
        })
        .await;
        pair.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_patience_a_cluster_is_lost() {
    let pair = Pair::with(|config| {
        (config.patience, config.keep_alive) = (Duration::from_millis(1200), Duration::from_millis(200));
    })
    .await;
    let mut two = pair.two("job", 0, 0).await;
    ping_pong(&mut two, 0, 3).await;
    pair.set(Does::Cut);
    let begun = std::time::Instant::now();
    for (at, (sender, receiver)) in two.iter_mut().enumerate() {
        let other = 1 - at as u16;
        let (header, text) = receiver.text(Kind::Lost).await;
        assert_eq!((header.cluster, header.peer), (other, ALL));
        assert!(text.contains("has not been heard of for 1.2 s"), "{text}");
        // Who sends all the same is told once, and not held up.
        for number in 0..100 {
            sender.send(other, process(other, 0), number, &[1; 60_000]).await.unwrap();
        }
        assert_eq!(receiver.text(Kind::Lost).await.0.peer, ALL);
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    // When the link is back the stream is not: frames may be missing.
    pair.set(Does::Pass);
    let (_sender, mut late) = pair.connect(&Who::new("job", 0, 0, 1)).await;
    assert_eq!(late.text(Kind::Lost).await.0.peer, ALL);
    // Another job is not concerned.
    let mut other = pair.two("other", 0, 0).await;
    ping_pong(&mut other, 0, 3).await;
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_with_different_keys_say_so() {
    let pair = Pair::with(|config| {
        (config.patience, config.keep_alive) = (Duration::from_millis(1200), Duration::from_millis(200));
        if config.cluster == "south" {
            config.keys.insert("astro".to_owned(), [4; 32]);
            config.keys.remove("bio");
        }
    })
    .await;
    let (_sender, mut receiver) = pair.connect(&Who::new("job", 0, 0, 0)).await;
    let (_, text) = receiver.text(Kind::Lost).await;
    assert!(text.contains("key 'astro' at the gateway of cluster south: the keys differ"), "{text}");
    let (_sender, mut receiver) = pair.connect(&Who::new("job", 1, 0, 0)).await;
    let (_, text) = receiver.text(Kind::Lost).await;
    assert!(text.contains("the gateway of cluster south has no key called 'bio'"), "{text}");
    assert!(pair.south.shared.all_jobs().is_empty());
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_waits_gets_signs_of_life() {
    let pair = Pair::new().await;
    let [(_sender, mut receiver), _south] = pair.two("job", 0, 0).await;
    let begun = std::time::Instant::now();
    for _ in 0..2 {
        assert_eq!(receiver.raw().await.unwrap().0.kind, Kind::Alive);
    }
    assert!(begun.elapsed() >= ALIVE, "{:?}", begun.elapsed());
    pair.stop().await;
}

/// It takes connections, and says nothing: who tries again must not forget the time over it.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_stopped_is_lost_after_patience() {
    let (patience, keep_alive) = (Duration::from_secs(2), Duration::from_millis(500));
    let pair = Pair::with(|config| (config.patience, config.keep_alive) = (patience, keep_alive)).await;
    let mut two = pair.two("job", 0, 0).await;
    ping_pong(&mut two, 0, 3).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    pair.to_south.to(silent.local_addr().unwrap());
    pair.to_south.set(Does::Freeze(0));
    pair.to_north.set(Does::Cut);
    let begun = std::time::Instant::now();
    let (_, text) = two[0].1.text(Kind::Lost).await;
    assert!(text.contains("has not been heard of for 2 s"), "{text}");
    // The next attempt begins after a second and a half; it alone might take two.
    assert!(begun.elapsed() < patience + Duration::from_secs(1), "{:?}", begun.elapsed());
    pair.stop().await;
}
