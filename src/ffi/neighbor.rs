//! Neighbourhood operations: a communicator's process topology, and the exchange along its edges.

use super::call::Call;
use super::comm::Comm;
use super::data::{HostBlocks, Side};
use super::flat::whole;
use super::glue::{self, cr_topology};
use super::host::HostEndpoint;
use super::kind::Kind;
use super::operation::UNSUPPORTED;
use crate::algo::Stage;
use crate::algo::neighbor::{aggregated::aggregated, direct::direct, with_same};
use crate::endpoint::{Blocks, Error, Rank, Result, Stream, Tag};
use crate::pattern::bundles::Bundles;
use crate::pattern::neighborhood::{Edge, Grid, Neighbors};
use crate::select::{Neighbor, Whole};
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
    /// For blocks that travel together: each along its edge, and one for all edges. None where the caller does not know the edges of others.
    bundles: [OnceLock<Option<Among<Bundles>>>; 2],
}

/// Messages with a few others.
struct Among<T> {
    /// They and the caller, ascending.
    members: Vec<Rank>,
    /// The lowest level that the caller shares with each of them.
    levels: Vec<u8>,
    me: usize,
    /// Who they are for: indices into `members`.
    plan: T,
}

impl<T> Among<T> {
    /// Of a plan between ranks. `peers`: whom it has messages with.
    fn new(
        comm: &Comm,
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

    fn stage<'a>(&'a self, ep: &'a HostEndpoint) -> Stage<'a, HostEndpoint> {
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
    pub fn find(comm: &Comm) -> Option<Neighborhood> {
        let mut topology = cr_topology::default();
        // SAFETY: the communicator is alive; fills in ours.
        unsafe { glue::cr_comm_topology(comm.handle(), &mut topology) };
        // SAFETY: as Open MPI has it.
        let (edges, degrees) = unsafe { edges(&topology, comm.rank() as usize, comm.size() as usize) }?;
        let peers = edges.peers().collect();
        let plain = Among::new(comm, edges, peers, |edges, number| edges.renumber(number));
        Some(Neighborhood { topology: Topology(topology), plain, degrees, bundles: Default::default() })
    }

    /// How many blocks a send buffer has, and how many a receive buffer has.
    pub fn degrees(&self) -> (usize, usize) {
        self.degrees
    }

    /// Whether a rank may have neighbours that it sends to and that do not send to it, and does not know the edges of others. The same on
    /// all ranks.
    pub fn is_directed(&self) -> bool {
        self.topology.0.kind == glue::CR_DIST_GRAPH as i32
    }

    /// Who hands what to whom where blocks travel together; `same`: one block for all edges. None where the caller does not know.
    fn bundles(&self, comm: &Comm, same: bool) -> Result<Option<&Among<Bundles>>> {
        let place = comm.place().map_err(Error::Mpi)?;
        let find = || {
            let (nodes, me) = (place.node_numbers(), comm.rank() as usize);
            let local = (0..nodes.len()).filter(|&rank| nodes[rank] == nodes[me]);
            // SAFETY: as Open MPI has it.
            let around = |rank| unsafe { edges(&self.topology.0, rank, nodes.len()) }.unwrap_or_default().0;
            let local: Vec<(usize, Neighbors)> = local.map(|rank| (rank, around(rank))).collect();
            let bundles = Bundles::new(me, &local, |rank| nodes[rank], same, BUNDLED);
            let peers = bundles.peers().collect();
            Among::new(comm, bundles, peers, |bundles, number| bundles.renumber(number))
        };
        let known = self.bundles[usize::from(same)].get_or_init(|| (!self.is_directed()).then(find));
        Ok(known.as_ref())
    }
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

/// Runs a neighbourhood operation by the algorithm that the parameters, or the facts, say. `acknowledged`: so that no rank runs ahead.
pub async fn run(ep: &HostEndpoint, comm: &Comm, call: &Call, acknowledged: bool) -> Result<()> {
    let around = comm.neighborhood().ok_or(UNSUPPORTED)?;
    let nothing = Side::NOTHING;
    let (out, from) = (call.send.as_ref().unwrap_or(&nothing), call.receive.as_ref().unwrap_or(&nothing));
    let into = HostBlocks::new(from);
    // Whoever has neighbours gives the same amount on both sides, or nothing on one that has none.
    let equal = matches!(call.kind, Kind::NeighborAllgather | Kind::NeighborAlltoall)
        .then(|| out.stream().len().max(from.stream().len()));
    let whole = Whole { block: equal.filter(|_| !around.is_directed()), ..whole(comm, call)? };
    let config = comm.config();
    let algorithm = match call.kind {
        Kind::NeighborAllgather => config.neighbor_allgather.choose(&whole),
        Kind::NeighborAllgatherv => config.neighbor_allgatherv.choose(&whole),
        Kind::NeighborAlltoall => config.neighbor_alltoall.choose(&whole),
        Kind::NeighborAlltoallv => config.neighbor_alltoallv.choose(&whole),
        Kind::NeighborAlltoallw => config.neighbor_alltoallw.choose(&whole),
        _ => return Err(UNSUPPORTED),
    };
    let same = matches!(call.kind, Kind::NeighborAllgather | Kind::NeighborAllgatherv);
    let (posts, bundles) = match algorithm {
        Neighbor::Direct(posts) => (posts, None),
        Neighbor::Aggregated(posts) => (posts, around.bundles(comm, same)?),
    };
    let way = Way { ep, around, bundles, posts, acknowledged, equal };
    match same {
        true => with_same(ep, &out.stream(), async |out| way.go(out, &into).await).await,
        false => way.go(&HostBlocks::new(out), &into).await,
    }
}

/// How the blocks go.
struct Way<'a> {
    ep: &'a HostEndpoint,
    around: &'a Neighborhood,
    bundles: Option<&'a Among<Bundles>>,
    posts: usize,
    acknowledged: bool,
    equal: Option<usize>,
}

impl Way<'_> {
    async fn go<O: Blocks>(&self, out: &O, into: &HostBlocks<'_>) -> Result<()> {
        let &Way { ep, around, bundles, posts, acknowledged, equal } = self;
        match bundles {
            Some(among) => aggregated(&among.stage(ep), &among.plan, equal, out, into, posts).await,
            None => direct(&around.plain.stage(ep), &around.plain.plan, out, into, posts, acknowledged).await,
        }
    }
}
