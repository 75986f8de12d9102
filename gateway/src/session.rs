// SPDX-License-Identifier: BSD-3-Clause
//! A session between two gateways, from RESUME to its end.

use crate::job::Shared;
use crate::link::Link;
use crate::noise::{Opener, Sealer};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::info;

/// Bytes that are sealed at a time, and a frame beyond.
const BATCH: usize = 64 * 1024;

/// Sends and receives until either fails, or another connection takes over.
pub async fn serve(
    shared: Arc<Shared>,
    link: Arc<Link>,
    id: u64,
    stop: Arc<Notify>,
    mut opener: Opener,
    mut sealer: Sealer,
) {
    let job = link.job.upgrade().map(|job| job.label());
    info!(job, peer = link.peer, "session set up");
    let keep_alive = shared.config.keep_alive;
    let reason = tokio::select! {
        reason = receive(&link, id, &mut opener) => reason,
        reason = send(&link, id, &mut sealer, keep_alive) => reason,
        () = stop.notified() => return,
    };
    link.disconnected(id, &reason);
}

async fn receive(link: &Arc<Link>, id: u64, opener: &mut Opener) -> String {
    loop {
        let (head, place) = match opener.frame().await {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return "the other gateway closed the connection".to_owned();
            }
            Err(error) => return error.to_string(),
        };
        match link.receive(id, &head, opener.payload(place)) {
            Ok(true) => {}
            Ok(false) => return "it is over".to_owned(),
            Err(text) => {
                let text = format!("the gateway of cluster {}: {text}", link.peer);
                link.lose(&text);
                return text;
            }
        }
    }
}

async fn send(link: &Link, id: u64, sealer: &mut Sealer, keep_alive: Duration) -> String {
    let mut due = Instant::now();
    loop {
        let woken = link.wake.notified();
        tokio::pin!(woken);
        // From here on no call is missed: what comes behind this line is seen below, or wakes.
        woken.as_mut().enable();
        let Some((bytes, last)) = link.batch(id, BATCH, Instant::now() >= due) else {
            return "replaced by another connection".to_owned();
        };
        if bytes.is_empty() {
            let _ = timeout_at(due, woken).await;
            continue;
        }
        due = Instant::now() + keep_alive;
        match timeout(3 * keep_alive, sealer.send(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return "it does not read".to_owned(),
        }
        if last {
            return "closed".to_owned();
        }
    }
}
