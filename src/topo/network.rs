//! The network: which switches every node hangs on, from a file of the site.
//!
//! Two formats are told apart by their first line that is neither blank nor a `#` comment: with a `=` in it the file is
//! Slurm's `topology.conf` (`slurm.rs`), else a table with one line per node,
//!
//! ```text
//! # node   leaf   spine
//! node01   sw11   sw21
//! node17   sw12   sw21
//! ```
//!
//! the lowest switch first, as many switches on every line. Each column has names of its own: `1` may be a leaf and a
//! spine.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::net::Ipv4Addr;
use std::rc::Rc;

use super::level::SWITCH_LAYERS;
use super::slurm;

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

/// A place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub line: usize,
    pub column: usize,
}

/// An error before it knows its file.
pub(super) type Fault = (Spot, String);

/// A node of the file: its name, and the names of its switches, lowest first.
pub(super) type Row = (String, Vec<Rc<str>>);

/// The switches of every node that a network file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    layers: usize,
    /// The node of every name in the file.
    nodes: HashMap<String, usize>,
    /// The node of every short name that is not itself in the file; `None` where several nodes have it.
    short: HashMap<String, Option<usize>>,
    /// `layers` switch ids per node.
    ids: Vec<u32>,
    /// Per layer the name of every id.
    names: Vec<Vec<String>>,
}

impl Network {
    /// Reads the text of a network file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first thing that is wrong: an unreadable line, a node twice, a switch below two others, and so on.
    pub fn parse(file: &str, text: &str) -> Result<Network, NetworkError> {
        let first = text.lines().map(uncomment).find(|line| !line.trim().is_empty());
        let rows = match first {
            None => Err((Spot { line: 1, column: 1 }, "no node in the file".to_string())),
            Some(line) if line.contains('=') => slurm::rows(text),
            Some(_) => table(text),
        };
        rows.map(|rows| Network::from_rows(&rows)).map_err(|(spot, message)| NetworkError {
            file: file.to_string(),
            line: spot.line,
            column: spot.column,
            message,
        })
    }

    /// From checked rows: distinct nodes, as many switches each, one parent per switch.
    fn from_rows(rows: &[Row]) -> Network {
        let layers = rows.first().map_or(0, |(_, switches)| switches.len());
        let mut network = Network { layers, names: vec![Vec::new(); layers], ..Network::default() };
        let mut known: Vec<HashMap<&str, u32>> = vec![HashMap::new(); layers];
        for (at, (node, switches)) in rows.iter().enumerate() {
            for ((switch, known), names) in switches.iter().zip(&mut known).zip(&mut network.names) {
                let id = *known.entry(switch).or_insert_with(|| {
                    names.push(switch.to_string());
                    names.len() as u32 - 1
                });
                network.ids.push(id);
            }
            if let Some(short) = short_name(node) {
                network.short.entry(short.to_string()).and_modify(|node| *node = None).or_insert(Some(at));
            }
            network.nodes.insert(node.clone(), at);
        }
        network
    }

    /// How many layers of switches there are.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// The ids of a node's switches, lowest first, [`Network::layers`] of them; `None` for a node that is not in the file.
    ///
    /// An id is unique in its layer and stands for the whole path above it: equal ids mean equal switches from there up.
    /// A name that is not in the file matches up to its first dot, `node1.site.org` the file's `node1` and `node1` the
    /// file's `node1.site.org` (if only one node is called so). Two names with different domains do not match, and
    /// addresses (`10.0.0.1`) are not shortened.
    pub fn switches(&self, host: &str) -> Option<&[u32]> {
        let exact = |name: &str| self.nodes.get(name).copied();
        let node = exact(host)
            .or_else(|| short_name(host).and_then(exact))
            .or_else(|| self.short.get(host).copied().flatten())?;
        self.ids.get(node * self.layers..(node + 1) * self.layers)
    }

    /// The name of a switch, for messages; the lowest layer is 0.
    pub fn switch_name(&self, layer: usize, id: u32) -> Option<&str> {
        self.names.get(layer)?.get(id as usize).map(String::as_str)
    }

    /// The switches of several nodes as [`Placement::new`](super::Placement::new) wants them. A node that is not in the
    /// file gets switches that no other node has (its ids have no name): it joins at the top.
    pub fn uppers<S: AsRef<str>>(&self, hosts: &[S]) -> Vec<Vec<u32>> {
        let alone = |at: usize| vec![u32::MAX - at as u32; self.layers];
        hosts
            .iter()
            .enumerate()
            .map(|(at, host)| self.switches(host.as_ref()).map_or_else(|| alone(at), <[u32]>::to_vec))
            .collect()
    }
}

/// The name up to its first dot, if that is something else, and not a part of an address.
fn short_name(name: &str) -> Option<&str> {
    let (short, _) = name.split_once('.')?;
    (!short.is_empty() && name.parse::<Ipv4Addr>().is_err()).then_some(short)
}

/// A line without its comment.
pub(super) fn uncomment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(text, _)| text)
}

/// The words of a line with the columns they start in.
fn words(line: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut column = 1;
    for piece in line.split_inclusive(char::is_whitespace) {
        let word = piece.trim();
        if !word.is_empty() {
            words.push((column, word));
        }
        column += piece.chars().count();
    }
    words
}

/// The rows of the one-line-per-node format.
fn table(text: &str) -> Result<Vec<Row>, Fault> {
    let mut rows: Vec<Row> = Vec::new();
    let mut nodes: HashMap<&str, usize> = HashMap::new();
    // Per layer: a switch, the switch above it and the line that said so.
    let mut parents: Vec<HashMap<&str, (&str, usize)>> = vec![HashMap::new(); SWITCH_LAYERS as usize];
    let mut first_line = 0;
    for (line, content) in (1..).zip(text.lines()) {
        let words = words(uncomment(content));
        let Some((&(column, node), switches)) = words.split_first() else { continue };
        let fault = |column, message| Err((Spot { line, column }, message));
        if switches.is_empty() {
            return fault(column, format!("node '{node}' has no switch; expected: <node> <switch> [<switch> ...]"));
        }
        if let Some(&(column, word)) = switches.get(SWITCH_LAYERS as usize) {
            return fault(column, format!("'{word}': more than {SWITCH_LAYERS} switches above a node"));
        }
        if let Some((_, first)) = rows.first() {
            if first.len() != switches.len() {
                let (is, was) = (switches.len(), first.len());
                return fault(column, format!("node '{node}' has {is} switches, line {first_line} has {was}"));
            }
        } else {
            first_line = line;
        }
        if let Some(&other) = nodes.get(node) {
            let same = rows
                .iter()
                .any(|(n, s)| n == node && s.iter().map(|name| &**name).eq(switches.iter().map(|&(_, word)| word)));
            let how = if same { "is listed twice" } else { "is below two switches" };
            return fault(column, format!("node '{node}' {how}; first on line {other}"));
        }
        for (pair, parents) in switches.windows(2).zip(&mut parents) {
            let ((_, lower), (column, upper)) = (pair[0], pair[1]);
            match parents.entry(lower) {
                Entry::Vacant(free) => drop(free.insert((upper, line))),
                Entry::Occupied(taken) if taken.get().0 == upper => {}
                Entry::Occupied(taken) => {
                    let (other, line) = taken.get();
                    let message =
                        format!("switch '{lower}' is below '{upper}' here and below '{other}' on line {line}");
                    return fault(column, message);
                }
            }
        }
        nodes.insert(node, line);
        rows.push((node.to_string(), switches.iter().map(|&(_, word)| Rc::from(word)).collect()));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn good(text: &str) -> Network {
        Network::parse("net", text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn names<'a>(network: &'a Network, host: &str) -> Vec<&'a str> {
        let ids = network.switches(host).unwrap_or_else(|| panic!("no {host}"));
        let name = |(layer, &id)| network.switch_name(layer, id).expect("a name");
        ids.iter().enumerate().map(name).collect()
    }

    #[test]
    fn one_layer_as_published() {
        let network = good("# <node-name> <switch-name>\n\nnode01 sw11\nnode16\tsw11\r\n  node17 sw12 # second\n");
        assert_eq!(network.layers(), 1);
        assert_eq!(names(&network, "node16"), ["sw11"]);
        assert_eq!(network.switches("node01"), network.switches("node16"));
        assert_ne!(network.switches("node01"), network.switches("node17"));
        assert_eq!(network.switches("node02"), None);
        assert_eq!(network.switch_name(1, 0), None);
    }

    #[test]
    fn layers_have_names_of_their_own() {
        let network = good("a 1 1\nb 1 1\nc 2 1\nd 3 2\n");
        assert_eq!(network.layers(), 2);
        assert_eq!(names(&network, "c"), ["2", "1"]);
        assert_eq!(network.switches("a").map(|s| s[1]), network.switches("c").map(|s| s[1]));
        assert_ne!(network.switches("a").map(|s| s[1]), network.switches("d").map(|s| s[1]));
    }

    #[test]
    fn short_names_match_on_either_side() {
        let network = good("n1 s\nn2.site.org s\nn3.a s\nn3.b t\n10.0.0.1 t\nn4 s\nn4.x t\n");
        for known in ["n1", "n1.site.org", "n2", "n2.site.org", "n3.a", "10.0.0.1", "n4", "n4.x", "n4.y"] {
            assert!(network.switches(known).is_some(), "{known}");
        }
        assert_eq!(network.switches("n4"), network.switches("n1"));
        for unknown in ["n2.elsewhere", "n3", "n3.c", "10", "10.0.0.2", ".a", "", "n"] {
            assert!(network.switches(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn unknown_nodes_share_no_switch() {
        let uppers = good("a s t\nb s t\n").uppers(&["a", "x", "b", "y"]);
        assert_eq!(uppers[0], uppers[2]);
        assert!(uppers.iter().all(|row| row.len() == 2));
        for layer in 0..2 {
            let mut ids: Vec<_> = uppers.iter().map(|row| row[layer]).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), 3);
        }
    }

    #[test]
    fn table_errors() {
        for (text, message) in [
            ("", "net:1:1: no node in the file"),
            ("# only\n\n", "net:1:1: no node in the file"),
            ("a s\n b # none\n", "net:2:2: node 'b' has no switch; expected: <node> <switch> [<switch> ...]"),
            ("a 1 2 3 4 5\n", "net:1:11: '5': more than 4 switches above a node"),
            ("\na 1\nb 1 2\n", "net:3:1: node 'b' has 2 switches, line 2 has 1"),
            ("a s\nb s\na s\n", "net:3:1: node 'a' is listed twice; first on line 1"),
            ("a s\na t\n", "net:2:1: node 'a' is below two switches; first on line 1"),
            ("a s t\nb s u\n", "net:2:5: switch 's' is below 'u' here and below 't' on line 1"),
            ("é s t\né2   s ü\n", "net:2:8: switch 's' is below 'ü' here and below 't' on line 1"),
        ] {
            let error = Network::parse("net", text).expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "([a-c=\\[\\]\\\\#,0-9\u{e9} \n-]|Nodes=|SwitchName=|Switches=|s\\[0-9\\]){0,60}") {
            if let Err(error) = Network::parse("net", &text) {
                prop_assert!(error.line >= 1 && error.column >= 1);
                prop_assert!(error.line <= text.lines().count().max(1));
            }
        }
    }
}
