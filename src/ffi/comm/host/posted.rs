// SPDX-License-Identifier: BSD-3-Clause
//! What was posted and is not yet waited for.

use super::HostEndpoint;
use crate::endpoint::{Endpoint, Error, Result};
use crate::ffi::base::glue::{self, CR_ERR_TRUNCATE, ompi_request_t};
use crate::ffi::mpi::progress::await_progress;
use crate::ffi::process::gateway;
use crate::relay::mail::Handle;
use std::task::Poll;

/// A message, or the place of one.
#[derive(Clone, Copy)]
pub struct Entry {
    pub work: Work,
    /// Bytes that a receive must bring; [`SEND`] for a send.
    pub expected: usize,
}

/// What a send is to bring.
pub const SEND: usize = usize::MAX;

/// By what a message goes.
#[derive(Clone, Copy)]
pub enum Work {
    /// None does: the place is free.
    None,
    /// By Open MPI's point-to-point.
    Request(*mut ompi_request_t),
    /// By the gateway.
    Gateway(Handle),
}

impl Entry {
    pub fn is_free(&self) -> bool {
        matches!(self.work, Work::None)
    }

    /// Of a receive: it is not wanted any more. A gateway's may be gone at once, and leaves its place.
    pub fn cancel(&mut self) {
        match self.work {
            // SAFETY: ours, and not finished; harmless if it is matched already.
            Work::Request(request) if self.expected != SEND => unsafe { glue::cr_request_cancel(request) },
            Work::Gateway(handle) if self.expected != SEND => gateway::give_up(handle),
            _ => {}
        }
    }

    /// Gives it up, whatever it is. Whether it may still touch memory.
    pub fn abandon(&mut self) -> bool {
        match std::mem::replace(&mut self.work, Work::None) {
            Work::None => false,
            Work::Gateway(handle) => {
                gateway::give_up(handle);
                false
            }
            // SAFETY: the request is ours. Freeing one that is not complete is allowed: Open MPI frees it
            // when it is.
            Work::Request(request) => unsafe {
                let done = glue::cr_request_done(request) != 0;
                if !done && self.expected != SEND {
                    glue::cr_request_cancel(request);
                }
                let in_flight = glue::cr_request_done(request) == 0;
                let mut bytes = 0;
                glue::cr_request_finish(request, &mut bytes);
                in_flight
            },
        }
    }
}

impl HostEndpoint {
    /// Looks at a posted message; frees its place when it is complete.
    pub(super) fn test(&self, slot: usize) -> Poll<Result<()>> {
        let Some(&entry) = self.state().posted.get(slot) else { return Poll::Ready(Ok(())) };
        let end = match entry.work {
            Work::None => return Poll::Ready(Ok(())),
            Work::Gateway(handle) => gateway::test(handle),
            // SAFETY: the request is ours until it is finished below.
            Work::Request(request) => match unsafe { glue::cr_request_done(request) } {
                0 => None,
                _ => {
                    let mut bytes = 0;
                    // SAFETY: complete, ours, and forgotten right after.
                    let code = unsafe { glue::cr_request_finish(request, &mut bytes) };
                    Some(if code == 0 { Ok(bytes) } else { Err(Error::Mpi(code)) })
                }
            },
        };
        let Some(end) = end else {
            await_progress();
            return Poll::Pending;
        };
        let state = self.state();
        state.posted[slot].work = Work::None;
        state.free += 1;
        let error = match end {
            // Who has failed sends none in place of data, and a byte in place of none.
            Ok(0) if entry.expected != SEND && entry.expected > 0 => Error::Peer,
            Err(Error::Mpi(code)) if entry.expected == 0 && code == CR_ERR_TRUNCATE as i32 => Error::Peer,
            // A short message: the ranks do not agree about the amount of data.
            Ok(bytes) if entry.expected != SEND && entry.expected != bytes => Error::Lengths,
            Ok(_) => return Poll::Ready(Ok(())),
            Err(Error::Mpi(code)) if code == CR_ERR_TRUNCATE as i32 => Error::Lengths,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if !self.goes_on {
            return Poll::Ready(Err(error));
        }
        self.note(error);
        Poll::Ready(Ok(()))
    }
}
