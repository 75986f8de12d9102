// SPDX-License-Identifier: BSD-3-Clause
//! Texts for C.

use std::ffi::{CString, c_char};

/// A text as C has it.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// A C string that is not freed by itself.
pub fn leak(text: String) -> *const c_char {
    c_text(&text).into_raw()
}
