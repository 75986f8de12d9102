// SPDX-License-Identifier: BSD-3-Clause
//! What is stored of a job, and what follows from it.
//!
//! Stored are the node of every rank, the name and the switches of every node, and of the node that the
//! store belongs to its shape, its ranks with their modules and cores, and the groups above the node that
//! its lowest rank is in. So the groups of a process follow from a read for each process of its node and one
//! for each group above it, however large the job is.

use super::image::{Image, Key, Words};
use super::sequence::{MOST, Sequence, encode};
use super::{Change, Error, Reader, Store};
use crate::endpoint::Rank;
use crate::sync::rwlock::Kind;
use crate::topo::{Group, Hardware, Hierarchy, Level, LevelSpec, Locality, Modules, Placement};

/// What a key is of.
mod kind {
    /// Ranks of the job; the node of the store; the shape of the node, two numbers a word.
    pub const SHAPE: u8 = 1;
    /// The node of every rank.
    pub const NODES: u8 = 2;
    /// The ranks of the node, ascending.
    pub const RANKS: u8 = 3;
    /// Of each rank of the node the number of its module at the level with this index.
    pub const MODULES: u8 = 4;
    /// Of each node the number of its switch in this layer.
    pub const SWITCHES: u8 = 5;
    /// Above the node the groups of its lowest rank: level, whether it is the topmost; then the members.
    pub const ABOVE: u8 = 6;
    /// Whatever the node was measured to be best served with.
    pub const THRESHOLDS: u8 = 7;
    /// The names of the nodes.
    pub const NAMES: u8 = 8;
    /// Of each rank of the node its core.
    pub const CORES: u8 = 9;
}

/// Stands for "no module": nothing, several, or not known.
const NONE: u32 = u32::MAX;
const INSIDE: [Level; 4] = [Level::L2, Level::L3, Level::Numa, Level::Socket];
/// The most layers of switches, and groups above the node.
const MOST_LAYERS: u32 = 16;
/// So many ranks are looked up one by one; for more the list of all is read.
const FEW: usize = 64;

/// A job, as the process sees it that writes the store of its node.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Its number, which no other job of the store has.
    pub number: u32,
    /// The node of every rank, by numbers below that of the ranks.
    pub hosts: &'a [u32],
    /// For every node number its switches, lowest first, all lists of one length; empty without a network.
    pub uppers: &'a [Vec<u32>],
    /// The ranks of this node with their localities, ascending: all of them, one at least.
    pub local: &'a [(Rank, Locality)],
    /// The physical core of each of those, where it is bound to one; empty where that is not told.
    pub cores: &'a [Option<u32>],
    /// The name of every node number; empty where that is not told.
    pub names: &'a [String],
    /// The shape of this node.
    pub hardware: Hardware,
    /// The levels that make groups; the node is one of them.
    pub levels: &'a LevelSpec,
}

impl Job<'_> {
    /// Whether it is what the fields say.
    fn is_sound(&self) -> bool {
        let host = |at: &(Rank, Locality)| self.hosts.get(at.0 as usize);
        let home = self.local.first().and_then(host);
        let layers = self.uppers.first().map_or(0, Vec::len);
        let nodes = if self.uppers.is_empty() { self.hosts.len() } else { self.uppers.len() };
        self.hosts.len() <= MOST
            && home.is_some()
            && self.local.iter().all(|at| host(at) == home)
            && self.local.is_sorted_by(|a, b| a.0 < b.0)
            && self.hosts.iter().all(|node| (*node as usize) < nodes)
            && layers <= MOST_LAYERS as usize
            && self.uppers.iter().all(|node| node.len() == layers)
            && (self.cores.is_empty() || self.cores.len() == self.local.len())
            && (self.names.is_empty() || self.hosts.iter().all(|node| (*node as usize) < self.names.len()))
            && self.names.iter().all(|name| !name.contains('\n'))
            && self.levels.holds(Level::Node)
    }

    /// What is to be stored.
    fn entries(&self) -> Result<Vec<Change>, Error> {
        let lowest = match self.local.first() {
            Some(&(lowest, _)) if self.is_sound() => lowest,
            _ => return Err(Error::Unsound),
        };
        let mut entries = Vec::new();
        let mut put = |kind, number, words| entries.push((Key::new(kind, self.number, number), Some(words)));
        let home = self.hosts.get(lowest as usize).copied().unwrap_or(NONE);
        let numbers = numbers(&self.hardware);
        let shape = [self.hosts.len() as u64, home.into()];
        let shape = shape.into_iter().chain(numbers.chunks(2).map(|two| u64::from(two[0]) << 32 | u64::from(two[1])));
        put(kind::SHAPE, 0, shape.collect());
        put(kind::NODES, 0, encode(self.hosts));
        put(kind::RANKS, 0, encode(&self.local.iter().map(|local| local.0).collect::<Vec<_>>()));
        for (number, level) in (0..).zip(INSIDE) {
            let modules = self.local.iter().map(|(_, at)| at.at(level).unwrap_or(NONE));
            put(kind::MODULES, number, encode(&modules.collect::<Vec<_>>()));
        }
        if !self.names.is_empty() {
            put(kind::NAMES, 0, text(&self.names.join("\n")));
        }
        if !self.cores.is_empty() {
            let cores = self.cores.iter().map(|core| core.unwrap_or(NONE));
            put(kind::CORES, 0, encode(&cores.collect::<Vec<_>>()));
        }
        for layer in 0..self.uppers.first().map_or(0, Vec::len) {
            let switches = self.uppers.iter().map(|node| node.get(layer).copied().unwrap_or(NONE));
            put(kind::SWITCHES, layer as u32, encode(&switches.collect::<Vec<_>>()));
        }
        let (hosts, uppers) = (self.hosts.to_vec(), self.uppers.to_vec());
        let placement = Placement::new(lowest, hosts, uppers, self.local.to_vec(), self.hardware);
        let groups = Hierarchy::build(&placement, self.levels, false).groups(None);
        for (number, group) in (0..).zip(groups.iter().filter(|group| group.level > Level::Node)) {
            let level = Level::ALL.iter().position(|level| *level == group.level).unwrap_or_default() as u64;
            let head = [level << 1 | u64::from(group.top)];
            put(kind::ABOVE, number, head.into_iter().chain(encode(&group.members)).collect());
        }
        Ok(entries)
    }

    /// Words of an image that holds nothing but this job.
    pub fn words(&self) -> Result<usize, Error> {
        let entries = self.entries()?;
        Ok(3 + entries.iter().map(|(_, words)| 2 + words.as_ref().map_or(0, Vec::len)).sum::<usize>())
    }
}

/// Puts a job into the store of its node, beside those that are there.
pub fn put<K: Kind>(store: &Store<K>, job: &Job<'_>) -> Result<u64, Error> {
    put_by(store, |_| (), job)
}

/// The same, step by step: see [`Store::put_by`].
pub fn put_by<K: Kind>(store: &Store<K>, step: impl Fn(usize), job: &Job<'_>) -> Result<u64, Error> {
    store.put_by(step, &job.entries()?)
}

/// Puts thresholds.
pub fn put_thresholds<K: Kind>(store: &Store<K>, words: &[u64]) -> Result<u64, Error> {
    store.put(&[(Key::new(kind::THRESHOLDS, 0, 0), Some(words.to_vec()))])
}

/// The thresholds.
pub fn thresholds<K: Kind>(reader: &mut Reader<'_, K>) -> Result<Vec<u64>, Error> {
    reader.get(Key::new(kind::THRESHOLDS, 0, 0))
}

/// The shape of a node as numbers: modules and cores of each level inside it, processors, and a zero.
fn numbers(shape: &Hardware) -> [u32; 10] {
    let [a, b, c, d] = [shape.l2, shape.l3, shape.numa, shape.socket].map(|m| (m.modules, m.cores));
    [a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1, shape.processors, 0]
}

/// A text as words: its length in bytes first.
fn text(text: &str) -> Vec<u64> {
    let bytes = text.as_bytes().chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    });
    [text.len() as u64].into_iter().chain(bytes).collect()
}

/// The inverse.
fn text_of(words: Words<'_>) -> Result<String, Error> {
    let len = usize::try_from(words.at(0)?).map_err(|_| Error::Corrupt)?;
    let mut bytes: Vec<u8> = words.from(1)?.iter().flat_map(u64::to_le_bytes).collect();
    if len > bytes.len() {
        return Err(Error::Corrupt);
    }
    bytes.truncate(len);
    String::from_utf8(bytes).map_err(|_| Error::Corrupt)
}

/// The inverse of [`numbers`].
fn hardware(numbers: [u32; 10]) -> Hardware {
    let at = |i: usize| Modules { modules: numbers[2 * i], cores: numbers[2 * i + 1] };
    Hardware { l2: at(0), l3: at(1), numa: at(2), socket: at(3), processors: numbers[8] }
}

/// A job in an image.
#[derive(Clone, Copy)]
struct Stored<'a> {
    image: Image<'a>,
    job: u32,
}

impl<'a> Stored<'a> {
    fn sequence(self, kind: u8, number: u32) -> Result<Sequence<'a>, Error> {
        Sequence::new(self.image.get(Key::new(kind, self.job, number))?)
    }

    /// Ranks of the job, the number of this node, its shape.
    fn shape(self) -> Result<(usize, u32, Hardware), Error> {
        let words = self.image.get(Key::new(kind::SHAPE, self.job, 0))?;
        let mut numbers = [0; 10];
        for (place, two) in numbers.chunks_mut(2).enumerate() {
            let word = words.at(2 + place)?;
            two.copy_from_slice(&[(word >> 32) as u32, word as u32]);
        }
        let ranks = usize::try_from(words.at(0)?).map_err(|_| Error::Corrupt)?;
        Ok((ranks, words.at(1)? as u32, hardware(numbers)))
    }

    /// The ranks of the node with their localities, ascending.
    fn local(self) -> Result<Vec<(Rank, Locality)>, Error> {
        let ranks = self.sequence(kind::RANKS, 0)?.to_vec()?;
        let mut modules = [const { Vec::new() }; 4];
        for (number, modules) in (0..).zip(&mut modules) {
            *modules = self.sequence(kind::MODULES, number)?.to_vec()?;
        }
        let fits = modules.iter().all(|list| list.len() == ranks.len()) && ranks.is_sorted_by(|a, b| a < b);
        if !fits || ranks.is_empty() {
            return Err(Error::Corrupt);
        }
        let at = |level: usize, i: usize| Some(modules[level][i]).filter(|module| *module != NONE);
        let locality = |i| Locality { l2: at(0, i), l3: at(1, i), numa: at(2, i), socket: at(3, i) };
        Ok(ranks.iter().enumerate().map(|(i, &rank)| (rank, locality(i))).collect())
    }

    /// The groups of a rank of the node, as [`Hierarchy::groups`] finds them without a root.
    fn groups(self, me: Rank, levels: &LevelSpec) -> Result<Vec<Group>, Error> {
        let (size, _, hardware) = self.shape()?;
        let local = self.local()?;
        let place = local.binary_search_by_key(&me, |at| at.0).map_err(|_| Error::Missing)?;
        // The node for itself, its ranks by their places.
        let inside = (0..).zip(&local).map(|(place, at)| (place, at.1)).collect();
        let node = Placement::new(place as Rank, vec![0; local.len()], Vec::new(), inside, hardware);
        let mut groups = Hierarchy::build(&node, levels, false).groups(None);
        for group in &mut groups {
            group.members.iter_mut().for_each(|member| *member = local[*member as usize].0);
            group.top &= local.len() == size;
        }
        if place == 0 {
            for number in 0..MOST_LAYERS {
                match self.above(number, me) {
                    Err(Error::Missing) => break,
                    group => groups.push(group?),
                }
            }
        }
        Ok(groups)
    }

    /// A group above the node.
    fn above(self, number: u32, me: Rank) -> Result<Group, Error> {
        let words = self.image.get(Key::new(kind::ABOVE, self.job, number))?;
        let head = words.at(0)?;
        let level = usize::try_from(head >> 1).ok().and_then(|level| Level::ALL.get(level));
        let members = Sequence::new(words.from(1)?)?.to_vec()?;
        let me = members.binary_search(&me).map_err(|_| Error::Corrupt)?;
        Ok(Group { level: *level.ok_or(Error::Corrupt)?, members, me, leader: 0, top: head & 1 == 1 })
    }

    /// The switches of every node.
    fn uppers(self) -> Result<Vec<Vec<u32>>, Error> {
        let mut uppers: Vec<Vec<u32>> = Vec::new();
        for layer in 0..MOST_LAYERS {
            let switches = match self.sequence(kind::SWITCHES, layer) {
                Err(Error::Missing) => break,
                switches => switches?.to_vec()?,
            };
            uppers.resize(if layer == 0 { switches.len() } else { uppers.len() }, Vec::new());
            if switches.len() != uppers.len() {
                return Err(Error::Corrupt);
            }
            uppers.iter_mut().zip(switches).for_each(|(node, switch)| node.push(switch));
        }
        Ok(uppers)
    }
}

/// The groups in a communicator of the whole job, in the order of its ranks, of rank `me` of this node,
/// bottom to top. `levels`: those that the job was put with; they must hold the node.
pub fn groups<K: Kind>(
    reader: &mut Reader<'_, K>,
    job: u32,
    me: Rank,
    levels: &LevelSpec,
) -> Result<Vec<Group>, Error> {
    if !levels.holds(Level::Node) {
        return Err(Error::Missing);
    }
    reader.look(|image| Stored { image, job }.groups(me, levels))
}

/// The node of a rank.
pub fn node<K: Kind>(reader: &mut Reader<'_, K>, job: u32, rank: Rank) -> Result<u32, Error> {
    reader.look(|image| Stored { image, job }.sequence(kind::NODES, 0)?.at(rank as usize))
}

/// The placement of any communicator of the job: `members` are the ranks in the job of its ranks, `me` the
/// caller's place among them. In time that goes with the size of the job.
pub fn placement<K: Kind>(
    reader: &mut Reader<'_, K>,
    job: u32,
    members: &[Rank],
    me: usize,
) -> Result<Placement, Error> {
    reader.look(|image| {
        let stored = Stored { image, job };
        let ((size, home, hardware), local, uppers) = (stored.shape()?, stored.local()?, stored.uppers()?);
        let nodes = stored.sequence(kind::NODES, 0)?.to_vec()?;
        let node = |rank: &Rank| nodes.get(*rank as usize).copied().ok_or(Error::Missing);
        let hosts = members.iter().map(node).collect::<Result<Vec<u32>, Error>>()?;
        let most = if uppers.is_empty() { size } else { uppers.len() };
        let fits = nodes.len() == size && nodes.iter().all(|node| (*node as usize) < most);
        if !fits || hosts.get(me) != Some(&home) {
            return Err(Error::Corrupt);
        }
        let here = (0..).zip(&hosts).zip(members).filter(|((_, node), _)| **node == home);
        let locality = |rank: &Rank| local.binary_search_by_key(rank, |at| at.0).map(|place| local[place].1);
        let here = here.map(|((place, _), rank)| (place, locality(rank).unwrap_or_default())).collect();
        Ok(Placement::new(me as Rank, hosts, uppers, here, hardware))
    })
}

/// Where on its node a process sits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seat {
    /// Its modules.
    pub locality: Locality,
    /// The physical core that it is bound to.
    pub core: Option<u32>,
}

/// Where some processes of a job sit, as the store of the reader's node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats {
    /// The number of each one's node.
    pub nodes: Vec<u32>,
    /// Those on the reader's node, by their places in the list.
    pub here: Vec<(usize, Seat)>,
}

/// Where these ranks of the job sit. In a few reads for each, or in time that goes with the size of the job.
pub fn seats<K: Kind>(reader: &mut Reader<'_, K>, job: u32, ranks: &[Rank]) -> Result<Seats, Error> {
    reader.look(|image| {
        let stored = Stored { image, job };
        let (nodes, home, local) = (stored.sequence(kind::NODES, 0)?, stored.shape()?.1, stored.local()?);
        let cores = stored.sequence(kind::CORES, 0)?.to_vec()?;
        if cores.len() != local.len() {
            return Err(Error::Corrupt);
        }
        let nodes = match ranks.len() > FEW {
            false => ranks.iter().map(|&rank| nodes.at(rank as usize)).collect::<Result<Vec<_>, Error>>()?,
            true => {
                let all = nodes.to_vec()?;
                if ranks.iter().any(|&rank| rank as usize >= all.len()) {
                    return Err(Error::Corrupt);
                }
                // The whole job, as a rule.
                let is_whole = ranks.len() == all.len() && ranks.is_sorted_by(|a, b| a < b);
                if is_whole { all } else { ranks.iter().map(|&rank| all[rank as usize]).collect() }
            }
        };
        let seat = |(place, _): (usize, &u32)| {
            let at = local.binary_search_by_key(&ranks[place], |at| at.0).map_err(|_| Error::Corrupt)?;
            Ok((place, Seat { locality: local[at].1, core: Some(cores[at]).filter(|core| *core != NONE) }))
        };
        let here = nodes.iter().enumerate().filter(|(_, node)| **node == home).map(seat);
        Ok(Seats { here: here.collect::<Result<_, Error>>()?, nodes })
    })
}

/// The ranks of the job on the node of the store, ascending.
pub fn ranks<K: Kind>(reader: &mut Reader<'_, K>, job: u32) -> Result<Vec<Rank>, Error> {
    reader.look(|image| Stored { image, job }.sequence(kind::RANKS, 0)?.to_vec())
}

/// The names of the nodes of a job, by their numbers.
pub fn names<K: Kind>(reader: &mut Reader<'_, K>, job: u32) -> Result<Vec<String>, Error> {
    let text = reader.look(|image| text_of(image.get(Key::new(kind::NAMES, job, 0))?))?;
    Ok(text.split('\n').map(str::to_owned).collect())
}
