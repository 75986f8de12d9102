// SPDX-License-Identifier: BSD-3-Clause
//! Which calls are taken.

use crate::ffi::base::error::PASS;
use crate::ffi::base::glue::{CR_ERR_INTERN, cr_call};
use crate::ffi::base::kind::{Kind, Mode};
use crate::ffi::call::arguments::{Call, given_by, sides};
use crate::ffi::call::device::Device;
use crate::ffi::comm::state::Comm;
use crate::ffi::process::counters;

/// A call; `Err`: what it is answered with.
type Accepted<'a> = std::result::Result<Call<'a>, i32>;

/// Takes a call over from the shim; `Err` where it is refused, or passed to the component below.
///
/// # Safety
/// As for [`Call::new`].
#[inline(always)]
pub unsafe fn accept<'a>(comm: &Comm, call: &'a cr_call, device: Device, mode: Mode) -> Accepted<'a> {
    // SAFETY: by the caller's promise.
    if let Some(kind) = unsafe { goes_below(comm, call, mode) }? {
        counters::passed(kind, mode);
        return Err(PASS);
    }
    // SAFETY: by the caller's promise.
    let mut call = unsafe { Call::new(comm, call) }?;
    device.mark(&mut call);
    Ok(call)
}

/// The operation of a call that goes to the component below: the parameters leave it to that (but not where
/// its processes are in several clusters), there are no edges to go along, or it is one of the
/// communicator's [first](Comm::has_first_calls). The same on all ranks.
///
/// # Safety
/// As for [`Call::new`].
unsafe fn goes_below(comm: &Comm, call: &cr_call, mode: Mode) -> Result<Option<Kind>, i32> {
    let kind = Kind::from_number(call.kind).ok_or(CR_ERR_INTERN as i32)?;
    // SAFETY: by the caller's promise.
    if mode == Mode::Blocking && comm.has_first_calls(kind) && !unsafe { has_nothing(comm, kind, call) } {
        comm.take_first_call();
        return Ok(Some(kind));
    }
    comm.find_sharing()?;
    // What is below knows of no clusters.
    let below = comm.config().algorithm(kind).below() && !comm.is_apart()?;
    let nowhere = kind.is_neighbor() && comm.neighborhood().is_none();
    Ok((below || nowhere).then_some(kind))
}

/// Whether a call, which is not one along edges, [is empty](Call::is_empty): not all ranks make it then, so
/// that it must not count.
///
/// # Safety
/// As for [`Call::new`].
unsafe fn has_nothing(comm: &Comm, kind: Kind, call: &cr_call) -> bool {
    let (is_root, ranks) = (call.root == comm.rank() as i32, comm.size() as usize);
    // SAFETY: by the caller's promise.
    let (receive, send) = unsafe { sides(kind, is_root, (ranks, ranks), call) };
    given_by(kind, [&receive, &send], ranks, None, false).bytes == Some(0)
}
