// SPDX-License-Identifier: BSD-3-Clause
//! Persistent operations: made once, started again and again. A start makes the future anew from the saved
//! arguments and hands it to the [engine](crate::ffi::exec::engine).

use crate::endpoint::{Endpoint, Result, Span, Tag, TempBuffer};
use crate::ffi::base::error;
use crate::ffi::base::glue::{self, CR_ERR_NO_MEM, cr_call, ompi_request_t};
use crate::ffi::base::kind::{Kind, Mode};
use crate::ffi::call::accept::accept;
use crate::ffi::call::arguments::{Call, Retained};
use crate::ffi::call::device::Device;
use crate::ffi::call::eligible;
use crate::ffi::comm::core;
use crate::ffi::comm::host::HostEndpoint;
use crate::ffi::comm::identity::{Identity, Kept};
use crate::ffi::comm::slot::Slot;
use crate::ffi::comm::state::Comm;
use crate::ffi::exec::below::Below;
use crate::ffi::exec::blocking;
use crate::ffi::exec::engine::launch;
use crate::ffi::mpi::data::Datatype;
use crate::ffi::process::counters;
use crate::hier::plans::Along;
use crate::topo::{Group, Level};
use std::ffi::c_void;
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The Rust half of a persistent request.
#[expect(clippy::large_enum_variant, reason = "nearly all are of the large one")]
enum Half {
    /// Of an operation that is run here.
    Own(Persistent),
    /// Of one that the component below runs, on host memory in place of a device's.
    Below(Below),
}

/// A persistent operation.
struct Persistent {
    comm: Arc<Comm>,
    call: Call<'static>,
    _retained: Retained,
    /// `None` for an empty operation, which takes none.
    kept: Option<Kept>,
    /// Whether it was made when it was known from how many bytes on to read others' memory.
    late: bool,
    starts: AtomicU32,
    /// Whether a start has failed: messages of it may still come, with the tags of the next one.
    failed: Arc<AtomicBool>,
    request: *mut ompi_request_t,
}

/// Makes a persistent operation; stores its inactive request.
///
/// # Safety
/// As for [`start`](crate::ffi::exec::engine::start_any); the buffers stay the user's between starts.
pub unsafe fn init(comm: &Arc<Comm>, call: &cr_call, device: Device, request: *mut *mut ompi_request_t) -> i32 {
    // SAFETY: by the caller's promise.
    let call = match unsafe { accept(comm, call, device, Mode::Persistent) } {
        Ok(call) => call.own(),
        Err(code) => return code,
    };
    let kept = match call.is_empty() {
        true => None,
        false => match comm.identities.persistent(eligible::is_eligible(comm, &call), |used| agree(comm, used)) {
            Ok(kept) => Some(kept),
            Err(code) => return code,
        },
    };
    // SAFETY: alive by the caller's promise.
    let retained = unsafe { call.retain() };
    let half = Half::Own(Persistent {
        comm: comm.clone(),
        call,
        _retained: retained,
        kept,
        late: comm.team.has_learned(),
        starts: AtomicU32::new(0),
        failed: Arc::default(),
        request: ptr::null_mut(),
    });
    // SAFETY: by the caller's promise.
    unsafe { hand_over(comm, half, request) }
}

/// Stores the inactive request of an operation that the component below runs.
///
/// # Safety
/// `request` may be written.
pub unsafe fn keep(comm: &Arc<Comm>, below: Below, request: *mut *mut ompi_request_t) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { hand_over(comm, Half::Below(below), request) }
}

/// Makes a request, which owns the half from here on (cr_op_free), and stores it.
///
/// # Safety
/// `request` may be written.
unsafe fn hand_over(comm: &Comm, half: Half, request: *mut *mut ompi_request_t) -> i32 {
    let half = Box::into_raw(Box::new(half));
    // SAFETY: the communicator is alive; the half is the request's, or nobody's, and nobody else has it yet.
    unsafe {
        let made = glue::cr_request_new(comm.handle(), 1, half.cast());
        if made.is_null() {
            release(half.cast());
            return CR_ERR_NO_MEM as i32;
        }
        match &mut *half {
            Half::Own(own) => own.request = made,
            Half::Below(below) => below.set_request(made),
        }
        *request = made;
    }
    0
}

/// Starts a persistent operation again.
///
/// # Safety
/// `half` is that of a live, inactive request.
pub unsafe fn restart(half: *mut c_void) -> i32 {
    // Nothing of the request is touched once it is launched: another thread may complete and free it.
    let (comm, call, request, identity, failed) = {
        // SAFETY: by the caller's promise; made in `hand_over`.
        let half = match unsafe { &*half.cast::<Half>() } {
            Half::Own(half) => half,
            Half::Below(below) => return below.work().start(),
        };
        if half.failed.load(Ordering::Relaxed) {
            return error::refused();
        }
        let identity = half.kept.map(|kept| Identity {
            ticket: None,
            slot: kept.slot.map(|number| Slot::Persistent { number, late: half.late }),
            first_tag: kept.first_tag,
            synchronise: half.call.one_way && core::due(&half.starts, half.comm.config().flow_limit),
        });
        (half.comm.clone(), half.call.clone(), half.request, identity, half.failed.clone())
    };
    counters::handled(call.kind, Mode::Persistent);
    // SAFETY: inactive, and ours to start.
    unsafe { glue::cr_request_activate(request) };
    launch(&comm, call, request, identity, Some(failed), true);
    0
}

/// Frees the Rust half of a request.
///
/// # Safety
/// `half` was made by [`init`] or [`keep`] and is not used again; null is fine.
pub unsafe fn release(half: *mut c_void) {
    if !half.is_null() {
        // SAFETY: by the caller's promise.
        match *unsafe { Box::from_raw(half.cast::<Half>()) } {
            Half::Own(Persistent { kept: Some(kept), comm, .. }) => comm.identities.free(kept),
            Half::Own(_) => {}
            Half::Below(below) => below.free(),
        }
    }
}

/// Makes, of the bits for what this rank uses, those for what any rank uses.
fn agree(comm: &Comm, used: &mut [u8]) -> std::result::Result<(), i32> {
    let first_tag = comm.identities.blocking(Kind::Barrier);
    let plan = comm.plan(Kind::Barrier, Along::All, false, None)?;
    let ep = HostEndpoint::new(comm, None, Datatype::BYTES, ptr::null_mut(), first_tag);
    blocking::drive(pin!(ep.settled(union(&ep, &plan.groups, used))), || None).map_err(error::code)
}

/// Everybody's bits or'ed together, everywhere: up and down the groups.
async fn union(ep: &HostEndpoint, groups: &[Group], bits: &mut [u8]) -> Result<()> {
    let (mine, theirs) = (ep.temp(bits.len())?, ep.temp(bits.len())?);
    let tag = |phase| Tag { lane: 0, phase, level: Level::Cluster.index() };
    let others = |members: usize, me: usize| (0..members).filter(move |&member| member != me);
    for group in groups {
        if group.me != group.leader {
            write(bits, mine.span());
            ep.send(group.members[group.leader], tag(0), mine.span()).await?;
            continue;
        }
        for member in others(group.members.len(), group.me) {
            ep.recv(group.members[member], tag(0), theirs.span()).await?;
            // SAFETY: the receive is complete, so the buffer holds `bits.len()` bytes that nothing else
            // touches.
            let other = unsafe { std::slice::from_raw_parts(theirs.span().ptr(), bits.len()) };
            bits.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
        }
    }
    for group in groups.iter().rev() {
        if group.me != group.leader {
            ep.recv(group.members[group.leader], tag(1), theirs.span()).await?;
            // SAFETY: as above.
            bits.copy_from_slice(unsafe { std::slice::from_raw_parts(theirs.span().ptr(), bits.len()) });
            continue;
        }
        write(bits, mine.span());
        for member in others(group.members.len(), group.me) {
            ep.send(group.members[member], tag(1), mine.span()).await?;
        }
    }
    Ok(())
}

fn write(bits: &[u8], to: Span) {
    // SAFETY: a temporary buffer of that length, with nothing posted on it.
    unsafe { ptr::copy_nonoverlapping(bits.as_ptr(), to.ptr(), bits.len()) };
}
