// SPDX-License-Identifier: BSD-3-Clause
//! The shape of a node.

use super::level::Level;
use super::locality::Locality;
use std::collections::HashMap;

/// How many modules of a kind a node has, and the most physical cores that one of them holds. Zero where
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// Modules in the node.
    pub modules: u32,
    /// The most physical cores in one module.
    pub cores: u32,
}

/// The shape of a node, as far as its processes' places show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// Level-2 caches.
    pub l2: Modules,
    /// Level-3 caches.
    pub l3: Modules,
    /// NUMA nodes.
    pub numa: Modules,
    /// Processor packages.
    pub socket: Modules,
    /// Processors that its processes may run on; 0 where that is taken from the packages.
    pub processors: u32,
}

impl Hardware {
    /// What the places of processes tell: of each its node, its modules, and its physical core (`None`:
    /// several, or not known). A module has two cores or more if the processes in it do. Nobody has to look
    /// at the machine for that, and all who know of the same processes find the same.
    pub fn seen(places: impl Iterator<Item = (u32, Locality, Option<u32>)>) -> Hardware {
        // Of each level, by node and module: as many cores as matter, one or several, and the first one.
        type Seen = HashMap<(u32, u32), (u32, Option<u32>)>;
        let mut seen: [Seen; 4] = Default::default();
        let levels = [Level::L2, Level::L3, Level::Numa, Level::Socket];
        for (node, locality, core) in places {
            for (seen, level) in seen.iter_mut().zip(levels) {
                let Some(number) = locality.at(level) else { continue };
                let cores = if core.is_none() { 2 } else { 1 };
                let (known, first) = seen.entry((node, number)).or_insert((cores, core));
                if *first != core {
                    *known = 2;
                }
            }
        }
        let [l2, l3, numa, socket] = seen.map(|seen| Modules {
            modules: seen.len() as u32,
            cores: seen.values().map(|&(cores, _)| cores).max().unwrap_or(0),
        });
        Hardware { l2, l3, numa, socket, processors: 0 }
    }

    /// Whether two or more physical cores share a module of this level inside the node.
    pub fn shared(&self, level: Level) -> bool {
        let modules = match level {
            Level::L2 => self.l2,
            Level::L3 => self.l3,
            Level::Numa => self.numa,
            Level::Socket => self.socket,
            _ => Modules::default(),
        };
        modules.cores >= 2
    }
}

impl Hardware {
    /// Processors for the processes of the node; 0 where unknown.
    pub fn cores(&self) -> usize {
        let of = |m: Modules| m.modules as usize * m.cores as usize;
        [self.processors as usize, of(self.socket), of(self.numa)].into_iter().find(|&n| n > 0).unwrap_or(0)
    }
}
