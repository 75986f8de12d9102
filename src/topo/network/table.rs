//! A table with a line for each node:
//!
//! ```text
//! # node   leaf   spine
//! node01   sw11   sw21
//! node17   sw12   sw21
//! ```
//!
//! the lowest switch first, as many switches on every line. Each column has names of its own: `1` may be a
//! leaf and a spine.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::fault::{At, Fault, short};
use super::{Nodes, Read, SWITCH_LAYERS, Way, uncomment};

/// The words of a line that starts at `from` in the file, with the place of each.
fn words(line: &str, from: usize) -> impl Iterator<Item = (At, &str)> {
    let mut at = from;
    line.split_inclusive(char::is_whitespace).filter_map(move |piece| {
        let start = at;
        at += piece.len();
        let word = piece.trim();
        (!word.is_empty()).then_some((At::Byte(start as u32), word))
    })
}

/// The switches of the table.
#[derive(Default)]
struct Table<'a> {
    names: Vec<&'a str>,
    /// Per layer the number of every switch.
    numbers: [HashMap<&'a str, u32>; SWITCH_LAYERS as usize],
    /// The switch above a switch, and the line that said so.
    parents: HashMap<u32, (u32, At)>,
    /// The unit of every leaf switch.
    units: HashMap<u32, u32>,
    ways: Vec<Way>,
}

impl<'a> Table<'a> {
    /// The unit below these switches, lowest first.
    fn unit(&mut self, switches: &[(At, &'a str)]) -> Result<u32, Fault> {
        let mut way = Vec::with_capacity(switches.len());
        for (&(at, name), numbers) in switches.iter().zip(&mut self.numbers) {
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
                        let message = format!("switch '{lower}' is below '{}' here and below '{other}'", short(name));
                        return Err(Fault::new(at, message).and(line));
                    }
                }
            }
            way.push(number);
        }
        Ok(match self.units.entry(way[0]) {
            Entry::Occupied(taken) => *taken.get(),
            Entry::Vacant(free) => {
                self.ways.push(Way { unit: way[0], above: way[1..].into() });
                *free.insert(self.ways.len() as u32 - 1)
            }
        })
    }
}

/// Reads the table.
pub(super) fn read(text: &str) -> Result<Read, Fault> {
    let mut nodes = Nodes::default();
    let mut table = Table::default();
    let mut first: Option<(usize, At)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let words: Vec<_> = words(uncomment(line), start).take(SWITCH_LAYERS as usize + 2).collect();
        start += line.len();
        let Some((&(at, node), switches)) = words.split_first() else { continue };
        if switches.is_empty() {
            let message = format!("node '{}' has no switch; expected: <node> <switch> [<switch> ...]", short(node));
            return Err(Fault::new(at, message));
        }
        if let Some(&(at, word)) = switches.get(SWITCH_LAYERS as usize) {
            return Err(Fault::new(at, format!("'{}': more than {SWITCH_LAYERS} switches above a node", short(word))));
        }
        let (was, line) = *first.get_or_insert((switches.len(), at));
        if was != switches.len() {
            let (line, is) = (line.find(text).0, switches.len());
            return Err(Fault::new(at, format!("node '{}' has {is} switches, line {line} has {was}", short(node))));
        }
        let unit = table.unit(switches)?;
        nodes.add(node, at, unit)?;
    }
    let names: Vec<String> = table.names.iter().map(|name| (*name).to_string()).collect();
    let name = move |number: u32| names.get(number as usize).cloned().unwrap_or_default();
    Ok(Read { nodes, ways: table.ways, name: Box::new(name), two: "is below two switches" })
}
