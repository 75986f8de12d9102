// SPDX-License-Identifier: BSD-3-Clause
//! A user's buffer, or a temporary one, as the memory of a message.

use crate::endpoint::{Span, Stream};
use crate::ffi::base::error::code;
use crate::ffi::mpi::data::HostStream;
use crate::relay::mail::Memory;
use crate::shm::copy;

impl Memory for HostStream {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn read(&self, at: usize, to: &mut [u8]) -> Result<(), i32> {
        // SAFETY: it is only written, before this returns.
        let to = unsafe { Span::new(to.as_mut_ptr(), to.len(), 1) };
        match self.direct() {
            // SAFETY: so many bytes are in the stream, which does not lie in `to`.
            Some(run) => unsafe {
                copy::bytes(run.slice(at..at + to.len()).ptr(), to.ptr(), to.len());
            },
            None => self.pack(at, to).map_err(code)?,
        }
        Ok(())
    }

    fn write(&self, at: usize, from: &[u8]) -> Result<(), i32> {
        // SAFETY: it is only read, before this returns.
        let from = unsafe { Span::new(from.as_ptr().cast_mut(), from.len(), 1) };
        match self.direct() {
            // SAFETY: as in `read`.
            Some(run) => unsafe {
                copy::bytes(from.ptr(), run.slice(at..at + from.len()).ptr(), from.len());
            },
            None => self.unpack(at, from).map_err(code)?,
        }
        Ok(())
    }
}
