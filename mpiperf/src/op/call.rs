// SPDX-License-Identifier: BSD-3-Clause
//! The MPI calls themselves: every collective in its blocking, nonblocking and persistent form.

use std::os::raw::{c_int, c_void};

use crate::mpi::ffi::{self, MPI_Aint, MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request};

use super::Mode;
use super::table::Kind;

type Ints = *const c_int;
type Aints = *const MPI_Aint;
type Types = *const MPI_Datatype;
type Source = *const c_void;
type Sink = *mut c_void;

macro_rules! persistent {
    ($($name:ident($($type:ty),*);)*) => {
        unsafe extern "C" {
            fn mpiperf_persistent() -> c_int;
            $(fn $name($(_: $type),*, comm: MPI_Comm, request: *mut MPI_Request) -> c_int;)*
            fn mpiperf_Barrier_init(comm: MPI_Comm, request: *mut MPI_Request) -> c_int;
        }
    };
}

persistent! {
    mpiperf_Bcast_init(Sink, c_int, MPI_Datatype, c_int);
    mpiperf_Gather_init(Source, c_int, MPI_Datatype, Sink, c_int, MPI_Datatype, c_int);
    mpiperf_Gatherv_init(Source, c_int, MPI_Datatype, Sink, Ints, Ints, MPI_Datatype, c_int);
    mpiperf_Scatter_init(Source, c_int, MPI_Datatype, Sink, c_int, MPI_Datatype, c_int);
    mpiperf_Scatterv_init(Source, Ints, Ints, MPI_Datatype, Sink, c_int, MPI_Datatype, c_int);
    mpiperf_Allgather_init(Source, c_int, MPI_Datatype, Sink, c_int, MPI_Datatype);
    mpiperf_Allgatherv_init(Source, c_int, MPI_Datatype, Sink, Ints, Ints, MPI_Datatype);
    mpiperf_Alltoall_init(Source, c_int, MPI_Datatype, Sink, c_int, MPI_Datatype);
    mpiperf_Alltoallv_init(Source, Ints, Ints, MPI_Datatype, Sink, Ints, Ints, MPI_Datatype);
    mpiperf_Alltoallw_init(Source, Ints, Ints, Types, Sink, Ints, Ints, Types);
    mpiperf_Reduce_init(Source, Sink, c_int, MPI_Datatype, MPI_Op, c_int);
    mpiperf_Allreduce_init(Source, Sink, c_int, MPI_Datatype, MPI_Op);
    mpiperf_Reduce_scatter_init(Source, Sink, Ints, MPI_Datatype, MPI_Op);
    mpiperf_Reduce_scatter_block_init(Source, Sink, c_int, MPI_Datatype, MPI_Op);
    mpiperf_Scan_init(Source, Sink, c_int, MPI_Datatype, MPI_Op);
    mpiperf_Exscan_init(Source, Sink, c_int, MPI_Datatype, MPI_Op);
    mpiperf_Neighbor_allgather_init(Source, c_int, MPI_Datatype, Sink, c_int, MPI_Datatype);
    mpiperf_Neighbor_allgatherv_init(Source, c_int, MPI_Datatype, Sink, Ints, Ints, MPI_Datatype);
    mpiperf_Neighbor_alltoall_init(Source, c_int, MPI_Datatype, Sink, c_int, MPI_Datatype);
    mpiperf_Neighbor_alltoallv_init(Source, Ints, Ints, MPI_Datatype, Sink, Ints, Ints, MPI_Datatype);
    mpiperf_Neighbor_alltoallw_init(Source, Ints, Aints, Types, Sink, Ints, Aints, Types);
}

/// Whether the library has persistent collectives.
pub fn has_persistent() -> bool {
    // SAFETY: returns a constant.
    unsafe { mpiperf_persistent() != 0 }
}

/// Counts, displacements and types of one rank's calls, the same in every call.
#[derive(Default)]
pub struct Arguments {
    /// The count where there is one: sent.
    pub sn: c_int,
    /// The count where there is one: received.
    pub rn: c_int,
    /// Counts sent.
    pub sns: Vec<c_int>,
    /// Displacements sent, in the unit that the function wants.
    pub sds: Vec<c_int>,
    /// Counts received.
    pub rns: Vec<c_int>,
    /// Displacements received.
    pub rds: Vec<c_int>,
    /// Displacements sent, of `MPI_Neighbor_alltoallw`.
    pub sdas: Vec<MPI_Aint>,
    /// Displacements received, of `MPI_Neighbor_alltoallw`.
    pub rdas: Vec<MPI_Aint>,
    /// Datatypes of the functions that have many.
    pub types: Vec<MPI_Datatype>,
}

/// What else a call needs.
#[derive(Clone, Copy)]
pub struct Target {
    /// Where from; `MPI_IN_PLACE`, or null where it is not significant.
    pub send: Source,
    /// Where to.
    pub recv: Sink,
    /// The datatype.
    pub datatype: MPI_Datatype,
    /// The reduction, where there is one.
    pub op: MPI_Op,
    /// The root, where there is one.
    pub root: c_int,
    /// On which communicator.
    pub comm: MPI_Comm,
}

/// Calls the blocking function, starts the nonblocking one, or initialises the persistent one. Returns MPI's
/// code.
///
/// # Safety
///
/// The arguments and the target describe a valid call of the function, and stay valid until `request` is
/// complete (persistent: freed).
pub unsafe fn start(kind: Kind, mode: Mode, a: &Arguments, to: &Target, request: *mut MPI_Request) -> c_int {
    macro_rules! by_mode {
        ($blocking:ident $nonblocking:ident $init:ident ($($arg:expr),*)) => {
            // SAFETY: by this function's contract.
            unsafe {
                match mode {
                    Mode::Blocking => ffi::$blocking($($arg,)* to.comm),
                    Mode::Nonblocking => ffi::$nonblocking($($arg,)* to.comm, request),
                    Mode::Persistent => $init($($arg,)* to.comm, request),
                }
            }
        };
    }
    let (s, r, t, op, root) = (to.send, to.recv, to.datatype, to.op, to.root);
    let (sns, sds, rns, rds) = (a.sns.as_ptr(), a.sds.as_ptr(), a.rns.as_ptr(), a.rds.as_ptr());
    let (sdas, rdas, ts) = (a.sdas.as_ptr(), a.rdas.as_ptr(), a.types.as_ptr());
    match kind {
        Kind::Barrier => by_mode!(MPI_Barrier MPI_Ibarrier mpiperf_Barrier_init()),
        Kind::Bcast => by_mode!(MPI_Bcast MPI_Ibcast mpiperf_Bcast_init(r, a.rn, t, root)),
        Kind::Gather => by_mode!(MPI_Gather MPI_Igather mpiperf_Gather_init(s, a.sn, t, r, a.rn, t, root)),
        Kind::Gatherv => by_mode!(MPI_Gatherv MPI_Igatherv mpiperf_Gatherv_init(s, a.sn, t, r, rns, rds, t, root)),
        Kind::Scatter => by_mode!(MPI_Scatter MPI_Iscatter mpiperf_Scatter_init(s, a.sn, t, r, a.rn, t, root)),
        Kind::Scatterv => by_mode!(MPI_Scatterv MPI_Iscatterv mpiperf_Scatterv_init(s, sns, sds, t, r, a.rn, t, root)),
        Kind::Allgather => by_mode!(MPI_Allgather MPI_Iallgather mpiperf_Allgather_init(s, a.sn, t, r, a.rn, t)),
        Kind::Allgatherv => {
            by_mode!(MPI_Allgatherv MPI_Iallgatherv mpiperf_Allgatherv_init(s, a.sn, t, r, rns, rds, t))
        }
        Kind::Alltoall => by_mode!(MPI_Alltoall MPI_Ialltoall mpiperf_Alltoall_init(s, a.sn, t, r, a.rn, t)),
        Kind::Alltoallv => {
            by_mode!(MPI_Alltoallv MPI_Ialltoallv mpiperf_Alltoallv_init(s, sns, sds, t, r, rns, rds, t))
        }
        Kind::Alltoallw => {
            by_mode!(MPI_Alltoallw MPI_Ialltoallw mpiperf_Alltoallw_init(s, sns, sds, ts, r, rns, rds, ts))
        }
        Kind::Reduce => by_mode!(MPI_Reduce MPI_Ireduce mpiperf_Reduce_init(s, r, a.sn, t, op, root)),
        Kind::Allreduce => by_mode!(MPI_Allreduce MPI_Iallreduce mpiperf_Allreduce_init(s, r, a.sn, t, op)),
        Kind::ReduceScatter => {
            by_mode!(MPI_Reduce_scatter MPI_Ireduce_scatter mpiperf_Reduce_scatter_init(s, r, rns, t, op))
        }
        Kind::ReduceScatterBlock => {
            by_mode!(MPI_Reduce_scatter_block MPI_Ireduce_scatter_block mpiperf_Reduce_scatter_block_init(s, r, a.rn, t, op))
        }
        Kind::Scan => by_mode!(MPI_Scan MPI_Iscan mpiperf_Scan_init(s, r, a.sn, t, op)),
        Kind::Exscan => by_mode!(MPI_Exscan MPI_Iexscan mpiperf_Exscan_init(s, r, a.sn, t, op)),
        Kind::NeighborAllgather => {
            by_mode!(MPI_Neighbor_allgather MPI_Ineighbor_allgather mpiperf_Neighbor_allgather_init(s, a.sn, t, r, a.rn, t))
        }
        Kind::NeighborAllgatherv => {
            by_mode!(MPI_Neighbor_allgatherv MPI_Ineighbor_allgatherv mpiperf_Neighbor_allgatherv_init(s, a.sn, t, r, rns, rds, t))
        }
        Kind::NeighborAlltoall => {
            by_mode!(MPI_Neighbor_alltoall MPI_Ineighbor_alltoall mpiperf_Neighbor_alltoall_init(s, a.sn, t, r, a.rn, t))
        }
        Kind::NeighborAlltoallv => {
            by_mode!(MPI_Neighbor_alltoallv MPI_Ineighbor_alltoallv mpiperf_Neighbor_alltoallv_init(s, sns, sds, t, r, rns, rds, t))
        }
        Kind::NeighborAlltoallw => {
            by_mode!(MPI_Neighbor_alltoallw MPI_Ineighbor_alltoallw mpiperf_Neighbor_alltoallw_init(s, sns, sdas, ts, r, rns, rdas, ts))
        }
        // Not collectives over data: `communicator` and `pairs` make these calls.
        Kind::CommDup | Kind::CommSplit | Kind::CommCreate | Kind::CommFree => 0,
        Kind::PingPong | Kind::Stream | Kind::Exchange => 0,
    }
}
