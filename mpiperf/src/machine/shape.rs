// SPDX-License-Identifier: BSD-3-Clause
//! How many of each part the machine has, by the files of the kernel.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// How far a core is from another one. Near ones first; their names are those of machine files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Far {
    /// The same level-2 cache.
    L2,
    /// The same level-3 cache.
    L3,
    /// The same NUMA node.
    Numa,
    /// The same socket.
    Socket,
    /// Another socket.
    Node,
}

impl Far {
    /// Every one.
    pub const ALL: [Far; 5] = [Far::L2, Far::L3, Far::Numa, Far::Socket, Far::Node];

    /// The word for it in machine files.
    pub const fn name(self) -> &'static str {
        ["l2", "l3", "numa", "socket", "node"][self as usize]
    }
}

/// A core: the processor that stands for it, and the parts that it belongs to, from its level-2 cache to its
/// socket. A part is called after its first processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Core {
    /// The first of its processors.
    pub processor: usize,
    /// Level-2 cache, level-3 cache, NUMA node, socket.
    pub parts: [usize; 4],
}

impl Core {
    /// How far another core is.
    pub fn far(&self, other: &Core) -> Far {
        let same = (0..4).find(|&level| self.parts[level..] == other.parts[level..]);
        same.map_or(Far::Node, |level| Far::ALL[level])
    }
}

/// The cores that may be used, and what they have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Near ones next to each other.
    pub cores: Vec<Core>,
    /// Bytes of a core's level-2 cache, and of its share of the level-3 cache.
    pub caches: [usize; 2],
    /// How many of each part the next larger one has, from the sockets of the node down.
    pub counts: [usize; 5],
}

impl Shape {
    /// Of these processors, by sysfs.
    ///
    /// # Errors
    /// What cannot be read, and parts of which some have more than others.
    pub fn read(processors: &[usize]) -> Result<Shape> {
        Shape::below(Path::new("/sys/devices/system"), processors)
    }

    fn below(system: &Path, processors: &[usize]) -> Result<Shape> {
        let mut cores = Vec::new();
        let mut caches = [0; 2];
        for &processor in processors {
            let folder = system.join(format!("cpu/cpu{processor}"));
            if first(&text(&folder.join("topology/thread_siblings_list"))?, processors) != Some(processor) {
                continue;
            }
            let sockets = text(&folder.join("topology/core_siblings_list"))?;
            let socket = first(&sockets, processors).unwrap_or(processor);
            let numa = numa(system, processor, processors).unwrap_or(socket);
            let [l2, l3] = [2, 3].map(|level| cache(&folder, level));
            let of = |cache: &Option<Cache>, or| {
                cache.as_ref().and_then(|cache| first(&cache.shared, processors)).unwrap_or(or)
            };
            // A core without a level-2 cache in the files has one of its own; without a level-3 cache all of
            // its NUMA node are as far as below one.
            let (at_l2, at_l3) = (of(&l2, processor), of(&l3, numa));
            caches =
                [&l2, &l3].map(|cache| cache.as_ref().map_or(64 << 10, |c| c.bytes / listed(&c.shared).len().max(1)));
            cores.push(Core { processor, parts: [at_l2, at_l3, numa, socket] });
        }
        cores.sort_by_key(|core| {
            let [l2, l3, numa, socket] = core.parts;
            (socket, numa, l3, l2, core.processor)
        });
        let counts = counts(&cores).ok_or_else(|| {
            Error::usage(
                "the parts of this machine, or of it what this process may use, differ in size, which no machine file \
                 can say: give it whole sockets, or a part of one (taskset, or the launcher's options)",
            )
        })?;
        Ok(Shape { cores, caches, counts })
    }

    /// The cores that are so far from the first one.
    pub fn at(&self, far: Far) -> Vec<&Core> {
        self.cores.iter().filter(|core| **core != self.cores[0] && self.cores[0].far(core) == far).collect()
    }

    /// Those distances that two cores can have.
    pub fn distances(&self) -> impl Iterator<Item = Far> + '_ {
        Far::ALL.into_iter().filter(|&far| !self.at(far).is_empty())
    }
}

/// A cache as the files have it.
struct Cache {
    bytes: usize,
    shared: String,
}

fn cache(folder: &Path, level: usize) -> Option<Cache> {
    (0..8).map(|index| folder.join(format!("cache/index{index}"))).find_map(|folder| {
        let read = |name| text(&folder.join(name)).ok();
        let right = read("level")?.trim().parse() == Ok(level) && read("type")?.trim() != "Instruction";
        let bytes = crate::op::memory::cache_size(read("size")?.trim())?;
        right.then_some(Cache { bytes, shared: read("shared_cpu_list")? })
    })
}

fn numa(system: &Path, processor: usize, processors: &[usize]) -> Option<usize> {
    let nodes = fs::read_dir(system.join("node")).ok()?;
    let lists = nodes.flatten().filter_map(|node| text(&node.path().join("cpulist")).ok());
    lists.filter(|list| listed(list).contains(&processor)).find_map(|list| first(&list, processors))
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|source| Error::File { path: path.display().to_string(), source })
}

/// The numbers of a list of the kernel's, such as `0-1,64`.
fn listed(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// The first of a list's that is among those.
fn first(list: &str, among: &[usize]) -> Option<usize> {
    listed(list).into_iter().find(|number| among.contains(number))
}

/// How many of each part the next larger one has, if all have as many.
fn counts(cores: &[Core]) -> Option<[usize; 5]> {
    // What is different at a level, in the order of the cores.
    let distinct = |level: usize, within: Option<usize>| {
        let mut all: Vec<[usize; 4]> = cores
            .iter()
            .map(|core| std::array::from_fn(|at| if at >= level { core.parts[at] } else { 0 }))
            .filter(|parts| within.is_none_or(|first| parts[3] == first))
            .collect();
        all.dedup();
        all
    };
    let sockets = distinct(3, None).len();
    let mut counts = [sockets, 0, 0, 0, 0];
    for (place, level) in [(1, 2), (2, 1), (3, 0)] {
        let (smaller, larger) = (distinct(level, None), distinct(level + 1, None));
        let each = smaller.len() / larger.len().max(1);
        let alike =
            larger.iter().all(|part| smaller.iter().filter(|s| s[level + 1..] == part[level + 1..]).count() == each);
        counts[place] = alike.then_some(each)?;
    }
    let caches = distinct(0, None);
    let each = cores.len() / caches.len().max(1);
    counts[4] =
        caches.iter().all(|part| cores.iter().filter(|core| core.parts == *part).count() == each).then_some(each)?;
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of two level-3 caches of two cores of two processors each: numbered as the kernel does,
    /// second processors last.
    fn machine(without: &[usize]) -> Result<Shape> {
        let root = std::env::temp_dir().join(format!("mpiperf-shape-{}-{}", std::process::id(), without.len()));
        let put = |path: String, what: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, what).unwrap();
        };
        for cpu in 0..16 {
            let core = cpu % 8;
            let both = format!("{core},{}\n", core + 8);
            let range = |each: usize| {
                let from = core / each * each;
                format!("{from}-{},{}-{}\n", from + each - 1, from + 8, from + each + 7)
            };
            put(format!("cpu/cpu{cpu}/topology/thread_siblings_list"), &both);
            put(format!("cpu/cpu{cpu}/topology/core_siblings_list"), &range(4));
            for (index, level, size, shared) in
                [(0, 1, "32K", both.clone()), (1, 2, "1024K", both), (2, 3, "8M", range(2))]
            {
                for (name, what) in [("level", level.to_string()), ("type", "Unified".into()), ("size", size.into())] {
                    put(format!("cpu/cpu{cpu}/cache/index{index}/{name}"), &format!("{what}\n"));
                }
                put(format!("cpu/cpu{cpu}/cache/index{index}/shared_cpu_list"), &shared);
            }
            put(format!("node/node{}/cpulist", core / 4), &range(4));
        }
        let processors: Vec<usize> = (0..16).filter(|cpu| !without.contains(cpu)).collect();
        let shape = Shape::below(&root, &processors);
        fs::remove_dir_all(&root).unwrap();
        shape
    }

    #[test]
    fn parts_are_counted_and_second_processors_left_out() {
        let shape = machine(&[]).unwrap();
        assert_eq!((shape.cores.len(), shape.counts), (8, [2, 1, 2, 2, 1]));
        // A cache is shared by the processors, and a core has two of them.
        assert_eq!(shape.caches, [512 << 10, 2 << 20]);
        assert_eq!(shape.distances().collect::<Vec<_>>(), [Far::L3, Far::Numa, Far::Node]);
        assert_eq!(shape.at(Far::Numa).iter().map(|core| core.processor).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_part_that_lacks_a_core_is_wrong_usage() {
        assert_eq!(machine(&[3, 11]).unwrap_err().status(), 2);
        // One whole socket is a machine, too.
        assert_eq!(machine(&[4, 5, 6, 7, 12, 13, 14, 15]).unwrap().counts, [1, 1, 2, 2, 1]);
    }

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(listed("0-2,64\n"), [0, 1, 2, 64]);
        assert_eq!((first("8-9,3", &[3, 9]), first("", &[0])), (Some(9), None));
    }
}
