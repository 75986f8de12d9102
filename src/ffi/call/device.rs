// SPDX-License-Identifier: BSD-3-Clause
//! Calls with buffers in a device's memory.

use crate::ffi::base::glue::{CR_RECV_ON_DEVICE, CR_SEND_ON_DEVICE};
use crate::ffi::call::arguments::Call;

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
pub fn must_stage(call: &Call<'_>) -> bool {
    !call.op.is_null() && call.send.iter().chain(&call.receive).any(|side| side.device)
}
