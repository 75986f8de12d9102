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
//! * *What is reduced* is [staged](Staging) in host memory, segment by segment: while one is combined, or
//!   sent, the accelerator fetches the next one, and takes back those of the result that are final.

mod memory;
mod stage;
mod stream;

use super::apart::apart;
use super::call::Call;
use super::comm::Comm;
use super::glue::{CR_RECV_ON_DEVICE, CR_SEND_ON_DEVICE};
use super::host;
use super::kind::Kind;
use super::operation;
use super::team::Slot;
use crate::endpoint::{Result, Span};
use stage::Stage;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

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

/// Whether a call reduces what lies in a device's memory at this rank.
pub fn must_stage(call: &Call) -> bool {
    !call.op.is_null() && call.send.iter().chain(&call.receive).any(|side| side.device)
}

/// What stands in host memory for the buffers of a reduction that lie in a device's. Whoever reads or writes
/// there says so before; what is said of other memory is ignored.
#[derive(Default)]
pub struct Staging {
    /// Of the send buffer.
    operand: Option<Stage>,
    /// Of the receive buffer; in place, the operand too.
    result: Option<Stage>,
}

impl Staging {
    /// For a call.
    fn of(call: &Call) -> Result<Staging> {
        let dtype = call.units();
        let mut staging = Staging::default();
        if call.send.as_ref().is_some_and(|side| side.device) {
            staging.operand = Some(Stage::new(dtype, call.operand(), true, 0)?);
        }
        if call.receive.as_ref().is_some_and(|side| side.device) {
            let in_place = call.send.is_none();
            let there = if in_place { call.operand() } else { call.result() };
            let has_result = call.kind != Kind::Exscan || !call.is_first();
            let result = if has_result { call.result().len() } else { 0 };
            staging.result = Some(Stage::new(dtype, there, in_place, result)?);
        }
        Ok(staging)
    }

    /// The call with its elements there.
    fn stand_in(self: &Arc<Staging>, call: &Call) -> Call {
        let mut host = call.clone();
        for (side, stage) in [(&mut host.send, &self.operand), (&mut host.receive, &self.result)] {
            if let (Some(side), Some(stage)) = (side, stage) {
                (side.buffer, side.device) = (stage.here().ptr().cast(), false);
            }
        }
        host.staging = Some(self.clone());
        host
    }

    fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.operand.iter().chain(&self.result)
    }

    /// Before `bytes` from `at` on are read or written: waits until they are here.
    pub fn needs(&self, at: *const u8, bytes: usize) -> Result<()> {
        self.stages().try_for_each(|stage| stage.needs(at, bytes))
    }

    /// Before anything is read.
    pub fn needs_all(&self) -> Result<()> {
        self.stages().try_for_each(Stage::needs_all)
    }

    /// As [`needs`](Staging::needs), of elements.
    pub fn needs_elements(&self, elements: Span) -> Result<()> {
        self.needs(elements.ptr(), reach(elements))
    }

    /// So many bytes of the result are final; to be said once of each, if at all.
    pub fn made(&self, at: *const u8, bytes: usize) {
        if let Some(stage) = &self.result {
            stage.made(at, bytes);
        }
    }

    /// As [`made`](Staging::made), of elements.
    pub fn made_elements(&self, elements: Span) {
        self.made(elements.ptr(), reach(elements));
    }

    /// Waits until the result is in the device's memory.
    async fn end(&self) -> Result<()> {
        self.stages().try_for_each(Stage::end)?;
        poll_fn(|_| {
            let mut goes_on = false;
            for stage in self.stages() {
                match stage.goes_on() {
                    Ok(now) => goes_on |= now,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            if goes_on {
                host::await_progress();
                return Poll::Pending;
            }
            Poll::Ready(Ok(()))
        })
        .await
    }
}

/// Bytes from the first element to behind the last one.
fn reach(elements: Span) -> usize {
    elements.len().saturating_mul(usize::try_from(elements.extent()).unwrap_or(0))
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
    let staging = Arc::new(Staging::of(call)?);
    staging.stages().try_for_each(Stage::begin)?;
    {
        let host = staging.stand_in(call);
        // It comes here once: nothing of it lies in a device's memory any more.
        debug_assert!(!must_stage(&host));
        apart(|| operation::run(comm, &host, slot, first_tag, synchronise)).await?;
    }
    staging.end().await?;
    if let Some(Staging { operand, result }) = Arc::into_inner(staging) {
        operand.into_iter().chain(result).for_each(Stage::free);
    }
    Ok(())
}
