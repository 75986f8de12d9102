//! Slurm's `topology.conf` with a tree of switches (`man 5 topology.conf`, topology/tree):
//!
//! ```text
//! SwitchName=s0  Nodes=node[01-16]
//! SwitchName=s1  Nodes=node[17-32]
//! SwitchName=top Switches=s[0-1]   LinkSpeed=100
//! ```
//!
//! Keys in any case, `#` comments, values in double quotes where wanted; a backslash at the end of a line joins it with
//! the next. `LinkSpeed` is read over. Several trees may stand side by side. Where leaf switches are not equally deep, the
//! lowest switch of a shorter path is repeated downwards, so the highest switches of all paths are in the same layer.

use std::collections::HashMap;
use std::rc::Rc;

use super::hostlist;
use super::level::SWITCH_LAYERS;
use super::network::{Fault, Row, Spot, uncomment};

/// The rows of the file: every node with the switches above it, lowest first.
pub(super) fn rows(text: &str) -> Result<Vec<Row>, Fault> {
    let mut tree = Tree::default();
    for line in logical_lines(text) {
        tree.add(&line)?;
    }
    tree.link()?;
    tree.rows()
}

/// A line with its continuations, and where its characters come from.
#[derive(Default)]
struct Line {
    chars: Vec<char>,
    spots: Vec<Spot>,
}

impl Line {
    /// Where character `at` stands in the file; for the end of the line the place behind its last character.
    fn spot(&self, at: usize) -> Spot {
        match (self.spots.get(at), self.spots.last()) {
            (Some(&spot), _) => spot,
            (None, Some(last)) => Spot { line: last.line, column: last.column + 1 },
            (None, None) => Spot { line: 1, column: 1 },
        }
    }
}

fn logical_lines(text: &str) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    for (line, content) in (1..).zip(text.lines()) {
        let content = uncomment(content);
        let joined = content.trim_end().strip_suffix('\\');
        if let Some(open) = lines.last_mut() {
            for (column, c) in (1..).zip(joined.unwrap_or(content).chars()) {
                open.chars.push(c);
                open.spots.push(Spot { line, column });
            }
        }
        if joined.is_none() {
            lines.push(Line::default());
        }
    }
    lines
}

/// One `key=value`, with the offsets of both in their line.
struct Pair {
    key: String,
    key_at: usize,
    value: String,
    value_at: usize,
}

/// The `key=value` pairs of a line; blanks around the `=` are allowed, as Slurm allows them.
fn pairs(line: &Line) -> Result<Vec<Pair>, Fault> {
    let chars = &line.chars;
    let run = |from: usize, inside: &dyn Fn(char) -> bool| {
        let end = chars[from..].iter().position(|&c| !inside(c)).map_or(chars.len(), |n| from + n);
        (chars[from..end].iter().collect::<String>(), end)
    };
    let blank = |c: char| c.is_whitespace();
    let mut pairs = Vec::new();
    let (_, mut at) = run(0, &blank);
    while at < chars.len() {
        let key_at = at;
        let (key, end) = run(at, &|c| !blank(c) && c != '=');
        let (_, equals) = run(end, &blank);
        if key.is_empty() || chars.get(equals) != Some(&'=') {
            return Err((
                line.spot(key_at),
                format!("expected <key>=<value>, found '{}'", run(key_at, &|c| !blank(c)).0),
            ));
        }
        let (_, mut value_at) = run(equals + 1, &blank);
        let quoted = chars.get(value_at) == Some(&'"');
        let value;
        if quoted {
            value_at += 1;
            (value, at) = run(value_at, &|c| c != '"');
            if at == chars.len() {
                return Err((line.spot(value_at - 1), "the quote is never closed".to_string()));
            }
            at += 1;
        } else {
            (value, at) = run(value_at, &|c| !blank(c));
        }
        if value.is_empty() {
            return Err((line.spot(key_at), format!("'{key}' has no value")));
        }
        pairs.push(Pair { key, key_at, value, value_at });
        (_, at) = run(at, &blank);
    }
    Ok(pairs)
}

struct Switch {
    name: String,
    spot: Spot,
    /// Its parent and where that names it.
    parent: Option<(usize, Spot)>,
    /// The switches below it, as named.
    children: Vec<(String, Spot)>,
}

#[derive(Default)]
struct Tree {
    switches: Vec<Switch>,
    /// Index of a switch by name.
    index: HashMap<String, usize>,
    /// Node names with their switch, in the order of the file.
    nodes: Vec<(String, usize)>,
    /// Where a node was named first.
    seen: HashMap<String, Spot>,
    /// Names expanded so far.
    names: usize,
}

impl Tree {
    /// Takes in one line.
    fn add(&mut self, line: &Line) -> Result<(), Fault> {
        let pairs = pairs(line)?;
        let Some(first) = pairs.first() else { return Ok(()) };
        let at = |offset: usize| line.spot(offset);
        let (mut name, mut nodes, mut below) = (None, None, None);
        for pair in &pairs {
            let slot = match pair.key.to_ascii_lowercase().as_str() {
                "switchname" => &mut name,
                "nodes" => &mut nodes,
                "switches" => &mut below,
                "linkspeed" => continue,
                _ => {
                    let message = format!("unknown key '{}'; known: SwitchName, Nodes, Switches, LinkSpeed", pair.key);
                    return Err((at(pair.key_at), message));
                }
            };
            if slot.replace(pair).is_some() {
                return Err((at(pair.key_at), format!("'{}' twice on a line", pair.key)));
            }
        }
        let Some(name) = name else { return Err((at(first.key_at), "the line has no SwitchName".to_string())) };
        let spot = at(name.value_at);
        if nodes.is_none() && below.is_none() {
            return Err((spot, format!("switch '{}' has neither Nodes nor Switches", name.value)));
        }
        if let Some(&other) = self.index.get(&name.value) {
            let line = self.switches[other].spot.line;
            return Err((spot, format!("switch '{}' is defined twice; first on line {line}", name.value)));
        }
        let me = self.switches.len();
        let children = below.map_or(Ok(Vec::new()), |pair| self.expand(line, pair))?;
        for (node, spot) in nodes.map_or(Ok(Vec::new()), |pair| self.expand(line, pair))? {
            if let Some(other) = self.seen.insert(node.clone(), spot) {
                let same = self.nodes.iter().any(|(n, switch)| *n == node && *switch == me);
                let how = if same { "is listed twice" } else { "is below two switches" };
                return Err((spot, format!("node '{node}' {how}; first on line {}", other.line)));
            }
            self.nodes.push((node, me));
        }
        self.index.insert(name.value.clone(), me);
        self.switches.push(Switch { name: name.value.clone(), spot, parent: None, children });
        Ok(())
    }

    /// The names of a host list, with their places.
    fn expand(&mut self, line: &Line, pair: &Pair) -> Result<Vec<(String, Spot)>, Fault> {
        let place = |offset: usize| line.spot(pair.value_at + offset);
        let names = hostlist::expand(&pair.value, hostlist::LIMIT - self.names)
            .map_err(|(offset, message)| (place(offset), message))?;
        self.names += names.len();
        Ok(names.into_iter().map(|(offset, name)| (name, place(offset))).collect())
    }

    /// Finds every switch's parent.
    fn link(&mut self) -> Result<(), Fault> {
        for parent in 0..self.switches.len() {
            for (name, spot) in std::mem::take(&mut self.switches[parent].children) {
                let Some(&child) = self.index.get(&name) else {
                    return Err((spot, format!("switch '{name}' is defined nowhere")));
                };
                if let Some((other, first)) = self.switches[child].parent {
                    let (upper, other) = (&self.switches[parent].name, &self.switches[other].name);
                    let message =
                        format!("switch '{name}' is below '{upper}' here and below '{other}' on line {}", first.line);
                    return Err((spot, message));
                }
                self.switches[child].parent = Some((parent, spot));
            }
        }
        Ok(())
    }

    /// A switch and all above it, the switch first.
    fn path(&self, switch: usize) -> Result<Vec<usize>, Fault> {
        let mut path = vec![switch];
        let mut at = switch;
        while let Some((parent, spot)) = self.switches[at].parent {
            if path.len() > self.switches.len() {
                let name = &self.switches[at].name;
                return Err((spot, format!("switch '{name}' is below itself: the switches form a cycle")));
            }
            path.push(parent);
            at = parent;
        }
        if path.len() > SWITCH_LAYERS as usize {
            let Switch { name, spot, .. } = &self.switches[switch];
            let above = path.len() - 1;
            return Err((
                *spot,
                format!("switch '{name}' has {above} switches above it; at most {SWITCH_LAYERS} layers"),
            ));
        }
        Ok(path)
    }

    /// The rows, with shorter paths padded at the bottom.
    fn rows(&self) -> Result<Vec<Row>, Fault> {
        let paths = (0..self.switches.len()).map(|switch| self.path(switch)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<Rc<str>> = self.switches.iter().map(|switch| Rc::from(switch.name.as_str())).collect();
        let Some(layers) = self.nodes.iter().map(|&(_, switch)| paths[switch].len()).max() else {
            let first = self.switches.first().map_or(Spot { line: 1, column: 1 }, |switch| switch.spot);
            return Err((first, "no switch of the file has nodes".to_string()));
        };
        let row = |&(ref node, switch): &(String, usize)| {
            let path = &paths[switch];
            let padding = std::iter::repeat_n(switch, layers - path.len());
            (node.clone(), padding.chain(path.iter().copied()).map(|switch| names[switch].clone()).collect())
        };
        Ok(self.nodes.iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::Network;

    fn good(text: &str) -> Network {
        Network::parse("t", text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn names<'a>(network: &'a Network, host: &str) -> Vec<&'a str> {
        let ids = network.switches(host).unwrap_or_else(|| panic!("no {host}"));
        ids.iter().enumerate().map(|(layer, &id)| network.switch_name(layer, id).expect("a name")).collect()
    }

    #[test]
    fn a_tree_of_two_layers() {
        let network = good(
            "# site\nSwitchName=s0 Nodes=node[01-16,20]\nSWITCHNAME=s1 nodes=node17,node18 # x\n\n\
             SwitchName=top Switches=s[0-1] LinkSpeed=100\n",
        );
        assert_eq!(network.layers(), 2);
        assert_eq!(names(&network, "node20"), ["s0", "top"]);
        assert_eq!(names(&network, "node18.site.org"), ["s1", "top"]);
        assert_eq!(network.switches("node19"), None);
        assert_eq!(network.switches("node1"), None);
    }

    #[test]
    fn order_blanks_quotes_and_continuations() {
        let network = good(
            "Switches = \"s0,s1\" SwitchName = top\r\nSwitchName=s0 \\\n  Nodes=a,\\\nb,\\ \nc\nSwitchName=s1 Nodes=d \\",
        );
        for (node, leaf) in [("a", "s0"), ("b", "s0"), ("c", "s0"), ("d", "s1")] {
            assert_eq!(names(&network, node), [leaf, "top"]);
        }
    }

    #[test]
    fn shorter_paths_are_padded_at_the_bottom() {
        let network = good(
            "SwitchName=s0 Nodes=a\nSwitchName=mid Switches=s0 Nodes=b\nSwitchName=s1 Nodes=c\n\
             SwitchName=top Switches=mid,s1\nSwitchName=island Nodes=d\n",
        );
        assert_eq!(names(&network, "a"), ["s0", "mid", "top"]);
        assert_eq!(names(&network, "b"), ["mid", "mid", "top"]);
        assert_eq!(names(&network, "c"), ["s1", "s1", "top"]);
        assert_eq!(names(&network, "d"), ["island", "island", "island"]);
        let layer = |host: &str, layer: usize| network.switches(host).map(|ids| ids[layer]);
        assert_eq!(layer("a", 1), layer("b", 1));
        assert_eq!(layer("b", 2), layer("c", 2));
        assert_ne!(layer("a", 0), layer("b", 0));
    }

    #[test]
    fn errors_say_where() {
        for (text, message) in [
            ("SwitchName=s Nodes=a\nnode1 s\n", "t:2:1: expected <key>=<value>, found 'node1'"),
            ("SwitchName=s Nodes=a x", "t:1:22: expected <key>=<value>, found 'x'"),
            ("=s", "t:1:1: expected <key>=<value>, found '=s'"),
            ("SwitchName= \\\n ", "t:1:1: 'SwitchName' has no value"),
            ("SwitchName=s Nodes=\"a", "t:1:20: the quote is never closed"),
            (
                "SwitchName=s BlockSizes=4",
                "t:1:14: unknown key 'BlockSizes'; known: SwitchName, Nodes, Switches, LinkSpeed",
            ),
            ("SwitchName=s Nodes=a nodes=b", "t:1:22: 'nodes' twice on a line"),
            ("  Nodes=a", "t:1:3: the line has no SwitchName"),
            ("SwitchName=s LinkSpeed=1", "t:1:12: switch 's' has neither Nodes nor Switches"),
            ("SwitchName=s Nodes=a\nSwitchName=s Nodes=b", "t:2:12: switch 's' is defined twice; first on line 1"),
            ("SwitchName=s Nodes=a,b,a", "t:1:24: node 'a' is listed twice; first on line 1"),
            ("SwitchName=s Nodes=a\nSwitchName=t Nodes=b,\\\n[a],a", "t:3:2: 'a' is not a number"),
            (
                "SwitchName=s Nodes=n[1-3]\nSwitchName=t Nodes=b,\\\nn2",
                "t:3:1: node 'n2' is below two switches; first on line 1",
            ),
            ("SwitchName=s Nodes=n[3-1]", "t:1:22: the range '3-1' is reversed"),
            ("SwitchName=s Nodes=\\\nn[1", "t:2:2: '[' is never closed"),
            ("SwitchName=s Switches=x,y", "t:1:23: switch 'x' is defined nowhere"),
            (
                "SwitchName=s Nodes=a\nSwitchName=t Switches=s\nSwitchName=u Switches=s",
                "t:3:23: switch 's' is below 'u' here and below 't' on line 2",
            ),
            ("SwitchName=s Switches=s Nodes=a", "t:1:23: switch 's' is below itself: the switches form a cycle"),
            (
                "SwitchName=s Nodes=a\nSwitchName=t Switches=u\nSwitchName=u Switches=t",
                "t:2:23: switch 'u' is below itself: the switches form a cycle",
            ),
            (
                "SwitchName=a Nodes=n\nSwitchName=b Switches=a\nSwitchName=c Switches=b\nSwitchName=d Switches=c\n\
                 SwitchName=e Switches=d",
                "t:1:12: switch 'a' has 4 switches above it; at most 4 layers",
            ),
            (
                "SwitchName=s Nodes=n[1-9999999]",
                "t:1:20: 'n[1-9999999]' expands to too many names (at most 1048576 in a file)",
            ),
        ] {
            let error = Network::parse("t", text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}\n got {error}\nwant {message}");
        }
    }
}
