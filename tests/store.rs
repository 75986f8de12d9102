// SPDX-License-Identifier: BSD-3-Clause
//! The placement store: what goes in comes out, whatever is there is no panic, and a writer that dies at any
//! of its stores leaves it readable.
#![cfg(not(any(loom, miri)))]

#[path = "locks/family.rs"]
#[allow(dead_code)]
mod family;

mod store {
    mod corrupt;
    mod large;
    mod processes;
    mod properties;
    mod random;
}
