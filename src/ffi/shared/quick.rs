//! Blocking calls on plain data.

use super::{Elements, zero_copy};
use crate::endpoint::{Result, Span, Stream};
use crate::ffi::comm::Comm;
use crate::ffi::data::Datatype;
use crate::ffi::glue::{self, cr_call, ompi_datatype_t};
use crate::ffi::kind::{Kind, Mode};
use crate::ffi::{counters, engine, operation};
use crate::shm::layout::LINE;
use crate::shm::op;
use crate::shm::team::Team;
use std::ffi::c_void;

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
            finish(team, Kind::Bcast, op::bcast::bcast(turn, call.root as usize, &data, zero_copy(comm)))
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
