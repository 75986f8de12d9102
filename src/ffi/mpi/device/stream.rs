// SPDX-License-Identifier: BSD-3-Clause
//! Copies between host memory and a device's that go on while the caller does something else, where Open MPI
//! has such ones.

use crate::endpoint::{Error, Result, Span};
use crate::ffi::base::glue::{self, CR_ERR_INTERN};
use std::ffi::c_void;
use std::hint::spin_loop;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the device's memory.
    In,
    /// To it.
    Out,
}

/// Copies of one direction and one device, which happen in their order.
#[derive(Clone, Copy)]
pub struct Stream {
    device: i32,
    way: Way,
    handle: NonNull<c_void>,
}

// SAFETY: Open MPI's streams may be used by any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

/// All there are: a process makes two for each device, and keeps them.
static STREAMS: Mutex<Vec<Stream>> = Mutex::new(Vec::new());

impl Stream {
    /// That of the device whose memory an address lies in; `None`: it has none.
    pub fn of(there: *mut u8, way: Way) -> Option<Stream> {
        // SAFETY: asks about an address only.
        let device = unsafe { glue::cr_device(there.cast()) };
        let mut all = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = all.iter().find(|stream| stream.device == device && stream.way == way) {
            return Some(*stream);
        }
        // SAFETY: makes one, for a device that there is.
        let handle = NonNull::new(unsafe { glue::cr_stream(device) })?;
        all.push(Stream { device, way, handle });
        all.last().copied()
    }

    /// Begins a copy of bytes.
    ///
    /// # Safety
    /// Both spans hold so many bytes, do not overlap, and stay as they are until the copy is over.
    pub unsafe fn begin(&self, from: Span, to: Span) -> Result<Flight> {
        let (to_device, bytes) = (i32::from(self.way == Way::Out), from.len());
        // SAFETY: by the caller's promise.
        let copy = unsafe {
            let (to, from) = (to.ptr().cast(), from.ptr().cast());
            glue::cr_stream_copy(self.handle.as_ptr(), self.device, to, from, bytes, to_device)
        };
        NonNull::new(copy).map(|copy| Flight { device: self.device, copy }).ok_or(FAILED)
    }
}

/// The accelerator has failed to copy.
const FAILED: Error = Error::Mpi(CR_ERR_INTERN as i32);

/// A copy on its way. To be asked until it is over, even if nobody wants it any more.
#[must_use]
pub struct Flight {
    device: i32,
    copy: NonNull<c_void>,
}

// SAFETY: as for `Stream`.
unsafe impl Send for Flight {}

impl Flight {
    /// How it has ended; gives it back while it has not.
    pub fn ended(self) -> std::result::Result<Result<()>, Flight> {
        // SAFETY: not over so far; it is given up when it is.
        match unsafe { glue::cr_stream_done(self.device, self.copy.as_ptr()) } {
            0 => Err(self),
            1 => Ok(Ok(())),
            _ => Ok(Err(FAILED)),
        }
    }

    /// Waits until it is over.
    pub fn wait(mut self) -> Result<()> {
        loop {
            match self.ended() {
                Ok(end) => return end,
                Err(flight) => self = flight,
            }
            spin_loop();
        }
    }
}
