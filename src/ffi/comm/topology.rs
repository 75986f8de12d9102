// SPDX-License-Identifier: BSD-3-Clause
//! The process topology of a communicator: whom the caller has edges with, and who hands what to whom.

use crate::algo::Stage;
use crate::endpoint::{Error, Rank, Result, Tag};
use crate::ffi::base::glue::{self, cr_topology};
use crate::ffi::comm::agreement::{self, Agreed};
use crate::ffi::comm::core::Core;
use crate::ffi::comm::host::HostEndpoint;
use crate::pattern::bundles::Bundles;
use crate::pattern::neighborhood::{Edge, Grid, Neighbors};
use crate::shm::op::neighbor::Edges;
use crate::topo::Level;
use std::sync::OnceLock;

/// Of so many edges between two nodes, both ways together, on, their blocks travel together.
const BUNDLED: usize = 4;

/// The neighbours of the caller.
pub struct Neighborhood {
    topology: Topology,
    plain: Among<Neighbors>,
    /// Blocks of a send buffer and of a receive buffer: those for neighbours beyond a border too.
    degrees: (usize, usize),
    within: OnceLock<Within>,
    /// Where ranks are in several clusters: without the edges within the node, and with them.
    apart: [OnceLock<Apart>; 2],
    /// For blocks that travel together: each along its edge, and one for all edges; with the edges within the
    /// node, and without them.
    bundles: [OnceLock<Among<Bundles>>; 4],
    connected: Agreed<bool>,
    /// The neighbourhoods of the ranks of the node.
    lists: Agreed<Vec<(usize, Neighbors)>>,
}

/// The edges within the caller's node, and the others.
pub struct Within {
    /// Of the node's processes.
    pub edges: Edges,
    /// By messages.
    pub rest: Among<Neighbors>,
}

/// The edges within the caller's cluster, and what blocks it has for ranks of others.
pub struct Apart {
    pub here: Among<Neighbors>,
    /// By rank, in the order in which they are matched: the blocks that it sends there, and those that come.
    pub out: Vec<Vec<usize>>,
    pub into: Vec<Vec<usize>>,
}

/// Messages with a few others.
pub struct Among<T> {
    /// They and the caller, ascending.
    members: Vec<Rank>,
    /// The lowest level that the caller shares with each of them.
    levels: Vec<u8>,
    me: usize,
    /// Who they are for: indices into `members`.
    pub plan: T,
}

impl<T> Among<T> {
    /// Of a plan between ranks. `peers`: whom it has messages with.
    fn new(
        comm: &Core,
        mut plan: T,
        peers: Vec<usize>,
        renumber: impl FnOnce(&mut T, &dyn Fn(usize) -> usize),
    ) -> Among<T> {
        let mut members: Vec<Rank> = peers.into_iter().map(|peer| peer as Rank).chain([comm.rank()]).collect();
        members.sort_unstable();
        members.dedup();
        let number = |rank: usize| members.partition_point(|&member| (member as usize) < rank);
        renumber(&mut plan, &number);
        let place = comm.place().ok();
        let level = |&rank: &Rank| place.map_or(Level::Cluster, |place| place.joint(rank)).index();
        let levels = members.iter().map(level).collect();
        let me = number(comm.rank() as usize);
        Among { members, levels, me, plan }
    }

    /// The stage of an operation's messages.
    pub fn stage<'a>(&'a self, ep: &'a HostEndpoint) -> Stage<'a, HostEndpoint> {
        let tag = Tag { lane: 0, phase: 0, level: Level::Cluster.index() };
        Stage::new(ep, &self.members, self.me, tag).counted(&self.levels)
    }
}

/// The topology as Open MPI has it.
struct Topology(cr_topology);

// SAFETY: the addresses of arrays that live as long as the communicator and do not change.
unsafe impl Send for Topology {}
// SAFETY: as above.
unsafe impl Sync for Topology {}

impl Neighborhood {
    /// Asks Open MPI for the topology of the communicator; none where it has none.
    pub fn find(comm: &Core) -> Option<Neighborhood> {
        let mut topology = cr_topology::default();
        // SAFETY: the communicator is alive; fills in ours.
        unsafe { glue::cr_comm_topology(comm.handle(), &mut topology) };
        // SAFETY: as Open MPI has it.
        let (edges, degrees) = unsafe { edges(&topology, comm.rank() as usize, comm.size() as usize) }?;
        let peers = edges.peers().collect();
        let plain = Among::new(comm, edges, peers, |edges, number| edges.renumber(number));
        Some(Neighborhood {
            topology: Topology(topology),
            plain,
            degrees,
            within: OnceLock::new(),
            apart: Default::default(),
            bundles: Default::default(),
            connected: Agreed::default(),
            lists: Agreed::default(),
        })
    }

    /// How many blocks a send buffer has, and how many a receive buffer has.
    pub fn degrees(&self) -> (usize, usize) {
        self.degrees
    }

    /// Whether a rank may have neighbours that it sends to and that do not send to it, and does not know the
    /// edges of others. The same on all ranks.
    pub fn is_directed(&self) -> bool {
        self.topology.0.kind == glue::CR_DIST_GRAPH as i32
    }

    /// Whether it is Cartesian.
    pub fn is_grid(&self) -> bool {
        self.topology.0.kind == glue::CR_CART as i32
    }

    /// All edges, by messages.
    pub fn plain(&self) -> &Among<Neighbors> {
        &self.plain
    }

    /// The neighbours, as ranks.
    fn ranks(&self) -> Neighbors {
        let mut neighbors = self.plain.plan.clone();
        neighbors.renumber(|member| self.plain.members[member] as usize);
        neighbors
    }

    /// The edges of a rank, where everybody knows them.
    fn around(&self, rank: usize, size: usize) -> Neighbors {
        // SAFETY: as Open MPI has it.
        unsafe { edges(&self.topology.0, rank, size) }.unwrap_or_default().0
    }

    /// The edges within the node and the others.
    pub fn within(&self, comm: &Core) -> Result<&Within> {
        if let Some(known) = self.within.get() {
            return Ok(known);
        }
        let place = comm.place().map_err(Error::Mpi)?;
        let local: Vec<usize> = place.local().iter().map(|&(rank, _)| rank as usize).collect();
        let [mut inside, rest] = self.ranks().split(|rank| local.binary_search(&rank).is_ok());
        let number = |rank: usize| local.partition_point(|&other| other < rank);
        inside.renumber(number);
        let peers = rest.peers().collect();
        let rest = Among::new(comm, rest, peers, |edges, number| edges.renumber(number));
        let edges = Edges::new(number(comm.rank() as usize), local.len(), &inside);
        Ok(self.within.get_or_init(|| Within { edges, rest }))
    }

    /// The edges within the cluster and the others, of those that do not go through the memory of the node,
    /// where that has some (`shared`).
    pub fn apart(&self, comm: &Core, shared: bool) -> Result<&Apart> {
        let cell = &self.apart[usize::from(shared)];
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let place = comm.place().map_err(Error::Mpi)?;
        let mut edges = self.ranks();
        if shared {
            let here = |rank| place.local().binary_search_by_key(&(rank as Rank), |local| local.0).is_ok();
            [_, edges] = edges.split(here);
        }
        let together = |rank: usize| place.clusters().is_none_or(|c| c.together(comm.rank(), rank as Rank));
        let [here, others] = edges.split(together);
        let by_rank = |edges: &[Edge]| {
            let mut slots = vec![Vec::new(); comm.size() as usize];
            edges.iter().for_each(|edge| slots[edge.peer].push(edge.slot));
            slots
        };
        let (out, into) = (by_rank(&others.destinations), by_rank(&others.sources));
        let peers = here.peers().collect();
        let here = Among::new(comm, here, peers, |edges, number| edges.renumber(number));
        Ok(cell.get_or_init(|| Apart { here, out, into }))
    }

    /// The edges within the node, where they have been asked for before.
    #[inline]
    pub fn known_within(&self) -> Option<&Edges> {
        self.within.get().map(|within| &within.edges)
    }

    /// Whether all ranks hang together by edges, where that is known.
    #[inline]
    pub fn known_connected(&self) -> Option<bool> {
        if self.is_grid() { Some(true) } else { self.connected.known().copied() }
    }

    /// Whether all ranks hang together by edges. The same on all ranks that do; to be asked for when these
    /// call a blocking operation that all of them call.
    pub async fn is_connected(&self, comm: &Core) -> Result<bool> {
        if let Some(known) = self.known_connected() {
            return Ok(known);
        }
        let find = async {
            let size = comm.size() as usize;
            match u32::try_from(self.topology.0.kind) {
                // Blocks go through leaders, who have to make the call too.
                _ if comm.is_apart().map_err(Error::Mpi)? => Ok(true),
                Ok(glue::CR_GRAPH) => Ok(is_connected(size, |rank| self.around(rank, size))),
                _ => {
                    let peers: Vec<Rank> = self.plain.members.iter().copied().filter(|&r| r != comm.rank()).collect();
                    agreement::connected(comm, &peers).await
                }
            }
        };
        self.connected.get(find).await.copied()
    }

    /// Who hands what to whom where blocks travel together; `same`: one block for all edges; `shared`: those
    /// within the node do not count. All ranks of the node must ask.
    pub async fn bundles(&self, comm: &Core, same: bool, shared: bool) -> Result<&Among<Bundles>> {
        let cell = &self.bundles[2 * usize::from(same) + usize::from(shared)];
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let place = comm.place().map_err(Error::Mpi)?;
        let (nodes, me) = (place.node_numbers(), comm.rank() as usize);
        let find = async {
            if self.is_directed() {
                return agreement::lists(comm, &self.ranks()).await;
            }
            let local = (0..nodes.len()).filter(|&rank| nodes[rank] == nodes[me]);
            Ok(local.map(|rank| (rank, self.around(rank, nodes.len()))).collect())
        };
        let local = self.lists.get(find).await?;
        let mut bundles = Bundles::new(me, local, |rank| nodes[rank], same, BUNDLED);
        // What others told does not say what goes to themselves.
        bundles.plain.own = self.plain.plan.own.clone();
        if shared {
            let [_, rest] = bundles.plain.split(|rank| nodes[rank] == nodes[me]);
            bundles.plain = rest;
        }
        let peers = bundles.peers().collect();
        Ok(cell.get_or_init(|| Among::new(comm, bundles, peers, |bundles, number| bundles.renumber(number))))
    }
}

/// Whether all ranks hang together by edges.
fn is_connected(size: usize, around: impl Fn(usize) -> Neighbors) -> bool {
    let (mut seen, mut next) = (vec![false; size], vec![0]);
    seen[0] = true;
    while let Some(rank) = next.pop() {
        for peer in around(rank).peers() {
            if !std::mem::replace(&mut seen[peer], true) {
                next.push(peer);
            }
        }
    }
    seen.into_iter().all(|seen| seen)
}

/// An array of Open MPI's.
///
/// # Safety
/// It has `len` elements, or `len` is not positive.
unsafe fn array<'a>(start: *const i32, len: i32) -> &'a [i32] {
    match usize::try_from(len) {
        // SAFETY: by the caller's promise.
        Ok(len) if len > 0 && !start.is_null() => unsafe { std::slice::from_raw_parts(start, len) },
        _ => &[],
    }
}

/// The edges of a rank in a topology, and its degrees.
///
/// # Safety
/// The arrays of the topology are as long as it says.
unsafe fn edges(topology: &cr_topology, me: usize, size: usize) -> Option<(Neighbors, (usize, usize))> {
    let listed = |destinations: &[i32], sources: &[i32]| {
        let list = |peers: &[i32]| -> Vec<Edge> {
            let peers = peers.iter().map(|&peer| usize::try_from(peer).ok().filter(|&peer| peer < size));
            peers.enumerate().filter_map(|(slot, peer)| peer.map(|peer| Edge { peer, slot })).collect()
        };
        let degrees = (destinations.len(), sources.len());
        (Neighbors::new(me, size, list(destinations), list(sources)), degrees)
    };
    match u32::try_from(topology.kind) {
        Ok(glue::CR_CART) => {
            // SAFETY: by the caller's promise.
            let [dims, periods] = [topology.dims, topology.periods].map(|a| unsafe { array(a, topology.dimensions) });
            let length = |&length: &i32| usize::try_from(length).unwrap_or(0).max(1);
            let dimensions: Vec<_> = dims.iter().map(length).zip(periods.iter().map(|&p| p != 0)).collect();
            let degree = 2 * dimensions.len();
            Some((Grid { dimensions }.neighbors(me), (degree, degree)))
        }
        Ok(glue::CR_GRAPH) => {
            // SAFETY: as above.
            let index = unsafe { array(topology.index, topology.nodes) };
            let end = |rank: usize| index.get(rank).copied().unwrap_or(0);
            // SAFETY: as above; the last index is the number of edges.
            let all = unsafe { array(topology.edges, index.last().copied().unwrap_or(0)) };
            let start = if me == 0 { 0 } else { end(me - 1) };
            let own = all.get(start as usize..end(me) as usize).unwrap_or_default();
            Some(listed(own, own))
        }
        Ok(glue::CR_DIST_GRAPH) => {
            // SAFETY: as above.
            let destinations = unsafe { array(topology.destinations, topology.out_degree) };
            // SAFETY: as above.
            let sources = unsafe { array(topology.sources, topology.in_degree) };
            Some(listed(destinations, sources))
        }
        _ => None,
    }
}
