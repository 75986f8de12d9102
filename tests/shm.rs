// SPDX-License-Identifier: BSD-3-Clause
//! The shared-memory operations: members as futures of one thread, polled in a seeded adversarial order, and
//! as threads. Every result is compared with an oracle; a state in which nothing can move is an error.
//!
//! `SHM_SEEDS` makes more runs.
#![cfg(not(loom))]

mod shm {
    mod data;
    mod dealt;
    mod divided;
    mod failures;
    mod gathered;
    mod operations;
    mod random;
    mod threads;
    mod trees;
    mod unreadable;
    mod unwritable;
    mod waits;
    mod world;
}
