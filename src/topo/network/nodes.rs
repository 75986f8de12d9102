// SPDX-License-Identifier: BSD-3-Clause
//! The nodes of a file while it is read, and the names that many switches have together.

use std::fmt::Write;

use super::fault::{At, Fault, short};
use super::hostlist::{self, Budget};

/// A node: where its name stands in the text of all names, and what joins it to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub start: u32,
    pub end: u32,
    /// Number of its unit: leaf switch, block, ring or torus.
    pub unit: u32,
    /// Whether it is marked as one that reaches other clusters.
    pub gateway: bool,
}

impl Node {
    /// Its name.
    pub fn name(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Names of nodes, one behind the other, with their units. What they may take is limited.
#[derive(Default)]
pub(super) struct Nodes {
    pub text: String,
    pub list: Vec<Node>,
    /// Places in the file, with the number of the first node from there.
    places: Vec<(u32, At)>,
    pub budget: Budget,
}

impl Nodes {
    /// Takes in the names of a host list that stands at `at`.
    pub fn add_list(&mut self, list: &str, at: impl Fn(usize) -> At, unit: u32) -> Result<(), Fault> {
        let Nodes { text, list: nodes, places, budget } = self;
        let mut item = None;
        hostlist::each(
            list,
            budget,
            |offset, message| Fault::new(at(offset), message),
            |offset, name| {
                if item.replace(offset) != Some(offset) {
                    places.push((nodes.len() as u32, at(offset)));
                }
                let start = text.len() as u32;
                text.push_str(name);
                nodes.push(Node { start, end: text.len() as u32, unit, gateway: false });
                Ok(())
            },
        )
    }

    /// Takes in one name.
    pub fn add(&mut self, name: &str, at: At, unit: u32, gateway: bool) -> Result<(), Fault> {
        self.budget.take(name.len()).map_err(|what| Fault::new(at, format!("too many {what}")))?;
        self.places.push((self.list.len() as u32, at));
        let start = self.text.len() as u32;
        self.text.push_str(name);
        self.list.push(Node { start, end: self.text.len() as u32, unit, gateway });
        Ok(())
    }

    /// Where the file names node number `node`.
    fn place(&self, node: usize) -> At {
        let behind = self.places.partition_point(|&(first, _)| first as usize <= node);
        behind.checked_sub(1).and_then(|at| self.places.get(at)).map_or(At::START, |&(_, at)| at)
    }

    /// The nodes sorted by name; an error where a name comes twice. `two` says what a node in two units is.
    pub fn sort(self, two: &str) -> Result<(String, Vec<Node>), Fault> {
        let text = self.text.as_str();
        // Names lie in the order of the file.
        let in_file = |node: &Node| self.list.partition_point(|other| other.start < node.start);
        let mut sorted = self.list.clone();
        sorted.sort_unstable_by(|a, b| a.name(text).cmp(b.name(text)).then(a.start.cmp(&b.start)));
        let twice = sorted.windows(2).filter(|pair| pair[0].name(text) == pair[1].name(text));
        if let Some(pair) = twice.min_by_key(|pair| pair[1].start) {
            let how = if pair[0].unit == pair[1].unit { "is listed twice" } else { two };
            let message = format!("node '{}' {how}; first", short(pair[1].name(text)));
            return Err(Fault::new(self.place(in_file(&pair[1])), message).and(self.place(in_file(&pair[0]))));
        }
        sorted.shrink_to_fit();
        let mut text = self.text;
        text.shrink_to_fit();
        Ok((text, sorted))
    }
}

/// Names of several switches as one, numbers drawn together: `s[4-7]`. Shortened where there are many parts.
pub(super) fn together<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 8;
    let mut parts: Vec<(&str, &str, u64, u64)> = Vec::new();
    let (mut count, mut dropped) = (0, false);
    for name in names {
        count += 1;
        let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (stem, number) = name.split_at(digits);
        let value = number.parse::<u64>();
        let full = parts.len() == MOST;
        match (parts.last_mut(), value) {
            (Some((before, first, _, last)), Ok(value))
                if *before == stem && last.checked_add(1) == Some(value) && first.len() == number.len() =>
            {
                *last = value;
            }
            _ if full => dropped = true,
            (_, value) => {
                let value = value.unwrap_or(u64::MAX);
                parts.push((stem, number, value, value));
            }
        }
    }
    let mut text = String::new();
    for (stem, first, low, high) in parts {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = match first.len() {
            width if low < high => write!(text, "{comma}{stem}[{first}-{high:0width$}]"),
            _ => write!(text, "{comma}{stem}{first}"),
        };
    }
    if dropped {
        let _ = write!(text, ",... ({count} in all)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_drawn_together() {
        let joined = |names: &str| together(names.split(' '));
        assert_eq!(joined("s4 s5 s6 s7"), "s[4-7]");
        assert_eq!(joined("s8 s9 s10 t"), "s[8-9],s10,t");
        assert_eq!(joined("b09 b10 c x1y x2y"), "b[09-10],c,x1y,x2y");
        assert_eq!(
            joined("s18446744073709551615 s99999999999999999999 s"),
            "s18446744073709551615,s99999999999999999999,s"
        );
        assert_eq!(joined("a b c d e f g h i j"), "a,b,c,d,e,f,g,h,... (10 in all)");
    }
}
