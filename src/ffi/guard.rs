//! No panic crosses into C.

use super::glue::CR_ERR_INTERN;
use super::startup;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; a panic becomes a message and `MPI_ERR_INTERN`.
#[inline(always)]
pub fn guard(body: impl FnOnce() -> i32) -> i32 {
    guard_or(CR_ERR_INTERN as i32, body)
}

/// Runs `body`; a panic becomes a message and `fallback`.
#[inline(always)]
pub fn guard_or<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(panic) => {
            report(&*panic);
            fallback
        }
    }
}

/// Says what a panic was about. The default hook has printed the place.
pub fn report(panic: &(dyn Any + Send)) {
    let what = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    startup::print(&format!("coll/rust: internal error: {what}\nThe operation fails with MPI_ERR_INTERN."));
}
