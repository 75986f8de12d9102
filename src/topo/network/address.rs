// SPDX-License-Identifier: BSD-3-Clause
//! What Slurm tells each task about its place: `SLURM_TOPOLOGY_ADDR`, say `s0.s4.node1`, from the top of the
//! network to the node, and `SLURM_TOPOLOGY_ADDR_PATTERN`, `switch.switch.node`.
//!
//! | Slurm's plugin | pattern | address |
//! |---|---|---|
//! | topology/tree | `switch.switch.node` | `s6.s4.tux1`; several switches of one height as a host list, `s[4-7].s0.tux1`; nothing where a node has none of that height |
//! | topology/block | `block.node` | `b8.tux1` |
//! | topology/ring | `ring:position.node` | `r8:2.tux1` |
//! | topology/torus3d | `torus:x:y:z.node` | `t0:2:3:1.tux1` |
//! | topology/flat, or a node that is in no topology | `node` | `tux1` |
//!
//! Every task knows its own address only, so each publishes it. [`Network::from_addresses`] makes the network
//! of several nodes from them.

use std::collections::HashMap;
use std::rc::Rc;

use super::fault::{At, short};
use super::{Network, Nodes, Read, Way, short_name};

/// The most bytes of an address, and of a pattern.
const BYTES: usize = 4096;

/// The address of a node, as its tasks have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pattern: String,
    /// What stands above the node, the topmost first; nothing where there is nothing of that height.
    above: Vec<String>,
    /// Slurm's name of the node.
    node: String,
}

impl Address {
    /// Reads both variables. `names` are those that the node may have.
    ///
    /// # Errors
    /// Why the address says nothing.
    pub fn parse(pattern: &str, address: &str, names: &[&str]) -> Result<Address, String> {
        for (name, text) in [("SLURM_TOPOLOGY_ADDR_PATTERN", pattern), ("SLURM_TOPOLOGY_ADDR", address)] {
            if text.len() > BYTES {
                return Err(format!("{name} has more than {BYTES} bytes"));
            }
            if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
                return Err(format!("{name} = \"{}\" is empty or has blanks", short(&text.escape_debug().to_string())));
            }
        }
        let kinds: Vec<&str> = pattern.split('.').collect();
        let Some((&"node", kinds)) = kinds.split_last() else {
            return Err(format!("SLURM_TOPOLOGY_ADDR_PATTERN = \"{}\" does not end in \"node\"", short(pattern)));
        };
        // A node may have dots in its name, what stands above it may not.
        let parts: Vec<&str> = address.splitn(kinds.len() + 1, '.').collect();
        let Some((&node, above)) = parts.split_last().filter(|(_, above)| above.len() == kinds.len()) else {
            let (pattern, address) = (short(pattern), short(address));
            return Err(format!("SLURM_TOPOLOGY_ADDR = \"{address}\" has fewer parts than its pattern \"{pattern}\""));
        };
        let is_own = |name: &&str| *name == node || short_name(name) == Some(node);
        if node.is_empty() || node.contains('.') && !names.iter().any(is_own) {
            let names = names.join("\" or \"");
            return Err(format!(
                "SLURM_TOPOLOGY_ADDR = \"{}\" is not that of node \"{}\"",
                short(address),
                short(&names)
            ));
        }
        let above = kinds.iter().zip(above).map(|(kind, part)| match *kind {
            "switch" | "block" => Ok((*part).to_string()),
            // Where in the ring or torus the node is does not count.
            "ring:position" | "torus:x:y:z" => Ok(part.split(':').next().unwrap_or_default().to_string()),
            _ => Err(format!("SLURM_TOPOLOGY_ADDR_PATTERN = \"{}\": '{}' is not known", short(pattern), short(kind))),
        });
        Ok(Address { pattern: pattern.to_string(), above: above.collect::<Result<_, _>>()?, node: node.to_string() })
    }

    /// As a line of text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} ", self.pattern);
        self.above.iter().for_each(|part| text.extend([part, "."]));
        text + &self.node
    }

    /// The inverse of [`to_text`](Self::to_text).
    pub fn from_text(text: &str) -> Option<Address> {
        let (pattern, address) = text.split_once(' ')?;
        let kinds = pattern.split('.').count();
        let mut above: Vec<String> = address.splitn(kinds, '.').map(str::to_string).collect();
        let node = above.pop()?;
        (above.len() + 1 == kinds).then(|| Address { pattern: pattern.to_string(), above, node })
    }

    /// Whether it says anything but the node's name.
    pub fn is_flat(&self) -> bool {
        self.above.iter().all(String::is_empty)
    }

    /// The kinds of its parts.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }
}

impl Network {
    /// The network of these nodes, by their names, as their addresses have it. `pattern` is the one that all
    /// should have. Nodes without an address, with one of another pattern, with nothing above them, or with
    /// one that another node has too are not in the network.
    pub fn from_addresses<S: AsRef<str>>(pattern: &str, hosts: &[(S, Option<Address>)]) -> Network {
        let fits = |address: &&Address| address.pattern == pattern && !address.is_flat();
        let good = |address: &'_ Option<Address>| address.as_ref().filter(fits).cloned();
        let addresses: Vec<_> = hosts.iter().map(|(host, address)| (host.as_ref(), good(address))).collect();
        let mut claims: HashMap<&str, u32> = HashMap::new();
        for (_, address) in &addresses {
            address.iter().for_each(|address| *claims.entry(&address.node).or_default() += 1);
        }
        let mut nodes = Nodes::default();
        let mut names: Vec<String> = Vec::new();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut ways = Vec::new();
        for (host, address) in &addresses {
            let Some(address) = address.as_ref().filter(|address| claims.get(address.node.as_str()) == Some(&1)) else {
                continue;
            };
            // Lowest first.
            let mut way: Vec<u32> = Vec::new();
            for part in address.above.iter().rev().filter(|part| !part.is_empty()) {
                way.push(*numbers.entry(part).or_insert_with(|| {
                    names.push(part.clone());
                    names.len() as u32 - 1
                }));
            }
            let Some((&unit, above)) = way.split_first() else { continue };
            if nodes.add(host, At::START, ways.len() as u32, false).is_ok() {
                ways.push(Way { unit, above: Rc::from(above) });
            }
        }
        let name = move |number: u32| names.get(number as usize).cloned().unwrap_or_default();
        Network::build(Read { nodes, ways, name: Box::new(name), two: "", homes: None }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(pattern: &str, address: &str) -> Result<Address, String> {
        Address::parse(pattern, address, &["n1.site.org", "n1"])
    }

    #[test]
    fn every_form_of_the_plugins() {
        for (pattern, text, above) in [
            ("switch.switch.switch.node", "s0.s4.s8.tux1", &["s0", "s4", "s8"][..]),
            ("switch.switch.node", "s[4-7].s0.tux1", &["s[4-7]", "s0"]),
            ("switch.switch.node", ".s9.tux1", &["", "s9"]),
            ("block.node", "b8.tux1", &["b8"]),
            ("ring:position.node", "r8:2.tux1", &["r8"]),
            ("torus:x:y:z.node", "pod1:2:3:1.tux1", &["pod1"]),
            ("node", "tux1", &[]),
            ("switch.node", "s0.n1.site.org", &["s0"]),
        ] {
            let address = address(pattern, text).expect(text);
            assert_eq!(address.above, above, "{text}");
            assert_eq!(Address::from_text(&address.to_text()), Some(address.clone()));
            assert_eq!(address.is_flat(), above.is_empty());
        }
    }

    #[test]
    fn what_says_nothing_is_refused() {
        for (pattern, text, message) in [
            ("", "a", "SLURM_TOPOLOGY_ADDR_PATTERN = \"\" is empty or has blanks"),
            ("node", "a\nb", "SLURM_TOPOLOGY_ADDR = \"a\\nb\" is empty or has blanks"),
            ("switch", "a", "SLURM_TOPOLOGY_ADDR_PATTERN = \"switch\" does not end in \"node\""),
            ("switch.node", "a", "SLURM_TOPOLOGY_ADDR = \"a\" has fewer parts than its pattern \"switch.node\""),
            ("switch.node", "a.b.c", "SLURM_TOPOLOGY_ADDR = \"a.b.c\" is not that of node \"n1.site.org\" or \"n1\""),
            ("switch.node", "a.", "SLURM_TOPOLOGY_ADDR = \"a.\" is not that of node \"n1.site.org\" or \"n1\""),
            ("rack.node", "a.b", "SLURM_TOPOLOGY_ADDR_PATTERN = \"rack.node\": 'rack' is not known"),
        ] {
            assert_eq!(address(pattern, text), Err(message.to_string()), "{text}");
        }
        assert!(address("node", &"x".repeat(5000)).is_err());
        assert_eq!(Address::from_text("switch.node a"), None);
    }

    fn network(pattern: &str, hosts: &[(&str, &str)]) -> Network {
        let own = |(host, text): &(&str, &str)| {
            let (other, text) = text.split_once(' ').unwrap_or((pattern, text));
            (host.to_string(), Address::parse(other, text, &[host]).ok())
        };
        Network::from_addresses(pattern, &hosts.iter().map(own).collect::<Vec<_>>())
    }

    #[test]
    fn nodes_without_a_place_of_their_own_are_not_in_it() {
        let network = network(
            "switch.switch.node",
            &[
                ("a", "t.s.a"),
                ("b", "t.s.b"),
                ("c", ""),
                ("d", "switch.node s.d"),
                ("e", "t.s.same"),
                ("f", "t.s.same"),
                ("g", "..g"),
            ],
        );
        assert_eq!(network.layers(), 2);
        assert_eq!(network.switches("a"), network.switches("b"));
        assert!(["a", "b"].iter().all(|host| network.switches(host).is_some()));
        assert!(["c", "d", "e", "f", "g"].iter().all(|host| network.switches(host).is_none()));
    }

    #[test]
    fn heights_without_a_switch_are_filled_from_below() {
        let network = network("switch.switch.node", &[("a", "t.s.a"), ("b", "t..b"), ("c", ".u.c")]);
        let names = |host: &str| {
            let ids = network.switches(host).expect("known");
            (0..).zip(ids).map(|(layer, &id)| network.switch_name(layer, id).expect("named")).collect::<Vec<_>>()
        };
        assert_eq!([names("a"), names("b"), names("c")], [["s", "t"], ["t", "t"], ["u", "u"]]);
        assert_eq!(network.switches("a").map(|ids| ids[1]), network.switches("b").map(|ids| ids[1]));
    }
}
