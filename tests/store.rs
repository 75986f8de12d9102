// SPDX-License-Identifier: BSD-3-Clause
//! The placement store: what goes in comes out, whatever is there is no panic, and a writer that dies at any
//! of its stores leaves it readable.
#![cfg(not(any(loom, miri)))]

#[path = "locks/family.rs"]
#[allow(dead_code)]
mod family;

#[path = "fuzz/memory.rs"]
#[allow(dead_code)]
mod memory;

mod store {
    mod corrupt;
    mod large;
    mod processes;
    mod properties;
    mod random;
}
