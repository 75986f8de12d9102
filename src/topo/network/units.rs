// SPDX-License-Identifier: BSD-3-Clause
//! Units without switches above them: Slurm's blocks, which sizes join to larger ones, rings and toruses.

use std::rc::Rc;

use super::fault::{At, Fault, short};
use super::nodes::together;
use super::tree::Names;
use super::{Nodes, Read, Way};

/// The most base blocks in a larger one.
const RATIO: u64 = 1 << 15;

/// The units of a file, in its order.
#[derive(Default)]
pub(super) struct Units {
    names: Names,
    /// Block sizes in nodes, the first one that of a base block.
    sizes: Vec<(u64, At)>,
}

impl Units {
    /// The number that the next unit gets.
    pub fn next(&self) -> u32 {
        self.names.names.len() as u32
    }

    /// A new unit.
    pub fn add(&mut self, kind: &str, name: &str, at: At) -> Result<u32, Fault> {
        self.names.add(kind, name, at)
    }

    /// One more block size.
    pub fn add_size(&mut self, text: &str, at: At) -> Result<(), Fault> {
        let text = text.trim();
        match text.parse::<u64>() {
            Ok(size) if size > 0 => self.sizes.push((size, at)),
            _ => return Err(Fault::new(at, format!("block size '{}' is not a number of nodes", short(text)))),
        }
        let ((base, _), (size, _)) = (self.sizes[0], self.sizes[self.sizes.len() - 1]);
        let ratio = size / base;
        if size % base != 0 || !ratio.is_power_of_two() || ratio > RATIO {
            let message = format!(
                "block size '{size}' is not {base} (the size of a base block) times a power of two up to {RATIO}"
            );
            return Err(Fault::new(at, message));
        }
        Ok(())
    }

    /// What stands above every unit: the larger blocks that it is in. As Slurm does it, a size joins as many
    /// neighbours, in the order of the file, as it has sizes of a base block; how many nodes they really have
    /// does not count.
    pub fn read(self, nodes: Nodes, kind: &str, two: &'static str) -> Result<Read, Fault> {
        let count = self.names.names.len();
        if nodes.list.is_empty() {
            let first = self.names.places.first().copied().unwrap_or(At::START);
            return Err(Fault::new(first, format!("no {kind} of the file has nodes")));
        }
        let base = self.sizes.first().map_or(1, |&(size, _)| size);
        let mut ratios: Vec<usize> =
            self.sizes.iter().map(|&(size, _)| (size / base) as usize).filter(|&r| r > 1).collect();
        ratios.sort_unstable();
        ratios.dedup();
        // What joins everything stands at the top.
        let all = ratios.iter().position(|&ratio| ratio >= count).map_or(ratios.len(), |at| at + 1);
        ratios.truncate(all);
        let wide = ratios.len() as u32;
        // The blocks of a ratio, one ratio behind the other.
        let mut firsts = vec![count as u32];
        for &ratio in &ratios {
            let next = firsts[firsts.len() - 1] + count.div_ceil(ratio) as u32;
            firsts.push(next);
        }
        let way = |unit: u32| -> Rc<[u32]> {
            (0..wide as usize).map(|layer| firsts[layer] + unit / ratios[layer] as u32).collect()
        };
        let ways = (0..count as u32).map(|unit| Way { unit, above: way(unit) }).collect();
        let names = self.names.names;
        let name = move |number: u32| {
            let number = number as usize;
            if number < names.len() {
                return names[number].clone();
            }
            let layer = firsts.partition_point(|&first| first as usize <= number) - 1;
            let (ratio, block) = (ratios[layer], number - firsts[layer] as usize);
            together(names.iter().skip(block * ratio).take(ratio).map(String::as_str))
        };
        Ok(Read { nodes, ways, name: Box::new(name), two, homes: None })
    }
}
