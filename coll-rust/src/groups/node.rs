// SPDX-License-Identifier: BSD-3-Clause
//! A node, from a synthetic string of hwloc.

use crate::predict::Map;
use component::topo::Locality;

/// What a node is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Socket,
    Numa,
    L3,
    L2,
    Core,
    /// Groups, other caches, and processors of a core: only their number counts.
    Other,
}

/// A node: its parts, the largest first, and how many of each the part before has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node(Vec<(Part, u32)>);

/// More cores than this has no node.
const MOST: u32 = 1 << 16;

impl Node {
    /// Reads words such as `pack:2 numa:1 l3:12 l2:8 core:1 pu:2`. Words after `core` do not matter.
    ///
    /// # Errors
    /// Which word is wrong, and what is accepted.
    pub fn parse(text: &str) -> Result<Node, String> {
        let mut parts: Vec<(Part, u32)> = Vec::new();
        let mut cores = 1_u32;
        for word in text.split_whitespace() {
            let Some((name, count)) = word.split_once(':') else {
                return Err(format!("'{word}': a part and its number, such as core:8, are expected"));
            };
            let part = match name.to_lowercase().as_str() {
                "pack" | "package" | "socket" => Part::Socket,
                "numa" | "numanode" | "node" => Part::Numa,
                "l3" | "l3cache" => Part::L3,
                "l2" | "l2cache" => Part::L2,
                "core" => Part::Core,
                "l4" | "l1" | "l1d" | "l1i" | "die" | "group" | "pu" => Part::Other,
                _ => {
                    return Err(format!(
                        "'{name}' in '{word}': accepted are pack, die, numa, l4 to l1, group, core, pu"
                    ));
                }
            };
            if part != Part::Other && parts.iter().any(|(known, _)| *known == part) {
                return Err(format!("'{word}': this part is named twice"));
            }
            let count: u32 =
                count.parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("'{word}': no number"))?;
            cores = cores
                .checked_mul(count)
                .filter(|cores| *cores <= MOST)
                .ok_or_else(|| format!("'{word}': more than {MOST} of them in a node"))?;
            parts.push((part, count));
            if part == Part::Core {
                return Ok(Node(parts));
            }
        }
        Err(format!("'{text}': no 'core:COUNT' in it"))
    }

    /// Number of cores.
    pub fn cores(&self) -> u32 {
        self.0.iter().map(|(_, count)| count).product()
    }

    /// Cores of one of these parts; `None`: the node is not said to have any.
    fn cores_of(&self, part: Part) -> Option<u32> {
        let at = self.0.iter().position(|(known, _)| *known == part)?;
        Some(self.0[at + 1..].iter().map(|(_, count)| count).product())
    }

    /// Where the core is.
    pub fn locality(&self, core: u32) -> Locality {
        let number = |part| self.cores_of(part).map(|each| core / each);
        let [l2, l3, numa, socket] = [Part::L2, Part::L3, Part::Numa, Part::Socket].map(number);
        Locality { l2, l3, numa, socket }
    }

    /// The core of a rank, by its number on the node.
    pub fn core(&self, local: u32, map: Map) -> u32 {
        let each = self.cores_of(Part::Socket).filter(|_| map == Map::Socket).unwrap_or(self.cores());
        let sockets = self.cores() / each;
        local % sockets * each + local / sockets
    }
}
