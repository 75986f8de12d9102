// SPDX-License-Identifier: BSD-3-Clause
//! The gateway as a whole: its listeners, and the tasks behind them.

use crate::config::Config;
use crate::counters;
use crate::dial;
use crate::inside;
use crate::job::Shared;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tracing::{info, warn};

/// Connections of each kind that have not shown yet that they have a key; further ones wait.
const STRANGERS: usize = 256;

/// A gateway that runs.
pub struct Gateway {
    /// Where processes connect.
    pub inside: SocketAddr,
    /// Where gateways connect.
    pub outside: SocketAddr,
    /// Where counters are read.
    pub metrics: Option<SocketAddr>,
    /// Its jobs and counters.
    pub shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|error: std::io::Error| format!("{address}: {error}"))
}

/// Hands connections over as they come. What is wrong with one of them ends nothing.
async fn accept<F: Future<Output = ()>>(listener: TcpListener, mut serve: impl FnMut(TcpStream) -> F) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => serve(stream).await,
            Err(error) => {
                // Too many open files, for one: others may close theirs.
                warn!(%error, "no connection could be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

impl Gateway {
    /// Binds the ports; the rest goes on beside.
    pub async fn start(config: Config) -> Result<Gateway, String> {
        let (inside_listener, inside) = listen(config.inside).await?;
        let (outside_listener, outside) = listen(config.outside).await?;
        let metrics = match config.metrics {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        info!(cluster = config.cluster, %inside, %outside, "gateway is up");
        let shared = Arc::new(Shared::new(config));
        let mut tasks = Vec::new();
        let (all, strangers) = (shared.clone(), Arc::new(Semaphore::new(STRANGERS)));
        tasks.push(tokio::spawn(accept(inside_listener, move |stream| {
            let (all, strangers) = (all.clone(), strangers.clone());
            async move {
                if let Ok(permit) = strangers.acquire_owned().await {
                    tokio::spawn(inside::serve(all, stream, permit));
                }
            }
        })));
        let (all, strangers) = (shared.clone(), Arc::new(Semaphore::new(STRANGERS)));
        tasks.push(tokio::spawn(accept(outside_listener, move |stream| {
            let (all, strangers) = (all.clone(), strangers.clone());
            async move {
                if let Ok(permit) = strangers.acquire_owned().await {
                    tokio::spawn(dial::answer(all, stream, permit));
                }
            }
        })));
        let all = shared.clone();
        tasks.push(tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(100)).await;
                all.sweep();
            }
        }));
        let address = metrics.as_ref().map(|(_, address)| *address);
        if let Some((listener, _)) = metrics {
            let all = shared.clone();
            tasks.push(tokio::spawn(accept(listener, move |stream| {
                let all = all.clone();
                async move {
                    // One at a time: who reads the counters waits.
                    let _ = tokio::time::timeout(Duration::from_secs(2), counters::answer(&all, stream)).await;
                }
            })));
        }
        Ok(Gateway { inside, outside, metrics: address, shared, tasks })
    }

    /// Takes no more connections, and tells other gateways that it stops.
    pub async fn stop(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.end_all();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
