// SPDX-License-Identifier: BSD-3-Clause
//! Which switches the nodes hang on: from the file that `coll_rust_network_file` names, or from what Slurm
//! tells each task.

use crate::ffi::base::glue::cr_proc;
use crate::ffi::base::{config, messages, name};
use crate::ffi::process::{card, placement};
use crate::params::Topic;
use crate::topo::{Address, Network};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Where the switches come from.
enum Source {
    Nowhere,
    /// A file, with a number that stands for its text.
    File(Network, u64),
    /// Every process' address.
    Slurm,
}

fn source() -> Result<&'static Source, &'static str> {
    static SOURCE: OnceLock<Result<Source, String>> = OnceLock::new();
    let read = || match config::config()?.network_file.as_str() {
        "" | "none" => Ok(Source::Nowhere),
        "auto" => Ok(Source::Slurm),
        path => {
            let text = Network::load(path).map_err(|e| format!("coll_rust_network_file = \"{path}\": {e}"))?;
            // Of several clusters the files of all.
            let mut all = text.clone();
            let mut open = |path: &str| {
                let text = Network::load(path)?;
                all.extend(["\0", &text]);
                Ok(text)
            };
            let network =
                Network::parse_with(path, &text, &mut open).map_err(|e| format!("coll_rust_network_file: {e}"))?;
            Ok(Source::File(network, hash(&all)))
        }
    };
    SOURCE.get_or_init(read).as_ref().map_err(String::as_str)
}

/// FNV-1a: the same in every build.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Reads the file, if there is one.
pub fn check() -> Result<(), &'static str> {
    source().map(|_| ())
}

/// Whether the file names clusters.
pub fn names_clusters() -> bool {
    matches!(source(), Ok(Source::File(network, _)) if network.has_clusters())
}

/// The names of the clusters that it names, by their numbers.
pub fn cluster_names() -> &'static [String] {
    match source() {
        Ok(Source::File(network, _)) => network.cluster_names(),
        _ => &[],
    }
}

/// What other processes are told: lines of the card.
pub fn card_lines() -> String {
    match (source(), own_address()) {
        (Ok(Source::File(_, hash)), _) => format!("{FILE}={hash:x}\n"),
        (Ok(Source::Slurm), Ok(Some(address))) => format!("{ADDRESS}={}\n", address.to_text()),
        _ => String::new(),
    }
}

/// In a card: the number of the network file's text.
pub const FILE: &str = "@network_file";
/// In a card: the address that Slurm gave the process.
const ADDRESS: &str = "@address";

/// The address of this process, if it has one that says something.
fn own_address() -> Result<Option<&'static Address>, &'static str> {
    static ADDRESS: OnceLock<Result<Option<Address>, String>> = OnceLock::new();
    let read = || {
        let variable = |name| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned());
        let (pattern, address) = (variable("SLURM_TOPOLOGY_ADDR_PATTERN"), variable("SLURM_TOPOLOGY_ADDR"));
        let (Some(pattern), Some(address)) = (pattern, address) else { return Ok(None) };
        let host = placement::own_host();
        let node = variable("SLURMD_NODENAME").unwrap_or_default();
        let address = Address::parse(&pattern, &address, &[&node, host])?;
        Ok((!address.is_flat()).then_some(address))
    };
    ADDRESS.get_or_init(read).as_ref().map(Option::as_ref).map_err(String::as_str)
}

/// The addresses of processes, by job and rank.
type Known = HashMap<(u32, u32), Option<Address>>;

/// The address that another process has published.
fn address_of(name: &cr_proc) -> Result<Option<Address>, i32> {
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    let own = name::own_name();
    if (name.job, name.rank) == (own.job, own.rank) {
        return Ok(own_address().ok().flatten().cloned());
    }
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(address) = known().as_ref().and_then(|known| known.get(&(name.job, name.rank)).cloned()) {
        return Ok(address);
    }
    // The lock is not held while the runtime is asked.
    let card = card::card(name)?;
    let address = card::settings(&card).find(|(key, _)| *key == ADDRESS).and_then(|(_, text)| Address::from_text(text));
    known().get_or_insert_default().insert((name.job, name.rank), address.clone());
    Ok(address)
}

/// The network of these processes, the same for all of them: `hosts` has the number of each one's node,
/// `nodes` the names of these. A node's address is that of its first process; whether addresses are used, and
/// of which pattern, is up to the first process of all.
pub fn of(names: &[cr_proc], hosts: &[u32], nodes: &[String]) -> Result<Option<Cow<'static, Network>>, String> {
    match source()? {
        Source::Nowhere => return Ok(None),
        Source::File(network, _) => return Ok((network.layers() > 0).then_some(Cow::Borrowed(network))),
        Source::Slurm if nodes.len() < 2 => return Ok(None),
        Source::Slurm => {}
    }
    let ask = |name: &cr_proc| {
        let (job, rank) = (name.job, name.rank);
        address_of(name)
            .map_err(|code| format!("cannot find out what rank {rank} of job {job} knows of its place (error {code})"))
    };
    let Some(leader) = names.first().map(ask).transpose()?.flatten() else { return Ok(None) };
    let mut placed: Vec<(&str, Option<Option<Address>>)> = nodes.iter().map(|node| (node.as_str(), None)).collect();
    for (name, &host) in names.iter().zip(hosts) {
        if let Some((_, address @ None)) = placed.get_mut(host as usize) {
            *address = Some(ask(name)?);
        }
    }
    let placed: Vec<_> = placed.into_iter().map(|(node, address)| (node, address.flatten())).collect();
    let network = Network::from_addresses(leader.pattern(), &placed);
    Ok((network.layers() > 0).then_some(Cow::Owned(network)))
}

/// Says once in a job what the network lacks; `network` is what [`of`] has found. Rank 0 says which nodes it
/// does not name, or, where that has no address, the lowest rank that has one.
pub fn warn(names: &[cr_proc], nodes: &[String], network: Option<&Network>) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let own = name::own_name();
    let first = names.first().is_some_and(|name| (name.job, name.rank) == (own.job, own.rank));
    let slurm = matches!(source(), Ok(Source::Slurm));
    let message = match (first && own.rank == 0, network) {
        (true, Some(network)) => strange(nodes, network, slurm),
        (true, None) if slurm && nodes.len() > 1 => match own_address() {
            Err(why) => Some(format!("no switches: {why}")),
            // Addresses that place nobody: all are refused.
            Ok(Some(_)) => strange(nodes, &Network::nothing(), slurm),
            Ok(None) => None,
        },
        (false, None) if slurm && nodes.len() > 1 && own_address().is_ok_and(|own| own.is_some()) => {
            let before = names.iter().take_while(|name| (name.job, name.rank) != (own.job, own.rank));
            let has = |name: &cr_proc| address_of(name).is_ok_and(|address| address.is_some());
            (!before.into_iter().any(has)).then(|| {
                format!(
                    "the first rank has no SLURM_TOPOLOGY_ADDR, but rank {} has: all nodes are placed at the top, below no switch; \
                     coll_rust_network_file = none does without.",
                    own.rank
                )
            })
        }
        _ => None,
    };
    if let Some(message) = message
        && !SAID.swap(true, Ordering::Relaxed)
    {
        messages::show(Topic::NetworkFile, &message);
    }
}

/// The message about nodes that the network does not name, if there are any.
fn strange(nodes: &[String], network: &Network, slurm: bool) -> Option<String> {
    let strange: Vec<&str> = nodes.iter().map(String::as_str).filter(|node| network.switches(node).is_none()).collect();
    if strange.is_empty() {
        return None;
    }
    let listed = strange.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    let more = if strange.len() > 8 { ", ..." } else { "" };
    let (some, all) = (strange.len(), nodes.len());
    let (why, mend) = match slurm {
        true => (
            "have no SLURM_TOPOLOGY_ADDR of their own with rank 0's pattern",
            "coll_rust_network_file = none does without",
        ),
        false => ("are not in the network file", "add them to it, or set coll_rust_network_file = none"),
    };
    let file = config::config().map(|c| c.network_file.as_str()).unwrap_or_default();
    Some(format!(
        "{some} of {all} nodes {why} (coll_rust_network_file = \"{file}\"): {listed}{more}. They are placed at the top, below no switch; {mend}."
    ))
}
