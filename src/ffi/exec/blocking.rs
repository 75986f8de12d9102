// SPDX-License-Identifier: BSD-3-Clause
//! Blocking operations: run to their end on the caller's stack.

use crate::endpoint::Result;
use crate::ffi::base::error;
use crate::ffi::base::glue::{self, cr_call};
use crate::ffi::base::kind::{Kind, Mode, has_equal_blocks};
use crate::ffi::call::accept::accept;
use crate::ffi::call::device::Device;
use crate::ffi::call::eligible;
use crate::ffi::comm::slot::Slot;
use crate::ffi::comm::state::Comm;
use crate::ffi::mpi::progress::take_awaited;
use crate::ffi::process::counters;
use crate::ffi::run::operation;
use crate::shm::exec::drive::{self, Around};
use crate::shm::protocol::reach::Reach;
use crate::shm::protocol::team::Team;
use crate::shm::protocol::turn::waits::Runs;
use crate::sync::wait::Patience;
use std::cell::Cell;
use std::pin::{Pin, pin};
use std::sync::Arc;

/// Runs a blocking operation to its end, by the way of all calls. Not a part of its caller, whose frame would
/// grow by this one's.
///
/// # Safety
/// As for [`Call::new`](crate::ffi::call::arguments::Call::new).
#[inline(never)]
pub unsafe fn block_on_any(comm: &Arc<Comm>, call: &cr_call, device: Device) -> i32 {
    // SAFETY: by the caller's promise.
    let mut call = match unsafe { accept(comm, call, device, Mode::Blocking) } {
        Ok(call) => call,
        Err(code) => return code,
    };
    counters::handled(call.kind, Mode::Blocking);
    if call.is_empty() || call.is_void() {
        return 0;
    }
    match is_made_by_all(comm, call.kind) {
        Ok(by_all) => call.by_all = by_all,
        Err(code) => return code,
    }
    // Others may have come by a short way, which takes no tags: these and the place in flow control only
    // matter where there is no shared memory, and are taken when that is known.
    let slot = eligible::is_eligible(comm, &call).then_some(Slot::Blocking);
    let (first_tag, synchronise) = match slot.is_some() && comm.is_shared() {
        true => (None, false),
        false => (Some(comm.identities.blocking(call.kind)), comm.synchronises(call.kind, call.one_way, call.by_all)),
    };
    drive(pin!(operation::run(comm, &call, slot, first_tag, synchronise)), || comm.team.get())
        .map_or_else(error::code, |()| 0)
}

/// Whether all ranks are sure to make a blocking call that this one makes. Open MPI's bindings return from
/// Neighbor_allgather and Neighbor_alltoall at once at ranks that describe no data: that all have the same
/// amount follows from the edges, as far as ranks hang together by them. The same on all ranks that make the
/// call; the first time, it takes messages.
pub fn is_made_by_all(comm: &Comm, kind: Kind) -> std::result::Result<bool, i32> {
    if !has_equal_blocks(kind) {
        return Ok(true);
    }
    let Some(around) = comm.neighborhood() else { return Ok(true) };
    if let Some(known) = around.known_connected() {
        return Ok(known);
    }
    let mut found = false;
    let find = async {
        found = around.is_connected(comm).await?;
        Ok(())
    };
    drive(pin!(find), || None).map_err(error::code)?;
    Ok(found)
}

/// Runs a future to its end on the caller's stack. Who waits makes progress: this, or [`InTeam`] within an
/// operation that is polled here. `team`: the one that the future may wait in.
#[inline(always)]
pub fn drive<'t>(
    future: Pin<&mut impl Future<Output = Result<()>>>,
    team: impl Fn() -> Option<&'t Team>,
) -> Result<()> {
    drive::drive(future, team, OpenMpi, &mut Patience::default())
}

/// Runs an operation of a team that may have to wait often to its end: one text for all.
#[inline(never)]
pub fn drive_long(operation: Pin<&mut dyn Future<Output = Result<()>>>, team: &Team) -> Result<()> {
    drive(pin!(operation), || Some(team))
}

/// Waits in a team on the caller's stack, with the patience of one operation.
#[derive(Clone, Copy)]
pub struct InTeam<'t> {
    /// The team that the operation waits in.
    pub team: &'t Team,
    /// What its waits have used up so far.
    pub patience: &'t Cell<Patience>,
}

impl Runs for InTeam<'_> {
    /// Not a part of what waits, which as a rule does not.
    #[cold]
    #[inline(never)]
    fn run<F: Future>(self, late: impl FnOnce() -> F) -> F::Output {
        let mut patience = self.patience.get();
        let result = drive::drive(pin!(late()), || Some(self.team), OpenMpi, &mut patience);
        self.patience.set(patience);
        result
    }

    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.hot.coll_rust")]
    fn reach(self, late: Reach<'_>) -> Result<()> {
        let mut patience = self.patience.get();
        let has_come = late.gives_way(&mut patience, || OpenMpi.yield_now());
        self.patience.set(patience);
        if has_come { Ok(()) } else { self.run(move || late).map(drop) }
    }
}

/// Open MPI around a blocking operation.
struct OpenMpi;

impl Around for OpenMpi {
    #[inline(always)]
    fn progress(&mut self) {
        // SAFETY: nothing that it may reach is borrowed or locked when this is called.
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
