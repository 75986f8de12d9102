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
use crate::algo::neighbor::{direct::direct, with_same};
use crate::endpoint::{Rank, Result, Tag};
use crate::pattern::neighborhood::{Edge, Grid, Neighbors};
use crate::select::Neighbor;
use crate::topo::Level;

/// The neighbours of the caller.
#[derive(Debug)]
pub struct Neighborhood {
    /// They and the caller, ascending.
    members: Vec<Rank>,
    /// The lowest level that the caller shares with each of them.
    levels: Vec<u8>,
    me: usize,
    /// The edges; peers are indices into `members`.
    edges: Neighbors,
    /// Blocks of a send buffer and of a receive buffer: those for neighbours beyond a border too.
    degrees: (usize, usize),
    directed: bool,
}

impl Neighborhood {
    /// Asks Open MPI for the topology of the communicator; none where it has none.
    pub fn find(comm: &Comm) -> Option<Neighborhood> {
        let mut topology = cr_topology::default();
        // SAFETY: the communicator is alive; fills in ours.
        unsafe { glue::cr_comm_topology(comm.handle(), &mut topology) };
        // SAFETY: as Open MPI has it.
        let (edges, degrees) = unsafe { edges(&topology, comm.rank() as usize, comm.size() as usize) }?;
        let (edges, members, me) = compact(edges, comm.rank());
        let place = comm.place().ok();
        let level = |&rank: &Rank| place.map_or(Level::Cluster, |place| place.joint(rank)).index();
        let levels = members.iter().map(level).collect();
        let directed = topology.kind == glue::CR_DIST_GRAPH as i32;
        Some(Neighborhood { members, levels, me, edges, degrees, directed })
    }

    /// How many blocks a send buffer has, and how many a receive buffer has.
    pub fn degrees(&self) -> (usize, usize) {
        self.degrees
    }

    /// Whether a rank may have neighbours that it sends to and that do not send to it. The same on all ranks.
    pub fn is_directed(&self) -> bool {
        self.directed
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

/// The same edges between members of the smallest group that has them, that group, and the caller's number in it.
fn compact(mut edges: Neighbors, me: Rank) -> (Neighbors, Vec<Rank>, usize) {
    let peers = edges.destinations.iter().chain(&edges.sources).map(|edge| edge.peer as Rank);
    let mut members: Vec<Rank> = peers.chain([me]).collect();
    members.sort_unstable();
    members.dedup();
    let number = |rank: Rank| members.partition_point(|&member| member < rank);
    for edge in edges.destinations.iter_mut().chain(&mut edges.sources) {
        edge.peer = number(edge.peer as Rank);
    }
    let me = number(me);
    (edges, members, me)
}

/// Runs a neighbourhood operation by the algorithm that the parameters, or the facts, say. `acknowledged`: so that no rank runs ahead.
pub async fn run(ep: &HostEndpoint, comm: &Comm, call: &Call, acknowledged: bool) -> Result<()> {
    let around = comm.neighborhood().ok_or(UNSUPPORTED)?;
    let whole = whole(comm, call)?;
    let config = comm.config();
    let algorithm = match call.kind {
        Kind::NeighborAllgather => config.neighbor_allgather.choose(&whole),
        Kind::NeighborAllgatherv => config.neighbor_allgatherv.choose(&whole),
        Kind::NeighborAlltoall => config.neighbor_alltoall.choose(&whole),
        Kind::NeighborAlltoallv => config.neighbor_alltoallv.choose(&whole),
        Kind::NeighborAlltoallw => config.neighbor_alltoallw.choose(&whole),
        _ => return Err(UNSUPPORTED),
    };
    let tag = Tag { lane: 0, phase: 0, level: Level::Cluster.index() };
    let stage = Stage::new(ep, &around.members, around.me, tag).counted(&around.levels);
    let nothing = Side::NOTHING;
    let out = call.send.as_ref().unwrap_or(&nothing);
    let into = HostBlocks::new(call.receive.as_ref().unwrap_or(&nothing));
    let one_for_all = matches!(call.kind, Kind::NeighborAllgather | Kind::NeighborAllgatherv);
    match algorithm {
        Neighbor::Direct(posts) if one_for_all => {
            with_same(ep, &out.stream(), async |out| {
                direct(&stage, &around.edges, out, &into, posts, acknowledged).await
            })
            .await
        }
        Neighbor::Direct(posts) => {
            direct(&stage, &around.edges, &HostBlocks::new(out), &into, posts, acknowledged).await
        }
    }
}
