//! Operations through the shared memory of a communicator's team.
//!
//! Whether an operation goes this way is decided by what all ranks know: the communicator, the operation, the parameters, and whether there
//! is a team. Ranks may well come by different doors: [`quick`] serves blocking calls on plain data, [`run`] all others.

use super::call::Call;
use super::comm::Comm;
use super::data::{Datatype, HostStream};
use super::engine;
use super::glue::{self, cr_call, ompi_datatype_t, ompi_op_t};
use super::kind::{Kind, Mode};
use super::team::Slot;
use super::{counters, operation};
use crate::endpoint::{Result, Span, Stream};
use crate::shm::layout::LINE;
use crate::shm::op::{self, Combine};
use crate::shm::team::Team;
use std::ffi::c_void;

/// The operations that can be done in shared memory.
pub const KINDS: [Kind; 4] = [Kind::Allreduce, Kind::Barrier, Kind::Bcast, Kind::Reduce];

/// Elements of a predefined type, or of one made of one, and a predefined operation on them.
struct Elements {
    dtype: Datatype,
    op: *mut ompi_op_t,
}

// SAFETY: addresses of Open MPI's objects, which any thread may use, and numbers.
unsafe impl Send for Elements {}
// SAFETY: as above.
unsafe impl Sync for Elements {}

impl Combine for Elements {
    #[inline(always)]
    fn size(&self) -> usize {
        self.dtype.info.extent as usize
    }

    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) {
        // SAFETY: by the caller's promise.
        unsafe { glue::cr_op_reduce(self.op, left.cast(), right.cast(), count, self.dtype.handle) };
    }

    unsafe fn reduce_into(&self, left: *const u8, right: *const u8, out: *mut u8, count: usize) {
        // SAFETY: by the caller's promise; element by element, so `out` may be an operand.
        unsafe {
            glue::cr_op_reduce_into(self.op, left.cast(), right.cast(), out.cast(), count, self.dtype.handle);
        }
    }
}

/// Bytes that lie in one run.
struct Plain(Span);

impl Stream for Plain {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn direct(&self) -> Option<Span> {
        Some(self.0)
    }

    fn pack(&self, _: usize, _: Span) -> Result<()> {
        Ok(()) // never called: `direct` says so
    }

    fn unpack(&self, _: usize, _: Span) -> Result<()> {
        Ok(())
    }
}

/// Whether a kind of operation is left to us within a node; the same on all ranks.
pub fn wanted(comm: &Comm, kind: Kind) -> bool {
    let config = comm.config();
    let auto = match kind {
        Kind::Bcast => config.bcast.algorithm.is_auto_within_node(),
        Kind::Reduce => config.reduce.algorithm.is_auto_within_node() && !config.reproducible,
        Kind::Allreduce => config.allreduce.algorithm.is_auto_within_node() && !config.reproducible,
        Kind::Barrier => config.barrier.algorithm.is_auto_within_node(),
        _ => false,
    };
    auto && comm.levels(kind).is_auto()
}

/// Whether a call may go through shared memory; the same on all ranks.
pub fn is_eligible(comm: &Comm, call: &Call) -> bool {
    // A user-defined operation may see other datatypes on other ranks; and elements with gaps (those of MPI_MAXLOC) cannot be copied as
    // they are, since what lies in the gaps of the user's buffer must stay.
    let simple = call.op.is_null() || (call.intrinsic && call.units().info.tiles != 0);
    comm.is_shared() && wanted(comm, call.kind) && simple
}

/// From so many bytes on a broadcast is read from the root's memory.
fn bcast_zero_copy(comm: &Comm) -> usize {
    comm.config().shm.zero_copy_min.unwrap_or(usize::MAX)
}

/// Does an eligible call. `false`: there is no shared memory for it, on any rank.
pub async fn run(comm: &Comm, call: &Call, slot: Slot) -> Result<bool> {
    let _turn = match slot {
        Slot::Nonblocking(number) => Some(comm.team.turn(number).await),
        _ => None,
    };
    let Some(number) = slot.number() else { return Ok(false) };
    let Some(team) = comm.team.team(comm).await? else { return Ok(false) };
    comm.open_quickly();
    let bytes = call.bytes().unwrap_or(0);
    if !call.op.is_null() && !team.fits(call.units().info.extent as usize) {
        return Ok(false);
    }
    let Some(turn) = team.open(number, 0, bytes > LINE).await? else { return Ok(false) };
    let elements = Elements { dtype: call.units(), op: call.op };
    let target = call.receive.as_ref().map(|side| call.elements(side));
    let input = call.send.as_ref().map(|side| call.elements(side)).or(target).unwrap_or(Span::empty());
    let target = target.unwrap_or(Span::empty());
    match call.kind {
        Kind::Barrier => op::barrier::barrier(turn).await,
        Kind::Bcast => {
            let buffer = call.receive.as_ref().map_or(std::ptr::null_mut(), |side| side.buffer);
            let stream = HostStream::new(call.units(), call.count(), buffer);
            op::bcast::bcast(turn, call.root as usize, &stream, bcast_zero_copy(comm)).await
        }
        Kind::Reduce => op::reduce::reduce(turn, call.root as usize, &elements, input, target).await,
        Kind::Allreduce => op::allreduce::allreduce(turn, &elements, input, target).await,
        _ => Err(operation::UNSUPPORTED),
    }?;
    Ok(true)
}

/// Does a blocking call on plain data, without looking at more than it must. `None`: by the way of all calls, please.
///
/// # Safety
/// As for [`Call::new`].
#[inline]
pub unsafe fn quick(comm: &Comm, call: &cr_call) -> Option<i32> {
    if !comm.is_quick(call.kind) {
        return None;
    }
    let team = comm.team.get()?;
    match Kind::from_number(call.kind)? {
        Kind::Barrier => finish(team, Kind::Barrier, op::barrier::barrier(team.turn(0, 0, false)?)),
        Kind::Bcast => {
            // SAFETY: live by the caller's promise.
            let size = unsafe { plain(call.recv.dtype) }?;
            let data = bytes(call.recv.buf, size, call.recv.count)?;
            let turn = team.turn(0, 0, data.0.len() > LINE)?;
            finish(team, Kind::Bcast, op::bcast::bcast(turn, call.root as usize, &data, bcast_zero_copy(comm)))
        }
        // SAFETY: by the caller's promise.
        kind @ (Kind::Reduce | Kind::Allreduce) => unsafe { quick_reduction(comm, team, kind, call) },
        _ => None,
    }
}

/// As [`quick`], of Reduce and Allreduce.
///
/// # Safety
/// As for [`Call::new`].
unsafe fn quick_reduction(comm: &Comm, team: &Team, kind: Kind, call: &cr_call) -> Option<i32> {
    let is_target = kind == Kind::Allreduce || call.root as u32 == comm.rank();
    let side = if is_target { &call.recv } else { &call.send };
    // SAFETY: live by the caller's promise, as below.
    let size = unsafe { plain(side.dtype) }?;
    let mut info = glue::cr_op_info::default();
    // SAFETY: as above; fills in ours.
    unsafe { glue::cr_op_info(call.op, &mut info) };
    if info.intrinsic == 0 {
        return None;
    }
    let output = bytes(call.recv.buf, size, side.count)?.0;
    let input = if call.send.in_place != 0 { output } else { bytes(call.send.buf, size, side.count)?.0 };
    let units = |span: Span| Span::new(span.ptr(), side.count, size as isize);
    let mut dtype = Datatype::BYTES;
    dtype.handle = side.dtype;
    (dtype.info.extent, dtype.info.size) = (size as isize, size);
    let elements = Elements { dtype, op: call.op };
    let turn = team.turn(0, 0, input.len() > LINE).filter(|_| team.fits(size));
    let turn = turn?;
    match kind {
        Kind::Reduce => {
            let root = call.root as usize;
            finish(team, kind, op::reduce::reduce(turn, root, &elements, units(input), units(output)))
        }
        _ => finish(team, kind, op::allreduce::allreduce(turn, &elements, units(input), units(output))),
    }
}

/// Bytes of an element of a datatype without gaps; `None` for others, and where it has none.
///
/// # Safety
/// The datatype is live.
unsafe fn plain(dtype: *mut ompi_datatype_t) -> Option<usize> {
    let mut size = 0;
    // SAFETY: by the caller's promise; fills in ours.
    let plain = unsafe { glue::cr_dtype_plain(dtype, &mut size) } != 0;
    (plain && size > 0).then_some(size)
}

/// `count` elements; `None` without any.
fn bytes(buffer: *mut c_void, size: usize, count: usize) -> Option<Plain> {
    let len = size.checked_mul(count).filter(|&len| len > 0)?;
    Some(Plain(Span::new(buffer.cast(), len, 1)))
}

#[inline(always)]
fn finish(team: &Team, kind: Kind, future: impl Future<Output = Result<()>>) -> Option<i32> {
    counters::handled(kind, Mode::Blocking);
    Some(engine::drive(future, || Some(team)).map_or_else(operation::code, |()| 0))
}
