// SPDX-License-Identifier: BSD-3-Clause
//! No panic crosses into C.

use crate::endpoint::{Error, Mismatch};
use crate::ffi::base::glue::CR_ERR_INTERN;
use crate::ffi::base::{error, messages};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; a panic becomes a message and an error code.
#[inline(always)]
pub fn guard(body: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| report(&*panic))
}

/// Runs `body`; a panic becomes a message and `fallback`.
#[inline(always)]
pub fn guard_or<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(panic) => {
            let _ = report(&*panic);
            fallback
        }
    }
}

/// Says what a panic was about, of which the default hook has printed the place: an error of ours. Or, where
/// nothing panicked, that lengths [do not fit](Mismatch). Returns the error code.
#[cold]
#[inline(never)]
pub fn report(panic: &(dyn Any + Send)) -> i32 {
    if panic.is::<Mismatch>() {
        return error::code(Error::Lengths);
    }
    let what = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    messages::print(&format!("coll/rust: internal error: {what}\nThe operation fails with MPI_ERR_INTERN."));
    CR_ERR_INTERN as i32
}
