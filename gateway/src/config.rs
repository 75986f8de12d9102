// SPDX-License-Identifier: BSD-3-Clause
//! The configuration file (TOML). What is wrong with it is said by line.

use crate::incoming::BASE;
use crate::keys;
use coll_rust::relay::hello::NAME;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// As it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    cluster: Spanned<String>,
    inside: Spanned<String>,
    outside: Spanned<String>,
    metrics: Option<Spanned<String>>,
    keys: Spanned<Vec<Spanned<PathBuf>>>,
    #[serde(default)]
    log: Log,
    memory_mib: Option<Spanned<u64>>,
    jobs: Option<Spanned<usize>>,
    processes: Option<Spanned<u64>>,
    patience: Option<Spanned<f64>>,
    keep_alive: Option<Spanned<f64>>,
    peers: Spanned<BTreeMap<Spanned<String>, Peer>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    address: Option<Spanned<String>>,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Log {
    /// What went wrong.
    Error,
    /// And what was refused, cut or lost.
    Warn,
    /// And jobs that come and go.
    #[default]
    Info,
    /// And processes and connections.
    Debug,
}

/// What the gateway does.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cluster that it stands in.
    pub cluster: String,
    /// Where processes connect.
    pub inside: SocketAddr,
    /// Where gateways connect.
    pub outside: SocketAddr,
    /// Where counters are read; loopback only.
    pub metrics: Option<SocketAddr>,
    /// Secrets by name.
    pub keys: HashMap<String, [u8; 32]>,
    /// How much is logged.
    pub log: Log,
    /// Bytes of messages of one job.
    pub memory: u64,
    /// Jobs at most.
    pub jobs: usize,
    /// Processes of one job at most.
    pub processes: u64,
    /// Another gateway that is not heard of for so long is lost.
    pub patience: Duration,
    /// A sign of life is sent so often; a connection without one for three times that is given up.
    pub keep_alive: Duration,
    /// The other clusters, and their gateways' addresses if this one is to connect to them.
    pub peers: BTreeMap<String, Option<String>>,
}

impl Config {
    /// Reads the file, and the keys that it names. The error is for the user.
    pub fn load(path: &Path) -> Result<Config, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Config::parse(&text, folder).map_err(|(at, what)| {
            let line = text.get(..at).unwrap_or(&text).matches('\n').count() + 1;
            format!("{}:{line}: {what}", path.display())
        })
    }

    /// Of a text; files of keys are looked for from `folder` on. The error begins at a byte.
    fn parse(text: &str, folder: &Path) -> Result<Config, (usize, String)> {
        let text: Text = toml::from_str(text)
            .map_err(|error| (error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
        let keys = load_keys(&text.keys, folder)?;
        let peers = peers(&text)?;
        let (inside, outside) = (address(&text.inside)?, address(&text.outside)?);
        let metrics = text.metrics.as_ref().map(address).transpose()?;
        if let (Some(metrics), Some(stands)) = (metrics, &text.metrics) {
            check(
                stands,
                metrics.ip().is_loopback(),
                "the counters are for this machine only: use a loopback address",
            )?;
        }
        let jobs = limit(text.jobs, 64, 1..=10_000)?;
        let processes = limit(text.processes, 64, 1..=4096)?;
        let at = text.memory_mib.as_ref().map_or(0, |memory| memory.span().start);
        let memory = limit(text.memory_mib, 16 * peers.len() as u64, 1..=1 << 20)? << 20;
        let least = 2 * peers.len() as u64 * processes * BASE;
        if memory < least {
            let least = least.div_ceil(1 << 20);
            return Err((at, format!("memory_mib must be at least {least} for that many processes and peers")));
        }
        let patience = limit(text.patience, 8.0, 0.1..=3600.0)?;
        let at = text.keep_alive.as_ref().map_or(0, |seconds| seconds.span().start);
        let keep_alive = limit(text.keep_alive, (patience / 8.0).min(1.0), 0.01..=600.0)?;
        if keep_alive * 4.0 > patience {
            return Err((at, "keep_alive must be at most a quarter of patience".to_owned()));
        }
        let [patience, keep_alive] = [patience, keep_alive].map(Duration::from_secs_f64);
        let cluster = text.cluster.into_inner();
        let log = text.log;
        Ok(Config {
            cluster,
            inside,
            outside,
            metrics,
            keys,
            log,
            memory,
            jobs,
            processes,
            patience,
            keep_alive,
            peers,
        })
    }

    /// Bytes of one job that go to one peer, or come from it, at most.
    pub fn share(&self) -> u64 {
        self.memory / 2 / self.peers.len().max(1) as u64
    }
}

fn check<T>(stands: &Spanned<T>, fine: bool, what: &str) -> Result<(), (usize, String)> {
    if fine { Ok(()) } else { Err((stands.span().start, what.to_owned())) }
}

fn limit<T: PartialOrd + std::fmt::Display>(
    given: Option<Spanned<T>>,
    default: T,
    fine: std::ops::RangeInclusive<T>,
) -> Result<T, (usize, String)> {
    let Some(given) = given else { return Ok(default) };
    let what = format!("must be between {} and {}", fine.start(), fine.end());
    check(&given, fine.contains(given.get_ref()), &what)?;
    Ok(given.into_inner())
}

fn address(text: &Spanned<String>) -> Result<SocketAddr, (usize, String)> {
    let wrong = |_| (text.span().start, "must be an address and a port, such as 10.0.0.1:7411 or [::]:7411".to_owned());
    text.get_ref().parse().map_err(wrong)
}

fn load_keys(
    files: &Spanned<Vec<Spanned<PathBuf>>>,
    folder: &Path,
) -> Result<HashMap<String, [u8; 32]>, (usize, String)> {
    check(files, !files.get_ref().is_empty(), "name the file of a key: without one no job can be served")?;
    let mut found = HashMap::new();
    for file in files.get_ref() {
        let path = folder.join(file.get_ref());
        let key = keys::load(&path).map_err(|what| (file.span().start, format!("{}: {what}", path.display())))?;
        let twice = format!("a second key called '{}'", key.name);
        check(file, found.insert(key.name, key.bytes).is_none(), &twice)?;
    }
    Ok(found)
}

fn peers(text: &Text) -> Result<BTreeMap<String, Option<String>>, (usize, String)> {
    let fits = |name: &str| !name.is_empty() && name.len() <= NAME && !name.contains(char::is_control);
    check(&text.cluster, fits(text.cluster.get_ref()), "a cluster's name has 1 to 64 bytes")?;
    check(&text.peers, !text.peers.get_ref().is_empty(), "name another cluster: [peers.NAME]")?;
    check(&text.peers, text.peers.get_ref().len() < 64, "more than 64 clusters")?;
    let mut peers = BTreeMap::new();
    for (name, peer) in text.peers.get_ref() {
        check(name, fits(name.get_ref()), "a cluster's name has 1 to 64 bytes")?;
        check(name, name.get_ref() != text.cluster.get_ref(), "this is the own cluster")?;
        if let Some(address) = &peer.address {
            let port = address.get_ref().rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
            check(
                address,
                port.is_some_and(|port| port > 0),
                "must be a host and a port, such as gw.south.example:7412",
            )?;
        }
        peers.insert(name.get_ref().clone(), peer.address.as_ref().map(|address| address.get_ref().clone()));
    }
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "cluster = \"north\"\ninside = \"127.0.0.1:0\"\noutside = \"127.0.0.1:0\"\nkeys = [\"k\"]\n";

    /// The line and the text of the error, or the configuration.
    fn parse(text: &str) -> Result<Config, (usize, String)> {
        let folder = tempfile::tempdir().unwrap();
        keys::tests::write(&folder.path().join("k"), &"ab".repeat(32), 0o600);
        keys::tests::write(&folder.path().join("open"), &"ab".repeat(32), 0o644);
        Config::parse(text, folder.path()).map_err(|(at, what)| (text[..at].matches('\n').count() + 1, what))
    }

    #[test]
    fn defaults_are_as_documented() {
        let config = parse(&format!("{GOOD}[peers.south]\naddress = \"gw:7412\"\n[peers.east]\n")).unwrap();
        assert_eq!((config.memory, config.jobs, config.processes), (32 << 20, 64, 64));
        assert_eq!((config.patience.as_secs(), config.keep_alive.as_secs(), config.share()), (8, 1, 8 << 20));
        assert_eq!(config.peers["south"].as_deref(), Some("gw:7412"));
        assert_eq!((&config.peers["east"], config.log, config.keys.len()), (&None, Log::Info, 1));
    }

    #[test]
    fn errors_name_their_line() {
        let south = "[peers.south]\naddress = \"gw:7412\"\n";
        for (text, line, part) in [
            (format!("{GOOD}colour = 1\n{south}"), 5, "unknown field `colour`"),
            (format!("{GOOD}[peers.south]\nport = 1\n"), 6, "unknown field `port`"),
            (format!("{GOOD}jobs = 0\n{south}"), 5, "between 1 and 10000"),
            (format!("{GOOD}jobs = \"x\"\n{south}"), 5, "invalid type"),
            (format!("{GOOD}memory_mib = 5\n{south}"), 5, "at least 12"),
            (format!("{GOOD}metrics = \"0.0.0.0:1\"\n{south}"), 5, "loopback"),
            (format!("{GOOD}keep_alive = 3\n{south}"), 5, "quarter"),
            (format!("{GOOD}patience = -1\n{south}"), 5, "between"),
            (format!("{GOOD}log = \"loud\"\n{south}"), 5, "unknown variant"),
            (format!("{GOOD}[peers.south]\naddress = \"gw\"\n"), 6, "host and a port"),
            (format!("{GOOD}[peers.north]\n"), 5, "own cluster"),
            (format!("{GOOD}[peers.\"\"]\n"), 5, "1 to 64"),
            (format!("{GOOD}\n\nx"), 7, ""),
            (GOOD.replace("127.0.0.1:0\"\nkeys", "here\"\nkeys") + south, 3, "an address and a port"),
            (GOOD.replace("\"k\"", "\"k\", \"none\"") + south, 4, "No such file"),
            (GOOD.replace("\"k\"", "\"open\"") + south, 4, "chmod 0600"),
            (GOOD.replace("\"k\"", "\"k\", \"k\"") + south, 4, "a second key called 'k'"),
            (GOOD.replace("\"k\"", "") + south, 4, "name the file"),
        ] {
            let (found, what) = parse(&text).map(|_| ()).unwrap_err();
            assert!(found == line && what.contains(part), "{text}{found}: {what}");
        }
        assert!(parse(GOOD).is_err(), "no peers");
    }
}
