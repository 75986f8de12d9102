//! Buffers in the memory of a device, which the CPU cannot access.
//!
//! The shim asks Open MPI's accelerator framework about the buffers of each call, where an accelerator is
//! active at all. Each rank does so for its own: what the others do, and what messages there are, does not
//! depend on it. So such a call goes by the way of all calls here, while others may come to it by a quick
//! one.
//!
//! * *What is moved* is packed and unpacked by the convertor, as if it were not contiguous: Open MPI's
//!   convertor has the accelerator copy it. Nobody else gets the buffer's address: such streams and blocks
//!   are never [direct](crate::endpoint::Stream::direct).
//! * *What is reduced* is staged in host memory.

use super::apart::apart;
use super::call::Call;
use super::comm::Comm;
use super::data::{Datatype, Side};
use super::glue::{self, CR_RECV_ON_DEVICE, CR_SEND_ON_DEVICE};
use super::kind::Kind;
use super::operation;
use super::team::Slot;
use crate::endpoint::{Error, Result, Span};
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::ptr::NonNull;

/// Which buffers of a call lie in a device's memory.
#[derive(Clone, Copy)]
pub struct Device(u32);

impl Device {
    /// None.
    pub const NONE: Device = Device(0);

    /// Says so of the call's sides; of those that count.
    #[inline(always)]
    pub fn mark(self, call: &mut Call) {
        if self.0 == 0 {
            return;
        }
        for (side, bit) in [(&mut call.send, CR_SEND_ON_DEVICE), (&mut call.receive, CR_RECV_ON_DEVICE)] {
            if let Some(side) = side {
                side.device = self.0 & bit != 0;
            }
        }
    }
}

impl From<i32> for Device {
    fn from(sum: i32) -> Device {
        Device(sum as u32)
    }
}

/// Alignment of what is staged: a cache line.
const ALIGN: usize = 64;

/// Elements in host memory that stand in for those of a buffer in a device's memory.
struct Copy {
    start: NonNull<u8>,
    layout: Layout,
    dtype: Datatype,
    /// The elements here.
    here: Span,
}

// SAFETY: it owns its memory; the datatype may be used by any thread.
unsafe impl Send for Copy {}
// SAFETY: as above.
unsafe impl Sync for Copy {}

impl Copy {
    /// Room for the elements of `there`.
    fn of(dtype: Datatype, there: Span) -> Result<Copy> {
        let count = there.len();
        let bytes = dtype.reach(count).ok_or(Error::NoMemory(usize::MAX))?.max(1);
        let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| Error::NoMemory(bytes))?;
        // SAFETY: the size is at least 1.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(Error::NoMemory(bytes))?;
        let origin = start.as_ptr().wrapping_offset(dtype.origin(count));
        Ok(Copy { start, layout, dtype, here: Span::new(origin, count, dtype.info.extent) })
    }

    /// Copies elements, of which one side lies in a device's memory.
    fn copy(&self, from: Span, to: Span) -> Result<()> {
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: both hold so many elements of the datatype, which is alive while the operation is, and do
        // not overlap.
        match unsafe { glue::cr_copy(self.dtype.handle, to.len(), to.ptr().cast(), from.ptr().cast()) } {
            0 => Ok(()),
            code => Err(Error::Mpi(code)),
        }
    }

    /// Gives the memory back. It is not given back otherwise: after an error messages may still touch it.
    fn free(self) {
        // SAFETY: allocated in `of` with this layout; nobody uses it any more.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Whether a call reduces what lies in a device's memory at this rank.
pub fn must_stage(call: &Call) -> bool {
    !call.op.is_null() && call.send.iter().chain(&call.receive).any(|side| side.device)
}

/// A side with its elements elsewhere.
fn moved(side: &Side, to: &Copy) -> Side {
    Side { buffer: to.here.ptr().cast::<c_void>(), device: false, ..side.clone() }
}

/// Runs a reduction with operands in host memory in place of those in a device's. The other arguments are
/// those of [`operation::run`].
pub async fn staged(
    comm: &Comm,
    call: &Call,
    slot: Option<Slot>,
    first_tag: Option<i32>,
    synchronise: bool,
) -> Result<()> {
    let mut host = call.clone();
    let (mut sent, mut received) = (None, None);
    let dtype = call.units();
    if let Some(side) = call.send.as_ref().filter(|side| side.device) {
        let operand = call.operand();
        let copy = Copy::of(dtype, operand)?;
        copy.copy(operand, copy.here)?;
        host.send = Some(moved(side, &copy));
        sent = Some(copy);
    }
    let mut target = Span::empty();
    if let Some(side) = call.receive.as_ref().filter(|side| side.device) {
        let in_place = call.send.is_none();
        let there = if in_place { call.operand() } else { call.result() };
        let copy = Copy::of(dtype, there)?;
        // What the operation does not write stays as it is.
        if in_place || call.kind == Kind::Exscan {
            copy.copy(there, copy.here)?;
        }
        target = call.result();
        host.receive = Some(moved(side, &copy));
        received = Some(copy);
    }
    // It comes here once: nothing of it lies in a device's memory any more.
    debug_assert!(!must_stage(&host));
    apart(|| operation::run(comm, &host, slot, first_tag, synchronise)).await?;
    if let Some(copy) = &received {
        let here = copy.here.slice(0..target.len());
        copy.copy(here, target)?;
    }
    sent.into_iter().chain(received).for_each(Copy::free);
    Ok(())
}
