// SPDX-License-Identifier: BSD-3-Clause
//! The card that each process publishes when it starts: where it sits, its build, and the parameters that
//! differ from their defaults.

use crate::ffi::base::glue::{self, cr_proc};
use std::ffi::{CStr, c_char};
use std::ptr;

/// Lines of a card before the parameters: host, locality, processors that the process may run on.
pub const CARD_LINES: usize = 3;

/// The card that a process of the same job has published.
pub fn card(process: &cr_proc) -> Result<String, i32> {
    let mut text: *mut c_char = ptr::null_mut();
    // SAFETY: on success `text` is a malloc'd string that is ours.
    unsafe {
        let code = glue::cr_modex_get(process, &mut text);
        if code != 0 || text.is_null() {
            return Err(code);
        }
        let card = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        Ok(card)
    }
}

/// The parameters that differ from their defaults in a process's card: its lines `name=value`.
pub fn settings(card: &str) -> impl Iterator<Item = (&str, &str)> {
    card.lines().skip(CARD_LINES).filter_map(|line| line.split_once('='))
}
