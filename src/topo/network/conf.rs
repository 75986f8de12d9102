// SPDX-License-Identifier: BSD-3-Clause
//! Slurm's `topology.conf` (`man 5 topology.conf`), with a tree of switches, blocks, or rings:
//!
//! ```text
//! SwitchName=s0  Nodes=node[01-16]  BlockName=b1 Nodes=node[01-18]       RingName=r0 Nodes=node[01-08]
//! SwitchName=s1  Nodes=node[17-32]  BlockName=b2 Nodes=node[19-36]
//! SwitchName=top Switches=s[0-1]   LinkSpeed=100  BlockSizes=18,36
//! ```
//!
//! Keys in any case, `#` comments, values in double quotes where wanted; a backslash at the end of a line
//! joins it with the next. `LinkSpeed` is read over. Several trees may stand side by side.

use super::fault::{At, Fault, short};
use super::tree::Tree;
use super::units::Units;
use super::{Nodes, Read, uncomment};

/// A line with its continuations, and where its parts come from.
#[derive(Default)]
pub(super) struct Line {
    text: String,
    /// Where a part starts in the text, and in the file.
    parts: Vec<(u32, u32)>,
}

impl Line {
    /// Where byte `at` of the text stands in the file.
    pub fn place(&self, at: usize) -> At {
        let behind = self.parts.partition_point(|&(start, _)| start as usize <= at);
        let part = behind.checked_sub(1).and_then(|part| self.parts.get(part));
        part.map_or(At::START, |&(start, from)| At::Byte(from + at as u32 - start))
    }
}

/// Hands over the lines, continued ones as one.
pub(super) fn each_line(text: &str, mut visit: impl FnMut(&Line) -> Result<(), Fault>) -> Result<(), Fault> {
    let mut open = Line::default();
    let mut from = 0;
    for raw in text.split_inclusive('\n') {
        let content = uncomment(raw.trim_end_matches(['\n', '\r']));
        let joined = content.trim_end().strip_suffix('\\');
        let part = joined.unwrap_or(content);
        if !part.is_empty() {
            open.parts.push((open.text.len() as u32, from as u32));
            open.text.push_str(part);
        }
        from += raw.len();
        if joined.is_none() {
            visit(&open)?;
            open.text.clear();
            open.parts.clear();
        }
    }
    visit(&open)
}

/// One `key=value`, with the offsets of both in their line.
pub(super) struct Pair<'a> {
    pub key: &'a str,
    pub key_at: usize,
    pub value: &'a str,
    pub value_at: usize,
}

/// The `key=value` pairs of a line; blanks around the `=` are allowed, as Slurm allows them.
pub(super) fn pairs(line: &Line) -> Result<Vec<Pair<'_>>, Fault> {
    let text = line.text.as_str();
    let run = |from: usize, outside: &dyn Fn(char) -> bool| text[from..].find(outside).map_or(text.len(), |n| from + n);
    let (blank, dark) = (|c: char| c.is_whitespace(), |c: char| !c.is_whitespace());
    let mut pairs = Vec::new();
    let mut at = run(0, &dark);
    while at < text.len() {
        let key_at = at;
        let end = run(at, &|c| blank(c) || c == '=');
        let key = &text[at..end];
        let equals = run(end, &dark);
        if key.is_empty() || !text[equals..].starts_with('=') {
            let found = short(&text[key_at..run(key_at, &blank)]);
            return Err(Fault::new(line.place(key_at), format!("expected <key>=<value>, found '{found}'")));
        }
        let mut value_at = run(equals + 1, &dark);
        let end;
        if text[value_at..].starts_with('"') {
            value_at += 1;
            end = run(value_at, &|c| c == '"');
            if end == text.len() {
                return Err(Fault::new(line.place(value_at - 1), "the quote is never closed"));
            }
            at = end + 1;
        } else {
            end = run(value_at, &blank);
            at = end;
        }
        let value = &text[value_at..end];
        if value.is_empty() {
            return Err(Fault::new(line.place(key_at), format!("'{}' has no value", short(key))));
        }
        pairs.push(Pair { key, key_at, value, value_at });
        at = run(at, &dark);
    }
    Ok(pairs)
}

/// What a line describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Switch,
    Block,
    Ring,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Switch, Kind::Block, Kind::Ring];

    fn noun(self) -> &'static str {
        ["switch", "block", "ring"][self as usize]
    }

    /// The keys of its lines, that of the name first.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Kind::Switch => &["SwitchName", "Nodes", "Switches", "LinkSpeed"],
            Kind::Block => &["BlockName", "Nodes"],
            Kind::Ring => &["RingName", "Nodes"],
        }
    }
}

#[derive(Default)]
struct Conf {
    kind: Option<(Kind, At)>,
    tree: Tree,
    units: Units,
    nodes: Nodes,
    sizes: Option<At>,
}

impl Conf {
    /// Takes in one line.
    fn add(&mut self, line: &Line) -> Result<(), Fault> {
        let pairs = pairs(line)?;
        let Some(first) = pairs.first() else { return Ok(()) };
        let is = |pair: &Pair<'_>, key: &str| pair.key.eq_ignore_ascii_case(key);
        let named = Kind::ALL.into_iter().find(|kind| pairs.iter().any(|pair| is(pair, kind.keys()[0])));
        if named.is_none() && pairs.iter().any(|pair| is(pair, "BlockSizes")) {
            return self.sizes(line, &pairs);
        }
        let Some(kind) = named else {
            let known = ["Nodes", "Switches", "LinkSpeed"].iter().any(|key| is(first, key));
            let message = match known {
                true => "the line has no SwitchName, BlockName or RingName".to_string(),
                false => format!(
                    "unknown key '{}'; a line begins with SwitchName, BlockName, BlockSizes or RingName",
                    short(first.key)
                ),
            };
            return Err(Fault::new(line.place(first.key_at), message));
        };
        self.only(kind, line.place(first.key_at))?;
        let mut values: [Option<&Pair<'_>>; 4] = [None; 4];
        for pair in &pairs {
            let Some(at) = kind.keys().iter().position(|key| is(pair, key)) else {
                let message = format!("unknown key '{}'; known: {}", short(pair.key), kind.keys().join(", "));
                return Err(Fault::new(line.place(pair.key_at), message));
            };
            if values[at].replace(pair).is_some() {
                return Err(Fault::new(line.place(pair.key_at), format!("'{}' twice on a line", short(pair.key))));
            }
        }
        let [Some(name), nodes, below, _] = values else { return Ok(()) };
        let place = |pair: &Pair<'_>| {
            let from = pair.value_at;
            move |offset: usize| line.place(from + offset)
        };
        let (tree, all) = (&mut self.tree, &mut self.nodes);
        let unit = match kind {
            Kind::Switch => tree.add(name.value, line.place(name.value_at))?,
            _ => self.units.add(kind.noun(), name.value, line.place(name.value_at))?,
        };
        below.map_or(Ok(()), |pair| tree.add_children(unit, pair.value, place(pair), all))?;
        nodes.map_or(Ok(()), |pair| all.add_list(pair.value, place(pair), unit))
    }

    /// A file describes one kind of things.
    fn only(&mut self, kind: Kind, at: At) -> Result<(), Fault> {
        match *self.kind.get_or_insert((kind, at)) {
            (was, _) if was == kind => Ok(()),
            (was, other) => {
                let message = format!("a {} in a file that has a {}", kind.noun(), was.noun());
                Err(Fault::new(at, message).and(other))
            }
        }
    }

    /// `BlockSizes=4,16`.
    fn sizes(&mut self, line: &Line, pairs: &[Pair<'_>]) -> Result<(), Fault> {
        if let Some(pair) = pairs.iter().find(|pair| !pair.key.eq_ignore_ascii_case("BlockSizes")) {
            let message = format!("'{}' on the line of BlockSizes", short(pair.key));
            return Err(Fault::new(line.place(pair.key_at), message));
        }
        let at = line.place(pairs[0].key_at);
        self.only(Kind::Block, at)?;
        if pairs.len() > 1 || self.sizes.replace(at).is_some() {
            return Err(Fault::new(line.place(pairs[pairs.len() - 1].key_at), "BlockSizes twice"));
        }
        let mut offset = pairs[0].value_at;
        for size in pairs[0].value.split(',') {
            self.units.add_size(size, line.place(offset))?;
            offset += size.len() + 1;
        }
        Ok(())
    }
}

/// Reads the file.
pub(super) fn read(text: &str) -> Result<Read, Fault> {
    let mut conf = Conf::default();
    each_line(text, |line| conf.add(line))?;
    match conf.kind {
        Some((Kind::Block, _)) => conf.units.read(conf.nodes, "block", "is in two blocks"),
        Some((Kind::Ring, _)) => conf.units.read(conf.nodes, "ring", "is in two rings"),
        _ => conf.tree.read(conf.nodes),
    }
}
