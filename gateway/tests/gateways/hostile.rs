// SPDX-License-Identifier: BSD-3-Clause
//! Strangers at both ports, while a job runs.

use crate::support::*;
use coll_rust::relay::frame::{self, Kind};
use coll_rust_gateway::noise::{self, About};
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Connections of strangers in all.
const STRANGERS: u64 = 1000;

/// Sends these bytes, says that nothing follows, and waits for the end.
async fn stranger(address: SocketAddr, bytes: Vec<u8>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The gateway may close before all is written.
    if stream.write_all(&bytes).await.is_ok() {
        let _ = stream.shutdown().await;
    }
    let mut rest = Vec::new();
    tokio::time::timeout(LONG, stream.read_to_end(&mut rest)).await.expect("it is not closed").ok();
}

/// One at the port for processes; `old` is what a real process sent before.
async fn inside(address: SocketAddr, random: &mut Random, old: &[u8]) {
    let who = Who::new("job", 0, 0, 50 + random.below(9));
    let hello = who.hello([1; 32]);
    match random.below(5) {
        0 => {
            let wrong = Who { secret: [8; 32], ..who };
            assert!(connect(address, &wrong).await.is_err());
        }
        1 => {
            let length = random.below(3000) as usize;
            stranger(address, random.bytes(length)).await;
        }
        2 => stranger(address, old.to_vec()).await,
        3 => stranger(address, hello[..random.below(hello.len() as u64) as usize].to_vec()).await,
        _ => {
            let length = random.below(90_000) as usize;
            let header = frame::Header { cluster: 1, peer: process(1, 0), ..frame::Header::plain(Kind::Data, 0) };
            stranger(address, [hello, frame::encode(header, &vec![7; length])].concat()).await;
        }
    }
}

/// One at the port for gateways; `old` is what the real gateway sent before.
async fn outside(address: SocketAddr, random: &mut Random, old: &[u8]) {
    let hash = Sha256::digest(b"job").into();
    let about = About { hash, key: "astro".to_owned(), from: "north".to_owned(), to: "south".to_owned() };
    match random.below(5) {
        0 => {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let error = noise::initiate(&mut stream, &about, &[8; 32]).await.err().unwrap();
            assert!(error.to_string().contains("the keys differ"), "{error}");
        }
        1 => {
            let length = random.below(3000) as usize;
            stranger(address, random.bytes(length)).await;
        }
        2 => stranger(address, old.to_vec()).await,
        3 => stranger(address, old[..random.below(old.len() as u64) as usize].to_vec()).await,
        _ => {
            // The right key, and then something that no session holds.
            let mut stream = TcpStream::connect(address).await.unwrap();
            noise::initiate(&mut stream, &about, &KEYS[0].1).await.unwrap();
            let garbage = random.bytes(2000);
            let _ = stream.write_all(&garbage).await;
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_strangers_disturb_nobody() {
    let pair = Pair::new().await;
    let mut two = pair.two("job", 0, 0).await;
    ping_pong(&mut two, 0, 50).await;
    // All that the gateway in the north has sent to the other one so far, as somebody between them sees it.
    let old: Vec<u8> = pair.to_south.seen.lock().unwrap().clone();
    assert!(old.len() > 50 * 100, "{}", old.len());
    let old_inside = old_process().await;
    let (north, south) = (pair.north.inside, pair.south.outside);
    let strangers = (0..8).map(|task| {
        let (old, old_inside) = (old.clone(), old_inside.clone());
        tokio::spawn(async move {
            let mut random = Random(77 + task);
            for at in 0..STRANGERS / 8 {
                if at % 2 == 0 {
                    inside(north, &mut random, &old_inside).await;
                } else {
                    outside(south, &mut random, &old).await;
                }
            }
        })
    });
    let strangers: Vec<_> = strangers.collect();
    // Connections that say nothing at all: they may stay for a few seconds.
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push((TcpStream::connect(north).await.unwrap(), TcpStream::connect(south).await.unwrap()));
    }
    let (mut rounds, mut longest) = (0, Duration::ZERO);
    while !strangers.iter().all(|task| task.is_finished()) {
        longest = longest.max(ping_pong(&mut two, 0, 2).await);
        rounds += 2;
    }
    for task in strangers {
        task.await.unwrap();
    }
    assert!(rounds >= 6 && longest < Duration::from_secs(3), "the job was held up: {rounds} rounds, {longest:?}");
    // A newcomer gets in beside those that say nothing.
    let mut late = pair.two("late", 1, 0).await;
    ping_pong(&mut late, 0, 5).await;
    drop(silent);
    let refused = || {
        let (north, south) = (&pair.north.shared.counters, &pair.south.shared.counters);
        north.refused.load(Relaxed) + south.refused_links.load(Relaxed)
    };
    until("all are counted", || refused() == STRANGERS + 200).await;
    assert_eq!(pair.south.shared.counters.lost.load(Relaxed), 0);
    assert_eq!(pair.south.shared.counters.resumed.load(Relaxed), 0, "the session was never disturbed");
    assert_eq!(pair.south.shared.all_jobs().len(), 2, "no stranger made a job");
    pair.stop().await;
}

/// What a real process sends, in a gateway's eyes.
async fn old_process() -> Vec<u8> {
    let wire = Wire::new().await;
    let pair = Pair::new().await;
    wire.to(pair.north.inside);
    let (mut sender, _receiver) = connect(wire.address, &Who::new("job", 0, 0, 3)).await.unwrap();
    sender.send(1, process(1, 0), 0, b"old").await.unwrap();
    until("it is seen", || wire.seen.lock().unwrap().ends_with(b"old")).await;
    let old = wire.seen.lock().unwrap().clone();
    pair.stop().await;
    old
}
