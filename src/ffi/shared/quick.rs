//! Blocking calls on plain data.

use super::{Elements, needs_queue, zero_copy};
use crate::endpoint::{Blocks, Result, Span, Stream};
use crate::ffi::comm::Comm;
use crate::ffi::glue::{self, cr_call, cr_count, cr_displ, cr_side, ompi_datatype_t};
use crate::ffi::kind::{Kind, Mode};
use crate::ffi::team::Slot;
use crate::ffi::{blocking, counters, operation};
use crate::shm::op;
use crate::shm::team::Team;
use std::ffi::c_void;
use std::ops::Range;
use std::pin::pin;

/// Bytes that lie in one run.
pub struct Plain(pub Span);

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

/// Blocks of plain data: of equal length and one after the other, or as the user's arrays say.
pub struct PlainBlocks {
    buffer: *mut u8,
    /// Bytes of an element.
    size: usize,
    /// Bytes of each block where there are no `counts`.
    pub each: usize,
    counts: *const cr_count,
    displs: *const cr_displ,
}

// SAFETY: addresses of the user's buffer and arrays; accesses follow the rules of the operation that owns them for its duration.
unsafe impl Sync for PlainBlocks {}
// SAFETY: as above.
unsafe impl Send for PlainBlocks {}

impl PlainBlocks {
    /// An element of one of the user's arrays.
    #[inline(always)]
    fn of(array: *const i32, member: usize) -> isize {
        // SAFETY: the array of a significant side has an element for each member, and lasts as long as the call.
        unsafe { *array.add(member) as isize }
    }
}

impl Blocks for PlainBlocks {
    #[inline(always)]
    fn len(&self, member: usize) -> usize {
        match self.counts.is_null() {
            true => self.each,
            false => usize::try_from(Self::of(self.counts, member)).unwrap_or(0) * self.size,
        }
    }

    /// Of one member, or of several where blocks are equal: others are not asked for in shared memory.
    #[inline(always)]
    fn direct(&self, members: Range<usize>) -> Option<Span> {
        let member = members.start;
        let (shift, len) = match self.displs.is_null() {
            true => ((member * self.each) as isize, members.len() * self.each),
            false if members.len() == 1 => (Self::of(self.displs, member) * self.size as isize, self.len(member)),
            false => return None,
        };
        Some(Span::new(self.buffer.wrapping_offset(shift), len, 1))
    }

    fn pack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(()) // never called, as above
    }

    fn unpack(&self, _: usize, _: usize, _: Span) -> Result<()> {
        Ok(())
    }
}

/// Does a blocking call on plain data, without looking at more than it must. `None`: by the way of all calls, please.
///
/// # Safety
/// As for [`Call::new`].
#[inline(always)]
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
            let turn = team.turn(0, 0, needs_queue(Kind::Bcast, Some(data.0.len()), team.size()))?;
            finish(
                team,
                Kind::Bcast,
                op::bcast::bcast(turn, call.root as usize, &data, zero_copy(comm, team, Slot::Blocking).bcast),
            )
        }
        kind @ (Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan) => {
            // SAFETY: by the caller's promise.
            unsafe { quick_reduction(comm, team, kind, call) }
        }
        kind @ (Kind::ReduceScatter | Kind::ReduceScatterBlock) => {
            // SAFETY: by the caller's promise.
            unsafe { quick_reduction(comm, team, kind, call) }
        }
        // SAFETY: by the caller's promise.
        kind @ (Kind::Gather | Kind::Gatherv | Kind::Scatter | Kind::Scatterv) => unsafe {
            quick_rooted(comm, team, kind, call)
        },
        // SAFETY: as above.
        kind @ (Kind::Allgather | Kind::Allgatherv | Kind::Alltoall | Kind::Alltoallv) => unsafe {
            quick_unrooted(comm, team, kind, call)
        },
        // SAFETY: as above.
        kind if kind.is_neighbor() && kind != Kind::NeighborAlltoallw => unsafe {
            quick_neighbor(comm, team, kind, call)
        },
        _ => None,
    }
}

/// As [`quick`], of Gather and Scatter and their vector forms.
///
/// # Safety
/// As for [`Call::new`](crate::ffi::call::Call::new).
unsafe fn quick_rooted(comm: &Comm, team: &Team, kind: Kind, call: &cr_call) -> Option<i32> {
    let (root, is_root) = (call.root as usize, call.root as u32 == comm.rank());
    let gathers = matches!(kind, Kind::Gather | Kind::Gatherv);
    let (all, own) = if gathers { (&call.recv, &call.send) } else { (&call.send, &call.recv) };
    // SAFETY: significant, so live by the caller's promise; as below.
    let all = if is_root { Some(unsafe { blocks(all) }?) } else { None };
    // SAFETY: as above.
    let own = if own.in_place != 0 { None } else { Some(unsafe { stream(own) }?) };
    let each = all.as_ref().map(|all| all.each).or(own.as_ref().map(|own| own.0.len()))?;
    let turn = || team.turn(0, 0, needs_queue(kind, Some(each), team.size()));
    let zero_copy = zero_copy(comm, team, Slot::Blocking);
    let zero_copy = if gathers { zero_copy.gather } else { zero_copy.scatter };
    match (all, own, gathers) {
        (Some(all), own, true) => finish(team, kind, op::gather::receive(turn()?, own.as_ref(), &all, zero_copy)),
        (Some(all), own, false) => finish(team, kind, op::scatter::send(turn()?, &all, own.as_ref(), zero_copy)),
        (None, Some(own), true) => finish(team, kind, op::gather::send(turn()?, root, &own, zero_copy)),
        (None, Some(own), false) => finish(team, kind, op::scatter::receive(turn()?, root, &own, zero_copy)),
        (None, None, _) => None,
    }
}

/// As [`quick`], of Allgather and Alltoall and their vector forms.
///
/// # Safety
/// As for [`Call::new`](crate::ffi::call::Call::new).
unsafe fn quick_unrooted(comm: &Comm, team: &Team, kind: Kind, call: &cr_call) -> Option<i32> {
    let (size, zero_copy) = (team.size(), zero_copy(comm, team, Slot::Blocking));
    let in_place = call.send.in_place != 0;
    // SAFETY: significant, so live by the caller's promise; as below.
    let into = unsafe { blocks(&call.recv) }?;
    let queue = needs_queue(kind, Some(into.each), size);
    if matches!(kind, Kind::Allgather | Kind::Allgatherv) {
        // SAFETY: as above.
        let own = if in_place { None } else { Some(unsafe { stream(&call.send) }?) };
        let turn = team.turn(0, 0, queue)?;
        return finish(team, kind, op::allgather::allgather(turn, own.as_ref(), &into, zero_copy.allgather));
    }
    // SAFETY: as above.
    let out = if in_place { None } else { Some(unsafe { blocks(&call.send) }?) };
    let turn = team.turn(0, 0, queue)?;
    finish(team, kind, op::alltoall::alltoall(turn, out.as_ref(), &into, zero_copy.alltoall))
}

/// As [`quick`], of the neighbourhood operations.
///
/// # Safety
/// As for [`Call::new`](crate::ffi::call::Call::new).
unsafe fn quick_neighbor(comm: &Comm, team: &Team, kind: Kind, call: &cr_call) -> Option<i32> {
    let around = comm.neighborhood()?;
    let skipped = matches!(kind, Kind::NeighborAllgather | Kind::NeighborAlltoall);
    // Without neighbours on one side there are no arrays.
    if (skipped && around.known_connected() != Some(true)) || around.degrees().0.min(around.degrees().1) == 0 {
        return None;
    }
    let edges = around.known_within()?;
    let zero_copy = zero_copy(comm, team, Slot::Blocking);
    // SAFETY: significant, so live by the caller's promise; as below.
    let into = unsafe { blocks(&call.recv) }?;
    if matches!(kind, Kind::NeighborAllgather | Kind::NeighborAllgatherv) {
        // SAFETY: as above.
        let own = unsafe { stream(&call.send) }?;
        return finish(
            team,
            kind,
            op::neighbor::spread(team.turn(0, 0, true)?, edges, &own, &into, zero_copy.allgather),
        );
    }
    // SAFETY: as above.
    let out = unsafe { blocks(&call.send) }?;
    finish(team, kind, op::neighbor::exchange(team.turn(0, 0, true)?, edges, &out, &into, zero_copy.alltoall))
}

/// As [`quick`], of the reductions.
///
/// # Safety
/// As for [`Call::new`].
unsafe fn quick_reduction(comm: &Comm, team: &Team, kind: Kind, call: &cr_call) -> Option<i32> {
    let is_target = kind != Kind::Reduce || call.root as u32 == comm.rank();
    let side = if is_target { &call.recv } else { &call.send };
    // SAFETY: live by the caller's promise, as below.
    let size = unsafe { plain(side.dtype) }?;
    // SAFETY: as above.
    if unsafe { glue::cr_op_is_plain(call.op, side.dtype) } == 0 {
        return None;
    }
    let counts = |member: usize| match side.counts.is_null() {
        true => side.count,
        false => usize::try_from(PlainBlocks::of(side.counts, member)).unwrap_or(0),
    };
    let count = match kind {
        Kind::ReduceScatter | Kind::ReduceScatterBlock => {
            (0..team.size()).map(counts).try_fold(0, usize::checked_add)?
        }
        _ => side.count,
    };
    let output = bytes(call.recv.buf, size, count)?.0;
    let input = if call.send.in_place != 0 { output } else { bytes(call.send.buf, size, count)?.0 };
    let units = |span: Span| Span::new(span.ptr(), count, size as isize);
    let elements = Elements { dtype: side.dtype, op: call.op, size };
    // Asked before there is a turn: one that is dropped fails the team.
    if !team.fits(size) {
        return None;
    }
    let turn = team.turn(0, 0, needs_queue(kind, Some(input.len()), team.size()))?;
    match kind {
        Kind::Reduce => {
            let root = call.root as usize;
            finish(team, kind, op::reduce::reduce(turn, root, &elements, units(input), units(output)))
        }
        Kind::Scan | Kind::Exscan => {
            let exclusive = kind == Kind::Exscan;
            finish(team, kind, op::scan::scan(turn, exclusive, &elements, units(input), units(output)))
        }
        Kind::ReduceScatter | Kind::ReduceScatterBlock => {
            let future = op::reduce_scatter::reduce_scatter(turn, &elements, units(input), counts, units(output));
            finish(team, kind, future)
        }
        _ => {
            let zero_copy = zero_copy(comm, team, Slot::Blocking).allreduce;
            finish(team, kind, op::allreduce::allreduce(turn, &elements, units(input), units(output), zero_copy))
        }
    }
}

/// Bytes of an element of a datatype without gaps; `None` for others, and where it has none.
///
/// # Safety
/// The datatype is live.
pub(super) unsafe fn plain(dtype: *mut ompi_datatype_t) -> Option<usize> {
    let mut size = 0;
    // SAFETY: by the caller's promise; fills in ours.
    let plain = unsafe { glue::cr_dtype_plain(dtype, &mut size) } != 0;
    (plain && size > 0).then_some(size)
}

/// `count` elements; `None` without any.
pub(super) fn bytes(buffer: *mut c_void, size: usize, count: usize) -> Option<Plain> {
    let len = size.checked_mul(count).filter(|&len| len > 0)?;
    Some(Plain(Span::new(buffer.cast(), len, 1)))
}

/// The elements of a side without blocks; `None` where they are not plain, and without any.
///
/// # Safety
/// The side is significant: its datatype is live.
pub unsafe fn stream(side: &cr_side) -> Option<Plain> {
    // SAFETY: by the caller's promise.
    bytes(side.buf, unsafe { plain(side.dtype) }?, side.count)
}

/// The blocks of a side; `None` where they are not plain, and, where they are equal, without any element.
///
/// # Safety
/// As for [`stream`].
pub unsafe fn blocks(side: &cr_side) -> Option<PlainBlocks> {
    // SAFETY: by the caller's promise.
    let size = unsafe { plain(side.dtype) }?;
    let each = match side.counts.is_null() {
        true => size.checked_mul(side.count).filter(|&each| each > 0)?,
        false => 0,
    };
    Some(PlainBlocks { buffer: side.buf.cast(), size, each, counts: side.counts, displs: side.displs })
}

#[inline(always)]
fn finish(team: &Team, kind: Kind, future: impl Future<Output = Result<()>>) -> Option<i32> {
    counters::handled(kind, Mode::Blocking);
    Some(blocking::drive(pin!(future), || Some(team)).map_or_else(operation::code, |()| 0))
}
