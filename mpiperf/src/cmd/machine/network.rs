// SPDX-License-Identifier: BSD-3-Clause
//! The part of the file about messages: `[network]` and what is below it.

use crate::error::Result;
use crate::machine::file::Machine;
use crate::machine::messages::{self, LogGp};
use crate::mpi::Comm;

/// What messages of this job's rank 0 take: to another rank of its node, and to one of another node.
pub struct Network {
    near: Option<LogGp>,
    beyond: Option<LogGp>,
}

/// Measures both, one after the other; the ranks that have no part in it wait without a core. Collective.
///
/// # Errors
/// The library's.
pub fn measure(comm: &Comm) -> Result<Network> {
    // A node is called after its first rank.
    let mut first = [comm.rank() as u64];
    comm.node()?.bcast(&mut first, 0)?;
    let nodes = comm.allgather(&first)?;
    let pair = |same: bool| -> Result<Option<LogGp>> {
        let Some(other) = (1..comm.size()).find(|&rank| (nodes[rank] == nodes[0]) == same) else { return Ok(None) };
        let takes_part = comm.rank() == 0 || comm.rank() == other;
        let found = if takes_part { messages::between(comm, other).map(Some) } else { Ok(None) };
        comm.meet(None)?;
        comm.agree(found)
    };
    Ok(Network { near: pair(true)?, beyond: pair(false)? })
}

impl Network {
    /// Adds it to a file. What it takes two nodes to know is left out of a job on one, and then all of it is
    /// told as a comment.
    pub fn write(&self, machine: &mut Machine) {
        for (found, where_to) in [(&self.near, "of its node"), (&self.beyond, "of another node")] {
            machine.head.extend(found.iter().map(|found| told(found, where_to)));
        }
        let Some(beyond) = &self.beyond else { return };
        let bandwidth = 1.0 / beyond.per_byte_long.max(1e-12);
        machine.count("network", "nics", 1).note("assumption");
        machine.rate("network", "nic", bandwidth).note("of one pair of processes");
        machine.ns("network.node", "overhead", self.near.map_or(beyond.overhead, |near| near.overhead));
        if self.near.is_none() {
            machine.note("assumption, as between nodes: the job had one process on each");
        }
        machine.count("network.node", "lines", 3).note("assumption");
        machine.count("network.node", "eager", self.near.map_or(4, |near| near.eager.div_ceil(1024).max(1)));
        let nodes = "assumption: as many nodes as a machine file can have";
        machine.count("network.switch1", "below", 512).note(nodes);
        machine.ns("network.switch1", "latency", beyond.latency);
        machine.ns("network.switch1", "overhead", beyond.overhead).ns("network.switch1", "gap", beyond.gap);
        machine.rate("network.switch1", "bandwidth", bandwidth);
        machine.count("network.switch1", "eager", beyond.eager.div_ceil(1024).max(1));
    }
}

fn told(found: &LogGp, where_to: &str) -> String {
    let ns = |seconds: f64| format!("{:.0} ns", seconds * 1e9);
    let rate = |per_byte: f64| format!("{:.2} GB/s", 1e-9 / per_byte.max(1e-12));
    format!(
        "Messages to a process {where_to}: L {}, o {}, g {}, 1/G {} eager and {} beyond, eager up to {} B, a rendezvous {}.",
        ns(found.latency),
        ns(found.overhead),
        ns(found.gap),
        rate(found.per_byte),
        rate(found.per_byte_long),
        found.eager,
        ns(found.rendezvous),
    )
}
