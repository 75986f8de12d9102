// SPDX-License-Identifier: BSD-3-Clause
//! The part of a machine file about the network: `[network]` and what is below it.

use super::schema::{Key, Section, Unit, key};
use super::{Fault, Table, entries, wanted};
use component::sim::clock::net::{Layer, Network};
use toml::Spanned;
use toml::de::DeValue;

/// The section's name.
pub const NETWORK: &str = "network";

/// What each node has.
pub const NODE: Section<Network> = Section {
    name: NETWORK,
    what: "What joins nodes; may be left out",
    keys: &[
        key("nics", Unit::Count, |n, v| n.nics = v as u32, "adapters of a node; each serves neighbouring cores"),
        key("nic", Unit::GbPerSecond, |n, v| n.nic = v, "what an adapter carries in each direction"),
    ],
};

/// Messages within a node.
pub const INSIDE: Section<Network> = Section {
    name: "network.node",
    what: "Messages between processes of a node, through its memory",
    keys: &[
        key("overhead", Unit::Ns, |n, v| n.inside.overhead = v, "o: of either process for each message"),
        key("lines", Unit::Count, |n, v| n.inside.lines = v, "hand-overs of a line until a short message is there"),
        key("eager", Unit::Kib, |n, v| n.inside.eager = v as usize, "up to here a message is copied twice"),
    ],
};

/// A layer of switches.
pub const SWITCH: Section<Layer> = Section {
    name: "network.switch1",
    what: "Leaf switches; `switch2` to `switch4` are those above. The last layer joins all",
    keys: &[
        key("below", Unit::Count, |l, v| l.below = v as u32, "nodes below a leaf switch, or switches below another"),
        key("latency", Unit::Ns, |l, v| l.messages.latency = v, "L: from adapter to adapter"),
        key("overhead", Unit::Ns, |l, v| l.messages.overhead = v, "o: of either process for each message"),
        key("gap", Unit::Ns, |l, v| l.messages.gap = v, "g: an adapter begins one message in so long"),
        key("bandwidth", Unit::GbPerSecond, |l, v| l.messages.each = v, "1/G: of one message alone"),
        key("eager", Unit::Kib, |l, v| l.messages.eager = v as usize, "up to here a message does not wait"),
    ],
};

/// Of all layers but the last.
pub const UPLINK: Key<Layer> = key(
    "uplink",
    Unit::GbPerSecond,
    |l, v| l.uplink = v,
    "all links of a switch to the next layer, in each direction; not of the last layer",
);

const LAYERS: [&str; 4] = ["switch1", "switch2", "switch3", "switch4"];

/// The network of a machine file, whose section begins at `at`.
///
/// # Errors
/// Where something is wrong, and what.
pub(super) fn parsed(at: usize, value: &Spanned<DeValue<'_>>) -> Result<Network, Fault> {
    let table = value.get_ref().as_table().ok_or_else(|| (at, "'network' must be a section: [network]".to_owned()))?;
    let names = ["node"].into_iter().chain(NODE.keys.iter().map(|key| key.name)).chain(LAYERS);
    let values = entries(table, &names.collect::<Vec<_>>(), "[network]")?;
    let mut network = Network::default();
    fill(&mut network, &NODE, NODE.name, &values, at)?;
    let (inside, found) = section(&values, "node", INSIDE.keys, at)?;
    fill(&mut network, &INSIDE, INSIDE.name, &found, inside)?;
    let count = LAYERS.iter().rposition(|name| values.contains_key(name)).map_or(1, |last| last + 1);
    for (number, name) in LAYERS.iter().enumerate().take(count) {
        let mut keys: Vec<&str> = SWITCH.keys.iter().map(|key| key.name).collect();
        keys.push(UPLINK.name);
        let (at, found) = table_of(&values, name, &keys, at)?;
        let mut layer = Layer::default();
        let whole = format!("network.{name}");
        fill(&mut layer, &SWITCH, &whole, &found, at)?;
        match (number + 1 == count, found.get(UPLINK.name)) {
            (false, _) => (UPLINK.set)(&mut layer, wanted(&found, &whole, &UPLINK, at)?),
            (true, Some((at, _))) => {
                return Err((*at, format!("[{whole}] is the last layer: it has no 'uplink'")));
            }
            (true, None) => {}
        }
        network.layers.push(layer);
    }
    Ok(network)
}

fn fill<T>(to: &mut T, section: &Section<T>, name: &str, values: &Table<'_>, at: usize) -> Result<(), Fault> {
    section.keys.iter().try_for_each(|key| {
        (key.set)(to, wanted(values, name, key, at)?);
        Ok(())
    })
}

/// A section below `[network]`, with these keys.
fn section<'t, T>(values: &Table<'t>, name: &str, keys: &[Key<T>], at: usize) -> Result<(usize, Table<'t>), Fault> {
    table_of(values, name, &keys.iter().map(|key| key.name).collect::<Vec<_>>(), at)
}

fn table_of<'t>(values: &Table<'t>, name: &str, keys: &[&str], at: usize) -> Result<(usize, Table<'t>), Fault> {
    let Some(&(at, value)) = values.get(name) else {
        return Err((at, format!("the section [network.{name}] is missing")));
    };
    let wrong = || (at, format!("'{name}' must be a section: [network.{name}]"));
    let table = value.get_ref().as_table().ok_or_else(wrong)?;
    Ok((at, entries(table, keys, &format!("[network.{name}]"))?))
}
