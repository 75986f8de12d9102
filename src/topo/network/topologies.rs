// SPDX-License-Identifier: BSD-3-Clause
//! Slurm's `topology.yaml` (`man 5 topology.yaml`): a list of topologies, of which the first one with
//! `cluster_default: true` counts, or the first one where none has it. The others need be YAML only.

use super::fault::{At, Fault, short};
use super::tree::Tree;
use super::units::Units;
use super::yaml::{Step, Yaml};
use super::{Nodes, Read};

/// Reads the file. `None` where the topology is flat.
pub(super) fn read(text: &str) -> Result<Option<Read>, Fault> {
    let chosen = choose(&mut Yaml::new(text))?;
    let mut yaml = Yaml::new(text);
    let mut number = 0;
    let mut found = Found::default();
    yaml.list("topologies", |yaml| {
        number += 1;
        if number == chosen + 1 { found.topology(yaml) } else { yaml.skip() }
    })?;
    found.read()
}

/// The number of the topology that counts.
fn choose(yaml: &mut Yaml<'_>) -> Result<usize, Fault> {
    let mut number = 0;
    let mut chosen = None;
    yaml.list("topologies", |yaml| {
        let mut named = false;
        let begin = yaml.map("topology", |yaml, key, _| match key {
            "cluster_default" => {
                let (value, text) = yaml.scalar(key)?;
                if boolean(&value, text.at)? {
                    chosen.get_or_insert(number);
                }
                Ok(())
            }
            _ => {
                named |= key == "topology";
                yaml.skip()
            }
        })?;
        number += 1;
        if named { Ok(()) } else { Err(Fault::new(begin, "the topology has no name (key 'topology')")) }
    })?;
    if number == 0 {
        return Err(Fault::new(At::START, "no topology in the file"));
    }
    Ok(chosen.unwrap_or(0))
}

fn boolean(text: &str, at: At) -> Result<bool, Fault> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        _ => Err(Fault::new(at, format!("'{}' is neither true nor false", short(text)))),
    }
}

fn unknown(key: &str, at: At, known: &str) -> Fault {
    Fault::new(at, format!("unknown key '{}'; known: {known}", short(key)))
}

/// What a topology is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tree,
    Block,
    Ring,
    Torus,
    Flat,
}

/// The topology that counts.
#[derive(Default)]
struct Found {
    kind: Option<Kind>,
    tree: Tree,
    units: Units,
    nodes: Nodes,
    begin: Option<At>,
}

impl Found {
    fn read(self) -> Result<Option<Read>, Fault> {
        let Found { kind, tree, units, nodes, begin } = self;
        match kind {
            Some(Kind::Tree) => tree.read(nodes).map(Some),
            Some(Kind::Block) => units.read(nodes, "block", "is in two blocks").map(Some),
            Some(Kind::Ring) => units.read(nodes, "ring", "is in two rings").map(Some),
            Some(Kind::Torus) => units.read(nodes, "torus", "is in two toruses").map(Some),
            Some(Kind::Flat) => Ok(None),
            None => Err(Fault::new(
                begin.unwrap_or(At::START),
                "the topology has no type; known: tree, block, flat, ring, torus3d",
            )),
        }
    }

    /// Takes in the map of a topology.
    fn topology(&mut self, yaml: &mut Yaml<'_>) -> Result<(), Fault> {
        let begin = yaml.map("topology", |yaml, key, at| {
            let kind = match key {
                "topology" | "cluster_default" => return yaml.skip(),
                "tree" => Kind::Tree,
                "block" => Kind::Block,
                "ring" => Kind::Ring,
                "torus3d" => Kind::Torus,
                "flat" => Kind::Flat,
                _ => {
                    return Err(unknown(key, at, "topology, cluster_default, tree, block, flat, ring, torus3d"));
                }
            };
            if kind == Kind::Flat && !self.flat(yaml)? {
                return Ok(());
            }
            if self.kind.replace(kind).is_some() {
                return Err(Fault::new(at, "the topology has two types"));
            }
            match kind {
                Kind::Tree => self.tree(yaml),
                Kind::Block => self.blocks(yaml),
                Kind::Ring => self.rings(yaml),
                Kind::Torus => self.toruses(yaml),
                Kind::Flat => Ok(()),
            }
        })?;
        self.begin = Some(begin);
        Ok(())
    }

    /// `flat: true`, or options of it.
    fn flat(&mut self, yaml: &mut Yaml<'_>) -> Result<bool, Fault> {
        match yaml.step()? {
            (Step::Scalar(text, _), at) => boolean(&text, at),
            (Step::Map, _) => {
                while !yaml.ends()? {
                    yaml.skip()?;
                }
                Ok(true)
            }
            (_, at) => Err(Fault::new(at, "flat: expected true, false or options")),
        }
    }

    fn tree(&mut self, yaml: &mut Yaml<'_>) -> Result<(), Fault> {
        only(yaml, "tree", "switches", |yaml| {
            yaml.list("switches", |yaml| {
                let unit = self.tree.next();
                let mut named = false;
                let begin = yaml.map("switch", |yaml, key, at| match key {
                    "switch" => {
                        let (name, text) = yaml.scalar(key)?;
                        once(&mut named, key, at)?;
                        self.tree.add(&name, text.at).map(|_| ())
                    }
                    "children" => {
                        let (list, text) = yaml.scalar(key)?;
                        self.tree.add_children(unit, &list, |offset| text.place(offset), &mut self.nodes)
                    }
                    "nodes" => self.listed(yaml, unit),
                    _ => Err(unknown(key, at, "switch, children, nodes")),
                })?;
                if named { Ok(()) } else { Err(Fault::new(begin, "the switch has no name")) }
            })
        })
    }

    fn blocks(&mut self, yaml: &mut Yaml<'_>) -> Result<(), Fault> {
        yaml.map("block", |yaml, key, at| match key {
            "block_sizes" => yaml.list(key, |yaml| {
                let (size, text) = yaml.scalar("block_sizes")?;
                self.units.add_size(&size, text.at)
            }),
            "blocks" => self.named(yaml, key, "block"),
            _ => Err(unknown(key, at, "block_sizes, blocks")),
        })?;
        Ok(())
    }

    fn rings(&mut self, yaml: &mut Yaml<'_>) -> Result<(), Fault> {
        only(yaml, "ring", "rings", |yaml| self.named(yaml, "rings", "ring"))
    }

    /// A list of units with a name and nodes.
    fn named(&mut self, yaml: &mut Yaml<'_>, what: &str, kind: &str) -> Result<(), Fault> {
        yaml.list(what, |yaml| {
            let unit = self.units.next();
            let mut named = false;
            let begin = yaml.map(kind, |yaml, key, at| match key {
                key if key == kind => {
                    let (name, text) = yaml.scalar(key)?;
                    once(&mut named, key, at)?;
                    self.units.add(kind, &name, text.at).map(|_| ())
                }
                "nodes" => self.listed(yaml, unit),
                _ => Err(unknown(key, at, &format!("{kind}, nodes"))),
            })?;
            if named { Ok(()) } else { Err(Fault::new(begin, format!("the {kind} has no name"))) }
        })
    }

    fn toruses(&mut self, yaml: &mut Yaml<'_>) -> Result<(), Fault> {
        only(yaml, "torus3d", "toruses", |yaml| {
            yaml.list("toruses", |yaml| {
                let unit = self.units.next();
                let mut named = false;
                let begin = yaml.map("torus", |yaml, key, at| match key {
                    "name" => {
                        let (name, text) = yaml.scalar(key)?;
                        once(&mut named, key, at)?;
                        self.units.add("torus", &name, text.at).map(|_| ())
                    }
                    "nodes" => self.listed(yaml, unit),
                    "regions" => yaml.list(key, |yaml| {
                        let region = |yaml: &mut Yaml<'_>, key: &str, _| match key {
                            "nodes" => self.listed(yaml, unit),
                            _ => yaml.skip(),
                        };
                        yaml.map("region", region).map(|_| ())
                    }),
                    "dims" | "placements" => yaml.skip(),
                    _ => Err(unknown(key, at, "name, dims, nodes, regions, placements")),
                })?;
                if named { Ok(()) } else { Err(Fault::new(begin, "the torus has no name")) }
            })
        })
    }

    /// The nodes of a unit.
    fn listed(&mut self, yaml: &mut Yaml<'_>, unit: u32) -> Result<(), Fault> {
        let (list, text) = yaml.scalar("nodes")?;
        self.nodes.add_list(&list, |offset| text.place(offset), unit)
    }
}

/// The value of a map with this key only.
fn only(
    yaml: &mut Yaml<'_>,
    what: &str,
    name: &str,
    mut value: impl FnMut(&mut Yaml<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    yaml.map(what, |yaml, key, at| if key == name { value(yaml) } else { Err(unknown(key, at, name)) }).map(|_| ())
}

/// A name may be given once.
fn once(named: &mut bool, key: &str, at: At) -> Result<(), Fault> {
    if std::mem::replace(named, true) { Err(Fault::new(at, format!("'{key}' twice"))) } else { Ok(()) }
}
