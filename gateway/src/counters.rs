// SPDX-License-Identifier: BSD-3-Clause
//! Counters, as text for Prometheus on a loopback port; and how often refusals are logged.

use crate::job::{Shared, lock};
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What the gateway counts.
#[derive(Default)]
pub struct Counters {
    /// Frames and bytes of DATA that processes sent.
    pub sent: [AtomicU64; 2],
    /// Frames and bytes of DATA that processes were given.
    pub delivered: [AtomicU64; 2],
    /// Processes that were welcomed.
    pub welcomed: AtomicU64,
    /// Processes that were refused.
    pub refused: AtomicU64,
    /// Connections of gateways that were refused or failed.
    pub refused_links: AtomicU64,
    /// Sessions with other gateways that were set up.
    pub sessions: AtomicU64,
    /// Of these, those that went on after a cut.
    pub resumed: AtomicU64,
    /// Pairs of job and gateway that were given up.
    pub lost: AtomicU64,
    /// Jobs seen.
    pub jobs: AtomicU64,
    /// The most bytes that any one job ever held.
    pub peak: AtomicU64,
}

/// One more.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// One more frame of so many bytes.
pub fn count_frame(counters: &[AtomicU64; 2], bytes: usize) {
    count(&counters[0]);
    counters[1].fetch_add(bytes as u64, Relaxed);
}

/// All counters and gauges.
pub fn text(shared: &Shared) -> String {
    let counters = &shared.counters;
    let mut text = String::new();
    for (name, help, counter) in [
        ("frames_sent_total", "Messages that processes here sent.", &counters.sent[0]),
        ("bytes_sent_total", "Their bytes.", &counters.sent[1]),
        ("frames_delivered_total", "Messages that processes here were given.", &counters.delivered[0]),
        ("bytes_delivered_total", "Their bytes.", &counters.delivered[1]),
        ("processes_welcomed_total", "Processes that were let in.", &counters.welcomed),
        ("processes_refused_total", "Connections of processes that were refused.", &counters.refused),
        ("links_refused_total", "Connections of gateways that were refused.", &counters.refused_links),
        ("sessions_total", "Sessions with other gateways.", &counters.sessions),
        ("sessions_resumed_total", "Those that went on after a cut.", &counters.resumed),
        ("lost_total", "Times that a job lost another cluster.", &counters.lost),
        ("jobs_total", "Jobs seen.", &counters.jobs),
    ] {
        let name = format!("coll_rust_gateway_{name}");
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {}", counter.load(Relaxed));
    }
    let jobs = shared.all_jobs();
    let (mut processes, mut links, mut held) = (0, 0, String::new());
    for job in &jobs {
        let about = job.gauges();
        processes += about.processes;
        links += about.links;
        let _ = writeln!(held, "coll_rust_gateway_job_bytes{{job=\"{}\"}} {}", job.label(), about.held);
    }
    for (name, help, value) in [
        ("jobs", "Jobs now.", jobs.len() as u64),
        ("processes", "Processes that are connected.", processes),
        ("links", "Sessions with other gateways that are up.", links),
        ("job_bytes_peak", "The most that one job ever held.", counters.peak.load(Relaxed)),
        ("job_bytes_limit", "What one job may hold.", shared.config.memory),
    ] {
        let name = format!("coll_rust_gateway_{name}");
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
    }
    let name = "coll_rust_gateway_job_bytes";
    let _ = write!(text, "# HELP {name} Bytes of messages that a job has here.\n# TYPE {name} gauge\n{held}");
    text
}

/// Answers one request, whatever it asks for.
pub async fn answer(shared: &Shared, mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let mut length = 0;
    while length < request.len() && !request[..length].windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut request[length..]).await? {
            0 => break,
            more => length += more,
        }
    }
    let text = text(shared);
    let head = "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\nContent-Length:";
    stream.write_all(format!("{head} {}\r\n\r\n{text}", text.len()).as_bytes()).await?;
    stream.shutdown().await
}

/// Lets ten lines a second through, so that refusals do not fill the disk.
pub struct Seldom(Mutex<(Instant, u32, u64)>);

impl Default for Seldom {
    fn default() -> Seldom {
        Seldom(Mutex::new((Instant::now(), 0, 0)))
    }
}

impl Seldom {
    /// Whether to log now; the number says how many lines were left out since the last one.
    pub fn now(&self) -> Option<u64> {
        let mut state = lock(&self.0);
        if state.0.elapsed() >= Duration::from_secs(1) {
            (state.0, state.1) = (Instant::now(), 0);
        }
        state.1 += 1;
        if state.1 > 10 {
            state.2 += 1;
            return None;
        }
        Some(std::mem::take(&mut state.2))
    }
}
