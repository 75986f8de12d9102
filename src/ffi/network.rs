//! The file that says which switches the nodes hang on.

use super::{placement, startup};
use crate::topo::Network;
use std::sync::OnceLock;

/// The message about a node that the network file does not name.
pub fn missing(host: &str) -> String {
    let file = startup::config().map(|c| c.network_file.as_str()).unwrap_or_default();
    format!(
        "coll_rust_network_file = \"{file}\": node \"{host}\" of this job is not in the file; add it, or leave the parameter empty"
    )
}

/// The network file, read once. `None` where there is none.
pub fn network() -> Result<Option<&'static Network>, &'static str> {
    static NETWORK: OnceLock<Result<Option<Network>, String>> = OnceLock::new();
    NETWORK
        .get_or_init(|| {
            let path = startup::config()?.network_file.as_str();
            if path.is_empty() {
                return Ok(None);
            }
            let text = std::fs::read_to_string(path)
                .map_err(|e| format!("coll_rust_network_file = \"{path}\": cannot be read: {e}"))?;
            Network::parse(path, &text).map(Some).map_err(|e| format!("coll_rust_network_file: {e}"))
        })
        .as_ref()
        .map(Option::as_ref)
        .map_err(String::as_str)
}

/// The switches above each of these nodes, given by their numbers; empty without a file.
pub fn switches(nodes: &[u32]) -> Result<Vec<Vec<u32>>, String> {
    let Some(network) = network()? else { return Ok(Vec::new()) };
    let above = |&node| {
        let name = placement::host_name(node);
        network.switches(&name).map(<[u32]>::to_vec).ok_or_else(|| missing(&name))
    };
    nodes.iter().map(above).collect()
}
