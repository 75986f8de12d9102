// SPDX-License-Identifier: BSD-3-Clause
//! `coll-rust groups`: the tree of groups that the component would make of a job, without running one.

mod node;
#[cfg(test)]
mod tests;

use crate::predict::Map;
use component::topo::{Hardware, LevelSpec, Locality, Network, show};
use node::Node;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// More processes than this fill no screen, but memory.
const MOST: u64 = 1 << 24;

/// How ranks are numbered over the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// All of a node, then those of the next one
    Slot,
    /// One of each node, in turns
    Node,
}

/// How the tree is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// As coll_rust_show = hierarchy does
    Text,
    /// For Graphviz: `| dot -Tsvg` makes a picture
    Dot,
}

/// Arguments of `groups`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 done, 2 wrong usage or a bad network file.")]
pub struct Args {
    /// The nodes: a number, or their names in a list
    #[arg(long, value_name = "COUNT|NAMES", default_value = "1", value_parser = nodes)]
    pub nodes: Nodes,
    /// A node, as hwloc's synthetic strings have it, such as "pack:2 numa:1 l3:12 l2:8 core:1 pu:2"
    #[arg(long, value_name = "SYNTHETIC", default_value = "pack:1 core:1", value_parser = Node::parse)]
    pub node: Node,
    /// Ranks on each node [default: one for each core]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks_per_node: Option<u32>,
    /// How ranks are put on the cores of a node
    #[arg(long, value_enum, default_value_t = Map::Core)]
    pub map: Map,
    /// How ranks are numbered over the nodes
    #[arg(long, value_enum, default_value_t = Order::Slot)]
    pub order: Order,
    /// The file of switches or clusters, as of coll_rust_network_file
    #[arg(long, value_name = "FILE")]
    pub network: Option<PathBuf>,
    /// Levels, as of coll_rust_levels
    #[arg(long, value_name = "LEVELS", default_value = "auto", value_parser = LevelSpec::parse)]
    pub levels: LevelSpec,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Form::Text)]
    pub form: Form,
}

/// The names of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(Vec<String>);

fn nodes(text: &str) -> Result<Nodes, String> {
    if let Ok(count) = text.trim().parse::<u32>() {
        let fits = (1..=MOST as u32).contains(&count);
        let names = || (0..count).map(|number| format!("node{number}")).collect();
        return fits.then(|| Nodes(names())).ok_or_else(|| format!("{count} nodes; at least 1, at most {MOST}"));
    }
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    match names.iter().enumerate().find(|(at, name)| name.is_empty() || names[..*at].contains(name)) {
        Some((at, name)) if name.is_empty() => Err(format!("name {} of the list is empty", at + 1)),
        Some((_, name)) => Err(format!("'{name}' is named twice")),
        None => Ok(Nodes(names)),
    }
}

/// Prints the tree.
pub fn run(args: &Args) -> ExitCode {
    match tree(args) {
        Ok(text) => crate::print(text.as_bytes()),
        Err(error) => {
            eprintln!("coll-rust groups: {error}");
            ExitCode::from(2)
        }
    }
}

/// The tree, as it is printed.
fn tree(args: &Args) -> Result<String, String> {
    let Nodes(names) = &args.nodes;
    let cores = args.node.cores();
    let each = args.ranks_per_node.unwrap_or(cores);
    if each > cores {
        return Err(format!(
            "{each} ranks for {cores} cores of a node: ranks without a core of their own have no place"
        ));
    }
    let count = names.len() as u64 * u64::from(each);
    if count > MOST {
        return Err(format!("{count} ranks; at most {MOST}"));
    }
    let network = args.network.as_deref().map(read).transpose()?;
    let nodes = names.len() as u32;
    let place = |rank: u32| match args.order {
        Order::Slot => (rank / each, rank % each),
        Order::Node => (rank % nodes, rank / nodes),
    };
    let placed = (0..count as u32).map(|rank| {
        let (host, local) = place(rank);
        (host, args.node.core(local, args.map))
    });
    let placed: Vec<(u32, u32)> = placed.collect();
    let hosts: Vec<u32> = placed.iter().map(|&(host, _)| host).collect();
    let localities: Vec<Locality> = placed.iter().map(|&(_, core)| args.node.locality(core)).collect();
    let seen = placed.iter().zip(&localities).map(|(&(host, core), &locality)| (host, locality, Some(core)));
    let view = show::View {
        hosts: &hosts,
        names,
        localities: &localities,
        network: network.as_ref(),
        spec: &args.levels,
        hw: Hardware::seen(seen),
        ordered: false,
    };
    Ok(match args.form {
        Form::Text => show::hierarchy(&view),
        Form::Dot => show::dot(&view),
    })
}

fn read(path: &Path) -> Result<Network, String> {
    let name = path.to_string_lossy();
    let text = Network::load(&name).map_err(|error| format!("{name}: {error}"))?;
    Network::parse_with(&name, &text, &mut |other: &str| Network::load(other)).map_err(|error| error.to_string())
}
