// SPDX-License-Identifier: BSD-3-Clause
//! Switches with other switches or nodes below them.
//!
//! A switch may stand below several others. Then, as in Slurm's addresses, all switches of one height above a
//! node count as one: `s[4-7]`. The height of a switch is one more than that of the highest switch below it.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::fault::{At, Fault, short};
use super::hostlist;
use super::nodes::together;
use super::{Nodes, Read, Way};

/// How high switches may be stacked.
const HEIGHT: u32 = 64;

/// How many switches all ways up may have together.
const STEPS: usize = 1 << 22;

/// The number of every name, with the place that gave it.
#[derive(Default)]
pub(super) struct Names {
    pub names: Vec<String>,
    pub places: Vec<At>,
    numbers: HashMap<String, u32>,
}

impl Names {
    /// A new name. `kind` says what is called so.
    pub fn add(&mut self, kind: &str, name: &str, at: At) -> Result<u32, Fault> {
        let number = self.names.len() as u32;
        if let Some(&other) = self.numbers.get(name) {
            let message = format!("{kind} '{}' is defined twice; first", short(name));
            return Err(Fault::new(at, message).and(self.places[other as usize]));
        }
        self.numbers.insert(name.to_string(), number);
        self.names.push(name.to_string());
        self.places.push(at);
        Ok(number)
    }
}

/// All switches above one, by height; and the same as a number for each height.
type Above = (Rc<[u32]>, Rc<[u32]>);

/// A switch that names another one as below it.
struct Edge {
    parent: u32,
    child: String,
    at: At,
}

/// The switches of a file.
#[derive(Default)]
pub(super) struct Tree {
    switches: Names,
    edges: Vec<Edge>,
}

impl Tree {
    /// The number that the next switch gets.
    pub fn next(&self) -> u32 {
        self.switches.names.len() as u32
    }

    /// A new switch.
    pub fn add(&mut self, name: &str, at: At) -> Result<u32, Fault> {
        self.switches.add("switch", name, at)
    }

    /// The switches of a host list are below `parent`.
    pub fn add_children(
        &mut self,
        parent: u32,
        list: &str,
        at: impl Fn(usize) -> At,
        nodes: &mut Nodes,
    ) -> Result<(), Fault> {
        let fault = |offset, message| Fault::new(at(offset), message);
        hostlist::each(list, &mut nodes.budget, fault, |offset, name| {
            self.edges.push(Edge { parent, child: name.to_string(), at: at(offset) });
            Ok(())
        })
    }

    /// The way up from every switch.
    pub fn read(self, nodes: Nodes) -> Result<Read, Fault> {
        if nodes.list.is_empty() {
            let first = self.switches.places.first().copied().unwrap_or(At::START);
            return Err(Fault::new(first, "no switch of the file has nodes"));
        }
        let parents = self.parents()?;
        let (order, heights) = self.heights(&parents)?;
        let mut sets = Sets { heights: &heights, groups: HashMap::new(), members: Vec::new(), steps: 0 };
        let mut ways: Vec<Option<Above>> = vec![None; parents.len()];
        let mut alike: HashMap<&[u32], Above> = HashMap::new();
        for &switch in order.iter().rev() {
            let above = parents[switch as usize].as_slice();
            if !alike.contains_key(above) {
                let at = self.switches.places[switch as usize];
                let upper = above.iter().filter_map(|&parent| ways[parent as usize].as_ref().map(|(all, _)| &**all));
                let all = sets.union(above, upper).ok_or_else(|| {
                    Fault::new(at, format!("the switches have too many ways up (more than {STEPS} steps in all)"))
                })?;
                let way = sets.way(&all);
                alike.insert(above, (all, way));
            }
            ways[switch as usize] = alike.get(above).cloned();
        }
        let single = parents.len() as u32;
        let members = sets.members;
        let ways =
            (0..).zip(ways).map(|(unit, way)| Way { unit, above: way.map_or_else(|| Rc::from([]), |(_, way)| way) });
        let ways = ways.collect();
        let names = self.switches.names;
        let named = move |number: u32| names.get(number as usize).map_or("", String::as_str).to_string();
        let name = move |number: u32| match number.checked_sub(single) {
            None => named(number),
            Some(set) => {
                let all: Vec<String> =
                    members.get(set as usize).iter().flat_map(|set| set.iter()).map(|&m| named(m)).collect();
                together(all.iter().map(String::as_str))
            }
        };
        Ok(Read { nodes, ways, name: Box::new(name), two: "is below two switches", homes: None })
    }

    /// The switches above every switch, ascending.
    fn parents(&self) -> Result<Vec<Vec<u32>>, Fault> {
        let mut parents = vec![Vec::new(); self.switches.names.len()];
        for Edge { parent, child, at } in &self.edges {
            let Some(&child) = self.switches.numbers.get(child) else {
                return Err(Fault::new(*at, format!("switch '{}' is defined nowhere", short(child))));
            };
            parents[child as usize].push(*parent);
        }
        for list in &mut parents {
            list.sort_unstable();
            list.dedup();
        }
        Ok(parents)
    }

    /// The switches, every one behind those below it, and the height of each.
    fn heights(&self, parents: &[Vec<u32>]) -> Result<(Vec<u32>, Vec<u32>), Fault> {
        let mut heights = vec![0; parents.len()];
        let mut pending = vec![0u32; parents.len()];
        for &parent in parents.iter().flatten() {
            pending[parent as usize] += 1;
        }
        let mut ready: VecDeque<u32> = (0..).zip(&pending).filter(|&(_, &below)| below == 0).map(|(s, _)| s).collect();
        let mut order = Vec::with_capacity(parents.len());
        while let Some(switch) = ready.pop_front() {
            order.push(switch);
            let height = heights[switch as usize] + 1;
            for &parent in &parents[switch as usize] {
                heights[parent as usize] = height.max(heights[parent as usize]);
                pending[parent as usize] -= 1;
                if pending[parent as usize] == 0 {
                    ready.push_back(parent);
                }
            }
            if height > HEIGHT {
                let message = format!("more than {HEIGHT} switches one above the other");
                return Err(Fault::new(self.switches.places[switch as usize], message));
            }
        }
        if order.len() < parents.len() { Err(self.cycle(parents, &pending)) } else { Ok((order, heights)) }
    }

    /// Which switch is below itself. `pending` is not zero for those on a cycle and above one.
    fn cycle(&self, parents: &[Vec<u32>], pending: &[u32]) -> Fault {
        // Every one of them has one of them below it.
        let mut child = vec![None; parents.len()];
        for (lower, list) in (0u32..).zip(parents).filter(|&(lower, _)| pending[lower as usize] > 0) {
            list.iter().for_each(|&parent| child[parent as usize] = Some(lower));
        }
        let mut seen = vec![0u32; parents.len()];
        let mut at = (0u32..).zip(&child).find_map(|(switch, child)| child.is_some().then_some(switch)).unwrap_or(0);
        while seen[at as usize] < 2 {
            seen[at as usize] += 1;
            at = child[at as usize].unwrap_or(at);
        }
        let on_cycle = |switch: u32| seen[switch as usize] == 2;
        let edge = self.edges.iter().find(|edge| {
            let child = self.switches.numbers.get(&edge.child).copied();
            on_cycle(edge.parent) && child.is_some_and(on_cycle)
        });
        edge.map_or_else(
            || Fault::new(At::START, "the switches form a cycle"),
            |edge| {
                let name = short(&edge.child);
                Fault::new(edge.at, format!("switch '{name}' is below itself: the switches form a cycle"))
            },
        )
    }
}

/// Sets of switches of one height.
struct Sets<'a> {
    heights: &'a [u32],
    /// The number of a set of several switches, behind the numbers of single ones.
    groups: HashMap<Rc<[u32]>, u32>,
    members: Vec<Rc<[u32]>>,
    steps: usize,
}

impl Sets<'_> {
    /// These switches, and all above them, by height. `None` where that gets too much.
    fn union<'s>(&mut self, parents: &[u32], above: impl Iterator<Item = &'s [u32]>) -> Option<Rc<[u32]>> {
        let mut all = parents.to_vec();
        let mut compact = parents.len();
        for list in above {
            all.extend_from_slice(list);
            self.steps += list.len();
            if self.steps > STEPS {
                return None;
            }
            if all.len() > 2 * compact + 64 {
                self.sort(&mut all);
                compact = all.len();
            }
        }
        self.sort(&mut all);
        Some(all.into())
    }

    fn sort(&self, all: &mut Vec<u32>) {
        all.sort_unstable_by_key(|&switch| (self.heights[switch as usize], switch));
        all.dedup();
    }

    /// What stands above, a number for each height.
    fn way(&mut self, all: &[u32]) -> Rc<[u32]> {
        let single = self.heights.len() as u32;
        let number = |set: &[u32]| match set {
            &[switch] => switch,
            set => *self.groups.entry(set.into()).or_insert_with(|| {
                self.members.push(set.into());
                single + self.members.len() as u32 - 1
            }),
        };
        all.chunk_by(|&a, &b| self.heights[a as usize] == self.heights[b as usize]).map(number).collect()
    }
}
