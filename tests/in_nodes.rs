// SPDX-License-Identifier: BSD-3-Clause
//! Operations on several nodes whose processes share memory: each rank a future of the simulator, each node
//! with a team on the heap. Random machines, roots, segments and windows, several operations at a time,
//! adversarial orders; some nodes have no memory, for all or some streams. Every result is compared with an
//! oracle.
#![cfg(not(loom))]

#[allow(dead_code)]
#[path = "shm/data.rs"]
mod data;
#[allow(dead_code)]
#[path = "properties/job.rs"]
mod job;
#[allow(dead_code)]
#[path = "properties/random.rs"]
mod random;

mod in_nodes {
    mod blocks;
    mod failures;
    mod neighbor;
    mod operations;
    mod world;
}
