// SPDX-License-Identifier: BSD-3-Clause
//! Atomics and waiting: the only place that knows whether a model checker runs.

pub mod atomic;
pub mod cache;
pub mod cgroup;
pub mod clock;
#[cfg(not(loom))]
pub mod cores;
pub mod files;
pub mod futex;
#[cfg(loom)]
pub mod model;
pub mod pages;
pub mod rwlock;
pub mod segment;
pub mod shared;
#[cfg(all(feature = "clock", not(loom)))]
pub mod timed;
pub mod wait;
