// SPDX-License-Identifier: BSD-3-Clause
//! Addresses in a team's memory.

use crate::shm::memory::layout::{Control, StreamControl};
use std::mem::offset_of;

/// An address in the team's memory.
#[repr(transparent)]
pub(in crate::shm) struct At<T>(pub *mut T);

impl<T> Clone for At<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for At<T> {}

impl At<StreamControl> {
    /// The whole of what the first stream is a part of.
    ///
    /// # Safety
    /// One of a team's `controls`, for no longer than there is the team.
    #[inline(always)]
    pub(super) unsafe fn control<'t>(self) -> &'t Control {
        // SAFETY: `Memory` promises a control block there; it is only accessed through shared words and raw
        // pointers. The address was made from that of the whole block, by no reference.
        unsafe { &*self.0.byte_sub(offset_of!(Control, stream)).cast::<Control>() }
    }
}

// SAFETY: an address of shared memory; accesses follow the protocol.
unsafe impl<T> Send for At<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for At<T> {}
