//! Blocking operations: run to their end on the caller's stack.

use super::comm::Comm;
use super::counters;
use super::engine::accept;
use super::glue::{self, cr_call};
use super::host::take_awaited;
use super::kind::Mode;
use super::neighbor;
use super::operation;
use super::shared::{self, quick::quick};
use super::team::Slot;
use crate::endpoint::Result;
use crate::shm::drive::{self, Around};
use crate::shm::team::Team;
use std::pin::{Pin, pin};
use std::sync::Arc;

/// Runs a blocking operation to its end.
///
/// # Safety
/// As for [`Call::new`](super::call::Call::new).
#[inline(always)]
pub unsafe fn block_on(comm: &Arc<Comm>, call: &cr_call) -> i32 {
    // SAFETY: by the caller's promise.
    if let Some(code) = unsafe { quick(comm, call) } {
        return code;
    }
    // SAFETY: as above.
    if let Some(code) = unsafe { neighbor::quick::quick(comm, call) } {
        return code;
    }
    // SAFETY: as above.
    unsafe { block_on_any(comm, call) }
}

/// As [`block_on`], of whatever is not [`quick`]. Not a part of it, whose frame would grow by this one's.
///
/// # Safety
/// As for [`Call::new`](super::call::Call::new).
#[inline(never)]
unsafe fn block_on_any(comm: &Arc<Comm>, call: &cr_call) -> i32 {
    // SAFETY: by the caller's promise.
    let mut call = match unsafe { accept(comm, call, Mode::Blocking) } {
        Ok(call) => call,
        Err(code) => return code,
    };
    counters::handled(call.kind, Mode::Blocking);
    if call.is_empty() || call.is_void() {
        return 0;
    }
    match neighbor::is_made_by_all(comm, call.kind) {
        Ok(by_all) => call.by_all = by_all,
        Err(code) => return code,
    }
    // Others may have come through `quick`, which counts nothing: tags and the place in flow control only matter where there is no shared
    // memory, and are taken when that is known.
    let slot = shared::is_eligible(&call).then_some(Slot::Blocking);
    let (first_tag, synchronise) = match slot.is_some() && comm.is_shared() {
        true => (None, false),
        false => (Some(comm.identities.blocking(call.kind)), comm.synchronises(call.kind, call.one_way, call.by_all)),
    };
    drive(pin!(operation::run(comm, &call, slot, first_tag, synchronise)), || comm.team.get())
        .map_or_else(operation::code, |()| 0)
}

/// Runs a future to its end on the caller's stack. The outermost caller makes progress, nobody else. `team`: the one that the future
/// may wait in.
#[inline(always)]
pub fn drive<'t>(
    future: Pin<&mut impl Future<Output = Result<()>>>,
    team: impl Fn() -> Option<&'t Team>,
) -> Result<()> {
    drive::drive(future, team, OpenMpi)
}

/// Open MPI around a blocking operation.
struct OpenMpi;

impl Around for OpenMpi {
    #[inline(always)]
    fn progress(&mut self) {
        // SAFETY: nothing is borrowed or locked when this is called.
        unsafe { glue::cr_progress() };
    }

    #[inline(always)]
    fn progress_hushed(&mut self) {
        // SAFETY: as above.
        unsafe { glue::cr_progress_hushed() };
    }

    #[inline(always)]
    fn take_awaited(&mut self) -> bool {
        take_awaited()
    }
}
