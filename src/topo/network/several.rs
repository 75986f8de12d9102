// SPDX-License-Identifier: BSD-3-Clause
//! Several clusters, each with a network file of its own or with a list of nodes:
//!
//! ```text
//! ClusterName=north TopologyFile=north/topology.conf Gateways=login[1-2]
//! ClusterName=south Nodes=s[01-16] Gateways=s01
//! ```
//!
//! Written as Slurm's files are ([`conf`](super::conf)); a file that is named is looked for beside this one.

use std::path::Path;

use super::conf::{Line, Pair, each_line, pairs};
use super::fault::{At, Fault, short};
use super::hostlist;
use super::{Homes, Network, NetworkError, Nodes, Read, Way, uncomment};

/// The keys of a line, that of the name first.
const KEYS: [&str; 4] = ["ClusterName", "TopologyFile", "Nodes", "Gateways"];

/// Whether a text is such a file: by its first word.
pub(super) fn is_so(text: &str) -> bool {
    let first = text.lines().map(uncomment).map(str::trim_start).find(|line| !line.is_empty());
    first.is_some_and(|line| {
        let name = line.get(..KEYS[0].len()).is_some_and(|word| word.eq_ignore_ascii_case(KEYS[0]));
        name && line[KEYS[0].len()..].trim_start().starts_with('=')
    })
}

/// A value and where it stands.
struct Value {
    text: String,
    /// The places of its bytes.
    places: Vec<At>,
}

impl Value {
    fn new(pair: &Pair<'_>, line: &Line) -> Value {
        let places = (0..=pair.value.len()).map(|offset| line.place(pair.value_at + offset)).collect();
        Value { text: pair.value.to_string(), places }
    }

    fn at(&self) -> At {
        self.place(0)
    }

    fn place(&self, offset: usize) -> At {
        self.places.get(offset).copied().unwrap_or(At::START)
    }

    /// The start of it, for messages.
    fn short(&self) -> String {
        short(&self.text)
    }
}

/// A line: the values of [`KEYS`].
struct Entry {
    name: Value,
    /// A file, or else a list of nodes.
    source: Result<Value, Value>,
    gateways: Option<Value>,
}

impl Entry {
    /// Of a line that is not empty.
    fn new(line: &Line) -> Result<Option<Entry>, Fault> {
        let pairs = pairs(line)?;
        let Some(first) = pairs.first() else { return Ok(None) };
        let mut values: [Option<Value>; 4] = [None, None, None, None];
        for pair in &pairs {
            let Some(at) = KEYS.iter().position(|key| pair.key.eq_ignore_ascii_case(key)) else {
                let message = format!("unknown key '{}'; known: {}", short(pair.key), KEYS.join(", "));
                return Err(Fault::new(line.place(pair.key_at), message));
            };
            if values[at].replace(Value::new(pair, line)).is_some() {
                return Err(Fault::new(line.place(pair.key_at), format!("'{}' twice on a line", short(pair.key))));
            }
        }
        let [name, file, nodes, gateways] = values;
        let Some(name) = name else {
            return Err(Fault::new(line.place(first.key_at), "the line has no ClusterName"));
        };
        let source = match (file, nodes) {
            (Some(file), None) => Ok(file),
            (None, Some(nodes)) => Err(nodes),
            (both, _) => {
                let has = if both.is_some() { "both" } else { "neither" };
                let message = format!("cluster '{}' has {has} of TopologyFile and Nodes", name.short());
                return Err(Fault::new(name.at(), message));
            }
        };
        Ok(Some(Entry { name, source, gateways }))
    }

    /// The nodes of the list, below one switch, which is called as the cluster is.
    fn listed(&self, list: &Value) -> Result<Network, Fault> {
        let mut nodes = Nodes::default();
        nodes.add_list(&list.text, |offset| list.place(offset), 0)?;
        let (name, ways) = (self.name.text.clone(), vec![Way { unit: 0, above: [].into() }]);
        Network::build(Read { nodes, ways, name: Box::new(move |_| name.clone()), two: "is listed twice", homes: None })
    }

    /// The network of the cluster. The inner error: of another file.
    fn network(
        &self,
        file: &str,
        open: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Result<Network, NetworkError>, Fault> {
        let path = match &self.source {
            Err(nodes) => return self.listed(nodes).map(Ok),
            Ok(path) => path,
        };
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let name = folder.join(&path.text).to_string_lossy().into_owned();
        let text =
            open(&name).map_err(|why| Fault::new(path.at(), format!("TopologyFile '{}' {why}", path.short())))?;
        let refuse = |what: &str| Err(Fault::new(path.at(), format!("TopologyFile '{}' {what}", path.short())));
        if is_so(&text) {
            return refuse("names clusters itself");
        }
        match Network::read_text(&name, &text) {
            Err(fault) => Ok(Err(fault.locate(&name, &text))),
            Ok(network) if network.homes.is_some() => refuse("names clusters itself"),
            Ok(network) if network.nodes.is_empty() => refuse("names no nodes: list them by Nodes"),
            Ok(network) => Ok(Ok(network)),
        }
    }

    /// Marks the nodes that reach other clusters.
    fn mark(&self, network: &mut Network, budget: &mut hostlist::Budget) -> Result<(), Fault> {
        let Some(list) = &self.gateways else { return Ok(()) };
        let fault = |offset: usize, message: String| Fault::new(list.place(offset), message);
        hostlist::each(&list.text, budget, fault, |offset, host| {
            let text = &network.text;
            match network.nodes.binary_search_by(|node| node.name(text).cmp(host)) {
                Ok(at) => network.nodes[at].gateway = true,
                Err(_) => {
                    let message = format!("gateway '{}' is no node of cluster '{}'", short(host), self.name.short());
                    return Err(fault(offset, message));
                }
            }
            Ok(())
        })
    }
}

/// Reads the file, and by `open` those that it names.
pub(super) fn read(
    file: &str,
    text: &str,
    open: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Network, NetworkError> {
    let here = |fault: Fault| fault.locate(file, text);
    let mut entries: Vec<Entry> = Vec::new();
    each_line(text, |line| {
        let Some(entry) = Entry::new(line)? else { return Ok(()) };
        if let Some(other) = entries.iter().find(|other| other.name.text == entry.name.text) {
            let message = format!("cluster '{}' is defined twice; first", entry.name.short());
            return Err(Fault::new(entry.name.at(), message).and(other.name.at()));
        }
        entries.push(entry);
        Ok(())
    })
    .map_err(here)?;
    let mut budget = hostlist::Budget::default();
    let mut all = Vec::with_capacity(entries.len());
    for entry in &entries {
        let mut network = entry.network(file, open).map_err(here)??;
        for node in &network.nodes {
            let too_many = |what| here(Fault::new(entry.name.at(), format!("too many {what}")));
            budget.take(node.name(&network.text).len()).map_err(too_many)?;
        }
        entry.mark(&mut network, &mut budget).map_err(here)?;
        all.push(network);
    }
    let clusters = entries.iter().map(|entry| entry.name.text.clone()).collect();
    join(all, clusters).map_err(|(node, first, second)| {
        let message = format!("a node of it, '{}', is in cluster '{}' too", short(&node), entries[first].name.short());
        here(Fault::new(entries[second].name.at(), message))
    })
}

/// The networks of clusters with these names as one. An error: a node of two.
fn join(all: Vec<Network>, names: Vec<String>) -> Result<Network, (String, usize, usize)> {
    let layers = all.iter().map(|network| network.layers).max().unwrap_or(0);
    let mut joined = Network { layers, names: vec![Vec::new(); layers], ..Network::default() };
    let mut of = Vec::new();
    for (cluster, network) in (0..).zip(all) {
        // The highest switches of all are in the same layer, as within a file.
        let below = |layer: usize| layer.saturating_sub(layers - network.layers);
        let offsets: Vec<u32> = joined.names.iter().map(|names| names.len() as u32).collect();
        for layer in 0..layers {
            joined.names[layer].extend_from_slice(&network.names[below(layer)]);
        }
        let units = of.len() as u32;
        for ids in network.ids.chunks_exact(network.layers) {
            of.push(cluster);
            joined.ids.extend((0..layers).map(|layer| offsets[layer] + ids[below(layer)]));
        }
        let start = joined.text.len() as u32;
        joined.text.push_str(&network.text);
        joined.nodes.extend(network.nodes.into_iter().map(|node| {
            let (from, to) = (node.start + start, node.end + start);
            super::Node { start: from, end: to, unit: node.unit + units, ..node }
        }));
    }
    let text = &joined.text;
    joined.nodes.sort_unstable_by(|a, b| a.name(text).cmp(b.name(text)).then(a.start.cmp(&b.start)));
    if let Some(pair) = joined.nodes.windows(2).find(|pair| pair[0].name(text) == pair[1].name(text)) {
        let (first, second) = (&pair[0], &pair[1]);
        let cluster = |node: &super::Node| of[node.unit as usize] as usize;
        return Err((first.name(text).to_string(), cluster(first), cluster(second)));
    }
    joined.homes = Some(Homes { names, of });
    Ok(joined)
}
