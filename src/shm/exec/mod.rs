// SPDX-License-Identifier: BSD-3-Clause
//! Who runs the operations of [`op`](super::op).
//!
//! * [`drive`]: a blocking call runs one to its end.
//! * [`node`]: an operation of several nodes runs several, on streams of their own.

pub mod drive;
pub mod node;
