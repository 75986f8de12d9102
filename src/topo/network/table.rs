// SPDX-License-Identifier: BSD-3-Clause
//! A table with a line for each node:
//!
//! ```text
//! # node   leaf   spine               # node   leaf   cluster
//! node01   sw11   sw21                north1   n1     cluster:north   gateway
//! node17   sw12   sw21                south1   s1     cluster:south
//! ```
//!
//! the lowest switch first, as many switches on every line. Each column has names of its own: `1` may be a
//! leaf and a spine. Behind the switches, if any, the cluster of the node, on every line or on none, and
//! whether it reaches other clusters.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::fault::{At, Fault, short};
use super::{Homes, Nodes, Read, SWITCH_LAYERS, Way, uncomment};

/// What the name of a cluster stands behind.
const CLUSTER: &str = "cluster:";
/// The mark of a node that reaches other clusters.
const GATEWAY: &str = "gateway";

/// A word and its place.
type Word<'a> = (At, &'a str);

/// The words of a line that starts at `from` in the file, with the place of each.
fn words(line: &str, from: usize) -> impl Iterator<Item = Word<'_>> {
    let mut at = from;
    line.split_inclusive(char::is_whitespace).filter_map(move |piece| {
        let start = at;
        at += piece.len();
        let word = piece.trim();
        (!word.is_empty()).then_some((At::Byte(start as u32), word))
    })
}

/// A line, taken apart.
struct Row<'a, 'w> {
    node: Word<'a>,
    switches: &'w [Word<'a>],
    cluster: Option<Word<'a>>,
    gateway: bool,
}

impl<'a, 'w> Row<'a, 'w> {
    /// Of the words of a line; none without any.
    fn new(words: &'w [Word<'a>]) -> Result<Option<Row<'a, 'w>>, Fault> {
        let Some((&node, rest)) = words.split_first() else { return Ok(None) };
        let behind = rest.iter().position(|(_, word)| word.starts_with(CLUSTER)).unwrap_or(rest.len());
        let (switches, rest) = rest.split_at(behind);
        let cluster = rest.first().map(|&(at, word)| (at, &word[CLUSTER.len()..]));
        if switches.is_empty() && cluster.is_none() {
            let message = format!("node '{}' has no switch; expected: <node> <switch> [<switch> ...]", short(node.1));
            return Err(Fault::new(node.0, message));
        }
        if let Some(&(at, word)) = switches.get(SWITCH_LAYERS as usize) {
            return Err(Fault::new(at, format!("'{}': more than {SWITCH_LAYERS} switches above a node", short(word))));
        }
        if let Some((at, "")) = cluster {
            return Err(Fault::new(at, format!("the cluster has no name; expected: {CLUSTER}<name>")));
        }
        let marks = rest.get(1..).unwrap_or_default();
        let gateway = marks.first().is_some_and(|(_, word)| *word == GATEWAY);
        if let Some((at, word)) = marks.get(usize::from(gateway)) {
            let message = format!("'{}' behind the cluster; expected: {GATEWAY}, once, or nothing", short(word));
            return Err(Fault::new(*at, message));
        }
        Ok(Some(Row { node, switches, cluster, gateway }))
    }

    /// What is not the same on both lines.
    fn differs(&self, (switches, cluster): (usize, bool), line: usize) -> Option<Fault> {
        let (node, is) = (short(self.node.1), self.switches.len());
        if is != switches {
            return Some(Fault::new(
                self.node.0,
                format!("node '{node}' has {is} switches, line {line} has {switches}"),
            ));
        }
        let message = match (self.cluster, cluster) {
            (None, true) => format!("node '{node}' is in no cluster, that of line {line} is"),
            (Some(_), false) => format!("node '{node}' is in a cluster, that of line {line} is in none"),
            _ => return None,
        };
        Some(Fault::new(self.node.0, message))
    }
}

/// The switches and clusters of the table.
#[derive(Default)]
struct Table<'a> {
    names: Vec<&'a str>,
    /// Per layer the number of every switch; that of every cluster behind them.
    numbers: [HashMap<&'a str, u32>; SWITCH_LAYERS as usize + 1],
    /// What is above a switch, and the line that said so.
    parents: HashMap<u32, (u32, At)>,
    /// The unit of every leaf switch, or cluster without switches.
    units: HashMap<u32, u32>,
    ways: Vec<Way>,
    clusters: Vec<String>,
    /// By unit.
    homes: Vec<u32>,
}

impl<'a> Table<'a> {
    /// The unit below these switches, lowest first, and in this cluster.
    fn unit(&mut self, switches: &[Word<'a>], cluster: Option<Word<'a>>) -> Result<u32, Fault> {
        let mut way = Vec::with_capacity(switches.len() + 1);
        let [layers @ .., top] = &mut self.numbers;
        let of = switches.iter().zip(layers).chain(cluster.as_ref().map(|word| (word, top)));
        for (place, (&(at, name), numbers)) in of.enumerate() {
            let number = *numbers.entry(name).or_insert_with(|| {
                self.names.push(name);
                self.names.len() as u32 - 1
            });
            if let Some(&lower) = way.last() {
                match self.parents.entry(lower) {
                    Entry::Vacant(free) => drop(free.insert((number, at))),
                    Entry::Occupied(taken) if taken.get().0 == number => {}
                    Entry::Occupied(taken) => {
                        let (other, line) = *taken.get();
                        let [lower, other] = [lower, other].map(|number| short(self.names[number as usize]));
                        let is = if place < switches.len() { "below" } else { "in cluster" };
                        let message = format!("switch '{lower}' is {is} '{}' here and {is} '{other}'", short(name));
                        return Err(Fault::new(at, message).and(line));
                    }
                }
            }
            way.push(number);
        }
        let unit = way[0];
        if let Some(known) = self.units.get(&unit) {
            return Ok(*known);
        }
        if let Some((_, name)) = cluster {
            let known = self.clusters.iter().position(|other| other == name);
            self.homes.push(known.unwrap_or(self.clusters.len()) as u32);
            if known.is_none() {
                self.clusters.push(name.to_string());
            }
        }
        self.ways.push(Way { unit, above: way.get(1..switches.len()).unwrap_or_default().into() });
        self.units.insert(unit, self.ways.len() as u32 - 1);
        Ok(self.ways.len() as u32 - 1)
    }
}

/// Reads the table.
pub(super) fn read(text: &str) -> Result<Read, Fault> {
    let mut nodes = Nodes::default();
    let mut table = Table::default();
    let mut first: Option<((usize, bool), At)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let words: Vec<_> = words(uncomment(line), start).take(SWITCH_LAYERS as usize + 4).collect();
        start += line.len();
        let Some(row) = Row::new(&words)? else { continue };
        let (was, line) = *first.get_or_insert(((row.switches.len(), row.cluster.is_some()), row.node.0));
        if let Some(fault) = row.differs(was, line.find(text).0) {
            return Err(fault);
        }
        let unit = table.unit(row.switches, row.cluster)?;
        nodes.add(row.node.1, row.node.0, unit, row.gateway)?;
    }
    let names: Vec<String> = table.names.iter().map(|name| (*name).to_string()).collect();
    let name = move |number: u32| names.get(number as usize).cloned().unwrap_or_default();
    let homes = (!table.clusters.is_empty()).then_some(Homes { names: table.clusters, of: table.homes });
    Ok(Read { nodes, ways: table.ways, name: Box::new(name), two: "is below two switches", homes })
}
