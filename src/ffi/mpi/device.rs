// SPDX-License-Identifier: BSD-3-Clause
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

use crate::endpoint::{Result, Span};
use crate::ffi::mpi::progress;
pub use stage::Stage;
use std::future::poll_fn;
use std::task::Poll;

/// What stands in host memory for the buffers of a reduction that lie in a device's. Whoever reads or writes
/// there says so before; what is said of other memory is ignored.
#[derive(Default)]
pub struct Staging {
    /// Of the send buffer.
    pub operand: Option<Stage>,
    /// Of the receive buffer; in place, the operand too.
    pub result: Option<Stage>,
}

impl Staging {
    fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.operand.iter().chain(&self.result)
    }

    /// Begins to fetch what is read.
    pub fn begin(&self) -> Result<()> {
        self.stages().try_for_each(Stage::begin)
    }

    /// Before `bytes` from `at` on are read or written: waits until they are here.
    pub fn needs(&self, at: *const u8, bytes: usize) -> Result<()> {
        self.stages().try_for_each(|stage| stage.needs(at, bytes))
    }

    /// The same operation comes once more, and finds nothing fetched. The last one is over.
    pub fn restart(&self) {
        self.stages().for_each(Stage::restart);
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
    pub async fn end(&self) -> Result<()> {
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
                progress::await_progress();
                return Poll::Pending;
            }
            Poll::Ready(Ok(()))
        })
        .await
    }
    /// Gives the memory back. Nobody uses it any more.
    pub fn free(self) {
        self.operand.into_iter().chain(self.result).for_each(Stage::free);
    }
}

/// Bytes from the first element to behind the last one.
fn reach(elements: Span) -> usize {
    elements.len().saturating_mul(usize::try_from(elements.extent()).unwrap_or(0))
}
