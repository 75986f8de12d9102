// SPDX-License-Identifier: BSD-3-Clause
//! The program; see docs/guide/gateways.md.

use clap::Parser;
use coll_rust_gateway::config::{Config, Log};
use coll_rust_gateway::server::Gateway;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;

/// Relays the collectives of coll/rust between clusters whose nodes do not reach each other.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The configuration file.
    #[arg(default_value = "/etc/coll-rust-gateway/gateway.toml")]
    config: PathBuf,
    /// Reads configuration and keys, says what they come to, and exits: with 0 if nothing is wrong.
    #[arg(long)]
    check: bool,
}

/// One line for the user.
fn summary(config: &Config) -> String {
    let mut keys: Vec<&str> = config.keys.keys().map(String::as_str).collect();
    keys.sort_unstable();
    let peers: Vec<&str> = config.peers.keys().map(String::as_str).collect();
    let (memory, jobs) = (config.memory >> 20, config.jobs);
    format!(
        "cluster {}, with {}; keys {}; {memory} MiB for each of at most {jobs} jobs",
        config.cluster,
        peers.join(", "),
        keys.join(", ")
    )
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = match Config::load(&arguments.config) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("coll-rust-gateway: {error}");
            return ExitCode::from(2);
        }
    };
    if arguments.check {
        println!("ok: {}", summary(&config));
        return ExitCode::SUCCESS;
    }
    let level = match config.log {
        Log::Error => LevelFilter::ERROR,
        Log::Warn => LevelFilter::WARN,
        Log::Info => LevelFilter::INFO,
        Log::Debug => LevelFilter::DEBUG,
    };
    tracing_subscriber::fmt().with_max_level(level).with_target(false).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ran = runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(run(config)));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coll-rust-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(config: Config) -> Result<(), String> {
    let asked = |kind| signal(kind).map_err(|error| error.to_string());
    let (mut terminate, mut interrupt) = (asked(SignalKind::terminate())?, asked(SignalKind::interrupt())?);
    let gateway = Gateway::start(config).await?;
    // Whoever started it with port 0 learns the ports here.
    let metrics = gateway.metrics.map_or_else(|| "none".to_owned(), |address| address.to_string());
    let ports = format!("inside {} outside {} metrics {metrics}", gateway.inside, gateway.outside);
    let _ = writeln!(std::io::stdout(), "{ports}");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("gateway stops");
    gateway.stop().await;
    Ok(())
}
