// SPDX-License-Identifier: BSD-3-Clause
//! The network: which switches every node hangs on, from a file of the site or from what Slurm tells each
//! task.
//!
//! | form | known by | module |
//! |---|---|---|
//! | a table, a line per node: `node01 leaf spine` | none of what follows | `table` |
//! | several clusters, each with a file or a list of nodes | `ClusterName=` at its beginning | `several` |
//! | Slurm's `topology.conf` | a `=` in its first line that is neither blank nor a comment | `conf` |
//! | Slurm's `topology.yaml` | a name that ends in `.yaml` or `.yml`, or `-` or `%` as first character | `topologies` |
//! | `SLURM_TOPOLOGY_ADDR` of every node | given apart from files | [`address`] |
//!
//! All of them say of each node what stands above it: switches of a tree (`tree`), or blocks and what joins
//! blocks, rings, toruses (`units`). At most [`SWITCH_LAYERS`] layers are used, the lowest ones. Above all
//! switches there may be clusters, named by a table or by a file of several.

pub mod address;
mod conf;
mod fault;
mod hostlist;
mod nodes;
mod read;
mod several;
mod table;
mod topologies;
mod tree;
mod units;
mod yaml;

#[cfg(test)]
mod clusters;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::rc::Rc;

use super::clusters::Sites;
use super::level::SWITCH_LAYERS;
use fault::{At, Fault};
use nodes::{Node, Nodes};

pub use read::FILE_BYTES;

/// What is wrong with a network file, and where. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkError {
    /// The name that the file was given under.
    pub file: String,
    /// Line of the offending word.
    pub line: usize,
    /// Column of the offending word.
    pub column: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for NetworkError {}

/// What stands above a unit (a leaf switch, a block …), itself first, as numbers that [`Read::name`] knows.
/// Units with the same things above them share the list.
#[derive(Clone)]
struct Way {
    unit: u32,
    above: Rc<[u32]>,
}

/// What one of the formats has read.
struct Read {
    nodes: Nodes,
    /// Of every unit.
    ways: Vec<Way>,
    /// The name of everything in ways.
    name: Box<dyn Fn(u32) -> String>,
    /// What a node in two units is.
    two: &'static str,
    /// The clusters, where they are named.
    homes: Option<Homes>,
}

/// The clusters of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Homes {
    names: Vec<String>,
    /// The cluster of every unit.
    of: Vec<u32>,
}

/// The switches of every node that a network file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    layers: usize,
    /// The names of all nodes, one behind the other.
    text: String,
    /// Sorted by name.
    nodes: Vec<Node>,
    /// `layers` switch ids per unit.
    ids: Vec<u32>,
    /// Per layer the name of every id.
    names: Vec<Vec<String>>,
    /// The clusters, where they are named.
    homes: Option<Homes>,
}

impl Network {
    /// Reads the text of a network file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first thing that is wrong: an unreadable line, a node twice, a switch below itself, and so on.
    pub fn parse(file: &str, text: &str) -> Result<Network, NetworkError> {
        Network::parse_with(file, text, &mut |_| Err("cannot be read here".to_string()))
    }

    /// The same, of a file that may name others; `open` reads these.
    ///
    /// # Errors
    /// Likewise, in whichever file.
    pub fn parse_with(
        file: &str,
        text: &str,
        open: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Network, NetworkError> {
        match several::is_so(text) && text.len() <= FILE_BYTES {
            true => several::read(file, text, open),
            false => Network::read_text(file, text).map_err(|fault| fault.locate(file, text)),
        }
    }

    fn read_text(file: &str, text: &str) -> Result<Network, Fault> {
        if text.len() > FILE_BYTES {
            return Err(Fault::new(At::START, format!("more than {} MiB", FILE_BYTES >> 20)));
        }
        let first = text.lines().map(uncomment).find(|line| !line.trim().is_empty());
        let named_yaml = [".yaml", ".yml"].iter().any(|end| file.to_ascii_lowercase().ends_with(end));
        let read = match first.map(str::trim_start) {
            None => return Err(Fault::new(At::START, "no node in the file")),
            Some(line) if named_yaml || line.starts_with(['-', '%']) => topologies::read(text)?,
            Some(line) if line.contains('=') => Some(conf::read(text)?),
            Some(_) => Some(table::read(text)?),
        };
        read.map_or(Ok(Network::default()), Network::build)
    }

    /// Gives every unit its ids, from the top down: an id stands for the whole way above it. Shorter ways are
    /// filled up at the bottom, so the highest switches of all ways are in the same layer.
    fn build(read: Read) -> Result<Network, Fault> {
        let Read { nodes, mut ways, name, two, homes } = read;
        let (text, mut nodes) = nodes.sort(two)?;
        // Units without nodes do not count.
        let mut used: Vec<Option<u32>> = vec![None; ways.len()];
        let mut kept = Vec::new();
        for node in &mut nodes {
            let unit = node.unit as usize;
            node.unit = *used[unit].get_or_insert_with(|| {
                kept.push(unit);
                kept.len() as u32 - 1
            });
        }
        let homes = homes.map(|homes| Homes { of: kept.iter().map(|&unit| homes.of[unit]).collect(), ..homes });
        ways = kept.into_iter().map(|unit| ways[unit].clone()).collect();
        let all = ways.iter().map(|way| way.above.len() + 1).max().unwrap_or(0);
        let layers = all.min(SWITCH_LAYERS as usize);
        let mut network =
            Network { layers, text, nodes, names: vec![Vec::new(); layers], ids: vec![0; layers * ways.len()], homes };
        let mut known: HashMap<(usize, u32, u32), u32> = HashMap::new();
        let mut counts = vec![0; all];
        for (at, Way { unit, above }) in ways.iter().enumerate() {
            let mut upper = u32::MAX;
            for layer in (0..all).rev() {
                let fill = all - 1 - above.len();
                let what = layer.checked_sub(fill + 1).and_then(|i| above.get(i)).unwrap_or(unit);
                upper = *known.entry((layer, upper, *what)).or_insert_with(|| {
                    if let Some(names) = network.names.get_mut(layer) {
                        names.push(name(*what));
                    }
                    counts[layer] += 1;
                    counts[layer] - 1
                });
                if layer < layers {
                    network.ids[at * layers + layer] = upper;
                }
            }
        }
        Ok(network)
    }

    /// A network of one layer that names no node.
    pub fn nothing() -> Network {
        Network { layers: 1, names: vec![Vec::new()], ..Network::default() }
    }

    /// How many layers of switches there are; 0 where the network is said to be flat.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// The ids of a node's switches, lowest first, [`Network::layers`] of them; `None` for a node that is not
    /// in the file.
    ///
    /// An id is unique in its layer and stands for the whole path above it: equal ids mean equal switches
    /// from there up. A name that is not in the file matches up to its first dot, `node1.site.org` the file's
    /// `node1` and `node1` the file's `node1.site.org` (if only one node is called so). Two names with
    /// different domains do not match, and addresses (`10.0.0.1`) are not shortened.
    pub fn switches(&self, host: &str) -> Option<&[u32]> {
        if self.layers == 0 {
            return Some(&[]);
        }
        let unit = self.node(host)?.unit as usize;
        self.ids.get(unit * self.layers..(unit + 1) * self.layers)
    }

    /// The node that a name means.
    fn node(&self, host: &str) -> Option<&Node> {
        self.exactly(host)
            .or_else(|| short_name(host).and_then(|short| self.exactly(short)))
            .or_else(|| self.longer(host))
    }

    fn exactly(&self, name: &str) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.name(&self.text).cmp(name)).ok()?;
        self.nodes.get(at)
    }

    /// The only node whose name begins with this one and a dot.
    fn longer(&self, short: &str) -> Option<&Node> {
        let begin = format!("{short}.");
        let from = self.nodes.partition_point(|node| node.name(&self.text) < begin.as_str());
        let mut found = self.nodes[from..]
            .iter()
            .take_while(|node| node.name(&self.text).starts_with(&begin))
            .filter(|node| short_name(node.name(&self.text)) == Some(short));
        found.next().filter(|_| found.next().is_none())
    }

    /// The name of a switch, for messages; the lowest layer is 0.
    pub fn switch_name(&self, layer: usize, id: u32) -> Option<&str> {
        self.names.get(layer)?.get(id as usize).map(String::as_str)
    }

    /// The switches of several nodes as [`Placement::new`](super::Placement::new) wants them. A node that is
    /// not in the file gets switches that no other node has (its ids have no name): it joins at the top.
    pub fn uppers<S: AsRef<str>>(&self, hosts: &[S]) -> Vec<Vec<u32>> {
        let alone = |at: usize| vec![u32::MAX - at as u32; self.layers];
        hosts
            .iter()
            .enumerate()
            .map(|(at, host)| self.switches(host.as_ref()).map_or_else(|| alone(at), <[u32]>::to_vec))
            .collect()
    }
}

impl Network {
    /// The clusters of several nodes, where they are named. A node that is not in the file is a cluster of
    /// its own. In a cluster without a marked node, every node may reach the others.
    pub fn sites<S: AsRef<str>>(&self, hosts: &[S]) -> Option<Sites> {
        let Homes { names, of } = self.homes.as_ref()?;
        let home = |node: &Node| of.get(node.unit as usize).copied().unwrap_or(0);
        let mut marked = vec![false; names.len()];
        for node in self.nodes.iter().filter(|node| node.gateway) {
            marked[home(node) as usize] = true;
        }
        let site = |(at, host): (usize, &S)| match self.node(host.as_ref()) {
            Some(node) => (home(node), node.gateway || !marked[home(node) as usize]),
            None => (u32::MAX - at as u32, true),
        };
        let (of, gateway) = hosts.iter().enumerate().map(site).unzip();
        Some(Sites { of, gateway })
    }

    /// Whether it names clusters.
    pub fn has_clusters(&self) -> bool {
        self.homes.is_some()
    }

    /// The names of the clusters, in the order of their [numbers](Network::sites).
    pub fn cluster_names(&self) -> &[String] {
        self.homes.as_ref().map_or(&[], |homes| &homes.names)
    }

    /// The name of a node's cluster, for messages.
    pub fn cluster_name(&self, host: &str) -> Option<&str> {
        let (node, homes) = (self.node(host)?, self.homes.as_ref()?);
        homes.names.get(*homes.of.get(node.unit as usize)? as usize).map(String::as_str)
    }
}

/// The name up to its first dot, if that is something else, and not a part of an address.
fn short_name(name: &str) -> Option<&str> {
    let (short, _) = name.split_once('.')?;
    (!short.is_empty() && name.parse::<Ipv4Addr>().is_err()).then_some(short)
}

/// A line without its comment.
fn uncomment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(text, _)| text)
}
