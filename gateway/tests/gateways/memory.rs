// SPDX-License-Identifier: BSD-3-Clause
//! Who does not read, or sends without end, holds up nobody else and takes no more memory than is said.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Sends long frames until told otherwise, reads nothing; counts what was taken from it.
fn flood(mut sender: Sender, to: u64) -> (tokio::task::JoinHandle<()>, Arc<AtomicU64>) {
    let taken = Arc::new(AtomicU64::new(0));
    let count = taken.clone();
    let task = tokio::spawn(async move {
        for number in 0.. {
            if sender.send(1, to, number, &[5; 60_000]).await.is_err() {
                return;
            }
            count.fetch_add(60_000, Relaxed);
        }
    });
    (task, taken)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_holds_up_only_who_sends_to_it() {
    let pair = Pair::with(|config| (config.memory, config.processes) = (4 << 20, 8)).await;
    // Two floods to one process that reads nothing, and one to a process that never comes.
    let (_south, slow) = pair.connect(&Who::new("job", 0, 1, 0)).await;
    let mut floods = Vec::new();
    for (rank, to) in [(0, 0), (1, 0), (2, 7)] {
        let (sender, receiver) = pair.connect(&Who::new("job", 0, 0, rank)).await;
        floods.push((flood(sender, process(1, to)), receiver));
    }
    let taken = || floods.iter().map(|((_, taken), _)| taken.load(Relaxed)).sum::<u64>();
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        if taken() == before {
            break;
        }
        before = taken();
    }
    assert!(before > 0);
    // Others of the same job, and of another one, go on.
    let mut same = pair.two("job", 0, 4).await;
    let mut other = pair.two("other", 1, 0).await;
    let times = [ping_pong(&mut same, 4, 200).await, ping_pong(&mut other, 0, 200).await];
    assert!(times[0] < 5 * times[1] + Duration::from_secs(1), "{times:?}");
    // What a job's streams take is bounded, at both ends and at any time.
    for gateway in [&pair.north, &pair.south] {
        let peak = gateway.shared.counters.peak.load(Relaxed);
        assert!(peak <= 4 << 20, "{peak} bytes");
    }
    assert!(pair.south.shared.counters.peak.load(Relaxed) > 200_000, "the floods reached the other side");
    // Once the slow one reads, it gets everything, and its senders go on.
    let (mut slow, mut got) = (slow, 0);
    while got < before + (4 << 20) {
        got += slow.next().await.unwrap().1.len() as u64;
    }
    for ((task, _), _) in floods {
        task.abort();
    }
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_link_is_away_senders_wait() {
    let pair = Pair::with(|config| (config.memory, config.processes) = (4 << 20, 8)).await;
    let [(sender, _news), (_south, mut into)] = pair.two("job", 0, 0).await;
    pair.set(Does::Cut);
    let ((task, _), reading) = (
        flood(sender, process(1, 0)),
        tokio::spawn(async move {
            for number in 0..200 {
                assert_eq!(into.next().await.unwrap().0.number, number);
            }
        }),
    );
    tokio::time::sleep(Duration::from_millis(700)).await;
    pair.set(Does::Pass);
    reading.await.unwrap();
    task.abort();
    let peak = pair.north.shared.counters.peak.load(Relaxed);
    assert!(peak <= 4 << 20, "{peak}");
    pair.stop().await;
}
