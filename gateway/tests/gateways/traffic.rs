// SPDX-License-Identifier: BSD-3-Clause
//! What gateways are for.

use crate::support::*;
use coll_rust::relay::frame::{Kind, PAYLOAD};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn every_pair_of_processes_has_its_order() {
    let pair = Pair::new().await;
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for (cluster, rank) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (mut sender, mut receiver) = pair.connect(&Who::new("job", 0, cluster, rank)).await;
        let other = 1 - cluster;
        senders.push(tokio::spawn(async move {
            for number in 0..400 {
                for rank in 0..2 {
                    let bytes = content(number, PAYLOAD as u64 + 1);
                    sender.send(other, process(other, rank), number, &bytes).await.unwrap();
                }
            }
            sender
        }));
        receivers.push(tokio::spawn(async move {
            let mut next = [0; 2];
            for _ in 0..800 {
                let (header, payload) = receiver.next().await.unwrap();
                let from = (header.peer - process(other, 0)) as usize;
                assert_eq!((header.kind, header.cluster, header.number), (Kind::Data, other, next[from]));
                assert_eq!(header.key, process(cluster, rank) ^ 5, "the component's numbers stay as they are");
                assert!(payload == content(header.number, PAYLOAD as u64 + 1));
                next[from] += 1;
            }
            receiver
        }));
    }
    let mut kept = Vec::new();
    for (sender, receiver) in senders.into_iter().zip(receivers) {
        kept.push((sender.await.unwrap(), receiver.await.unwrap()));
    }
    for gateway in [&pair.north, &pair.south] {
        let counters = &gateway.shared.counters;
        assert_eq!((counters.sent[0].load(Relaxed), counters.delivered[0].load(Relaxed)), (1600, 1600));
        assert_eq!(counters.sessions.load(Relaxed), 1, "one session for all processes of a job");
    }
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_frame_and_the_empty_one_pass() {
    let pair = Pair::new().await;
    let [mut north, mut south] = pair.two("job", 0, 0).await;
    for length in [0, 1, PAYLOAD - 1, PAYLOAD, 0] {
        north.0.send(1, process(1, 0), length as u64, &vec![7; length]).await.unwrap();
        let (header, payload) = south.1.next().await.unwrap();
        assert_eq!((header.number, payload), (length as u64, vec![7; length]));
    }
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_jobs_are_apart_and_a_third_with_another_key_is_refused() {
    let pair = Pair::new().await;
    // The same numbers of processes, and one has even the name of another: the key tells them apart.
    let jobs = [("job", 0, 3000), ("job", 1, 500), ("other", 0, 60_000)];
    let mut tasks = Vec::new();
    for (job, key, most) in jobs {
        let [north, south] = pair.two(job, key, 0).await;
        tasks.push(tokio::spawn(async move {
            let ((mut out_north, mut in_north), (mut out_south, mut in_south)) = (north, south);
            tokio::join!(
                stream_out(&mut out_north, (1, process(1, 0)), 500, most),
                stream_in(&mut in_south, (0, process(0, 0)), 500, most),
                stream_out(&mut out_south, (0, process(0, 0)), 500, most + 1),
                stream_in(&mut in_north, (1, process(1, 0)), 500, most + 1),
            );
            out_north.bye().await;
            out_south.bye().await;
        }));
    }
    let third = Who { secret: [3; 32], ..Who::new("third", 0, 0, 0) };
    let text = connect(pair.north.inside, &third).await.map(|_| ()).unwrap_err();
    assert!(text.contains("job third: the key 'astro' is not the one that the gateway has"), "{text}");
    let nameless = Who { key: "cosmo".to_owned(), ..third };
    let text = connect(pair.north.inside, &nameless).await.map(|_| ()).unwrap_err();
    assert!(text.contains("no key called 'cosmo'") && text.contains("coll_rust_gateway_key"), "{text}");
    for task in tasks {
        task.await.unwrap();
    }
    let counters = &pair.north.shared.counters;
    assert_eq!((counters.jobs.load(Relaxed), counters.refused.load(Relaxed)), (3, 2));
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_belong_here_is_told_why() {
    let pair = Pair::with(|config| (config.jobs, config.processes) = (1, 2)).await;
    let refused = async |who: Who| connect(pair.north.inside, &who).await.map(|_| ()).unwrap_err();
    let who = Who::new("job", 0, 0, 0);
    let other = Who::new("job", 0, 1, 0);
    assert!(refused(other).await.contains("this is the gateway of cluster north, not south"));
    let east = vec!["north".to_owned(), "east".to_owned()];
    let text = refused(Who { clusters: east, ..who.clone() }).await;
    assert!(text.contains("does not know cluster east"), "{text}");
    let first = pair.connect(&who).await;
    assert!(refused(who.clone()).await.contains("this process is connected already"));
    let turned = vec!["south".to_owned(), "north".to_owned()];
    let text = refused(Who { clusters: turned, cluster: 1, process: 5, ..who.clone() }).await;
    assert!(text.contains("in another order"), "{text}");
    let second = pair.connect(&Who::new("job", 0, 0, 1)).await;
    assert!(refused(Who::new("job", 0, 0, 2)).await.contains("raise `processes`"));
    assert!(refused(Who::new("next", 0, 0, 0)).await.contains("serves 1 jobs already"));
    // A process that does what it must not.
    let (mut sender, mut receiver) = first;
    sender.send(0, 5, 0, b"x").await.unwrap();
    let (_, text) = receiver.text(Kind::Refused).await;
    assert!(text.contains("DATA for north, the own cluster"), "{text}");
    assert!(receiver.next().await.is_none());
    drop(second);
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_comes_later_gets_what_was_sent_before() {
    let pair = Pair::new().await;
    let (mut north, _keep) = pair.connect(&Who::new("job", 0, 0, 0)).await;
    stream_out(&mut north, (1, process(1, 0)), 50, 300).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (_south, mut south) = pair.connect(&Who::new("job", 0, 1, 0)).await;
    stream_in(&mut south, (0, process(0, 0)), 50, 300).await;
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_left_is_known_and_jobs_end() {
    let pair = Pair::with(|config| config.patience = Duration::from_millis(1500)).await;
    let [(mut north, mut news), (south, south_news)] = pair.two("job", 0, 0).await;
    let (crashing, crashing_news) = pair.connect(&Who::new("job", 0, 1, 1)).await;
    north.send(1, process(1, 1), 0, b"x").await.unwrap();
    until("it arrives", || pair.south.shared.counters.delivered[0].load(Relaxed) == 1).await;
    drop((crashing, crashing_news));
    let (header, text) = news.text(Kind::Lost).await;
    assert_eq!((header.cluster, header.peer), (1, process(1, 1)));
    assert!(text.contains("has crashed"), "{text}");
    // One that leaves in order is no news, until somebody sends to it.
    south.bye().await;
    drop(south_news);
    until("it has gone", || pair.south.shared.all_jobs()[0].gauges().processes == 0).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    for _ in 0..3 {
        north.send(1, process(1, 0), 999, &[7; 5000]).await.unwrap();
    }
    let (header, text) = news.text(Kind::Lost).await;
    assert_eq!((header.cluster, header.peer), (1, process(1, 0)));
    assert!(text.contains("has left"), "{text}");
    // It may come back.
    let (_again, mut again) = pair.connect(&Who::new("job", 0, 1, 0)).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    stream_out(&mut north, (1, process(1, 0)), 20, 100).await;
    // What was on its way before the news came may arrive now.
    let mut next = 0;
    while next < 20 {
        let (header, payload) = again.next().await.unwrap();
        if header.number != 999 {
            assert!(header.number == next && payload == content(next, 100));
            next += 1;
        }
    }
    drop((_again, again, north, news));
    until("both forget the job", || pair.north.shared.all_jobs().is_empty() && pair.south.shared.all_jobs().is_empty())
        .await;
    // And so may the job.
    let mut two = pair.two("job", 0, 0).await;
    ping_pong(&mut two, 0, 5).await;
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_bye_and_leaves_things_unread_has_not_crashed() {
    let pair = Pair::new().await;
    let (mut north, mut news) = pair.connect(&Who::new("job", 0, 0, 0)).await;
    for rank in 0..20 {
        let (leaving, receiver) = pair.connect(&Who::new("job", 0, 1, rank)).await;
        // More than the buffers of a connection hold, so that the gateway is writing when it is closed.
        for number in 0..10 {
            north.send(1, process(1, rank), number, &[1; 60_000]).await.unwrap();
        }
        leaving.bye().await;
        drop(receiver);
    }
    until("all have gone", || pair.south.shared.all_jobs()[0].gauges().processes == 0).await;
    let (_last, mut last) = pair.connect(&Who::new("job", 0, 1, 30)).await;
    north.send(1, process(1, 30), 7, b"x").await.unwrap();
    assert_eq!(last.next().await.unwrap().0.number, 7);
    // Whoever is sent to behind its BYE is told of; as one that has left, and not as one that crashed.
    while let Ok(Some((_, text))) = tokio::time::timeout(Duration::from_millis(300), news.any()).await {
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("has left"), "{text}");
    }
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_has_ended_on_one_side_may_come_back() {
    let pair = Pair::with(|config| config.patience = Duration::from_millis(1500)).await;
    let [(mut north, news), (mut south, mut south_news)] = pair.two("job", 0, 0).await;
    stream_out(&mut north, (1, process(1, 0)), 5, 100).await;
    stream_in(&mut south_news, (0, process(0, 0)), 5, 100).await;
    north.bye().await;
    drop(news);
    until("north forgets the job", || pair.north.shared.all_jobs().is_empty()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    south.send(0, process(0, 0), 0, b"x").await.unwrap();
    let (header, text) = south_news.text(Kind::Lost).await;
    assert!(header.cluster == 0 && text.contains("no process left in cluster north"), "{text}");
    let (mut north, _news) = pair.connect(&Who::new("job", 0, 0, 1)).await;
    stream_out(&mut north, (1, process(1, 0)), 5, 100).await;
    stream_in(&mut south_news, (0, process(0, 1)), 5, 100).await;
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_read_over_http() {
    let pair = Pair::new().await;
    let mut two = pair.two("job \"1\"", 0, 0).await;
    ping_pong(&mut two, 0, 5).await;
    let mut stream = TcpStream::connect(pair.north.metrics.unwrap()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    for line in [
        "HTTP/1.0 200 OK",
        "coll_rust_gateway_frames_sent_total 5",
        "coll_rust_gateway_bytes_delivered_total 20",
        "coll_rust_gateway_jobs 1",
        "coll_rust_gateway_links 1",
        "coll_rust_gateway_job_bytes_limit 16777216",
        "# TYPE coll_rust_gateway_job_bytes gauge",
    ] {
        assert!(text.lines().any(|found| found.trim_end() == line), "{line} in {text}");
    }
    assert!(text.contains("coll_rust_gateway_job_bytes{job=\"job _1_\"} "), "{text}");
    pair.stop().await;
}
