// SPDX-License-Identifier: BSD-3-Clause
//! The name of this process.

use crate::ffi::base::glue::{self, cr_proc};

/// This process's name.
pub fn own_name() -> cr_proc {
    let mut name = cr_proc::default();
    // SAFETY: fills in ours.
    unsafe { glue::cr_self(&mut name) };
    name
}
