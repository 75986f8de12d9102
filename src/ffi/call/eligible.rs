// SPDX-License-Identifier: BSD-3-Clause
//! Which calls may go through shared memory, and what all ranks know of that.

use crate::ffi::base::kind::Kind;
use crate::ffi::call::arguments::Call;
use crate::ffi::call::packed::is_packed;
use crate::ffi::comm::state::Comm;
use crate::shm::memory::layout::LINE;
use crate::shm::protocol::team::Team;

/// Whether a call may go through shared memory: all of it, or what happens within the nodes. The same on all
/// ranks.
pub fn is_eligible(comm: &Comm, call: &Call<'_>) -> bool {
    // A user-defined operation may see other datatypes on other ranks; and elements with gaps (those of
    // MPI_MAXLOC) cannot be copied as they are, since what lies in the gaps of the user's buffer must stay.
    let simple = call.op.is_null() || (call.intrinsic && call.units().info.tiles != 0);
    call.by_all && call.decision.shares && (simple || comm.is_shared() && is_packed(call))
}

/// Whether a call may move more than lines hold. `len`: bytes of a block where each rank has one of the same
/// length, else of all data; `None` where not all ranks know. By whatever door a rank comes to a call, this
/// is what it asks: the same on all ranks.
#[inline(always)]
pub fn needs_queue(kind: Kind, len: Option<usize>, team: &Team) -> bool {
    match kind {
        Kind::Barrier => false,
        Kind::Scatter | Kind::Alltoall => len.is_none_or(|block| block > team.short_shares()[0]),
        // Only the two ends of a message know its length.
        Kind::Gatherv | Kind::Scatterv | Kind::Allgatherv | Kind::Alltoallv | Kind::Alltoallw => true,
        kind if kind.is_neighbor() => true,
        _ => len.is_none_or(|len| len > LINE),
    }
}
